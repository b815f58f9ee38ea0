"""What one turn, one job or the process has touched of `bot_data`, and what it has changed.

A value is copied from what is stored when it is first touched; looking at what keys there are
touches all of them. Nothing here writes: `harvest` tells what has changed.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from bot.turns.entries import Change, Entries, Staged
from bot.turns.pickling import WHOLE, parts_of

MISSING: Final = object()
"""What lies under a key with nothing under it."""
_ATOMS: Final = (str, int, float, bytes, type(None))


class Touched:
    """What a turn or a job has in hand. Once it is over, `now` is what the process has."""

    def __init__(self, entries: Entries, afterwards: "Touched | None" = None) -> None:
        self._entries = entries
        self._afterwards = afterwards
        self._is_over = False
        self._values: dict[Hashable, object] = {}
        self._read: dict[Hashable, bytes | None] = {}
        self._seen: Mapping[Hashable, bytes] | None = None

    @property
    def now(self) -> "Touched":
        """What is to be used in place of this: itself, until it is over."""
        return self._afterwards if self._is_over and self._afterwards is not None else self

    def belongs_to(self, entries: Entries) -> bool:
        """Tell whether this is of that bot's data, and not over yet."""
        return self._entries is entries and not self._is_over

    def end(self) -> None:
        """Whoever still uses this uses what the process sees."""
        self._is_over = True

    def whole(self) -> object:
        """All of it, where it is of a class of its own; a new one at first."""
        value = self.touch(WHOLE)
        if value is MISSING:
            assert self._entries.whole_of is not None
            value = self._entries.whole_of()
            self._values[WHOLE] = value
        return value

    def harvest(self) -> Staged | None:
        """What has changed and what was read for it; None when nothing has changed."""
        changes = self._changes()
        if not changes:
            return None
        return self._entries.stage(changes, self._all_read(), all_read=self._seen is not None)

    def stage_read(self) -> Staged:
        """What was read and changed so far, not to be written yet."""
        return self._entries.told(
            self._changes(), self._all_read(), all_read=self._seen is not None
        )

    def _changes(self) -> list[Change]:
        return [
            change
            for key, value in self._values.items()
            if (change := self._change(key, value)) is not None
        ]

    def _all_read(self) -> Mapping[Hashable, bytes | None]:
        # What was read before somebody looked at all keys counts as it was then.
        return dict(self._read) if self._seen is None else {**self._seen, **self._read}

    def _change(self, key: Hashable, value: object) -> Change | None:
        before = self._read.get(key, WHOLE)
        if value is MISSING:
            return None if before is None else self._entries.change(key, (None, {}), before)
        data, live = self._entries.freeze(key, value)
        if isinstance(before, bytes) and self._entries.is_as_before(data, live, key, before):
            return None
        return self._entries.change(key, (data, live), before)

    def touch(self, key: Hashable) -> object:
        """What lies under a key, or MISSING."""
        if key in self._values:
            return self._values[key]
        row = self._entries.rows.get(key)
        if row is None and key in self._entries.live:
            return self._entries.thaw(key)
        self._read[key] = None if row is None else row.data
        value = MISSING if row is None else self._entries.thaw(key)
        self._values[key] = value
        return value

    def put(self, key: Hashable, value: object) -> None:
        """Lay it under a key."""
        self._values[key] = value

    def offer(self, key: Hashable, value: object) -> None:
        """Lay it under a key that has nothing under it."""
        self.put(key, value)

    def drop(self, key: Hashable) -> None:
        """Take away what lies under a key. Raises KeyError."""
        if self.touch(key) is MISSING:
            raise KeyError(key)
        self._values[key] = MISSING

    def names(self) -> list[Hashable]:
        """All keys that have something under them, in their order."""
        entries = self._entries
        if self._seen is None:
            self._seen = {key: row.data for key, row in entries.rows.items()}
        names = {**entries.rows, **entries.live, **self._values}
        return [name for name in names if self._values.get(name) is not MISSING]


class InProcess(Touched):
    """What the process sees outside any turn, and what it has put in that is not stored yet.

    It keeps what it has handed out as long as nobody else changes it and it was used a moment ago.
    `on_touch` is called when there may be something to write.
    """

    def __init__(self, entries: Entries, on_touch: Callable[[], None]) -> None:
        super().__init__(entries)
        self._on_touch = on_touch
        self._is_loaded = False
        self._offered: set[Hashable] = set()
        self._idle: set[Hashable] = set()

    @property
    def has_something(self) -> bool:
        """Whether anything here may have changed."""
        return bool(self._values)

    def loaded(self) -> None:
        """What is stored has been read; it gives way to what was put in before."""
        self._is_loaded = True
        for key in self._offered & self._entries.rows.keys():
            del self._values[key]
        self._offered.clear()
        for key in self._read:
            # Handed out when this process had the bot before.
            self._values.pop(key, None)
        self._read.clear()
        row = self._entries.rows.get(WHOLE)
        if row is not None and WHOLE in self._values:
            self._take_over(self._values[WHOLE], self._entries.thaw(WHOLE))
            self._read[WHOLE] = row.data

    def _take_over(self, mine: object, stored: object) -> None:
        """Put what is stored into the object that the process has in hand already."""
        assert self._entries.whole_of is not None
        fresh = self._entries.parts(self._entries.whole_of())
        now = self._entries.parts(mine)
        untouched = {name for name, data in now.items() if name in fresh and fresh[name] == data}
        parts_of(mine).update(
            {
                name: part
                for name, part in parts_of(stored).items()
                if name in untouched or name not in now
            }
        )

    def settled(self, staged: Staged) -> None:
        """What was harvested here is stored."""
        for change in staged.changes:
            value = self._values.get(change.key, MISSING)
            if change.data is None:
                if change.live or value is MISSING:
                    self._values.pop(change.key, None)
                self._read.pop(change.key, None)
            else:
                self._read[change.key] = change.data

    def forget_idle(self) -> None:
        """Let go of what was handed out and not used since the last time; a moment is over."""
        for key in self._idle:
            if key in self._read and key in self._values:
                del self._values[key], self._read[key]
        self._idle = set(self._values)
        self._seen = None

    def touch(self, key: Hashable) -> object:
        """What lies there, or MISSING: the same object as before while nobody else changes it."""
        self._idle.discard(key)
        if key in self._values and not self._is_outdated(key):
            value = self._values[key]
        else:
            self._values.pop(key, None)
            value = super().touch(key)
            if value is MISSING:
                self._values.pop(key, None)
                self._read.pop(key, None)
        if not isinstance(value, _ATOMS) and value is not MISSING:
            self._on_touch()
        return value

    def _is_outdated(self, key: Hashable) -> bool:
        """Tell whether somebody else has changed it, and nobody here."""
        before = self._read.get(key, WHOLE)
        row = self._entries.rows.get(key)
        if not isinstance(before, bytes) or (row is not None and row.data is before):
            return False
        data, live = self._entries.freeze(key, self._values[key])
        return self._entries.is_as_before(data, live, key, before)

    def put(self, key: Hashable, value: object) -> None:
        """Lay it there; what has no bytes is there for all at once."""
        self._offered.discard(key)
        self._idle.discard(key)
        super().put(key, value)
        self._entries.share(key, value)
        self._on_touch()

    def offer(self, key: Hashable, value: object) -> None:
        """Lay it there. Before anything was read, what is stored goes before it."""
        self.put(key, value)
        if not self._is_loaded:
            self._offered.add(key)

    def drop(self, key: Hashable) -> None:
        """Take it away."""
        super().drop(key)
        self._on_touch()
