"""Deliveries as public bug reports tell them, each with the number of its case.

 5  hermes-agent 89962, 91969: a flood of hours, during which the webhook answered nobody
11  Abilityai/trinity 2727, php-telegram-bot/core 659: a high-water mark lost what came below it
12  vercel/chat 799: the store was away, the update was dispatched all the same, and again later
"""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bot.web.backpressure import Marks
from storage import cooldowns, inbox, outbox
from storage.carriers import RawConnection
from storage.clock import SystemClock, deadline_in
from storage.cooldowns import BOT_SCOPE
from storage.database import Tx, connect, open_database, opened
from storage.lifecycle import BotName
from storage.migrate import migrate
from tests.integration.storage.calls import call
from tests.integration.web.door import open_door, update
from tests.integration.web.test_trouble import bare_door, locked

MAIN = BotName("main")
FLOOD_MS = 97 * 60_000
ROOMY = Marks(10**6, 0)


# 5


@pytest.mark.parametrize("scope", [BOT_SCOPE, "c:7", "edits:c:7"])
async def test_field_case_05_the_webhook_answers_while_the_outbox_cools(
    tmp_path: Path, scope: str
) -> None:
    """A deep, cooling outbox is the sender's business: each update is stored and answered 200."""

    def cool(tx: Tx) -> None:
        deadline = deadline_in(FLOOD_MS, SystemClock())
        cooldowns.merge(tx, MAIN, scope, deadline, reason="a flood of the chat")
        for number in range(2_000):
            outbox.enqueue(tx, MAIN, call(f"k{number}"))

    async with open_door(tmp_path) as door:
        async with opened(door.database_path, SystemClock()) as database:
            await database.write(cool)
        answers = await asyncio.gather(*(door.post(update(n)) for n in range(1, 30)))
        assert {answer.status_code for answer in answers} == {200}
        assert (await door.http.get("/readyz")).status_code == 200
        assert door.counts() == (29, 0)


# 11


ORDERS: dict[str, Sequence[int]] = {
    "the later one first": [702, 701],
    "far apart": [2_000_000_000, 5, 1_999_999_999, 6],
    "lower after a quiet month": [910_000_000, 910_000_001, 17, 18, 19],
    "backwards": list(range(60, 0, -1)),
}


@pytest.mark.parametrize("order", ORDERS)
async def test_field_case_11_each_update_is_stored_once_in_whatever_order_it_comes(
    tmp_path: Path, order: str
) -> None:
    """And no redelivery, old or new, is stored again."""
    numbers = ORDERS[order]
    async with open_door(tmp_path) as door:
        for number in (*numbers, *numbers):
            assert (await door.post(update(number))).status_code == 200
        assert [row["update_id"] for row in door.rows()] == list(numbers)


@pytest.mark.parametrize("order", ORDERS)
async def test_field_case_11_two_web_processes_store_each_update_once(
    tmp_path: Path, order: str
) -> None:
    numbers = ORDERS[order]
    async with open_door(tmp_path) as one, open_door(tmp_path) as other:
        assert one.database_path == other.database_path
        posts = [door.post(update(n)) for n in numbers for door in (other, one, other)]
        answers = await asyncio.gather(*posts)
        assert {answer.status_code for answer in answers} == {200}
        assert sorted(row["update_id"] for row in one.rows()) == sorted(numbers)


# 12


async def dispatched(path: Path) -> list[int]:
    """Take all that waits, as a worker does, and bring it to its end; which updates these were."""

    def take(tx: Tx) -> list[int]:
        waiting = inbox.pending(tx, MAIN, after_id=0, limit=100)
        items = inbox.claim(tx, [each.id for each in waiting], epoch=1)
        for item in items:
            inbox.finish(tx, item.id, epoch=1)
        return [item.update_id for item in items]

    async with opened(path, SystemClock()) as database:
        return await database.write(take)


async def test_field_case_12_while_the_store_is_locked_nothing_is_dispatched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with a time to come again; then one dispatch, and none for any further repeat."""
    monkeypatch.setattr("storage.database.BUSY_BUDGET_MS", 300)
    async with open_door(tmp_path) as door:
        with locked(door.database_path):
            answer = await door.post(update(1))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert await dispatched(door.database_path) == []
        assert (await door.post(update(1))).status_code == 200
        assert await dispatched(door.database_path) == [1]
        for _ in range(3):
            assert (await door.post(update(1))).status_code == 200
        assert await dispatched(door.database_path) == []
        assert door.counts() == (1, 0)


def full(path: Path) -> RawConnection:
    """A connection whose file may not grow: SQLite says that the disk is full."""
    connection = connect(path)
    pages = connection.execute("pragma page_count", {}).fetchall()[0]["page_count"]
    connection.execute(f"pragma max_page_count = {pages}", {}).fetchall()
    return connection


@pytest.mark.parametrize("fault", ["full", "closed"])
async def test_field_case_12_while_the_store_fails_nothing_is_dispatched(
    tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "ferryman.db"
    migrate(path, SystemClock())
    long_one = update(1, "x" * 50_000)
    failing = await open_database(
        path, SystemClock(), connector=full if fault == "full" else connect
    )
    if fault == "closed":
        await failing.close()
    http, _ = bare_door(failing, tmp_path, ROOMY)
    async with http:
        answer = await http.post("/telegram/main", content=long_one)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    if fault == "full":
        await failing.close()
    assert await dispatched(path) == []
    async with opened(path, SystemClock()) as sound:
        http, _ = bare_door(sound, tmp_path, ROOMY)
        async with http:
            assert (await http.post("/telegram/main", content=long_one)).status_code == 200
            assert await dispatched(path) == [1]
            assert (await http.post("/telegram/main", content=long_one)).status_code == 200
    assert await dispatched(path) == []
    with closing(connect(path)) as raw:
        assert len(raw.execute("select id from inbox", {}).fetchall()) == 1
