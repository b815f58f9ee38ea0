"""What no row needs is removed from the store, however much is needed, and nothing else."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sender.tidying import Tidying
from storage import files
from storage.blobs import FOLDERS, Blobs
from storage.database import Database, Tx, opened
from storage.lifecycle import OutboxId
from storage.migrate import migrate
from storage.outgoing import FilePart
from storage.retention import BATCH_ROWS_MAX
from tests.simulator.clock import VirtualClock

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.fixture
async def db(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Database]:
    path = tmp_path / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as database:
        yield database


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


def aged(blobs: Blobs, data: bytes, at_ms: int) -> str:
    """Keep a content as if it had been kept then."""
    sha256 = blobs.keep(data)
    os.utime(blobs.path(sha256), (at_ms / 1000, at_ms / 1000))
    return sha256


async def attach(db: Database, hashes: list[str]) -> None:
    def leave(tx: Tx) -> None:
        for number, sha256 in enumerate(hashes, 1):
            part = FilePart("photo", "a.png", "image/png", sha256, 1)
            files.attach(tx, OutboxId(number), (part,))

    await db.write(leave)


async def test_an_orphan_is_found_among_any_number_of_contents_that_are_needed(
    db: Database, blobs: Blobs, clock: VirtualClock
) -> None:
    """Rows that died, or wait for their moment, need their files for weeks."""
    now_ms = clock.now_ms()
    folder = blobs.path(blobs.keep(b"orphan")).parent
    orphan = aged(blobs, b"orphan", now_ms)
    needed = [f"{folder.name}{number:062x}" for number in range(3 * BATCH_ROWS_MAX)]
    for sha256 in needed:
        path = folder / sha256
        path.touch()
        os.utime(path, (now_ms / 1000, now_ms / 1000))
    await attach(db, needed)
    tidying = Tidying(db, clock, blobs, kept_ms=HOUR_MS)
    clock.advance_ms(2 * HOUR_MS)
    for _ in range(len(FOLDERS)):
        await tidying.round()
    assert blobs.size_bytes(orphan) is None
    assert all((folder / sha256).exists() for sha256 in needed)


async def test_more_than_one_batch_is_removed_in_one_round(
    db: Database, blobs: Blobs, clock: VirtualClock
) -> None:
    """A bot may keep more files between two rounds than a batch holds."""
    hashes = [f"{number:064x}" for number in range(3 * BATCH_ROWS_MAX)]
    await attach(db, hashes)
    await db.write(lambda tx: files.release(tx, [OutboxId(n + 1) for n in range(len(hashes))]))
    blobs.keep(b"the store is there")
    tidying = Tidying(db, clock, blobs, kept_ms=HOUR_MS)
    clock.advance_ms(2 * HOUR_MS)
    await tidying.round()
    assert not await db.read(lambda tx: files.kept(tx, hashes))


async def test_what_was_kept_a_moment_ago_stays_when_the_wall_clock_is_set_ahead(
    db: Database, blobs: Blobs, clock: VirtualClock
) -> None:
    """Its turn may still run; its row would be there without its file."""
    tidying = Tidying(db, clock, blobs, kept_ms=HOUR_MS)
    clock.advance_ms(5 * HOUR_MS)
    await tidying.round()
    kept = aged(blobs, b"its row is on the way", clock.now_ms())
    clock.step_wall_ms(30 * DAY_MS)
    for _ in range(len(FOLDERS)):
        await tidying.round()
    assert blobs.size_bytes(kept) is not None

    clock.advance_ms(HOUR_MS)
    await tidying.round()
    clock.advance_ms(HOUR_MS)
    for _ in range(len(FOLDERS)):
        await tidying.round()
    assert blobs.size_bytes(kept) is None
