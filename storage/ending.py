"""The end of rows that still wait: expired, superseded or cancelled, and their lanes let on.

Plain functions of a transaction, below everything that has a reason to end a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage import lanes
from storage.carriers import Row, columns
from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, OutboxState


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued row; `joined`: it stands in its lane, its time has come."""

    id: OutboxId
    lane: str
    priority: str
    joined: bool = True


def waiting(rows: Sequence[Row]) -> Sequence[Waiting]:
    """The rows that a statement has found, each with its `id`, `lane`, `priority` and `joined`."""
    return [Waiting(**columns(row, joined=bool)) for row in rows]


def end_all(
    tx: Tx, bot: BotName, rows: Sequence[Waiting], state: OutboxState, reason: str
) -> Sequence[OutboxId]:
    """End queued rows and let their lanes go on; give their numbers."""
    now_ms = tx.now_ms()
    tx.many(
        "ending.end_queued",
        [{"id": row.id, "state": state, "reason": reason, "now_ms": now_ms} for row in rows],
    )
    leave_lanes(tx, bot, rows)
    return [row.id for row in rows]


def leave_lanes(tx: Tx, bot: BotName, rows: Sequence[Waiting]) -> None:
    """These rows wait no more: their lanes go on without them, and so does what waited for them."""
    lanes.let_on(tx, bot, {(row.lane, row.priority) for row in rows if row.joined})
    lanes.step_in(tx, [row.id for row in rows])
