"""The disk of a world: real SQLite inline, which fails, and ends its process, when told to.

A connection that is asked to fail does as SQLite does: BUSY before a transaction begins, FULL and
IOERR in the middle of one, which is then rolled back. After each commit the world's journal is read
on the same connection, before anything else can happen.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pysqlite3.dbapi2 as sqlite

from storage.carriers import Cursor, InlineCarrier, Opener, Params, RawConnection
from storage.database import connect
from tests.simulation.loop import Process, WorldLoop, passing, process_here

T = TypeVar("T")

BUSY, FULL, IOERR = 5, 13, 10
_FULL_SYNC: Final = 2
_NAMES: Final = {BUSY: "SQLITE_BUSY", FULL: "SQLITE_FULL", IOERR: "SQLITE_IOERR_WRITE"}
_WRITING: Final = ("insert", "update", "delete", "replace")


def failure(code: int) -> sqlite.OperationalError:
    """The error that SQLite's module raises."""
    error = sqlite.OperationalError(_NAMES[code].lower())
    error.sqlite_errorcode = code
    error.sqlite_errorname = _NAMES[code]
    return error


@dataclass(slots=True)
class Disk:
    """What is wrong with the disk now, and who reads what was committed."""

    loop: WorldLoop
    dice: random.Random
    committed: Callable[[RawConnection, str], None]
    """Read the journal of a transaction that a process of this role has just committed."""

    met: Callable[[str], None]
    """A fault of this name was met."""

    breach: Callable[[str, str], None]
    """The product broke this invariant: its name, and how."""

    busy_until_ms: int = 0
    # Fails the statement after so many, once; 0 is never.
    fails_in: int = 0
    fails_with: int = FULL
    # Full until then: every write fails.
    full_until_ms: int = 0
    slow_share: float = 0.0
    kill_at_commit: tuple[str, str] | None = None
    """(role, "before" or "after"): the next commit of that role is its process's last act."""

    _calm: bool = True
    # Looked for again each millisecond, it counts once.
    _is_met: bool = False

    def settle(self) -> None:
        """Look at what is wrong; called whenever that has been changed."""
        now_ms = self.loop.now_ms()
        self._calm = not (
            self.fails_in or self.busy_until_ms > now_ms or self.full_until_ms > now_ms
        )
        self._is_met &= not self._calm

    @property
    def is_calm(self) -> bool:
        """Whether nothing is wrong."""
        return self._calm

    def heal(self) -> None:
        """Let everything go well."""
        self.busy_until_ms = self.full_until_ms = self.fails_in = 0
        self.slow_share = 0.0
        self.kill_at_commit = None
        self.settle()

    def judge(self, raw: RawConnection, sql: str) -> None:
        """Raise what this statement meets."""
        now_ms = self.loop.now_ms()
        if self.busy_until_ms > now_ms and not raw.in_transaction:
            if not self._is_met:
                self._is_met = True
                self.met("busy")
            raise failure(BUSY)
        writes = sql.lstrip()[:7].lower().startswith(_WRITING)
        if self.fails_in:
            self.fails_in -= 1
            if not self.fails_in:
                self._is_met = False
                try:
                    self._fail(raw, self.fails_with)
                finally:
                    self.settle()
        if writes and self.full_until_ms > now_ms:
            self._fail(raw, FULL)
        self.settle()

    def _fail(self, raw: RawConnection, code: int) -> None:
        if not self._is_met:
            self._is_met = True
            self.met("full" if code == FULL else "ioerr")
        if raw.in_transaction:
            raw.execute("rollback", {})
        raise failure(code)


class WorldConnection:
    """A connection that meets what is wrong with the disk."""

    __slots__ = ("_disk", "_raw", "execute_plainly", "is_deferred")

    def __init__(self, raw: RawConnection, disk: Disk) -> None:
        self._raw = raw
        self._disk = disk
        self.execute_plainly = raw.execute
        # The transaction that was begun last took no lock.
        self.is_deferred = False

    @property
    def sound(self) -> RawConnection:
        """The same connection, with nothing wrong."""
        return self._raw

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._raw.in_transaction

    @property
    def total_changes(self) -> int:
        """How many rows this connection has changed so far."""
        changes: int = self._raw.total_changes  # type: ignore[attr-defined]  # the module's own
        return changes

    def execute(self, sql: str, parameters: Params = {}, /) -> Cursor:  # noqa: B006 - read only
        """Run one statement."""
        if not self._disk.is_calm:
            self._disk.judge(self._raw, sql)
        if sql.startswith("begin"):
            self.is_deferred = sql != "begin immediate"
        return self.execute_plainly(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Params], /) -> Cursor:
        """Run one statement for each set of parameters."""
        if not self._disk.is_calm:
            self._disk.judge(self._raw, sql)
        return self._raw.executemany(sql, parameters)

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()


def connector(disk: Disk) -> Callable[[Path], RawConnection]:
    """Open the file through this disk."""
    return lambda path: WorldConnection(connect(path), disk)


class WorldCarrier(InlineCarrier):
    """Carries a connection of one process; it is the process's last act, if so decided."""

    def __init__(self, opener: Opener, disk: Disk) -> None:
        super().__init__(opener)
        self._disk = disk
        self._process = process_here()
        self._process.ends.append(self._die)
        self._changes = 0

    async def open(self) -> None:
        """Open the connection, and see that it keeps its promise."""
        await super().open()
        raw = self._raw
        assert isinstance(raw, WorldConnection), "carrier is not open"
        level = raw.execute_plainly("pragma synchronous", {}).fetchall()[0]["synchronous"]
        if level < _FULL_SYNC:
            self._disk.breach("I14", f"synchronous is {level}: what is committed may be lost")

    async def run(self, work: Callable[[RawConnection], T]) -> T:
        """Carry out `work`, and have its commit read."""
        raw, process, disk = self._raw, self._process, self._disk
        assert isinstance(raw, WorldConnection), "carrier is not open"
        if disk.kill_at_commit is not None and disk.kill_at_commit == (process.name, "before"):
            disk.kill_at_commit = None
            await _die(process, disk)
        if disk.slow_share and disk.dice.random() < disk.slow_share:
            await passing(disk.dice.uniform(0.0, 0.05))
        result = work(raw)
        assert not raw.in_transaction, "a transaction was left open"
        if raw.total_changes != self._changes:
            self._changes = raw.total_changes
            if raw.is_deferred:
                disk.breach("I14", "a transaction that took no lock at its beginning has written")
            # What is wrong with the disk is the house's trouble, not the watch's.
            disk.committed(raw.sound, process.name)
            if disk.kill_at_commit is not None and disk.kill_at_commit[0] == process.name:
                disk.kill_at_commit = None
                await _die(process, disk)
            if disk.slow_share and disk.dice.random() < disk.slow_share:
                await passing(disk.dice.uniform(0.0, 0.05))
        return result

    def _die(self) -> None:
        if self._raw is not None:
            self._raw.close()
            self._raw = None


async def _die(process: Process, disk: Disk) -> None:
    disk.met("kill at a commit")
    process.kill()
    await disk.loop.create_future()


def carrier(disk: Disk) -> Callable[[Opener], WorldCarrier]:
    """Make carriers on this disk."""
    return lambda opener: WorldCarrier(opener, disk)
