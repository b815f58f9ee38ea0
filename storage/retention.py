"""Retention: forget what ended long ago, a few rows at a time, so that no webhook ever waits.

Dead updates, quarantined bytes and held rows are not touched: they wait for a person. Of an update
first what it said is forgotten, and only much later that it came: a wall clock that jumps ahead by
a month must not have Telegram's next redelivery taken for a new question.
"""

from dataclasses import dataclass

from storage import cooldowns, floods, inbox, outbox, pauses, withdrawals
from storage.clock import Clock
from storage.database import Tx

BATCH_ROWS_MAX = 500
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Kept:
    """How long finished rows are kept, in days."""

    inbox_days: int
    outbox_days: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows one batch has forgotten."""

    updates: int
    calls: int

    @property
    def maybe_more(self) -> bool:
        """Whether the batch was full, so that another one should follow."""
        return max(self.updates, self.calls) >= BATCH_ROWS_MAX


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
    return Pruned(updates, calls)
