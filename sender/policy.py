"""Decide what becomes of a row after Telegram answered.

Pure: no clock, no dice, no I/O. Everything that varies comes in as an argument, so that every
answer Telegram ever gave can be replayed as a table in tests/unit/sender/test_policy.py. What
Telegram orders and what is our own choice is told apart in sender/README.md.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, assert_never

from sender import verdict as v
from storage.lifecycle import OnUncertain, OutboxState

BACKOFF_MS_BASE = 1_000
BACKOFF_MS_MAX = 5 * 60 * 1_000
BACKOFF_JITTER = 0.5
"""Jitter lengthens a backoff by up to half: it may only add, as waits that align help nobody."""

BARE_FLOOD_MS_BASE = 5_000
BARE_FLOOD_MS_MAX = 60 * 60 * 1_000
"""A flood that names no wait pauses its lane: never zero, doubled each time, an hour at most."""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What must be known of a row to decide about it.

    `attempts` were spent before this call; `attempts_max` is the row's own or else the configured
    one. An ephemeral row has one try and no second: it is worthless a moment later, like a chat
    action. `bare_floods` are the waits of a length of our own that this lane has had in a row.
    `has_breaker`: the breaker of the bot opens when a call like this one does not connect.
    """

    idempotent: bool
    on_uncertain: OnUncertain
    attempts: int
    attempts_max: int
    expires_at_ms: int | None
    is_ephemeral: bool = False
    bare_floods: int = 0
    has_breaker: bool = True


class Spend(StrEnum):
    """Whether a call counts as an attempt: a wait that Telegram ordered, or an outage, does not."""

    ATTEMPT = "attempt"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class MarkSent:
    """The row is sent."""

    message_id: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """The row goes back to the head of its lane, not before `due_ms`."""

    due_ms: int
    spend: Spend
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """The row steps out of its lane and waits for a person."""

    state: Literal[OutboxState.UNCERTAIN, OutboxState.REVIEW]
    reason: str


@dataclass(frozen=True, slots=True)
class Bury:
    """The row is dead."""

    reason: str


@dataclass(frozen=True, slots=True)
class Expire:
    """The row's time is over."""

    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """The chat has a new id: all that waits for it is addressed anew, and goes at once."""

    new_chat_id: int


@dataclass(frozen=True, slots=True)
class CloseChat:
    """The row is dead, and so is all that waits for its chat."""

    reason: str


@dataclass(frozen=True, slots=True)
class StopBot:
    """The row waits, unspent, and the bot sends nothing more until it is started anew."""

    reason: str


Fate = MarkSent | Requeue | Hold | Bury | Expire | Move | CloseChat | StopBot


class WaitCause(StrEnum):
    """Why a scope has to wait.

    flood       the other end said how long
    bare_flood  Telegram refused without a usable wait, which its contract does not know
    throttled   refused for haste by a contract that names no wait
    outage      the other end is not there, and no breaker watches over it
    """

    FLOOD = "flood"
    BARE_FLOOD = "bare_flood"
    THROTTLED = "throttled"
    OUTAGE = "outage"

    @property
    def is_chats_alone(self) -> bool:
        """Whether nothing may be inferred from it about other chats."""
        return self in {WaitCause.THROTTLED, WaitCause.OUTAGE}


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait, counted from now, that others must keep too."""

    wait_ms: int
    hint: v.FloodHint
    cause: WaitCause


@dataclass(frozen=True, slots=True)
class Settlement:
    """The consequence of a verdict: the row's fate, and the wait that it brings over others."""

    fate: Fate
    wait: Wait | None = None


def decide(verdict: v.Verdict, row: RowFacts, *, now_ms: int, jitter: float) -> Settlement:
    """Say what becomes of `row`; `jitter` is a random number in [0, 1)."""
    match verdict:
        case v.Sent():
            return Settlement(MarkSent(verdict.message_id, verdict.note))
        case v.Cooldown():
            return _cool(verdict, row, now_ms)
        case v.Review():
            return _review(verdict, row, jitter)
        case v.Partial():
            return _partial(verdict)
        case v.Throttled() | v.Transient() | v.Withheld():
            return _not_executed(verdict, row, now_ms, jitter)
        case v.Uncertain():
            return Settlement(_uncertain(verdict, row, now_ms, jitter))
        case v.Moved():
            return Settlement(_moved(verdict, row))
        case v.Unreachable():
            return Settlement(CloseChat(verdict.reason))
        case v.Refused():
            return Settlement(_refused(verdict))
        case v.Outdated():
            # It goes again by upload, whatever it is: nothing was executed.
            fate = Requeue(now_ms, Spend.NOTHING, verdict.reason)
            return Settlement(_unless_too_late(fate, row))
        case v.Fatal():
            return Settlement(StopBot(verdict.reason))
        case _:
            assert_never(verdict)


def decide_abandoned(row: RowFacts, *, now_ms: int, jitter: float) -> Fate:
    """Say what becomes of a row whose sender ended between its stamp and an answer."""
    lost = v.Uncertain(reason="the sender ended before an answer came")
    return _uncertain(lost, row, now_ms, jitter)


def backoff_ms(failures: int, jitter: float) -> int:
    """Milliseconds to wait after the n-th failure, from 1: doubled each time, jitter added."""
    steps = min(failures - 1, 30)
    plain_ms = min(BACKOFF_MS_BASE << steps, BACKOFF_MS_MAX)
    return plain_ms + int(plain_ms * BACKOFF_JITTER * jitter)


