"""A process that dies at a named moment: what is known of it afterwards, moment by moment.

One house lives through all of them, round by round. In each, roles are started with a failpoint
armed; somebody does what brings each role to its point, it dies there and is started anew, and the
house comes to rest. Before every commit and after it, and in between where something leaves.
"""

import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final

import pytest

from storage.failpoint import MOMENTS, POINTS
from tests.crash import answers
from tests.crash.checkers import Evidence, damage, saying
from tests.crash.deeds import APART, NOWHERE, Scene, deed_for, points_of
from tests.crash.living import Living, living
from tests.live.house import ROLES, Role
from tests.live.process import LiveProcess, until

_DEAD_WITHIN_MS: Final = 30_000

Round = Mapping[Role, str]


@dataclass(frozen=True, slots=True)
class Held:
    """Rows that are held as uncertain, and how many of them had reached Telegram."""

    rows: int = 0
    told: int = 0

    def __add__(self, other: "Held") -> "Held":
        return Held(self.rows + other.rows, self.told + other.told)


# Before the stamp is committed nothing has left, and once the settling is, everything is known. In
# between nobody can tell: whether the message was sent or not, the row is held.
HELD: Final = {
    "sender.stamp.committed": Held(rows=1),
    "sender.stamped": Held(rows=1),
    "sender.half_written": Held(rows=1),
    "sender.answered": Held(rows=1, told=1),
    "sender.settle.committing": Held(rows=1, told=1),
    "sender.settle_late.committing": Held(rows=1, told=1),
}


def rounds(wanted: Sequence[str]) -> Iterator[Round]:
    """One point of each role at once."""
    columns = [[point for point in points_of(role) if point in wanted] for role in ROLES]
    for points in zip_longest(*columns):
        yield {role: point for role, point in zip(ROLES, points, strict=True) if point}


def test_every_point_has_its_round_or_a_test_of_its_own() -> None:
    found = [point for points in rounds(POINTS) for point in points.values()]
    apart = [point for point in POINTS if point.rpartition(".")[0] in APART]
    assert sorted(found + apart) == sorted(POINTS)


@pytest.mark.timeout(120)
async def test_a_process_that_dies_at_a_named_moment_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    """The moments between the commits."""
    await _proven(tmp_path, MOMENTS)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_a_process_that_dies_before_or_after_any_commit_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    await _proven(tmp_path, [point for point in POINTS if point not in MOMENTS])


async def _proven(folder: Path, wanted: Sequence[str]) -> None:
    deaths = 0
    async with living(folder) as house:
        await house.start_all()
        before = Held()
        for points in rounds(wanted):
            await _die_at(house, points)
            deaths += len(points)
            evidence = await house.drained()
            assert _breaches(evidence, house) == [], points
            after, expected = _held(evidence), before
            for point in points.values():
                expected += HELD.get(point, Held())
            assert after == expected, points
            before = after
    print(f"{deaths} deaths at {deaths} named points: nothing lost, nothing doubled")


async def _die_at(house: Living, points: Round) -> None:
    """Bring each role to its point, see it die there, and start it anew."""
    armed: dict[Role, LiveProcess] = {}
    for role, point in points.items():
        await house.house.kill(role)
        armed[role] = await house.start(role, failpoint=point)
    for process in armed.values():
        await until(partial(_is_up, process), within_ms=_DEAD_WITHIN_MS, what=process.name)
    for role, point in points.items():
        process = armed[role]
        if process.returncode is None:
            await deed_for(point)(Scene(house, process))
        died = partial(_has_ended, process)
        await until(died, within_ms=_DEAD_WITHIN_MS, what=f"{role} dies at {point}")
        assert process.returncode == -signal.SIGKILL, f"{point}: {process.tail()}"
        await house.start_all(role)


async def _is_up(process: LiveProcess) -> bool:
    return process.returncode is not None or process.times_said("role.ready") > 0


async def _has_ended(process: LiveProcess) -> bool:
    return process.returncode is not None


def _breaches(evidence: Evidence, house: Living) -> list[str]:
    # What was left on purpose for nobody ends as nothing else may.
    ended = [each for each in answers.breaches(evidence, house.load) if NOWHERE not in each]
    return [*damage(evidence), *ended]


def _held(evidence: Evidence) -> Held:
    told = Counter(saying(arrival) for arrival in evidence.effects())
    held = [row for row in evidence.books.rows if row.state == "uncertain"]
    return Held(len(held), sum(told[evidence.saying_of(row)] for row in held))
