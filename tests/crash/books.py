"""What the product believes: its inbox, outbox and attempts, from one read of the database.

For checkers, which hold it against the simulator's ledger. Read through the product's own
connector, in one transaction; never written.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storage.carriers import columns
from storage.database import connect
from storage.lifecycle import OutboxState

_UNDER_WAY: Final = frozenset({OutboxState.QUEUED, OutboxState.CLAIMED})


@dataclass(frozen=True, slots=True)
class Update:
    """A row of the inbox."""

    id: int
    bot: str
    update_id: int | None
    chat_lane: str | None
    state: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the outbox."""

    id: int
    bot: str
    key: str
    method: str
    params: Mapping[str, str]
    lane: str
    chat_id: int | None
    priority: str
    on_uncertain: str
    state: str
    not_before_ms: int
    due_ms: int
    message_id: int | None
    reason: str | None
    # The row whose outcome has to be decided before this one can be said.
    waits_for: int | None = None
    placeholder: int | None = None

    @property
    def text(self) -> str:
        """What it says: its text, or its caption."""
        return self.params.get("text", self.params.get("caption", ""))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A row of the attempts."""

    id: int
    outbox_id: int
    stage: str
    stamped_at_ms: int | None
    ended_at_ms: int | None
    status: int | None
    verdict: str | None

    @property
    def is_unknown(self) -> bool:
        """Whether the call may have been carried out without our knowing."""
        return self.verdict == "uncertain" or self.stage == "stamped"


@dataclass(frozen=True, slots=True)
class Books:
    """All of it. `bots` are the bots' numeric ids by name."""

    bots: Mapping[str, int]
    updates: Sequence[Update]
    rows: Sequence[Row]
    attempts: Sequence[Attempt]

    @property
    def all_handled(self) -> bool:
        """Whether every turn has ended."""
        return not any(update.state in ("received", "claimed") for update in self.updates)

    @property
    def at_rest(self) -> bool:
        """Whether nothing waits for its turn or to be sent, but for what a person has to decide."""
        return self.all_handled and not any(
            row.state in _UNDER_WAY and row.waits_for is None for row in self.rows
        )

    def attempts_of(self) -> Mapping[int, Sequence[Attempt]]:
        """The attempts by their row."""
        found: dict[int, list[Attempt]] = {row.id: [] for row in self.rows}
        for attempt in self.attempts:
            found.setdefault(attempt.outbox_id, []).append(attempt)
        return found


def read_books(path: Path) -> Books:
    """Read the database at this path, which may be in use."""
    raw = connect(path)

    def table(sql: str, **kinds: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - kinds of columns
        return [columns(row, **kinds) for row in raw.execute(sql, {}).fetchall()]

    try:
        raw.execute("begin", {})
        return Books(
            bots={row["name"]: row["bot_id"] for row in table("select name, bot_id from bots")},
            updates=[
                Update(**row)
                for row in table(
                    "select id, bot, update_id, chat_lane, state, reason from inbox order by id"
                )
            ],
            rows=[
                Row(**row)
                for row in table(
                    "select id, bot, key, method, params, lane, chat_id, priority, on_uncertain,"
                    " state, not_before_ms, due_ms, message_id, reason, waits_for, placeholder"
                    " from outbox order by id",
                    params=json.loads,
                )
            ],
            attempts=[
                Attempt(**row)
                for row in table(
                    "select id, outbox_id, stage, stamped_at_ms, ended_at_ms, status, verdict"
                    " from attempts order by id"
                )
            ],
        )
    finally:
        raw.close()
