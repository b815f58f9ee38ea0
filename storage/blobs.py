"""The contents of files, each kept once under the name of its own hash.

A file is whole before it has its name: it is written beside, synced, renamed, and the folder is
synced too. So a row that names a hash, and is committed after `keep` has returned, names bytes that
a power cut does not take. Nothing here knows of rows or of time: what may be removed is said by
`storage/retention.py`, and one lock makes sure that nothing is removed while it is being kept anew.

Everything here touches the disk: callers run it beside the event loop.
"""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from storage.errors import FileTooLarge

CHUNK_BYTES: Final = 1 << 20
FOLDERS: Final = tuple(f"{number:02x}" for number in range(256))
"""The folders of the store: each holds the files whose hash begins with its name."""

_BEING_WRITTEN: Final = "new"
_LOCK: Final = "lock"
_NS_PER_MS: Final = 1_000_000


class Source(Protocol):
    """Something that is read to its end, a piece at a time."""

    def read(self, size: int, /) -> bytes | str:
        """The next piece; empty at the end."""


class Blobs:
    """The store under one folder, which any number of processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Folders of which this process knows that a power cut does not take them.
        self._durable: set[Path] = set()

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept."""
        return self._folder.is_dir()

    def path(self, sha256: str) -> Path:
        """Where the content with this hash is, or would be."""
        return self._folder / sha256[:2] / sha256

    def size_bytes(self, sha256: str) -> int | None:
        """How large this content is; None where it is not here, or can't be come by."""
        try:
            return self.path(sha256).stat().st_size
        except OSError:
            return None

    def keep(self, data: bytes) -> str:
        """Keep this content and give its hash; it is on disk when this returns.

        Raises OSError where the disk takes nothing, with nothing kept.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        if not self._touched(sha256):
            with self._writing() as (handle, path):
                _write_all(handle, data)
                self._name(handle, path, sha256)
        return sha256

    def keep_from(self, source: Source, *, bytes_max: int) -> tuple[str, int]:
        """Keep what `source` has left, read a piece at a time; its hash, and its size in bytes.

        Raises FileTooLarge, with nothing kept, once it is longer than `bytes_max`.
        """
        told = hashlib.sha256()
        size = 0
        with self._writing() as (handle, path):
            while piece := source.read(CHUNK_BYTES):
                data = piece.encode() if isinstance(piece, str) else piece
                size += len(data)
                if size > bytes_max:
                    raise FileTooLarge(f"the file is longer than {bytes_max} bytes")
                told.update(data)
                _write_all(handle, data)
            sha256 = told.hexdigest()
            if not self._touched(sha256):
                self._name(handle, path, sha256)
        return sha256, size

    def remove(self, sha256: str, *, before_ms: int) -> bool:
        """Remove a content that was last kept before `before_ms` (UTC); whether it was.

        One that somebody keeps at the same time stays: he may be about to commit a row for it.
        """
        with self._locked():
            return _remove_older(self.path(sha256), before_ms)

    def aged(self, folder: str, *, before_ms: int) -> Sequence[str]:
        """All of a folder's contents that were last kept before `before_ms`."""
        return _named(self._folder / folder, before_ms)

    def remove_unfinished(self, *, before_ms: int) -> int:
        """Remove what was begun before `before_ms` and never got its name; how many there were."""
        beside = self._folder / _BEING_WRITTEN
        found = _named(beside, before_ms)
        return sum(_remove_older(beside / name, before_ms) for name in found)

    def _touched(self, sha256: str) -> bool:
        """Whether the content is here already; if so, it counts as kept now."""
        with self._locked():
            path = self.path(sha256)
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
            # Who gave it its name may have been killed before that was durable.
            self._sync_name(path)
            return True

    def _name(self, handle: int, path: Path, sha256: str) -> None:
        named = self.path(sha256)
        named.parent.mkdir(mode=0o700, exist_ok=True)
        os.fsync(handle)
        with self._locked():
            path.rename(named)
            # Before the lock is let go: who then finds the name may commit a row at once.
            self._sync_name(named)

    def _sync_name(self, path: Path) -> None:
        """Let no power cut take this name, nor a folder above it, whoever has made that."""
        _sync_folder(path.parent)
        for folder in (path.parent, self._folder):
            if folder not in self._durable:
                _sync_folder(folder.parent)
                self._durable.add(folder)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[int, Path]]:
        """A file beside the store, gone afterwards unless it was given its name."""
        beside = self._folder / _BEING_WRITTEN
        beside.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=beside)
        path = Path(name)
        try:
            yield handle, path
        finally:
            os.close(handle)
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the store's lock: for moments only, never while a content is written."""
        try:
            handle = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _named(folder: Path, before_ms: int) -> Sequence[str]:
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return ()
    with entries:
        return [entry.name for entry in entries if _is_older(entry.stat, before_ms)]


def _is_older(stat: Callable[[], os.stat_result], before_ms: int) -> bool:
    try:
        return stat().st_mtime_ns < before_ms * _NS_PER_MS
    except FileNotFoundError:
        return False


def _remove_older(path: Path, before_ms: int) -> bool:
    if not _is_older(path.stat, before_ms):
        return False
    path.unlink(missing_ok=True)
    return True
