"""The database actor: what a caller may rely on."""

import asyncio
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from storage import bots, cooldowns, leases
from storage.carriers import RawConnection
from storage.clock import deadline_in
from storage.database import (
    HOLD_MS_MAX,
    Database,
    Tx,
    connect,
    is_sound,
    library_version,
    opened,
    require_sound_sqlite,
)
from storage.errors import (
    AffectedSqlite,
    Corrupt,
    DiskFull,
    IdentityChanged,
    LeaseLost,
    NewerSchema,
    ReadOnly,
    StorageBusy,
    StorageError,
)
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.migrate import migrate
from tests.simulator.clock import VirtualClock


def _bind(tx: Tx, name: str, bot_id: int) -> None:
    bots.bind(tx, BotName(name), bot_id)


async def test_what_a_transaction_wrote_is_there_for_the_next_reader(db: Database) -> None:
    await db.write(lambda tx: _bind(tx, "main", 1))
    rows = await db.fetch("reports.bots")
    assert [(row["name"], row["bot_id"]) for row in rows] == [("main", 1)]


async def test_a_transaction_that_raises_leaves_nothing_behind(db: Database) -> None:
    def fails(tx: Tx) -> None:
        _bind(tx, "main", 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await db.write(fails)
    assert await db.fetch("reports.bots") == []


async def test_writers_that_wait_together_share_a_commit_and_fail_alone(db: Database) -> None:
    """A SAVEPOINT each: one failure takes no other with it."""

    def fails(tx: Tx) -> None:
        _bind(tx, "broken", 99)
        raise ValueError("no")

    works = [db.write(partial(_bind, name=f"bot{n}", bot_id=n)) for n in range(1, 20)]
    results = await asyncio.gather(db.write(fails), *works, return_exceptions=True)
    assert isinstance(results[0], ValueError)
    assert results[1:] == [None] * 19
    assert len(await db.fetch("reports.bots")) == 19


async def test_a_cancelled_caller_leaves_no_transaction_open(db: Database) -> None:
    task = asyncio.create_task(db.write(lambda tx: _bind(tx, "main", 1)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await db.write(lambda tx: _bind(tx, "second", 2))
    assert len(await db.fetch("reports.bots")) == 2


async def test_a_locked_database_is_waited_for(db: Database, clock: VirtualClock) -> None:
    """Another process that writes for a while delays us and breaks nothing."""
    other = connect(db.path)
    other.execute("begin immediate")
    waiting = asyncio.create_task(db.write(lambda tx: _bind(tx, "main", 1)))
    for _ in range(20):
        await asyncio.sleep(0)
    other.execute("rollback")
    other.close()
    for _ in range(2_000):
        if waiting.done():
            break
        clock.advance_ms(1)
        await asyncio.sleep(0)
    await waiting
    assert len(await db.fetch("reports.bots")) == 1


async def test_a_database_that_stays_locked_is_reported_as_busy(
    db: Database, clock: VirtualClock
) -> None:
    other = connect(db.path)
    other.execute("begin immediate")
    waiting = asyncio.create_task(db.write(lambda tx: _bind(tx, "main", 1)))
    while not waiting.done():
        clock.advance_ms(100)
        await asyncio.sleep(0)
    with pytest.raises(StorageBusy, match="SQLITE_BUSY"):
        await waiting
    other.close()


async def test_a_full_disk_keeps_nothing_of_the_batch_and_says_so(
    tmp_path: Path, clock: VirtualClock
) -> None:
    path = tmp_path / "full.db"
    migrate(path, clock)

    def limited(file: Path) -> RawConnection:
        raw = connect(file)
        raw.execute("pragma max_page_count = 60")
        return raw

    def big(tx: Tx) -> None:
        bots.bind(tx, BotName("main"), 1)
        bots.set_me(tx, BotName("main"), "x" * 1_000_000)

    async with opened(path, clock, connector=limited) as full:
        both = await asyncio.gather(
            full.write(lambda tx: _bind(tx, "small", 2)), full.write(big), return_exceptions=True
        )
        assert [type(error) for error in both] == [DiskFull, DiskFull]
        await full.write(lambda tx: _bind(tx, "small", 2))
        assert len(await full.fetch("reports.bots")) == 1


async def test_a_closed_database_refuses_to_write(db: Database) -> None:
    await db.close()
    with pytest.raises(StorageError, match="closed"):
        await db.write(lambda tx: _bind(tx, "main", 1))


def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "newer.db"
    migrate(path, clock)
    raw = connect(path)
    raw.execute("insert into migrations values (999, 'future', 0)", {})
    raw.close()
    with pytest.raises(NewerSchema, match="install the version that made it"):
        migrate(path, clock)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "noise.db"
    path.write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(Corrupt):
        migrate(path, clock)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, clock: VirtualClock) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(ReadOnly, match="state_dir"):
        migrate(blocker / "state" / "ferryman.db", clock)


async def test_the_database_is_its_owners_alone(db: Database) -> None:
    """Users' texts are in it, and in its log."""
    await db.write(lambda tx: _bind(tx, "main", 1))
    files = sorted(db.path.parent.glob("ferryman.db*"))
    assert [file.name for file in files] == ["ferryman.db", "ferryman.db-shm", "ferryman.db-wal"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_migrating_twice_changes_nothing(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "twice.db"
    names = [item.name for item in migrate(path, clock)]
    assert names == ["ground", "sender", "lease_clock", "drop_in"]
    assert list(migrate(path, clock)) == []


@pytest.mark.parametrize(
    ("version", "sound"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), False),
        ((3, 53, 0), True),
    ],
)
def test_the_wal_reset_bug_is_known_by_version(version: tuple[int, int, int], sound: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_sound(version) is sound


def test_the_sqlite_in_use_is_sound() -> None:
    assert is_sound(library_version())
    require_sound_sqlite()


def test_an_affected_sqlite_is_refused_with_the_reason() -> None:
    with pytest.raises(AffectedSqlite, match=r"3\.40\.1 has the WAL-reset bug"):
        require_sound_sqlite(version=(3, 40, 1))
    require_sound_sqlite(version=(3, 40, 1), accept_affected=True)


async def test_a_bot_keeps_the_id_of_its_first_token(db: Database) -> None:
    await db.write(lambda tx: _bind(tx, "main", 1))
    await db.write(lambda tx: _bind(tx, "main", 1))
    with pytest.raises(IdentityChanged, match="first used for bot 1"):
        await db.write(lambda tx: _bind(tx, "main", 2))
    with pytest.raises(IdentityChanged, match=r"known here as bots\.main"):
        await db.write(lambda tx: _bind(tx, "other", 1))


async def test_of_two_cooldowns_the_later_deadline_stays(db: Database, clock: VirtualClock) -> None:
    """PTB issue 5338: a short wait that comes second must not end the long one."""
    bot = BotName("main")

    def merge(tx: Tx, wait_ms: int) -> bool:
        return cooldowns.merge(tx, bot, "bot", deadline_in(wait_ms, clock), reason="429")

    assert await db.write(lambda tx: merge(tx, 30_000))
    clock.advance_ms(2_000)
    assert not await db.write(lambda tx: merge(tx, 3_000))
    (kept,) = await db.read(lambda tx: cooldowns.of_bot(tx, bot))
    assert kept.deadline.wait_ms == 30_000


async def test_an_older_owner_of_a_lease_can_no_longer_commit(
    db: Database, clock: VirtualClock
) -> None:
    def alive(_owner: str) -> bool:
        return False

    first = await db.write(lambda tx: leases.take(tx, "sender:main", "a", is_dead=alive))
    assert first is not None
    assert await db.write(lambda tx: leases.take(tx, "sender:main", "b", is_dead=alive)) is None
    clock.advance_ms(leases.LEASE_MS)
    second = await db.write(lambda tx: leases.take(tx, "sender:main", "b", is_dead=alive))
    assert second is not None
    assert second.epoch == first.epoch + 1
    with pytest.raises(LeaseLost):
        await db.write(lambda tx: leases.require(tx, first))
    with pytest.raises(LeaseLost):
        await db.write(lambda tx: leases.renew(tx, first))
    await db.write(lambda tx: leases.require(tx, second))


async def test_a_clock_set_ahead_takes_no_lease_from_an_owner_that_lives(
    db: Database, clock: VirtualClock
) -> None:
    """Found in a world: its call left after another had taken over."""

    def try_to_take(tx: Tx, owner: str) -> Lease | None:
        return leases.take(tx, "sender:main", owner, is_dead=lambda _: False)

    first = await db.write(lambda tx: try_to_take(tx, "a"))
    assert first is not None
    clock.step_wall_ms(457_000)
    assert await db.write(lambda tx: try_to_take(tx, "b")) is None
    clock.advance_ms(leases.LEASE_MS - 1)
    await db.write(lambda tx: leases.renew(tx, first))
    clock.advance_ms(leases.LEASE_MS - 1)
    assert await db.write(lambda tx: try_to_take(tx, "b")) is None
    clock.advance_ms(1)
    assert await db.write(lambda tx: try_to_take(tx, "b")) is not None


async def test_a_lease_of_an_earlier_boot_goes_by_wall_time(
    db: Database, clock: VirtualClock
) -> None:
    def try_to_take(tx: Tx, owner: str) -> Lease | None:
        return leases.take(tx, "sender:main", owner, is_dead=lambda _: False)

    await db.write(lambda tx: try_to_take(tx, "a"))
    clock.reboot("boot-2")
    assert await db.write(lambda tx: try_to_take(tx, "b")) is None
    clock.advance_ms(leases.LEASE_MS)
    assert await db.write(lambda tx: try_to_take(tx, "b")) is not None


async def test_a_dead_owner_is_succeeded_at_once(db: Database) -> None:
    await db.write(lambda tx: leases.take(tx, "sender:main", "a", is_dead=lambda _: False))
    second = await db.write(lambda tx: leases.take(tx, "sender:main", "b", is_dead=lambda _: True))
    assert second is not None
    assert second.epoch == 2


def test_an_unfinished_process_does_not_hang_on_the_database_thread(tmp_path: Path) -> None:
    """The thread of aiosqlite is no daemon: `opened` must end it even when the block raises."""
    program = (
        "import asyncio, pathlib, sys\n"
        "from storage.clock import SystemClock\n"
        "from storage.database import opened\n"
        "from storage.migrate import migrate\n"
        "async def main():\n"
        "    path = pathlib.Path(sys.argv[1])\n"
        "    migrate(path, SystemClock())\n"
        "    async with opened(path, SystemClock()):\n"
        "        raise SystemExit(7)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.db")], timeout=20, check=False
    )
    assert done.returncode == 7


async def test_a_long_batch_gives_the_lock_back_between_and_finishes(
    db: Database, clock: VirtualClock
) -> None:
    """Another process must not wait for the whole of our backlog."""
    moments: list[int] = []

    def slow(tx: Tx) -> None:
        clock.advance_ms(HOLD_MS_MAX)
        moments.append(tx.now_ms())

    await asyncio.gather(*(db.write(slow) for _ in range(5)))
    assert len(set(moments)) == 5, "each of them was a transaction of its own"
