"""Ends of calls of which the bot's own code has still to be told.

Plain functions of a transaction. A row says itself of which of its ends it is to be told (`tell`);
telling takes that back in the transaction of the turn in which it is told. So it is told at least
once, whatever dies in between, and what is said about it is said exactly once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from storage.carriers import columns
from storage.database import Tx
from storage.lifecycle import AttemptStage, BotName, InboxId, OutboxId, OutboxState
from storage.outgoing import Tell


@dataclass(frozen=True, slots=True)
class DueEnd:
    """An end to tell of, and whose turns it stands in line with: the update's, else the chat's."""

    id: OutboxId
    lane: str
    chat_id: int | None
    inbox_id: InboxId | None
    update_chat_lane: str | None
    update_user_lane: str | None


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call that has ended, or waits for a person, with what decided that.

    `stage`, `verdict`, `code`, `description` and `wait_ms` are of its last attempt, None where
    there was none.
    `body` is the update to which it was due, as long as that is kept: users' words, never log it.
    `moved_to`: the chat that its chat has become.
    """

    id: OutboxId
    state: OutboxState
    tell: Tell
    method: str
    lane: str
    chat_id: int | None
    key: str
    placeholder: int | None
    message_id: int | None
    reason: str | None
    awaited: bool
    inbox_id: InboxId | None
    body: bytes | None = field(repr=False)
    received_at_ms: int | None
    stage: AttemptStage | None
    verdict: str | None
    code: int | None
    description: str | None
    wait_ms: int | None
    moved_to: int | None


def due(tx: Tx, bot: BotName, *, limit: int) -> Sequence[DueEnd]:
    """Ends to tell of, in the order in which their calls were left."""
    rows = tx.rows("told.due", {"bot": bot, "limit": limit})
    return [DueEnd(**columns(row)) for row in rows]


def show(tx: Tx, row_id: OutboxId) -> EndedCall | None:
    """One end to tell of; None when nobody is to be told of it any more."""
    row = tx.row("told.show", {"id": row_id})
    if row is None:
        return None
    stage = row["stage"]
    told = columns(row, state=OutboxState, tell=Tell, awaited=bool)
    told["body"] = None if told["body"] is None else bytes(told["body"])
    told["stage"] = None if stage is None else AttemptStage(stage)
    return EndedCall(**told)


def settle(tx: Tx, row_id: OutboxId, *, told_as: OutboxState) -> None:
    """This end was told. A held row's failure is told again, once a person has given it up.

    He may have decided while it was told: what counts is what was told, not what it has become.
    """
    tx.run("told.settle", {"id": row_id, "told_as": told_as})
