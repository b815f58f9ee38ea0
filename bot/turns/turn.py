"""A turn: the handling of one update, and all that its handlers said and changed so far.

A turn only collects. It may never write to the database or call Telegram: the worker commits what
was collected in one transaction, or lets go of all of it. Who speaks is told by a context variable,
so that handlers written for python-telegram-bot need not know. But contexts outlive turns: tasks go
on, and a timer keeps the context of whoever armed it. So a turn also knows when it is over, and
what is said in its name from then on goes outside, into a transaction of its own.

Keys and placeholders are made from the turn's cause (an update, an end that is told, a reminder)
and the place of the call in the turn, never from chance: a turn that is run again after a crash
leaves the same rows.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Final, Protocol

from bot.turns.entries import Conflict
from storage.database import Tx
from storage.lifecycle import BotName, InboxId, OutboxId
from storage.message_ids import Resolution
from storage.outgoing import Outgoing, Source

Json = Mapping[str, Any]
"""A JSON object as it was parsed: what is in it was written by others."""

Effect = Callable[[Tx, BotName], None]
"""Something to write in the turn's own transaction."""

# A placeholder is the negation of a number below 2^52: -2^52 down to -2^53, the last integer that
# every JSON parser keeps, are those of rows outside any turn (storage/outbox.py). Updates have what
# is below 2^51, as (inbox id, phase, index + 1); ends that are told and reminders the half above,
# as (1, kind, number, index + 1), where the number ends with which of its two turns it is.
_INDEX_BITS: Final = 12
_PHASE_BITS: Final = 1
_NUMBER_BITS: Final = 38
_KIND_AT: Final = _INDEX_BITS + _NUMBER_BITS
_NO_UPDATE_AT: Final = _KIND_AT + 1
NUMBER_MAX: Final = (1 << _NUMBER_BITS) - 1
"""The highest number of an update, a row or a reminder that may be a cause."""
CALLS_MAX: Final = (1 << _INDEX_BITS) - 1
"""Calls that one turn may make, and messages."""
CAUSE_MS_MAX: Final = 3_600_000
"""How long after an update a task that outlived its turn still speaks for that update's sake."""


class Guard(Protocol):
    """Sees to it that a turn whose words go out before its end need not be run again."""

    async def __call__(self, *, patient: bool) -> Effect | None:
        """What to run in their transaction, where it may raise Conflict.

        None where it takes a wait to be sure, and the caller is not `patient`.
        """


class Phase(IntEnum):
    """Which of an update's two possible turns this is."""

    HANDLERS = 0
    ERROR_HANDLERS = 1


@dataclass(frozen=True, slots=True)
class Cause:
    """What a turn is run for.

    `key` begins the names of its calls; `base` is the number above which its placeholders' own
    numbers lie. `inbox_id`: the update to which its calls are due, if any.
    """

    key: str
    base: int
    inbox_id: InboxId | None = None

    def key_of(self, index: int) -> str:
        """Name the turn's `index`-th call."""
        return f"{self.key}:{index}"

    def placeholder_of(self, index: int) -> int:
        """The placeholder of the turn's `index`-th message."""
        return -(self.base + index + 1)


def update_cause(inbox_id: InboxId, phase: Phase) -> Cause:
    """The cause of an update's turn, or of that of its error handlers."""
    assert 0 < inbox_id <= NUMBER_MAX, inbox_id
    base = (inbox_id << (_INDEX_BITS + _PHASE_BITS)) | (phase << _INDEX_BITS)
    return Cause(f"turn:{inbox_id}:{phase:d}", base, inbox_id)


def report_cause(
    outbox_id: OutboxId, inbox_id: InboxId | None = None, *, held: bool = False
) -> Cause:
    """The cause of a turn that tells how a call ended, which was due to that update.

    `held`: it tells that the call is held for a person, after whose decision it may be told of once
    more: that is another turn, with words of its own.
    """
    key = f"told:{outbox_id}" + (":held" if held else "")
    return Cause(key, _base_without_update(0, outbox_id << 1 | held), inbox_id)


def reminder_cause(reminder_id: int, phase: Phase) -> Cause:
    """The cause of a turn that a reminder begins, or of that of its error handlers."""
    number = reminder_id << _PHASE_BITS | phase
    return Cause(f"later:{reminder_id}:{phase:d}", _base_without_update(1, number))


