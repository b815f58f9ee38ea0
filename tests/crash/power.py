"""What a power cut may leave of a database's files.

From the disk's journal: everything that was synced, and of the rest a random part, whole writes or
some of their sectors. Names come and go in the order of the journal, but perhaps not all of them.
SQLite's own crash tests do the same (sqlite.org/testing.html, 3.3).
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

from tests.crash.disk import Created, Deleted, Entry, Lost, Synced, Truncated, Written

SECTOR_BYTES: Final = 512
# The share of unsynced work that reached the disk: from nothing to all of it.
_SHARES: Final = (0.0, 0.1, 0.5, 0.9, 1.0)

Image = Mapping[str, bytes]
Change = Written | Truncated


@dataclass(slots=True)
class _File:
    """A file: what is safe of it, and what was asked for since."""

    safe: bytearray = field(default_factory=bytearray)
    unsynced: list[Change] = field(default_factory=list)


class Power:
    """A machine's files, as of some moment of a disk's journal."""

    def __init__(self) -> None:
        self._files: defaultdict[int, _File] = defaultdict(_File)
        self._names: dict[str, int] = {}
        self._unsynced_names: list[Created | Deleted] = []

    def follow(self, entries: Sequence[Entry]) -> None:
        """Go on in the journal."""
        for entry in entries:
            self._follow_one(entry)

    def _follow_one(self, entry: Entry) -> None:
        match entry:
            case Created() | Deleted():
                self._unsynced_names.append(entry)
                if isinstance(entry, Deleted) and entry.durable:
                    self._sync_names()
            case Written() | Truncated():
                self._files[entry.file].unsynced.append(entry)
            case Synced():
                file = self._files[entry.file]
                for change in file.unsynced:
                    _apply(file.safe, change)
                file.unsynced.clear()
                if entry.directory:
                    self._sync_names()
            case Lost():
                self._files[entry.file].unsynced.clear()
            case _:
                assert_never(entry)

    def _sync_names(self) -> None:
        for entry in self._unsynced_names:
            _rename(self._names, entry)
        self._unsynced_names.clear()

    def cut(self, dice: random.Random) -> Image:
        """What the files may hold after a power cut now."""
        names = dict(self._names)
        for entry in self._unsynced_names[: dice.randint(0, len(self._unsynced_names))]:
            _rename(names, entry)
        share = dice.choice(_SHARES)
        return {name: self._remains(file, share, dice) for name, file in names.items()}

    def _remains(self, number: int, share: float, dice: random.Random) -> bytes:
        file = self._files[number]
        content = bytearray(file.safe)
        for change in file.unsynced:
            for part in _parts(change, dice):
                if dice.random() < share:
                    _apply(content, part)
        return bytes(content)


def _rename(names: dict[str, int], entry: Created | Deleted) -> None:
    if isinstance(entry, Created):
        names[entry.name] = entry.file
    else:
        names.pop(entry.name, None)


def _parts(change: Change, dice: random.Random) -> Iterator[Change]:
    """The change whole, or torn at the borders of sectors."""
    if isinstance(change, Truncated) or dice.random() < 0.5:
        yield change
        return
    start = 0
    while start < len(change.data):
        end = start + SECTOR_BYTES - (change.offset + start) % SECTOR_BYTES
        yield Written(change.file, change.offset + start, change.data[start:end])
        start = end


def _apply(content: bytearray, change: Change) -> None:
    match change:
        case Written():
            end = change.offset + len(change.data)
            _grow(content, end)
            content[change.offset : end] = change.data
        case Truncated():
            _grow(content, change.size)
            del content[change.size :]
        case _:
            assert_never(change)


def _grow(content: bytearray, size: int) -> None:
    if len(content) < size:
        content.extend(bytes(size - len(content)))
