"""A disk that fails, or is full, loses nothing that was acknowledged, and can be used afterwards.

Each case carries a small crossing over a disk whose n-th write or sync fails. SQLite's automatic
checkpoints hide their errors from everyone; ours do not, so the crossing asks for its own.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from storage.carriers import InlineCarrier, RawConnection
from storage.clock import SystemClock
from storage.database import connect
from storage.errors import DiskFull, StorageError
from storage.migrate import migrate
from tests.crash.aftermath import lost
from tests.crash.crossing import Ground, Record, crossing
from tests.crash.disk import Failure, Operation, Plan, disk
from tests.crash.power import Power

UPDATES = 48
FULL_POINTS, ERROR_POINTS = 60, 100
_FULL = ((Operation.WRITE, 1), (Operation.WRITE, 12), (Operation.SYNC, 1))
_ERRORS = (Operation.READ, Operation.WRITE, Operation.SYNC)


@dataclass(frozen=True, slots=True)
class Found:
    """What was left of one crossing over a failing disk."""

    errors: list[StorageError]
    failed: int
    lost: list[str]
    lost_in_a_power_cut: list[str]


async def _cross(folder: Path, plan: Plan) -> Found:
    """Cross over a disk that fails as planned, then cut the power and look at both outcomes."""
    folder.mkdir()
    dice = random.Random(plan.nth)
    clock = SystemClock()
    with disk() as made:
        record = Record(lambda: len(made.journal))
        ground = Ground(folder / "ferryman.db", clock, made.connect, InlineCarrier)
        async with crossing(ground, record) as roles:
            made.plan = plan
            assert await roles.run(UPDATES, dice), "the database could not be used afterwards"
            made.plan = None
            power, promised = Power(), record.until(len(made.journal))
            power.follow(made.journal)
    after = folder / "after"
    after.mkdir()
    for name, content in power.cut(dice).items():
        (after / name).write_bytes(content)
    return Found(
        errors=record.errors,
        failed=plan.failed,
        lost=await lost(folder / "ferryman.db", promised, clock),
        lost_in_a_power_cut=await lost(after / "ferryman.db", promised, clock),
    )


def _full(step: int, ways: Sequence[tuple[Operation, int]] = _FULL) -> list[Plan]:
    """The disk is full at its n-th write, for one or for some, or says so at a sync."""
    return [
        Plan(operation, nth, Failure.FULL, times)
        for nth in range(1, FULL_POINTS + 1, step)
        for operation, times in ways
    ]


def _errors(step: int) -> list[Plan]:
    """The disk fails at its n-th read, write or sync."""
    return [
        Plan(operation, nth) for nth in range(1, ERROR_POINTS + 1, step) for operation in _ERRORS
    ]


async def _proven(folder: Path, plans: list[Plan], what: str) -> None:
    failures = 0
    folder.mkdir()
    for number, plan in enumerate(plans):
        said = f"{plan}"
        found = await _cross(folder / str(number), plan)
        expected = DiskFull if plan.failure is Failure.FULL else StorageError
        assert found.failed >= 1, f"this moment never came: {said}"
        assert found.lost == [], said
        assert found.lost_in_a_power_cut == [], said
        assert found.errors, f"nobody was told: {said}"
        assert {type(error) for error in found.errors} <= {expected}, said
        failures += found.failed
    print(f"{what}: {len(plans)} points, {failures} failures, nothing lost")


async def test_a_disk_that_fails_or_is_full_loses_nothing(tmp_path: Path) -> None:
    """A sample; whoever waited for a failed commit is told so, and by name."""
    await _proven(tmp_path / "full", _full(step=11), "disk full")
    await _proven(tmp_path / "errors", _errors(step=19), "I/O errors")


@pytest.mark.prove
@pytest.mark.timeout(900)
async def test_a_disk_that_is_full_at_any_moment_loses_nothing(
    tmp_path: Path, *, full_proof: bool
) -> None:
    """At each of sixty writes; whole, also for a while, and at the sync."""
    plans = _full(1) if full_proof else _full(1, [(Operation.WRITE, 1)])
    await _proven(tmp_path / "full", plans, "disk full")


@pytest.mark.prove
@pytest.mark.timeout(900)
async def test_a_disk_that_fails_at_any_moment_loses_nothing(
    tmp_path: Path, *, full_proof: bool
) -> None:
    """At each of a hundred reads, writes and syncs; trimmed, at every third."""
    await _proven(tmp_path / "errors", _errors(1 if full_proof else 3), "I/O errors")


async def test_a_disk_that_fails_while_the_database_is_made_is_reported(tmp_path: Path) -> None:
    """And the next start finds nothing that it can't finish."""
    clock = SystemClock()
    for nth in range(1, 40):
        path = tmp_path / f"{nth}.db"
        with disk() as made:
            made.plan = Plan(Operation.WRITE, nth)
            with pytest.raises(StorageError, match="SQLITE_IOERR_WRITE"):
                migrate(path, clock, connector=made.connect)
        assert await lost(path, [], clock) == []


async def test_a_file_that_may_not_grow_loses_nothing_and_grows_on(tmp_path: Path) -> None:
    """A quota is a full disk, too: what fits is kept, what does not is refused by name."""
    dice, clock = random.Random(5), SystemClock()
    connections: list[RawConnection] = []

    def limited(path: Path) -> RawConnection:
        raw = connect(path)
        raw.execute("pragma max_page_count = 56", {})
        connections.append(raw)
        return raw

    record = Record(lambda: 0)
    ground = Ground(tmp_path / "ferryman.db", clock, connect, InlineCarrier)
    migrate(ground.path, clock)
    async with crossing(replace(ground, connector=limited), record) as roles:
        assert not await roles.run(100, dice), "the limit was never met"
        assert {type(error) for error in record.errors} == {DiskFull}
        for raw in connections[1:]:
            raw.execute("pragma max_page_count = 100000", {})
        assert await roles.run(100, dice)
    assert await lost(ground.path, record.until(0), clock) == []