def _base_without_update(kind: int, number: int) -> int:
    assert 0 < number <= NUMBER_MAX, number
    return (1 << _NO_UPDATE_AT) | (kind << _KIND_AT) | (number << _INDEX_BITS)


class Stage(Enum):
    """Whether what is said in a turn's name still belongs to it.

    open        it does
    over        the turn was committed, or is about to be: who still speaks, speaks for himself
    condemned   it was given up while it ran: what still runs of it may not speak at all
    """

    OPEN = "open"
    OVER = "over"
    CONDEMNED = "condemned"


class TooManyCalls(Exception):
    """A turn made more calls than can be numbered."""


class Condemned(asyncio.CancelledError):
    """The turn that this code belongs to was given up: it may not speak any more."""


class Voice(Protocol):
    """In whose name something is said: a turn's, or nobody's, in a transaction of its own."""

    @property
    def inbox_id(self) -> InboxId | None:
        """The update to which what is said is due, if any."""

    def next_key(self, *, once: bool = False) -> str:
        """Name the next call by its cause; `once`: one that may never be made twice."""

    def next_placeholder(self, items: int = 1) -> int | None:
        """The message id to hand out for the next call, where it is known beforehand.

        A call that makes several messages hands out this one and those below it, one for each.
        """

    async def say(self, outgoing: Outgoing) -> int | None:
        """Leave a call to be made; give the placeholder of its first message, if it makes one."""

    async def write(self, effect: Effect) -> None:
        """Let an effect be written together with what is said."""

    async def resolve(self, placeholder: int) -> Resolution | None:
        """What became of the message behind a placeholder; None when nothing is known of it."""

    async def flush(self) -> None:
        """Commit what was said so far, so that a sender may take it.

        Raises LeaseLost, KeyTaken, or StorageError with nothing committed.
        """


class Beyond(Voice, Protocol):
    """The voice beyond a turn, which commits at once."""

    async def leave(self, rows: Sequence[Outgoing], effects: Sequence[Effect] = ()) -> None:
        """Commit calls that a turn has named, with these effects, before the turn itself.

        Raises LeaseLost, KeyTaken, or StorageError with nothing committed.
        """


