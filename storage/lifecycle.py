"""The lives of an update and of an outgoing call: their states, and the moves that are legal.

Pure data. The schema repeats it as CHECKs (`storage/sql/schema.sql`), and a test compares the two,
so that neither code nor a person with a SQL prompt can put a row into a state that has no meaning.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NewType

BotName = NewType("BotName", str)
"""A bot's name in the configuration; its identity in every table."""

InboxId = NewType("InboxId", int)
"""Arrival number of an update: the order in which turns are taken, whatever its `update_id`."""

OutboxId = NewType("OutboxId", int)
"""Number of an outgoing call: the order in which a lane is sent."""


class InboxState(StrEnum):
    """Where an update stands.

    received     stored and answered with 200; waits for its turn
    claimed      a worker runs its turn
    done         its turn has committed
    dead         buried with its reason; an operator may requeue it
    quarantined  authentic, but no update we can read; kept raw for a person
    """

    RECEIVED = "received"
    CLAIMED = "claimed"
    DONE = "done"
    DEAD = "dead"
    QUARANTINED = "quarantined"


class OutboxState(StrEnum):
    """Where an outgoing call stands.

    queued      waits for its place in the lane, for a gate, a cooldown or a backoff
    claimed     a sender has it in hand; stamped just before the call leaves
    uncertain   it may have been delivered and nobody can tell; held for a person
    review      Telegram refused in a way that no rule covers; held for a person
    sent        Telegram accepted it, or what it asked for was already so
    dead        refused for good, or its attempts are spent
    superseded  a newer call with the same supersede key made it pointless
    expired     its time was over before it could be sent
    cancelled   its reason went away, or a person stopped it
    """

    QUEUED = "queued"
    CLAIMED = "claimed"
    UNCERTAIN = "uncertain"
    REVIEW = "review"
    SENT = "sent"
    DEAD = "dead"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Priority(StrEnum):
    """Interactive overtakes bulk; within one chat each keeps its own order.

    interactive  what a person waits for
    bulk         broadcasts, at their own share of the bot's rate
    paid         broadcasts that pay Telegram in Stars: a ceiling of their own, and a budget
    """

    INTERACTIVE = "interactive"
    BULK = "bulk"
    PAID = "paid"


class OnUncertain(StrEnum):
    """What to do with a call that may already have been carried out, and is not idempotent."""

    HOLD = "hold"
    RESEND = "resend"
    DROP = "drop"


class Withdrawal(StrEnum):
    """What has happened in a chat that takes the reason away from what waits there.

    message_deleted     the message that is answered is gone
    message_edited      it says something else now
    person_answered     a person has answered himself, so the bot need not
    generation_stopped  the user has stopped a draft while it grew
    """

    MESSAGE_DELETED = "message_deleted"
    MESSAGE_EDITED = "message_edited"
    PERSON_ANSWERED = "person_answered"
    GENERATION_STOPPED = "generation_stopped"


class AttemptStage(StrEnum):
    """How far one attempt got, as far as this side can know.

    claimed          the row is in a sender's hand, nothing has left
    stamped          the call may leave at any moment from here on
    unconnected      no connection came about: not executed
    body_incomplete  the connection ended before the last byte of the request: not executed
    body_complete    the whole request left, no answer came: nobody can tell
    answered         Telegram, or something in front of it, answered
    abandoned        the sender ended between stamp and answer: nobody can tell
    handed_back      given back before the call left
    """

    CLAIMED = "claimed"
    STAMPED = "stamped"
    UNCONNECTED = "unconnected"
    BODY_INCOMPLETE = "body_incomplete"
    BODY_COMPLETE = "body_complete"
    ANSWERED = "answered"
    ABANDONED = "abandoned"
    HANDED_BACK = "handed_back"


INBOX_MOVES: Mapping[InboxState, frozenset[InboxState]] = MappingProxyType(
    {
        InboxState.RECEIVED: frozenset({InboxState.CLAIMED}),
        InboxState.CLAIMED: frozenset({InboxState.DONE, InboxState.DEAD, InboxState.RECEIVED}),
        InboxState.DEAD: frozenset({InboxState.RECEIVED}),
        InboxState.DONE: frozenset(),
        InboxState.QUARANTINED: frozenset(),
    }
)

_ENDS = frozenset(
    {
        OutboxState.SENT,
        OutboxState.DEAD,
        OutboxState.SUPERSEDED,
        OutboxState.EXPIRED,
        OutboxState.CANCELLED,
    }
)

OUTBOX_MOVES: Mapping[OutboxState, frozenset[OutboxState]] = MappingProxyType(
    {
        OutboxState.QUEUED: frozenset({OutboxState.CLAIMED}) | _ENDS - {OutboxState.SENT},
        OutboxState.CLAIMED: frozenset(
            {OutboxState.QUEUED, OutboxState.UNCERTAIN, OutboxState.REVIEW}
        )
        | _ENDS,
        OutboxState.UNCERTAIN: frozenset(
            {OutboxState.QUEUED, OutboxState.SENT, OutboxState.DEAD, OutboxState.CANCELLED}
        ),
        OutboxState.REVIEW: frozenset(
            {OutboxState.QUEUED, OutboxState.SENT, OutboxState.DEAD, OutboxState.CANCELLED}
        ),
        OutboxState.DEAD: frozenset({OutboxState.QUEUED}),
        OutboxState.SENT: frozenset(),
        OutboxState.SUPERSEDED: frozenset(),
        OutboxState.EXPIRED: frozenset(),
        OutboxState.CANCELLED: frozenset(),
    }
)

TERMINAL: frozenset[OutboxState] = _ENDS
"""States that free the lane and end the row's life, unless a person requeues it."""

BLOCKING: frozenset[OutboxState] = frozenset({OutboxState.QUEUED, OutboxState.CLAIMED})
"""States that hold back what comes after them in their lane."""

HELD: frozenset[OutboxState] = frozenset({OutboxState.UNCERTAIN, OutboxState.REVIEW})
"""States that wait for a person and have stepped out of their lane."""
