"""Retention: forget what ended long ago, a few rows at a time, so that no webhook ever waits.

Dead updates, quarantined bytes and held rows are not touched: they wait for a person. Of an update
first what it said is forgotten, and only much later that it came: a wall clock that jumps ahead by
a month must not have Telegram's next redelivery taken for a new question.
"""

from dataclasses import dataclass

from storage import (
    cooldowns,
    files,
    floods,
    inbox,
    message_ids,
    outbox,
    pauses,
    turn_state,
    withdrawals,
)
from storage.clock import Clock
from storage.database import Tx

BATCH_ROWS_MAX = 500
_DAY_MS = 86_400_000
BLOBS_MS_MIN = 3_600_000
# A menu may stay at the top of a chat for months; each press of it counts anew.
KEYBOARD_DAYS = 180
"""How long what a keyboard's buttons stand for is kept after it was shown or last pressed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """How long finished rows are kept, in days; and what their placeholders stand for, after.

    `blobs_ms`: how long the content of a file is kept for a row that may still come.
    """

    inbox_days: int
    outbox_days: int
    placeholders_days: int
    blobs_ms: int = BLOBS_MS_MIN


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows one batch has forgotten; `maybe_more`: another one should follow."""

    updates: int
    calls: int
    maybe_more: bool


def prune(tx: Tx, kept: Kept, clock: Clock) -> Pruned:
    """Forget one batch of each kind."""
    now_ms = tx.now_ms()
    updates = inbox.forget(tx, before_ms=now_ms - kept.inbox_days * _DAY_MS, limit=BATCH_ROWS_MAX)
    inbox.prune(tx, limit=BATCH_ROWS_MAX)
    calls = outbox.prune(tx, before_ms=now_ms - kept.outbox_days * _DAY_MS, limit=BATCH_ROWS_MAX)
    cooldowns.prune(tx, clock, before_ms=now_ms - _DAY_MS)
    pauses.prune(tx, before_ms=now_ms - _DAY_MS)
    withdrawals.prune(
        tx,
        before_ms=now_ms - kept.outbox_days * _DAY_MS,
        limit=BATCH_ROWS_MAX,
    )
    floods.prune(tx, before_ms=now_ms - kept.outbox_days * _DAY_MS, limit=BATCH_ROWS_MAX)
    ids = message_ids.prune(
        tx, before_ms=now_ms - kept.placeholders_days * _DAY_MS, limit=BATCH_ROWS_MAX
    )
    names = files.prune_ids(tx, before_ms=now_ms - kept.outbox_days * _DAY_MS, limit=BATCH_ROWS_MAX)
    keyboards = turn_state.prune_keyboards(
        tx, before_ms=now_ms - KEYBOARD_DAYS * _DAY_MS, limit=BATCH_ROWS_MAX
    )
    is_full = max(updates, ids, names, keyboards) >= BATCH_ROWS_MAX
    return Pruned(updates, calls.rows, maybe_more=is_full or calls.maybe_more)
