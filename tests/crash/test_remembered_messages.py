"""What handlers remember of messages that were not sent yet holds over the end of any process."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from storage.lifecycle import InboxState
from tests.crash.books import read_books
from tests.crash.living import Living, living
from tests.live.process import until
from tests.simulator.ledger import Arrival

HANDLERS: Final = "tests.crash.remembering:register"
_NEGATIVE = re.compile(r"-\d")
_ABOUT_MESSAGES: Final = ("message_id", "message_ids", "reply_parameters")


@asynccontextmanager
async def remembering(folder: Path) -> AsyncIterator[Living]:
    """A house whose bot remembers its messages; web runs, nothing is sent yet."""
    async with living(folder, handlers=HANDLERS) as house:
        await house.start_all("web")
        yield house


async def hears(house: Living, word: str) -> None:
    """A person writes, and a worker that lives no longer than its turn handles it."""
    await house.start_all("worker")
    user, bot = house.load.chats[0].user, house.load.bot.id
    said = await house.sim.says(user, word, bot=bot)

    async def is_done() -> bool:
        updates = read_books(house.house.database_path).updates
        return any(
            update.update_id == said.update_ids[0] and update.state == InboxState.DONE
            for update in updates
        )

    await until(is_done, within_ms=20_000, what=f"the turn of {word!r}")
    await house.house.kill("worker")


async def sent_by_senders_that_die(house: Living, *, deaths: int) -> list[Arrival]:
    """Let senders work that die after each answer they wrote down, then one that lives."""
    for _ in range(deaths):
        process = await house.start("sender", failpoint="sender.settled")
        await process.ended(within_s=20)
    await house.start_all("sender")
    evidence = await house.drained()
    await house.house.kill("sender")
    # Of two edits that wait, the newer one is made.
    assert {row.state for row in evidence.books.rows} <= {"sent", "superseded"}
    return [arrival for arrival in evidence.ledger.arrivals() if arrival.effect]


def by_method(arrivals: list[Arrival]) -> dict[str, list[Arrival]]:
    found: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        found.setdefault(arrival.method, []).append(arrival)
    return found


@pytest.mark.timeout(120)
async def test_ids_that_were_given_before_anything_was_sent_hold_in_every_process(
    tmp_path: Path,
) -> None:
    """The worker dies after each turn, the sender after each answer: all is done to its message."""
    async with remembering(tmp_path) as house:
        for word in ("say", "work", "delete"):
            await hears(house, word)
        arrivals = await sent_by_senders_that_die(house, deaths=4)
        await hears(house, "ids")
        arrivals = await sent_by_senders_that_die(house, deaths=0)
        user, bot = house.load.chats[0].user, house.load.bot.id
        shown = {each.message_id: each for each in await house.sim.conversation(bot, user)}
        made = by_method(arrivals)
        said, gone, same, *_ = [each.message_id for each in made["sendMessage"]]
        first = made["sendMediaGroup"][0].message_id
        assert said is not None
        assert gone is not None
        assert first is not None

        assert shown[said].text == "said, edited again"
        assert shown[gone].deleted
        assert shown[same or 0].text == "same: True"
        [deleted] = [json.loads(each.params["message_ids"]) for each in made["deleteMessages"]]
        assert deleted == [first, first + 2]
        assert [shown[first + place].deleted for place in range(3)] == [True, False, True]
        assert shown[first + 1].text == "the second picture"
        marked = [*made["pinChatMessage"], *made["setMessageReaction"], *made["forwardMessage"]]
        assert {each.params["message_id"] for each in [*marked, *made["copyMessage"]]} == {
            str(said)
        }
        [reply] = [each for each in shown.values() if each.text == "a reply"]
        assert reply.reply_to == said
        assert any(each.text == "the copy, edited" for each in shown.values())
        assert any(each.text == "the copied picture" for each in shown.values())
        ids = [said, first, first + 1, first + 2]
        assert any(each.text == f"ids {ids}" for each in shown.values())
        for arrival in arrivals:
            named = [arrival.params.get(name, "") for name in _ABOUT_MESSAGES]
            assert not any(map(_NEGATIVE.search, named)), arrival

        await house.start_all("worker", "sender")
        press = await house.sim.presses(user, said, "same", bot=bot)
        answer = await house.sim.wait_answered(press)
        assert answer["text"] == "True, False"
