"""A disk under SQLite that tells everything it was asked to do, and fails when told to.

A VFS of apsw's: each creation, write, truncation, sync and deletion of the database's files goes to
the real file system and into a journal, in the order in which it happened. `power.py` makes of that
journal what a power cut could have left. May never change what SQLite asked for, except by failing.
"""

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import apsw

from storage.carriers import RawConnection
from tests.crash.connection import ApswConnection

_NUMBERS: Final = itertools.count(1)
# Whoever opens such a file with leave to create it syncs its directory at its own first sync of the
# file, whether or not it was there already (SQLite's os_unix.c, `isNewJrnl`; seen with strace).
_LISTED_FILES: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


@dataclass(frozen=True, slots=True)
class Created:
    """A name appeared in the directory, and stands for this file."""

    name: str
    file: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A name left the directory; `durable` when the directory was synced at once."""

    name: str
    durable: bool


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes were written at an offset."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    """The file was cut to this size."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """All of the file is on the disk; with `directory` all names are, too."""

    file: int
    directory: bool


@dataclass(frozen=True, slots=True)
class Lost:
    """A sync failed, and the system has thrown away what was to be synced."""

    file: int


Entry = Created | Deleted | Written | Truncated | Synced | Lost


class Operation(StrEnum):
    """What of a disk may fail."""

    READ = "read"
    WRITE = "write"
    SYNC = "sync"


_IO_ERRORS: Final[Mapping[Operation, int]] = {
    Operation.READ: apsw.SQLITE_IOERR_READ,
    Operation.WRITE: apsw.SQLITE_IOERR_WRITE,
    Operation.SYNC: apsw.SQLITE_IOERR_FSYNC,
}


class Failure(StrEnum):
    """How it fails."""

    INPUT_OUTPUT = "I/O error"
    FULL = "disk full"


@dataclass(slots=True)
class Plan:
    """Which operation fails: the `nth` of its kind from now on, and how many from there."""

    operation: Operation
    nth: int
    failure: Failure = Failure.INPUT_OUTPUT
    times: int = 1
    failed: int = 0

    def meets(self, operation: Operation) -> bool:
        """Count one operation, and tell whether it is to fail."""
        if operation is not self.operation:
            return False
        self.nth -= 1
        if self.nth > 0 or self.failed >= self.times:
            return False
        self.failed += 1
        return True


def _error(failure: Failure, operation: Operation) -> apsw.Error:
    """What SQLite reads as this failure."""
    if failure is Failure.FULL:
        full = apsw.FullError(failure)
        full.extendedresult = apsw.SQLITE_FULL  # type: ignore[attr-defined]  # the stub leaves it out
        return full
    error = apsw.IOError(failure)
    error.extendedresult = _IO_ERRORS[operation]  # type: ignore[attr-defined]  # the same
    return error


class Disk(apsw.VFS):
    """The disk. Its journal may be read at any moment; its length is the disk's time."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_NUMBERS)}"
        self.journal: list[Entry] = []
        self.plan: Plan | None = None
        self.lock = threading.RLock()
        super().__init__(self.name, "")

    def connect(self, path: Path) -> RawConnection:
        """A connector for `storage.database`: its files are on this disk."""
        return ApswConnection(path, self.name)

    def fail_if_planned(self, operation: Operation) -> None:
        """Raise what SQLite reads as the planned failure."""
        if self.plan is None or not self.plan.meets(operation):
            return
        raise _error(self.plan.failure, operation)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's own shape
        with self.lock:
            super().xDelete(filename, syncdir)
            self.journal.append(Deleted(os.path.basename(filename), syncdir))  # noqa: PTH119 - a name is wanted


class _DiskFile(apsw.VFSFile):
    """One open file of the disk."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        assert path is not None, "temporary files stay in memory (pragma temp_store)"
        self._disk = disk
        with disk.lock:
            known = _files_of(disk.journal)
            base = Path(path).name
            is_new = not Path(path).exists()
            super().__init__("", name, flags)
            self._file = next(_NUMBERS) if is_new else known[base]
            may_create = bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
            self._is_listed = not (may_create and flags[0] & _LISTED_FILES)
            if is_new:
                disk.journal.append(Created(base, self._file))

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        with self._disk.lock:
            self._disk.fail_if_planned(Operation.READ)
            return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        with self._disk.lock:
            self._disk.fail_if_planned(Operation.WRITE)
            super().xWrite(data, offset)
            self._disk.journal.append(Written(self._file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        with self._disk.lock:
            super().xTruncate(newsize)
            self._disk.journal.append(Truncated(self._file, newsize))

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802 - SQLite's own shape
        with self._disk.lock:
            try:
                self._disk.fail_if_planned(Operation.SYNC)
            except apsw.Error:
                self._disk.journal.append(Lost(self._file))
                raise
            # The journal says what a sync is worth; the real one would only cost time.
            self._disk.journal.append(Synced(self._file, directory=not self._is_listed))
            self._is_listed = True


def _files_of(journal: list[Entry]) -> dict[str, int]:
    """Which file each name stands for now."""
    files: dict[str, int] = {}
    for entry in journal:
        match entry:
            case Created():
                files[entry.name] = entry.file
            case Deleted():
                del files[entry.name]
            case _:
                pass
    return files


@contextlib.contextmanager
def disk() -> Iterator[Disk]:
    """A disk for a block of a test."""
    made = Disk()
    try:
        yield made
    finally:
        made.unregister()
