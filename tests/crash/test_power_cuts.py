"""A power cut loses nothing that was acknowledged, and damages nothing."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from storage.carriers import Cursor, InlineCarrier, Params, RawConnection, ThreadCarrier
from storage.clock import SystemClock
from storage.database import Connector
from tests.crash.aftermath import lost
from tests.crash.crossing import Acknowledged, Ground, Record, crossing
from tests.crash.disk import Created, Entry, Synced, disk
from tests.crash.power import Power

UPDATES = 120
IMAGES = 50
_NOBODYS = -1


@dataclass(frozen=True, slots=True)
class Recording:
    """A crossing as the disk saw it."""

    journal: list[Entry]
    record: Record


@dataclass(slots=True)
class Outcome:
    """What the images of one recording held."""

    images: int = 0
    worse: int = 0
    corrupt: int = 0
    first: str = ""


def _busy(connector: Connector) -> Connector:
    """Let the log be folded in often, so that a cut falls into that work as well."""

    def connect(path: Path) -> RawConnection:
        raw = connector(path)
        raw.execute("pragma wal_autocheckpoint = 60", {})
        return raw

    return connect


async def _recorded(
    folder: Path,
    dice: random.Random,
    *,
    updates: int = UPDATES,
    carrier: type[ThreadCarrier | InlineCarrier] = InlineCarrier,
    planted: Callable[[Connector], Connector] = _busy,
) -> Recording:
    with disk() as made:
        record = Record(lambda: len(made.journal))
        folder.mkdir()
        ground = Ground(folder / "ferryman.db", SystemClock(), planted(made.connect), carrier)
        async with crossing(ground, record) as roles:
            assert await roles.run(updates, dice), "the crossing did not end"
        assert record.errors == []
        return Recording(made.journal, record)


async def _cut(recording: Recording, folder: Path, dice: random.Random, *, images: int) -> Outcome:
    """Cut the power at random moments, and see what can be found afterwards."""
    moments = sorted(dice.choices(range(len(recording.journal) + 1), k=images))
    power, outcome, clock = Power(), Outcome(), SystemClock()
    for number, (before, at) in enumerate(pairwise([0, *moments])):
        power.follow(recording.journal[before:at])
        place = folder / f"image-{number}"
        place.mkdir()
        for name, content in power.cut(dice).items():
            (place / name).write_bytes(content)
        faults = await lost(place / "ferryman.db", recording.record.until(at), clock)
        outcome.images += 1
        outcome.worse += bool(faults)
        outcome.corrupt += any(not fault.startswith("lost:") for fault in faults)
        outcome.first = outcome.first or (f"at {at} of the journal: {faults[:3]}" if faults else "")
    return outcome


async def _proven(
    folder: Path, seeds: Sequence[int], carrier: type[ThreadCarrier | InlineCarrier], images: int
) -> None:
    """Nothing is lost in any image of any of these recordings."""
    total, promises = Outcome(), 0
    for seed in seeds:
        place, dice = folder / str(seed), random.Random(seed)
        place.mkdir()
        recording = await _recorded(place / "run", dice, carrier=carrier)
        outcome = await _cut(recording, place, dice, images=images)
        assert outcome.worse == 0, f"seed {seed}: {outcome.first}"
        total.images += outcome.images
        promises += len(recording.record.facts)
    print(f"power cuts: {total.images} images, {promises} promises, 0 broken, 0 corrupt")


async def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Stored, turned, stamped or sent: what was said to be so is so afterwards."""
    await _proven(tmp_path, [1], InlineCarrier, images=40)


@pytest.mark.prove
@pytest.mark.timeout(900)
async def test_power_cuts_at_any_moment_lose_nothing(tmp_path: Path, *, full_proof: bool) -> None:
    """Three roles on threads of their own, as on a server; new seeds each time."""
    seeds = [random.randrange(1 << 32) for _ in range(12 if full_proof else 3)]
    await _proven(tmp_path, seeds, ThreadCarrier, images=IMAGES)


class _Careless:
    """A connection that says it syncs each commit, and leaves that to the next checkpoint."""

    def __init__(self, raw: RawConnection) -> None:
        self._raw = raw
        self.close = raw.close
        self.executemany = raw.executemany

    @property
    def in_transaction(self) -> bool:
        return self._raw.in_transaction

    def execute(self, sql: str, parameters: Params = {}, /) -> Cursor:  # noqa: B006 - read only
        if sql == "pragma synchronous = full":
            return self._raw.execute("pragma synchronous = normal", {})
        if sql == "pragma synchronous":
            return self._raw.execute("select 2 as synchronous", {})
        return self._raw.execute(sql, parameters)


async def _careless(folder: Path, seed: int, *, images: int) -> None:
    dice = random.Random(seed)
    recording = await _recorded(
        folder / "run", dice, planted=lambda connector: lambda path: _Careless(connector(path))
    )
    outcome = await _cut(recording, folder, dice, images=images)
    print(f"power cuts without a sync for each commit: {outcome.worse} of {images} images lost")
    assert outcome.worse > outcome.images // 4
    assert outcome.corrupt == 0, outcome.first


async def test_without_a_sync_for_each_commit_power_cuts_do_lose(tmp_path: Path) -> None:
    """The test of the test: `synchronous = normal` must be found out, and damages nothing."""
    await _careless(tmp_path, 2, images=20)


@pytest.mark.prove
@pytest.mark.timeout(300)
async def test_without_a_sync_for_each_commit_most_power_cuts_lose(
    tmp_path: Path, *, full_proof: bool
) -> None:
    """The same with a new seed, and as many images as make a proportion."""
    await _careless(tmp_path, random.randrange(1 << 32), images=100 if full_proof else 40)


async def test_an_answer_before_the_commit_is_found_out(tmp_path: Path) -> None:
    """Another test of the test: a promise made one sync too early."""
    dice = random.Random(3)
    recording = await _recorded(tmp_path / "run", dice)
    syncs = [at for at, entry in enumerate(recording.journal) if isinstance(entry, Synced)]
    early = [
        Acknowledged(max((at for at in syncs if at < told.at - 1), default=0), told.fact)
        for told in recording.record.facts
    ]
    recording.record.facts[:] = early
    outcome = await _cut(recording, tmp_path, dice, images=60)
    assert outcome.worse > 0


async def test_a_disk_that_does_not_sync_its_checkpoints_is_seen_to_corrupt(
    tmp_path: Path,
) -> None:
    """And one more: damage to the file itself is noticed."""
    dice = random.Random(4)
    recording = await _recorded(tmp_path / "run", dice)
    main = next(e.file for e in recording.journal if isinstance(e, Created))
    recording.journal[:] = [
        replace(entry, file=_NOBODYS) if isinstance(entry, Synced) and entry.file == main else entry
        for entry in recording.journal
    ]
    outcome = await _cut(recording, tmp_path, dice, images=20)
    assert outcome.corrupt > 0
