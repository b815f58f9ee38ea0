"""The rows of one bot's `bot_data`, as they are stored, and what of it has no bytes.

All of it is read at the start and then known: the worker that owns the bot is the only one that
writes it. Handlers never get at what is here, only at copies made from the bytes; a change comes in
when its transaction has been committed. That is checked against the database itself: two turns may
well wait for their commits at the same time.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from telegram import Bot

from bot.turns.pickling import (
    NOTHING_LIVE,
    WHOLE,
    Live,
    Whole,
    bytes_of,
    join,
    loads,
    missing_live,
    parts_of,
    says_the_same,
    split,
)
from bot.turns.unkept import Unkept
from storage import turn_state
from storage.database import Tx
from storage.lifecycle import BotName

PREFIX: Final = "bot:"
_SCOPE_OF_WHOLE: Final = "bot:*"
# What is longer is named by its digest.
_KEY_LENGTH_MAX: Final = 100


class Conflict(Exception):
    """What a turn had read of `bot_data` is no longer what is stored.

    `keys` are those that it had read, None for all.
    """

    def __init__(self, keys: frozenset[Hashable] | None) -> None:
        super().__init__("another turn was faster with what this one had read of bot_data")
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: its name and its bytes."""

    scope: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one key: its bytes, None for none, and what of its value has none.

    `before` is what was read of it, None for nothing; a key that was not read has no `before`.
    """

    key: Hashable
    scope: str
    data: bytes | None
    live: Live
    before: bytes | Whole | None = WHOLE


@dataclass(slots=True)
class Staged:
    """What somebody leaves of `bot_data`. `read` are the rows that he had read, by scope.

    Who has looked at what keys there are has seen all but those that are `ignored`.
    """

    changes: Sequence[Change]
    keys: frozenset[Hashable] | None
    read: Mapping[str, bytes | None]
    ignored: frozenset[str] | None
    serials: "itertools.count[int]"
    serial: int = 0
    lost_to_me: list[Hashable] = field(default_factory=list)

    def commit(self, tx: Tx, bot: BotName) -> None:
        """Write it in a turn's transaction. Raises Conflict when the turn was too late."""
        self.verify(tx, bot)
        self._save(tx, bot)

    def verify(self, tx: Tx, bot: BotName) -> None:
        """See that what was read is still what is stored. Raises Conflict where it is not."""
        expected = {scope: data for scope, data in self.read.items() if data is not None}
        if self.ignored is None:
            stored = turn_state.load(tx, bot, self.read)
        else:
            stored = turn_state.load_prefix(tx, bot, PREFIX)
            stored = {scope: stored[scope] for scope in stored.keys() - self.ignored}
        if stored != expected:
            raise Conflict(self.keys)

    def overwrite(self, tx: Tx, bot: BotName) -> None:
        """Write it in a transaction of its own, whatever is stored."""
        known = {each.scope: each for each in self.changes if not isinstance(each.before, Whole)}
        stored = turn_state.load(tx, bot, known)
        self.lost_to_me = [
            each.key for scope, each in known.items() if stored.get(scope) != each.before
        ]
        self._save(tx, bot)

    def _save(self, tx: Tx, bot: BotName) -> None:
        self.serial = next(self.serials)
        turn_state.save(tx, bot, {each.scope: each.data for each in self.changes})


