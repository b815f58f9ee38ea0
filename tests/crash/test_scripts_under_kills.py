"""Scripts whose roles are killed at random moments show a person what they show without kills.

web, `ferryman exec --worker SCRIPT` and sender are processes of their own, killed by SIGKILL while
people have the very dialogues that tests/e2e/test_scripts.py holds against the library alone. What
each person sees at the end is compared line by line, in order, with edits and deletions applied;
a message too many fails as one too few does. Allowed for is what nobody can promise:

- A send that died between the call and its record is held (`on_uncertain = "hold"`). A keeper looks
  into the chat and resolves it, as a person would: noted where it came, sent again where it did
  not. Only what was sent again may stand later than it should; it has to be there, once.
- A poll that came, and of which the house does not know, they take away and have sent again: its
  handler waits for a number that died with the sender. Who had voted in it votes again. A poll that
  was closed by a call whose answer is lost can't be closed twice: its handler is told so.
- An answer to a press, for which Telegram waits 15 s, may come too late; then it is not given, and
  nothing else may be given. An order is checked out again when its answer was late.
- Jobs of the library's JobQueue live in memory and die with it, as with the library alone. What
  they say is not asked for while there are kills, but may not be said more often than it was set,
  and whatever was left to be said is sent.

After the kills one more person has the whole dialogue, with nothing allowed for.
"""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from storage.lifecycle import OutboxState
from tests.crash.books import Books
from tests.crash.checkers import Evidence
from tests.crash.keeping import Keeper
from tests.crash.living import Living, living
from tests.crash.reaping import Reaper
from tests.live.dialogues import DIALOGUES, SCRIPTS, Meeting
from tests.live.person import Manner, NotSeen, Person
from tests.simulator.faults import Hold

# A call takes a while, so that a kill finds some of them under way.
CALL_MS: Final = 150
LIFE_MS_MAX: Final = 800
PATIENCE_MS: Final = 60_000
PAUSE_MS: Final = 300
# How many people have their dialogues at once; one, where they would see of each other.
AT_ONCE: Final = 3
ALONE: Final = frozenset({"counters", "objects"})
_LATE: Final = "answerCallbackQuery"
# The newer one of two edits is made; and what a person forbade or was too late for is not.
_ENDED: Final = frozenset({OutboxState.SENT, OutboxState.SUPERSEDED})


async def _meets(house: Living, name: str, nth: int, manner: Manner, seed: float) -> Person:
    """The n-th person has their dialogue."""
    sim, bot = house.sim, house.load.bot.id
    user = (await sim.add_user("Ada")).id
    person = Person(sim, bot, user, house.clock, manner, random.Random(seed))
    await person.has(DIALOGUES[name](Meeting(bot, nth)))
    return person


async def _people(
    house: Living, name: str, reaping: "asyncio.Task[None]", keeper: Keeper, dice: random.Random
) -> list[Person]:
    """One person after another, some at once, until there were kills enough."""
    manner = Manner(PATIENCE_MS, PAUSE_MS, is_lenient=True, moved=lambda: keeper.sent_again)
    people: list[Person] = []
    come = itertools.count(1)

    async def one_after_another() -> None:
        while not reaping.done():
            people.append(await _meets(house, name, next(come), manner, dice.random()))

    async with asyncio.TaskGroup() as group:
        for _ in range(1 if name in ALONE else AT_ONCE):
            group.create_task(one_after_another())
    await reaping
    return people


@asynccontextmanager
async def _beside(work: "asyncio.Task[None]") -> AsyncIterator[None]:
    """Something that goes on meanwhile; what it fails with is raised."""
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait([work])
    if not work.cancelled():
        work.result()


def _reaper(house: Living, dice: random.Random, kills: int) -> Reaper:
    return Reaper(house, random.Random(dice.random()), kills, life_ms_max=LIFE_MS_MAX)


async def _reaped(house: Living, reaper: Reaper) -> None:
    await reaper.run()
    await house.start_all()


async def _proven(folder: Path, name: str, *, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    async with living(folder, script=SCRIPTS / f"{name}.py") as house:
        assert (await house.house.command("migrate"))[0] == 0
        await house.sim.chances(dice.randrange(1 << 32), [(1.0, Hold(CALL_MS))])
        reaper, keeper = _reaper(house, dice, kills), Keeper(house)
        reaping = asyncio.create_task(_reaped(house, reaper))
        try:
            async with _beside(asyncio.create_task(keeper.keep())), _beside(reaping):
                people = await _people(house, name, reaping, keeper, dice)
            await house.sim.heal()
            evidence = await _settled(house, keeper)
            for person in people:
                await person.looks()
            await _meets(house, name, len(people) + 1, Manner(), 0.0)
        except* (NotSeen, TimeoutError) as errors:
            told = f"{name}, seed {seed}: {errors.exceptions}\n{keeper}\n{_logs(house)}"
            raise AssertionError(told) from errors
        unanswered = await _unanswered(people, house, evidence.books)
        too_often = [line for person in people for line in await person.too_often()]
        final = await house.drained()
    print(f"{name}, seed {seed}: {_figures(reaper, keeper, people, unanswered)}")
    assert too_often == []
    assert _lost(final.books) == []
    assert final.ledger.client_bugs() == []
    assert reaper.kills.total() >= kills


async def _settled(house: Living, keeper: Keeper) -> Evidence:
    """Wait until all is done, and what the keeper has decided of it."""
    evidence = await house.drained()
    while await keeper.look():
        evidence = await house.drained()
    return evidence


async def _unanswered(people: Sequence[Person], house: Living, books: Books) -> int:
    """How many presses had their answer too late. No answer may be another, or be left out."""
    late = {
        row.params["callback_query_id"]
        for row in books.rows
        if row.method == _LATE and row.state not in _ENDED
    }
    given = {row.params["callback_query_id"] for row in books.rows if row.method == _LATE}
    unanswered = 0
    for query, toast in (
        (each, told) for person in people for each, told in person.pressed.items()
    ):
        try:
            answer = await house.sim.wait_answered(query, timeout_s=0)
        except TimeoutError:
            assert query in late or query not in given, query
            unanswered += 1
        else:
            assert answer["text"] == toast
    return unanswered


def _lost(books: Books) -> list[str]:
    """Calls that ended otherwise than by being made; late answers to queries aside."""
    return [
        f"{row.id} {row.method} {row.state}: {row.reason}"
        for row in books.rows
        if row.state not in _ENDED and not row.method.startswith("answer")
    ]


def _figures(reaper: Reaper, keeper: Keeper, people: Sequence[Person], unanswered: int) -> str:
    return (
        f"{reaper.kills.total()} kills {dict(reaper.kills)}, {reaper.in_recovery} in recovery; "
        f"{len(people)} people saw what they should; held calls: {keeper.found_sent} had come, "
        f"{len(keeper.sent_again)} were sent again {dict(Counter(keeper.sent_again))}; "
        f"{len(keeper.replaced)} polls were taken away and sent anew; "
        f"{keeper.handled_again} turns handled anew; "
        f"{unanswered} presses were answered too late"
    )


def _logs(house: Living) -> str:
    roles = ("web", "worker", "sender")
    return "\n".join(
        line
        for role in roles
        for line in house.house.log_of(role).read_text(encoding="utf-8").splitlines()[-25:]
    )


@pytest.mark.prove
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("name", DIALOGUES)
async def test_what_a_person_sees_is_the_same_under_kills(
    name: str, tmp_path: Path, *, full_proof: bool
) -> None:
    """A new seed each time."""
    await _proven(tmp_path, name, kills=60 if full_proof else 6, seed=random.randrange(1 << 32))
