"""Decide whether what waits is still worth saying: is the reason for this message still there?

Pure: the row, what has happened since and the moment come in, a verdict comes out. The claim asks
it of every head, in its own transaction, so that whatever waited through a flood or a restart is
judged by what is so now. Each reason is one line of a table in tests/unit/sender/test_staleness.py.
"""

from dataclasses import dataclass

from storage.claims import OutboxItem, Standing
from storage.lifecycle import Priority, Withdrawal
from storage.methods import says_something
from storage.withdrawals import REASONS


@dataclass(frozen=True, slots=True)
class Keep:
    """It is worth saying."""


@dataclass(frozen=True, slots=True)
class Expired:
    """Its time is over, by so much."""

    late_ms: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """A newer row takes its place."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The reason for it is gone."""

    reason: str


Staleness = Keep | Expired | Superseded | Cancelled


def judge(row: OutboxItem, standing: Standing, now_ms: int, parent_lost: str = "") -> Staleness:
    """Say whether a row may still go.

    `parent_lost` says why the message that it refers to will never exist.
    """
    if row.expires_at_ms is not None and row.expires_at_ms <= now_ms:
        return Expired(now_ms - row.expires_at_ms)
    if standing.has_newer:
        return Superseded()
    reason = parent_lost or _withdrawn(row, standing, now_ms) or _chat_closed(row, standing)
    return Cancelled(reason) if reason else Keep()


def _withdrawn(row: OutboxItem, standing: Standing, now_ms: int) -> str:
    """What has happened in the chat since the row's cause; a cause later than that is another."""
    if not says_something(row.method):
        return ""
    since_ms = row.created_at_ms if row.caused_at_ms is None else row.caused_at_ms
    if standing.deleted_at_ms is not None:
        return REASONS[Withdrawal.MESSAGE_DELETED]
    if row.cancel_on_edit and _after(standing.edited_at_ms, since_ms, now_ms):
        return REASONS[Withdrawal.MESSAGE_EDITED]
    if _after(standing.stopped_at_ms, since_ms, now_ms):
        return REASONS[Withdrawal.GENERATION_STOPPED]
    if _after(standing.answered_at_ms, since_ms, now_ms):
        return REASONS[Withdrawal.PERSON_ANSWERED]
    return ""


def _chat_closed(row: OutboxItem, standing: Standing) -> str:
    """A reply may find out that a chat is open again; what nobody asked for may not try."""
    is_unasked = row.priority is not Priority.INTERACTIVE
    closed_ms = standing.unreachable_at_ms
    if closed_ms is not None and (is_unasked or closed_ms >= row.created_at_ms):
        return "its chat can't be reached"
    if is_unasked and standing.opted_out_at_ms is not None:
        return "the user wants no broadcasts"
    return ""


def _after(at_ms: int | None, since_ms: int, now_ms: int) -> bool:
    """Tell whether it has happened since; in the future happens only what a wrong clock noted."""
    return at_ms is not None and since_ms < at_ms <= now_ms