class Entries:
    """What is stored of one bot's `bot_data`, by key, and what lives in memory only.

    `kind` is its class. One that is no plain dictionary is `whole_of`, and kept under one key.
    """

    def __init__(self, of_bot: Callable[[], Bot], kind: type[Any]) -> None:
        self.rows: dict[Hashable, Entry] = {}
        self.live: dict[Hashable, Live] = {}
        self.whole_of = None if kind is dict else kind
        self.name = BotName("")
        self._bot = of_bot
        self._unkept = Unkept()
        self._serials = itertools.count(1)
        self._settled: dict[Hashable, int] = {}
        self._under_way = 0
        self._ignored: frozenset[str] = frozenset()

    def read(self, tx: Tx) -> Mapping[str, bytes]:
        """All rows, as they are stored."""
        return turn_state.load_prefix(tx, self.name, PREFIX)

    def load(self, stored: Mapping[str, bytes]) -> None:
        """Take these for all that is stored.

        Raises what pickle raises when something can no longer be read.
        """
        rows: dict[Hashable, Entry] = {}
        ignored = set()
        for scope, data in stored.items():
            is_whole = scope == _SCOPE_OF_WHOLE
            key = WHOLE if is_whole else loads(data, self._bot())[0]
            if is_whole is (self.whole_of is None) or key in rows:
                # Of a time when the bot's author had another class, or another equal key.
                ignored.add(scope)
            else:
                rows[key] = Entry(scope, data)
        self.rows, self._ignored = rows, frozenset(ignored)

    def keys_of(self, value: Any) -> Iterable[tuple[Hashable, object]]:  # noqa: ANN401  # of the class that the handlers' author has chosen
        """A `bot_data`, by the keys under which it is kept."""
        if self.whole_of is None:
            return dict(value).items()
        return [(WHOLE, value)]

    def share(self, key: Hashable, value: object) -> None:
        """Have everybody see a value at once if it has no bytes."""
        data, live = self.freeze(key, value)
        if data is None:
            self.rows.pop(key, None)
            self.live[key] = live

    def thaw(self, key: Hashable) -> object:
        """A new copy of a key's value; what has no bytes is shared. Raises KeyError."""
        row = self.rows.get(key)
        if row is None:
            return self.live[key][WHOLE]
        value = loads(row.data, self._bot())
        if key is not WHOLE:
            return value[1]
        assert self.whole_of is not None
        live = self.live.get(key) or missing_live(value, self.whole_of, self._bot())
        if live:
            # A lock must be the same one for all.
            self.live[key] = live
        return join(value, live)

    def freeze(self, key: Hashable, value: object) -> tuple[bytes | None, Live]:
        """A key's value as bytes, and what of it has none."""
        if key is WHOLE:
            parts = split(value, self._bot())
            return parts.data, parts.live
        data = bytes_of((key, value), self._bot())
        return data, NOTHING_LIVE if data is not None else {WHOLE: value}

    def is_as_before(self, data: bytes | None, live: Live, key: Hashable, before: bytes) -> bool:
        """Tell whether a frozen value is what it was made from."""
        if data is None or not _are_the_same(live, self.live.get(key, NOTHING_LIVE)):
            return False
        return says_the_same(data, before, self._bot())

    def parts(self, value: object) -> dict[object, bytes | None]:
        """What a value is made of, each part as bytes or None where it has none."""
        return {name: bytes_of(part, self._bot()) for name, part in parts_of(value).items()}

    def change(self, key: Hashable, frozen: tuple[bytes | None, Live], before: Any) -> Change:  # noqa: ANN401  # see Change
        """What is to become of a key."""
        data, live = frozen
        if live:
            names = live if key is WHOLE else (key,)
            self._unkept.tell(self.name, "bot_data", names)
        return Change(key, self.scope_of(key), data, live, before)

    def scope_of(self, key: Hashable) -> str:
        """The name of a key's row: readable where the key is."""
        row = self.rows.get(key)
        if row is not None:
            return row.scope
        if key is WHOLE:
            return _SCOPE_OF_WHOLE
        if isinstance(key, str | int | float | None) and len(repr(key)) <= _KEY_LENGTH_MAX:
            return f"{PREFIX}{key!r}"
        data = bytes_of(key, self._bot()) or repr(key).encode()
        return f"{PREFIX}#{sha256(data).hexdigest()}"

    def stage(
        self, changes: Sequence[Change], read: Mapping[Hashable, bytes | None], *, all_read: bool
    ) -> Staged:
        """Make one piece of work of some changes, and of what was read for them."""
        self._under_way += 1
        return self.told(changes, read, all_read=all_read)

    def told(
        self, changes: Sequence[Change], read: Mapping[Hashable, bytes | None], *, all_read: bool
    ) -> Staged:
        """The same of what is not to be written yet."""
        rows = {self.scope_of(key): data for key, data in read.items()}
        keys = None if all_read else frozenset(read) | {each.key for each in changes}
        ignored = self._ignored if all_read else None
        return Staged(changes, keys, rows, ignored, self._serials)

    def settle(self, staged: Staged) -> None:
        """It is committed: what it changed is what is stored."""
        for change in staged.changes:
            if self._settled.get(change.key, 0) > staged.serial:
                continue
            self._settled[change.key] = staged.serial
            if change.data is None:
                self.rows.pop(change.key, None)
            else:
                self.rows[change.key] = Entry(change.scope, change.data)
            if change.live:
                self.live[change.key] = change.live
            else:
                self.live.pop(change.key, None)
        self.let_go()

    def let_go(self) -> None:
        """Something that was staged has ended, one way or the other."""
        self._under_way -= 1
        if not self._under_way:
            # Only what is under way at the same time can be settled in another order.
            self._settled.clear()


def _are_the_same(some: Live, others: Live) -> bool:
    return some.keys() == others.keys() and all(some[name] is others[name] for name in some)
