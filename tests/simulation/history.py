"""What has happened in a world, as far as it committed or arrived: the facts that are judged.

Fed by the journal (what the house's database says) and by the network (what really left, arrived
and came back). Pure memory: it judges nothing.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from storage.carriers import RawConnection
from storage.methods import METHODS, CallKind

EDITS: Final = "edits:"
_ROW: Final = (
    "select key, method, params, lane, chat_id, priority, on_uncertain, not_before_ms,"
    " expires_at_ms, attempts_max, items from outbox where id = :id"
)
_UNKNOWN_STAGES: Final = frozenset({"body_complete", "abandoned"})


@dataclass(slots=True, eq=False)
class Call:
    """One request that left a sender whole."""

    number: int
    bot: str
    method: str
    label: str
    left_ms: int
    lane: str = ""
    row: "Row | None" = None
    attempt: "Attempt | None" = None
    arrived_ms: int | None = None
    effect: bool = False
    code: int | None = None
    description: str = ""
    wait_s: int | None = None
    returned_ms: int | None = None
    returned_to: int = 0
    status: int | None = None


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt of a row, as the database knows it."""

    id: int
    row: "Row"
    epoch: int
    stage: str = "claimed"
    verdict: str | None = None
    call: Call | None = None
    is_unknown: bool = False
    """At its end, or once, nobody could tell whether it was carried out."""

    def becomes(self, stage: str, verdict: str | None) -> None:
        """It has got so far."""
        self.stage, self.verdict = stage, verdict
        self.is_unknown |= stage in _UNKNOWN_STAGES or verdict in ("uncertain", "partial")


@dataclass(slots=True, eq=False)
class Row:
    """A row of the outbox."""

    id: int
    bot: str
    key: str
    method: str
    label: str
    lane: str
    chat_id: int | None
    priority: str
    on_uncertain: str
    not_before_ms: int
    expires_at_ms: int | None
    attempts_max: int | None
    items: int
    state: str = "queued"
    due_ms: int = 0
    cancel_asked: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    effects: int = 0
    # A person sent it on its way again, so often; a person said that it was sent.
    revivals: int = 0
    said_sent: bool = False
    # Its moment had come, and its wait was over, before the wall clock was set back.
    has_begun: bool = False
    is_due: bool = False
    told_cancelled: bool = False
    has_moved: bool = False
    # It waits, out of its lane, for what becomes of a row that a person holds; it once did.
    is_out: bool = False
    was_out: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether an unknown outcome allows one more call."""
        facts = METHODS.get(self.method)
        return (facts is not None and facts.idempotent) or self.on_uncertain == "resend"

    @property
    def effects_allowed(self) -> int:
        """How often it may have been carried out by now."""
        unknown = sum(attempt.is_unknown for attempt in self.attempts)
        return 1 + self.revivals + (unknown if self.is_repeatable else 0)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Whose waits hold it back, besides the bot's."""
        facts = METHODS.get(self.method)
        if facts is not None and facts.kind is CallKind.EDIT:
            return (self.lane, EDITS + self.lane)
        return (self.lane,)


def label_of(method: str, form: Mapping[str, str]) -> str:
    """What identifies a call: its words, which are said once in a world, or else whom it is for."""
    words = form.get("text") or form.get("caption")
    if words:
        return f"{method} {words.strip()[:80]}"
    if "callback_query_id" in form:
        return f"{method} {form['callback_query_id']}"
    return f"{method} to {form.get('chat_id')}"


class History:
    """Everything so far."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.attempts: dict[int, Attempt] = {}
        self.calls: list[Call] = []
        self.leases: dict[str, tuple[int, str | None]] = {}
        self.inbox: dict[int, tuple[str, int | None, str]] = {}
        """(bot, update id, state) of each row of the inbox."""

        self.labelled: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)

    def add_row(self, raw: RawConnection, row_id: int, bot: str, state: str) -> Row | None:
        """A row that has just committed; None when it is gone already."""
        found = raw.execute(_ROW, {"id": row_id}).fetchall()
        if not found:
            return None
        columns = found[0]
        params = json.loads(columns["params"])
        row = Row(
            id=row_id,
            bot=bot,
            key=columns["key"],
            method=columns["method"],
            label=label_of(columns["method"], params),
            lane=columns["lane"],
            chat_id=columns["chat_id"],
            priority=columns["priority"],
            on_uncertain=columns["on_uncertain"],
            not_before_ms=columns["not_before_ms"],
            expires_at_ms=columns["expires_at_ms"],
            attempts_max=columns["attempts_max"],
            items=columns["items"],
            state=state,
        )
        self.rows[row_id] = row
        self.labelled[bot, row.label].append(row)
        return row

    def refresh_lane(self, raw: RawConnection, row: Row) -> None:
        """Follow a row whose chat has moved."""
        found = raw.execute(
            "select lane, chat_id, params from outbox where id = :id", {"id": row.id}
        )
        for columns in found.fetchall():
            row.has_moved |= row.lane != columns["lane"]
            row.lane, row.chat_id = columns["lane"], columns["chat_id"]
            label = label_of(row.method, json.loads(columns["params"]))
            if label != row.label:
                self.labelled[row.bot, row.label].remove(row)
                row.label = label
                self.labelled[row.bot, label].append(row)

    def claimed(self, bot: str, label: str) -> Attempt | None:
        """The open, stamped attempt that a call with this label is, if there is one."""
        for row in self.labelled.get((bot, label), ()):
            if row.state == "claimed" and row.attempts:
                attempt = row.attempts[-1]
                if attempt.stage == "stamped" and attempt.call is None:
                    return attempt
        return None
