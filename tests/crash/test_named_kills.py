"""A process that dies at a named moment: what is known of it afterwards, moment by moment.

One house lives through all of them, in a few rounds. In each, roles are started with a failpoint
armed; a person asks, each role dies and is started anew, and the house comes to rest.
"""

import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from storage.failpoint import POINTS
from tests.crash import answers
from tests.crash.checkers import Evidence, damage, saying
from tests.crash.living import Living, living
from tests.live.house import ROLES, Role
from tests.live.process import LiveProcess, until

QUESTIONS = 2
_DEAD_WITHIN_MS = 20_000
# One point of each role at once: what is asked passes web first, then the worker, then the sender.
ROUNDS = (
    ("web.received", "worker.claimed", "sender.claimed"),
    ("web.committed", "worker.handled", "sender.stamped"),
    ("worker.committed", "sender.answered"),
    ("sender.settled",),
)


@dataclass(frozen=True, slots=True)
class Held:
    """Rows that are held as uncertain, and how many of them had reached Telegram."""

    rows: int = 0
    told: int = 0


# Before the stamp nothing has left, and after the settling everything is known. In between nobody
# can tell: whether the message was sent (`answered`) or not (`stamped`), the row is held.
HELD = {"sender.stamped": Held(rows=1), "sender.answered": Held(rows=1, told=1)}


def test_every_point_has_its_round() -> None:
    assert sorted(point for points in ROUNDS for point in points) == sorted(POINTS)


@pytest.mark.timeout(120)
async def test_a_process_that_dies_at_a_named_moment_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    async with living(tmp_path) as house:
        await house.start_all()
        before = Held()
        for points in ROUNDS:
            await _die_at(house, points)
            evidence = await house.drained()
            assert damage(evidence) == [], points
            assert answers.breaches(evidence, house.load) == [], points
            after = _held(evidence)
            found = Held(after.rows - before.rows, after.told - before.told)
            assert found == HELD.get(points[-1], Held()), points
            before = after


async def _die_at(house: Living, points: Sequence[str]) -> None:
    """Let each point's role die there, and start it anew."""
    roles: list[Role] = [role for role in ROLES if any(p.startswith(role) for p in points)]
    armed = []
    for role, point in zip(roles, points, strict=True):
        await house.house.kill(role)
        armed.append(await house.start(role, failpoint=point))
    for process in armed:
        await house.ready(process)
    for _ in range(QUESTIONS):
        await house.load.ask(house.load.chats[0])
    for role, point, process in zip(roles, points, armed, strict=True):
        died = partial(_has_ended, process)
        await until(died, within_ms=_DEAD_WITHIN_MS, what=f"{role} dies at {point}")
        assert process.returncode == -signal.SIGKILL, process.tail()
        await house.start_all(role)


async def _has_ended(process: LiveProcess) -> bool:
    return process.returncode is not None


def _held(evidence: Evidence) -> Held:
    told = Counter(saying(arrival) for arrival in evidence.effects())
    held = [row for row in evidence.books.rows if row.state == "uncertain"]
    return Held(len(held), sum(told[evidence.saying_of(row)] for row in held))
