"""A turn: the handling of one update, and all that its handlers said and changed so far.

A turn only collects. It may never write to the database or call Telegram: the worker commits what
was collected in one transaction, or lets go of all of it. Who speaks is told by a context variable,
so that handlers written for python-telegram-bot need not know. But contexts outlive turns: tasks go
on, and a timer keeps the context of whoever armed it. So a turn also knows when it is over, and
what is said in its name from then on goes outside, into a transaction of its own.

Keys and placeholders are made from the update's arrival number and the place of the call in the
turn, never from chance: a turn that is run again after a crash leaves the same rows.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Final, Protocol

from storage.database import Tx
from storage.lifecycle import BotName, InboxId
from storage.outgoing import Outgoing, Source

Json = Mapping[str, Any]
"""A JSON object as it was parsed: what is in it was written by others."""

Effect = Callable[[Tx, BotName], None]
"""Something to write in the turn's own transaction."""

# A placeholder is -(inbox id, phase, index + 1) packed into one number. It stays above -2^52: from
# there down to -2^53, the last integer that every JSON parser keeps, are those of rows outside any
# turn (storage/outbox.py).
_INDEX_BITS: Final = 12
_PHASE_BITS: Final = 1
INBOX_ID_MAX: Final = (1 << (52 - _INDEX_BITS - _PHASE_BITS)) - 1
CALLS_MAX: Final = (1 << _INDEX_BITS) - 1
"""Calls that one turn may make."""
CAUSE_MS_MAX: Final = 3_600_000
"""How long after an update a task that outlived its turn still speaks for that update's sake."""


class Phase(IntEnum):
    """Which of an update's two possible turns this is."""

    HANDLERS = 0
    ERROR_HANDLERS = 1


class Stage(Enum):
    """Whether what is said in a turn's name still belongs to it.

    open        it does
    over        the turn was committed or let go: who still speaks, speaks for himself
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

    def next_key(self) -> str:
        """Name the next call by its cause."""

    def next_placeholder(self) -> int | None:
        """The message id to hand out for the next call, where it is known beforehand."""

    async def say(self, outgoing: Outgoing) -> int | None:
        """Leave a call to be made; give the placeholder of its message, if it makes one."""

    async def write(self, effect: Effect) -> None:
        """Let an effect be written together with what is said."""


@dataclass(slots=True, eq=False)
class Turn:
    """One update's turn, or that of its error handlers.

    `raw` is the update as Telegram sent it, `source` the message that it is about. `tasks` are
    those that python-telegram-bot started for it, `errors` what its handlers raised. `outside`
    takes over once the turn is over.
    """

    bot: BotName
    inbox_id: InboxId
    phase: Phase
    received_at_ms: int
    raw: Json
    outside: Voice
    source: Source | None = None
    rows: list[Outgoing] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    stage: Stage = Stage.OPEN

    def __post_init__(self) -> None:
        """Check that this turn's placeholders stay clear of all others."""
        assert 0 < self.inbox_id <= INBOX_ID_MAX, self.inbox_id

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

    def next_key(self) -> str:
        """Name the next call by its cause: this update, this phase, this place."""
        return f"turn:{self.inbox_id}:{self.phase:d}:{len(self.rows)}"

    def next_placeholder(self) -> int:
        """The message id to hand out for the next call.

        Raises TooManyCalls when there is none left.
        """
        if len(self.rows) >= CALLS_MAX:
            raise TooManyCalls(f"a turn may make {CALLS_MAX} calls; split the work into tasks")
        return placeholder_of(self.inbox_id, self.phase, len(self.rows))

    async def say(self, outgoing: Outgoing) -> int | None:
        """Let a call become part of the turn."""
        assert self.is_open, "what is said after a turn goes outside"
        self.rows.append(outgoing)
        return outgoing.placeholder

    async def write(self, effect: Effect) -> None:
        """Let an effect become part of the turn."""
        assert self.is_open, "what is written after a turn goes outside"
        self.effects.append(effect)

    def end(self) -> None:
        """Close the turn: who speaks from now on speaks outside."""
        if self.is_open:
            self.stage = Stage.OVER

    def condemn(self) -> None:
        """Give the turn up: what still runs of it is silenced."""
        self.stage = Stage.CONDEMNED


def placeholder_of(inbox_id: int, phase: Phase, index: int) -> int:
    """The placeholder of a turn's `index`-th call."""
    return -((inbox_id << (_INDEX_BITS + _PHASE_BITS)) | (phase << _INDEX_BITS) | (index + 1))


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


def turn_here() -> Turn | None:
    """The turn in whose context this code runs, be it over or not."""
    scope = _scope.get()
    return scope if isinstance(scope, Turn) else None


def open_turn() -> Turn | None:
    """The turn that what is done here becomes part of, if any."""
    turn = turn_here()
    return turn if turn is not None and turn.is_open else None
