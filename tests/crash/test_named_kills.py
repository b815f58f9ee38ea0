"""A process that dies at a named moment: what is known of it afterwards, moment by moment.

One house lives through all of them. Before each, one role is started with its failpoint armed; a
person asks until it has died there, it is started anew, and the house comes to rest.
"""

import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.failpoint import POINTS
from tests.crash import answers
from tests.crash.checkers import Evidence, damage, saying
from tests.crash.living import Living, living
from tests.live.house import ROLES, Role
from tests.live.process import until

QUESTIONS = 2
_DEAD_WITHIN_MS = 20_000


@dataclass(frozen=True, slots=True)
class Held:
    """Rows that are held as uncertain, and how many of them had reached Telegram."""

    rows: int = 0
    told: int = 0


# Before the stamp nothing has left, and after the settling everything is known. In between nobody
# can tell: whether the message was sent (`answered`) or not (`stamped`), the row is held.
HELD = {"sender.stamped": Held(rows=1), "sender.answered": Held(rows=1, told=1)}


def test_every_point_has_a_role() -> None:
    assert {point.partition(".")[0] for point in POINTS} == set(ROLES)


@pytest.mark.timeout(120)
async def test_a_process_that_dies_at_a_named_moment_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    async with living(tmp_path) as house:
        await house.start_all()
        before = Held()
        for point in POINTS:
            await _die_at(house, point)
            evidence = await house.drained()
            assert damage(evidence) == [], point
            assert answers.breaches(evidence, house.load) == [], point
            after = _held(evidence)
            found = Held(after.rows - before.rows, after.told - before.told)
            assert found == HELD.get(point, Held()), point
            before = after


async def _die_at(house: Living, point: str) -> None:
    """Let the point's role die there, and start it anew."""
    role: Role = next(each for each in ROLES if point.startswith(each))
    await house.house.kill(role)
    process = await house.start(role, failpoint=point)
    await house.ready(process)
    for _ in range(QUESTIONS):
        await house.load.ask(house.load.chats[0])

    async def died() -> bool:
        return process.returncode is not None

    await until(died, within_ms=_DEAD_WITHIN_MS, what=f"{role} dies at {point}")
    assert process.returncode == -signal.SIGKILL, process.tail()
    await house.start_all(role)


def _held(evidence: Evidence) -> Held:
    told = Counter(saying(arrival) for arrival in evidence.effects())
    held = [row for row in evidence.books.rows if row.state == "uncertain"]
    return Held(len(held), sum(told[evidence.saying_of(row)] for row in held))