@dataclass(slots=True, eq=False)
class Turn:
    """One update's turn, or that of its error handlers, of a told end or of a reminder.

    `raw` is the update as Telegram sent it, `source` the message that it is about. `committed` of
    the `rows` are on disk already. `tasks` are those that python-telegram-bot started for it,
    `errors` what its handlers raised, `keyboards` write what the buttons stand for that it showed.
    `outside` takes over once the turn is over. `undo` takes back what was begun in the turn and is
    in no transaction, if the turn is given up. `guard` is asked before something goes out early.
    """

    bot: BotName
    cause: Cause
    phase: Phase
    received_at_ms: int
    raw: Json | None
    outside: Beyond
    source: Source | None = None
    rows: list[Outgoing] = field(default_factory=list)
    committed: int = 0
    effects: list[Effect] = field(default_factory=list)
    keyboards: list[Effect] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    undo: list[Callable[[], object]] = field(default_factory=list)
    guard: Guard | None = None
    stage: Stage = Stage.OPEN
    _calls: int = 0
    _once: int = 0
    _messages: int = 0
    _flushing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def inbox_id(self) -> InboxId | None:
        """The update to which this turn's calls are due, if any."""
        return self.cause.inbox_id

    @property
    def is_open(self) -> bool:
        """Whether words and effects still become part of this turn."""
        return self.stage is Stage.OPEN

    def causes(self, now_ms: int) -> bool:
        """Tell whether what is said now, in this turn's context, is said for its update's sake.

        So it is in a task that outlived the turn, but not for ever: one that goes on and on must
        not be silenced for what becomes of a message of long ago.
        """
        return self.is_open or now_ms - self.received_at_ms <= CAUSE_MS_MAX

    def next_key(self, *, once: bool = False) -> str:
        """Name the next call by its cause: this turn's, and this place in it.

        The place is taken at once, so that calls which are prepared side by side are named in the
        order in which they were begun. Calls that may never be made twice are counted by
        themselves: a turn that runs again, and says less or more before them, names them the same.
        Raises TooManyCalls when there is no place left.
        """
        if self._calls + self._once >= CALLS_MAX:
            raise _too_many("calls")
        if once:
            self._once += 1
            return f"{self.cause.key}:once:{self._once - 1}"
        self._calls += 1
        return self.cause.key_of(self._calls - 1)

    def next_placeholder(self, items: int = 1) -> int:
        """The message id to hand out for the next call; those of its other messages lie below.

        Raises TooManyCalls when there are too few left.
        """
        if self._messages + items > CALLS_MAX:
            raise _too_many("messages")
        self._messages += items
        return self.cause.placeholder_of(self._messages - items)

    async def say(self, outgoing: Outgoing) -> int | None:
        """Let a call become part of the turn."""
        assert self.is_open, "what is said after a turn goes outside"
        self.rows.append(outgoing)
        return outgoing.placeholder

    async def write(self, effect: Effect) -> None:
        """Let an effect become part of the turn."""
        assert self.is_open, "what is written after a turn goes outside"
        self.effects.append(effect)

    async def resolve(self, placeholder: int) -> Resolution | None:
        """What became of the message behind a placeholder, as far as it is on disk."""
        return await self.outside.resolve(placeholder)

    async def flush(self, *, patient: bool = True) -> None:
        """Commit what was said so far, under the same keys as at the turn's end.

        What was said before the turn was over goes even when it is over by now, as its own
        transaction may still be to come. Who is not `patient` leaves it at that where it would have
        to wait for another turn.

        Raises Condemned when the turn was given up, or is by this, as another turn was faster;
        LeaseLost, KeyTaken, or StorageError with nothing committed.
        """
        if self._flushing.locked() and not patient:
            return
        async with self._flushing:
            checks = await self._checks(patient=patient) if self._has_more else ()
            if self.stage is Stage.CONDEMNED:
                raise Condemned
            said = tuple(self.rows[self.committed :])
            if not said or checks is None:
                return
            try:
                # Whoever sees a keyboard's buttons may press them before the turn has ended.
                await self.outside.leave(said, (*checks, *self.keyboards))
            except Conflict as lost:
                self.errors.insert(0, lost)
                self.condemn()
                raise Condemned from lost
            self.committed += len(said)

    @property
    def _has_more(self) -> bool:
        return len(self.rows) > self.committed

    async def _checks(self, *, patient: bool) -> Sequence[Effect] | None:
        """What is to be checked before words go out; None where they may not go yet."""
        if self.guard is None or not self.is_open:
            return ()
        check = await self.guard(patient=patient)
        return None if check is None else (check,)

    def end(self) -> None:
        """Close the turn: who speaks from now on speaks outside, once the turn is settled."""
        if self.is_open:
            self.stage = Stage.OVER

    def settle(self) -> None:
        """The turn is committed."""
        self._settled.set()

    async def until_settled(self) -> None:
        """Wait until a turn that is over was committed, or given up after all."""
        if self.stage is Stage.OVER:
            await self._settled.wait()

    def condemn(self) -> None:
        """Give the turn up: what still runs of it is silenced, and what it has begun is undone."""
        self.stage = Stage.CONDEMNED
        self._settled.set()
        while self.undo:
            self.undo.pop()()


def _too_many(what: str) -> TooManyCalls:
    return TooManyCalls(f"a turn may make {CALLS_MAX} {what}; split the work into tasks")


_scope: ContextVar[Turn | Voice | None] = ContextVar("scope", default=None)


def enter(scope: Turn | Voice) -> None:
    """Speak in this name, in this context and in those copied from it."""
    _scope.set(scope)


def voice() -> Voice | None:
    """In whose name this code speaks; None when it was never told.

    Raises Condemned when its turn was given up.
    """
    scope = _scope.get()
    if not isinstance(scope, Turn):
        return scope
    match scope.stage:
        case Stage.OPEN:
            return scope
        case Stage.OVER:
            return scope.outside
        case Stage.CONDEMNED:
            raise Condemned


async def until_settled() -> None:
    """Wait until the turn of this context, if it is over, was committed or given up after all.

    What outlives a turn speaks for itself from then on: spoken before, it would be heard twice when
    the turn is run again.
    """
    if (turn := turn_here()) is not None:
        await turn.until_settled()


def turn_here() -> Turn | None:
    """The turn in whose context this code runs, be it over or not."""
    scope = _scope.get()
    return scope if isinstance(scope, Turn) else None


def open_turn() -> Turn | None:
    """The turn that what is done here becomes part of, if any."""
    turn = turn_here()
    return turn if turn is not None and turn.is_open else None
