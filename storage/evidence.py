"""Evidence: what can be known of a doubtful call without asking the chat's people.

Read only. Beside its own attempts: what was said in the chat just before and after it, whether the
chat has spoken since, and what waits for the decision. Each question looks at the last few thousand
rows at most, as a person waits for the answer and the house works on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage import reports
from storage.carriers import columns
from storage.database import Tx
from storage.lifecycle import OutboxId
from storage.reports import AttemptReport, RowReport

_NEIGHBOURS_MAX = 3
_LOOKED_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A call to the same chat that Telegram accepted; `at_ms` is when it left."""

    id: OutboxId
    method: str
    message_id: int | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against a held call having arrived. Times are UTC milliseconds.

    `attempts` are oldest first, `before` and `after` nearest first. `spoken_at_ms`: when the chat
    was last heard of after the call, None where it was not, among the updates that are looked at.
    `waiting`: how many calls refer to its message and wait for the decision.
    """

    id: OutboxId
    items: int
    attempts: Sequence[AttemptReport]
    before: Sequence[Neighbour]
    after: Sequence[Neighbour]
    spoken_at_ms: int | None
    waiting: int


def of_row(tx: Tx, row_id: OutboxId) -> Evidence | None:
    """The evidence about one call; None when there is no such row."""
    row = reports.show(tx, row_id)
    return None if row is None else _evidence(tx, row)


def _evidence(tx: Tx, row: RowReport) -> Evidence:
    left = [each.stamped_at_ms for each in row.history if each.stamped_at_ms is not None]
    at_ms = left[-1] if left else row.created_at_ms
    key = {
        "id": row.id,
        "bot": row.bot,
        "lane": row.lane,
        "at_ms": at_ms,
        "looked": _LOOKED_MAX,
        "limit": _NEIGHBOURS_MAX,
    }
    spoken = tx.row("evidence.spoken", key)
    own = tx.row("evidence.row", key)
    assert spoken is not None, "an aggregate always gives a row"
    assert own is not None, "the row was read in this transaction"
    return Evidence(
        id=row.id,
        items=own["items"],
        attempts=row.history,
        before=[Neighbour(**columns(each)) for each in tx.rows("evidence.before", key)],
        after=[Neighbour(**columns(each)) for each in tx.rows("evidence.after", key)],
        spoken_at_ms=spoken["at_ms"],
        waiting=own["waiting"],
    )
