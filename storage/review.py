"""Held rows and dead letters: what waits for a person, and what the person decides.

The truth of an uncertain row is known to nobody here; a person may look into the chat. The decision
is one transaction with the row's return to its lane, or its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage import lanes
from storage.carriers import Row, columns
from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.sieve import ALL, Sieve


class Decision(StrEnum):
    """What a person may say of a held row: it was sent, send it again, or give it up."""

    SENT = "sent"
    RESEND = "resend"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Held:
    """A held row with its last attempt as evidence; the words of the message are not in it."""

    id: OutboxId
    bot: BotName
    method: str
    chat_id: int | None
    lane: str
    state: OutboxState
    reason: str
    created_at_ms: int
    attempts: int
    attempt_id: int | None
    stage: str | None
    status: int | None
    code: int | None
    description: str | None
    duration_ms: int | None
    stamped_at_ms: int | None
    wait_ms: int | None


@dataclass(frozen=True, slots=True)
class DeadCall:
    """A row that was given up, with the reason."""

    id: OutboxId
    bot: BotName
    method: str
    chat_id: int | None
    lane: str
    state: OutboxState
    attempts: int
    reason: str
    created_at_ms: int
    finished_at_ms: int


def held(tx: Tx, *, limit: int, row: OutboxId | None = None) -> Sequence[Held]:
    """Rows that wait for a person, oldest first; of these only `row`, where it is given."""
    found = tx.rows("review.held", {"limit": limit, "id": row})
    return [Held(**columns(each, state=OutboxState)) for each in found]


def mark_seen(tx: Tx, rows: Sequence[OutboxId]) -> None:
    """A person has seen these rows; retention never takes what nobody has seen."""
    now_ms = tx.now_ms()
    tx.many("review.mark_seen", [{"id": row, "now_ms": now_ms} for row in rows])


def resolve(
    tx: Tx, row: OutboxId, decision: Decision, *, by: str, message_id: int | None = None
) -> bool:
    """Carry out a person's decision about a held row; False when the row is not held.

    What refers to its message, and had stepped out with it, joins its lane again: it goes once the
    message has an id (`message_id`, where the person has found it in the chat), or is cancelled.
    """
    reason = f"{by} decided: {decision}"
    if decision is Decision.RESEND:
        params = {"id": row, "reason": reason, "expires_at_ms": None, "now_ms": tx.now_ms()}
        revived = tx.row("review.resend", params)
        return _rejoin(tx, row, revived) and _let_children_in(tx, revived, row)
    state = OutboxState.SENT if decision is Decision.SENT else OutboxState.DEAD
    params = {
        "id": row,
        "state": state,
        "reason": reason,
        "message_id": message_id,
        "now_ms": tx.now_ms(),
    }
    return _let_children_in(tx, tx.row("review.settle", params), row)


def dead_list(tx: Tx, *, limit: int, sieve: Sieve = ALL) -> Sequence[DeadCall]:
    """Outgoing calls that were given up, newest first."""
    return [
        DeadCall(**columns(row, state=OutboxState))
        for row in tx.rows("review.dead_list", {**sieve.params(), "limit": limit})
    ]


def dead_among(tx: Tx, sieve: Sieve, *, after_id: int, limit: int) -> Sequence[OutboxId]:
    """The numbers of dead calls after `after_id`, in order."""
    params = {**sieve.params(), "after_id": after_id, "limit": limit}
    return [OutboxId(row["id"]) for row in tx.rows("review.dead_among", params)]


def requeue(tx: Tx, row: OutboxId) -> bool:
    """Let a dead row go again, without an expiry; False when it is not dead."""
    return _rejoin(tx, row, tx.row("review.revive", {"id": row, "expires_at_ms": None}))


def _let_children_in(tx: Tx, decided: Row | None, row: OutboxId) -> bool:
    if decided is None:
        return False
    lanes.step_in(tx, [row])
    return True


def _rejoin(tx: Tx, row: OutboxId, revived: Row | None) -> bool:
    if revived is None:
        return False
    lanes.join(
        tx,
        BotName(revived["bot"]),
        revived["lane"],
        revived["priority"],
        row=row,
        due_ms=tx.now_ms(),
    )
    return True