def _cool(verdict: v.Cooldown, row: RowFacts, now_ms: int) -> Settlement:
    wait = Wait(verdict.wait_ms, verdict.scope_hint, WaitCause.FLOOD)
    if row.is_ephemeral:
        return Settlement(Expire("not repeated after a flood"), wait)
    fate = Requeue(now_ms + verdict.wait_ms, Spend.NOTHING, "cooling")
    return Settlement(_unless_too_late(fate, row), wait)


def _not_executed(
    verdict: v.Throttled | v.Transient | v.Withheld, row: RowFacts, now_ms: int, jitter: float
) -> Settlement:
    match verdict:
        case v.Throttled():
            return _pause(WaitCause.THROTTLED, verdict.evidence, row, now_ms, jitter)
        case v.Transient(outage=True) if not row.has_breaker:
            return _pause(WaitCause.OUTAGE, verdict.reason, row, now_ms, jitter)
        case v.Transient():
            return Settlement(_again_after_failure(verdict, row, now_ms, jitter))
        case v.Withheld():
            return Settlement(Requeue(now_ms, Spend.NOTHING, verdict.reason))
        case _:
            assert_never(verdict)


def _pause(cause: WaitCause, reason: str, row: RowFacts, now_ms: int, jitter: float) -> Settlement:
    """Let the chat pause, longer each time; it is no fault of the row, so it costs no attempt."""
    wait_ms = backoff_ms(row.bare_floods + 1, jitter)
    wait = Wait(wait_ms, v.FloodHint.CHAT, cause)
    if row.is_ephemeral:
        return Settlement(Expire(f"not repeated: {reason}"), wait)
    return Settlement(_unless_too_late(Requeue(now_ms + wait_ms, Spend.NOTHING, reason), row), wait)


def _review(verdict: v.Review, row: RowFacts, jitter: float) -> Settlement:
    steps = min(row.bare_floods, 30)
    own_ms = min(BARE_FLOOD_MS_BASE << steps, BARE_FLOOD_MS_MAX)
    own_ms += int(own_ms * BACKOFF_JITTER * jitter)
    wait_ms = max(own_ms, verdict.wait_at_least_ms)
    wait = Wait(wait_ms, v.FloodHint.CHAT, WaitCause.BARE_FLOOD)
    if row.is_ephemeral:
        return Settlement(Expire("not repeated after a flood"), wait)
    return Settlement(Hold(OutboxState.REVIEW, verdict.evidence), wait)


def _partial(verdict: v.Partial) -> Settlement:
    # Never repeated whole, whatever the row's policy: some of its items may have arrived.
    held = Hold(OutboxState.UNCERTAIN, f"some items may have arrived: {verdict.evidence}")
    if verdict.wait_ms is None:
        return Settlement(held)
    return Settlement(held, Wait(verdict.wait_ms, v.FloodHint.CHAT, WaitCause.FLOOD))


def _again_after_failure(
    verdict: v.Transient, row: RowFacts, now_ms: int, jitter: float
) -> Requeue | Bury | Expire:
    if row.is_ephemeral:
        return Expire(f"not repeated: {verdict.reason}")
    if verdict.outage:
        # The breaker of the bot decides when anything is tried again; the row loses nothing.
        return Requeue(now_ms, Spend.NOTHING, verdict.reason)
    return _again_spending(verdict.reason, row, now_ms, jitter)


def _uncertain(
    verdict: v.Uncertain, row: RowFacts, now_ms: int, jitter: float
) -> Requeue | Hold | Bury | Expire:
    if row.is_ephemeral:
        return Expire(f"not repeated: {verdict.reason}")
    if row.idempotent:
        return _again_spending(verdict.reason, row, now_ms, jitter)
    match row.on_uncertain:
        case OnUncertain.HOLD:
            return Hold(OutboxState.UNCERTAIN, verdict.reason)
        case OnUncertain.RESEND:
            return _again_spending(verdict.reason, row, now_ms, jitter)
        case OnUncertain.DROP:
            return Bury(f"dropped, as its policy says: {verdict.reason}")
        case _:
            assert_never(row.on_uncertain)


def _moved(verdict: v.Moved, row: RowFacts) -> Move | Bury:
    # Each move spends an attempt, so that two chats that point at each other end some time.
    if row.attempts >= row.attempts_max:
        return Bury(f"moved {row.attempts} times, at last to {verdict.new_chat_id}")
    return Move(verdict.new_chat_id)


def _refused(verdict: v.Refused) -> Bury | Expire:
    match verdict.kind:
        case v.RefusedKind.LATE:
            return Expire(verdict.description)
        case v.RefusedKind.PERMISSION | v.RefusedKind.TARGET | v.RefusedKind.CONTENT:
            return Bury(f"{verdict.kind} refused: {verdict.code} {verdict.description}".strip())
        case _:
            assert_never(verdict.kind)


def _again_spending(
    reason: str, row: RowFacts, now_ms: int, jitter: float
) -> Requeue | Bury | Expire:
    failures = row.attempts + 1
    if failures >= row.attempts_max:
        return Bury(f"{failures} attempts are spent: {reason}")
    due_ms = now_ms + backoff_ms(failures, jitter)
    return _unless_too_late(Requeue(due_ms, Spend.ATTEMPT, reason), row)


def _unless_too_late(fate: Requeue, row: RowFacts) -> Requeue | Expire:
    """A row's age budget is its expiry: a try that could only come after it is none."""
    if row.expires_at_ms is None or fate.due_ms < row.expires_at_ms:
        return fate
    return Expire(f"its next try would come too late: {fate.reason}")
