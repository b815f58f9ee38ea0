"""Reports: what an operator asks of the house, all of one moment.

No user's words are in any of them. Waiting rows are counted through partial indexes that hold only
what waits; nothing here reads history beyond the period asked for.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storage import cooldowns, heartbeats, pauses, rates, spending
from storage.carriers import Row, columns
from storage.clock import Clock, remaining_ms
from storage.database import Tx
from storage.lifecycle import BotName, InboxId, InboxState, OutboxId, OutboxState, Priority
from storage.pauses import Pause

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class CooldownReport:
    """A wait in force: for what, for how much longer, and which answer ordered it."""

    scope: str
    remaining_ms: int
    until_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class WaitingReport:
    """Rows of one priority: how many wait, how many are in hand, since when the oldest of both."""

    queued: int
    claimed: int
    oldest_ms: int | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of Telegram that was no yes, or none at all."""

    id: int
    outbox_id: OutboxId
    bot: BotName
    method: str
    chat_id: int | None
    stage: str
    ended_at_ms: int
    duration_ms: int | None
    status: int | None
    code: int | None
    description: str | None
    wait_ms: int | None
    verdict: str


@dataclass(frozen=True, slots=True)
class BotReport:
    """One bot as it stands.

    `bulk_learned` is the bulk rate that floods have taught, `limits_changed` the latest change of
    limits while it ran, `paid_tenths` what paid broadcasts have cost, in tenths of a Star.
    `outside` counts the rows that have left their lanes until it is decided about another one.
    """

    name: BotName
    updates_waiting: int
    updates_oldest_ms: int | None
    turns_running: int
    updates_dead: int
    updates_quarantined: int
    outbox: Mapping[str, WaitingReport]
    scheduled: int
    next_scheduled_ms: int | None
    outside: int
    uncertain: int
    review: int
    ended_last_hour: Mapping[str, int]
    cooldowns: Sequence[CooldownReport]
    pauses: Sequence[Pause]
    refusals: Sequence[Refusal]
    bulk_learned: rates.LearnedRate | None
    limits_changed: rates.LimitChange | None
    paid_tenths: int


@dataclass(frozen=True, slots=True)
class HouseReport:
    """Everything an operator sees at a glance, at `at_ms`."""

    at_ms: int
    schema: int
    roles: Sequence[heartbeats.Heartbeat]
    bots: Sequence[BotReport]


@dataclass(frozen=True, slots=True)
class QueuedRow:
    """A row that waits or is in hand, without what it says."""

    id: OutboxId
    bot: BotName
    method: str
    chat_id: int | None
    lane: str
    priority: str
    state: OutboxState
    not_before_ms: int
    due_ms: int
    expires_at_ms: int | None
    attempts: int
    reason: str | None
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class UpdateEnd:
    """How an update stands."""

    id: InboxId
    update_id: int
    state: InboxState


@dataclass(frozen=True, slots=True)
class RowEnd:
    """How an outgoing row stands, and which message it became."""

    id: OutboxId
    method: str
    chat_id: int | None
    message_id: int | None
    state: OutboxState


@dataclass(frozen=True, slots=True)
class ItemTold:
    """What is known of one item of a call: failed with its reason, or unknown."""

    number: int
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """One attempt with its evidence. `items_told`: of each item of a call that failed in part."""

    id: int
    stage: str
    epoch: int
    claimed_at_ms: int
    stamped_at_ms: int | None
    ended_at_ms: int | None
    duration_ms: int | None
    status: int | None
    code: int | None
    description: str | None
    wait_ms: int | None
    verdict: str | None
    items_told: Sequence[ItemTold] = ()
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class RowReport:
    """One row, whole, with its attempts. `params` hold users' words: only on demand."""

    id: OutboxId
    bot: BotName
    key: str
    digest: str
    method: str
    params: Mapping[str, str]
    lane: str
    chat_id: int | None
    priority: str
    on_uncertain: str
    state: OutboxState
    joined: bool
    not_before_ms: int
    due_ms: int
    expires_at_ms: int | None
    supersede_key: str | None
    placeholder: int | None
    attempts_max: int | None
    attempts: int
    message_id: int | None
    reason: str | None
    created_at_ms: int
    finished_at_ms: int | None
    seen_at_ms: int | None
    history: Sequence[AttemptReport]


def house(tx: Tx, bots: Sequence[BotName], clock: Clock, *, refusals_max: int = 10) -> HouseReport:
    """Report on the given bots and on every process heard of lately."""
    schema = tx.row("reports.schema", {})
    return HouseReport(
        at_ms=tx.now_ms(),
        schema=0 if schema is None else int(schema["number"]),
        roles=heartbeats.everyone(tx),
        bots=[_bot(tx, name, clock, refusals_max) for name in bots],
    )


def queue(tx: Tx, bot: BotName, *, limit: int) -> Sequence[QueuedRow]:
    """What waits for a decision about another row, then what waits or is in hand, lane by lane."""
    found = tx.rows("outbox.queue_outside", {"bot": bot, "limit": limit})
    found += tx.rows("outbox.queue", {"bot": bot, "limit": limit - len(found)})
    paused = {pause.scope: pause for pause in pauses.of_bot(tx, bot)}
    rows = [QueuedRow(**columns(row, state=OutboxState)) for row in found]
    return [_with_pause(row, paused) for row in rows]


def _with_pause(row: QueuedRow, paused: Mapping[str, Pause]) -> QueuedRow:
    """The row with the pause that holds it back as the reason for its waiting."""
    held = pauses.holding(paused, row.lane, Priority(row.priority))
    return row if held is None else replace(row, reason=f"paused: {held.reason}")


def updates(tx: Tx, bot: BotName) -> Sequence[UpdateEnd]:
    """Every update that is remembered of a bot, in order: for an audit, not for a page."""
    found = tx.rows("reports.updates", {"bot": bot})
    return [UpdateEnd(**columns(row, state=InboxState)) for row in found]


def rows(tx: Tx, bot: BotName) -> Sequence[RowEnd]:
    """Every row that is remembered of a bot, in order: for an audit, not for a page."""
    found = tx.rows("reports.rows", {"bot": bot})
    return [RowEnd(**columns(row, state=OutboxState)) for row in found]


def show(tx: Tx, row_id: OutboxId) -> RowReport | None:
    """One row, whole, with every attempt; None when there is no such row."""
    row = tx.row("outbox.show", {"id": row_id})
    if row is None:
        return None
    found = columns(row, state=OutboxState, params=json.loads, joined=bool)
    history = [
        AttemptReport(**columns(each, items_told=_items_told))
        for each in tx.rows("outbox.attempts", {"id": row_id})
    ]
    return RowReport(**found, history=history)


def _bot(tx: Tx, name: BotName, clock: Clock, refusals_max: int) -> BotReport:
    key = {"bot": name}
    waiting = _one(tx, "reports.inbox_waiting", name)
    given_up = _one(tx, "reports.inbox_given_up", name)
    scheduled = _one(tx, "reports.outbox_scheduled", name)
    held = _one(tx, "reports.outbox_held", name)
    ended = tx.rows("reports.outbox_ended", {**key, "since_ms": tx.now_ms() - HOUR_MS})
    refusals = tx.rows("reports.refusals", {**key, "limit": refusals_max})
    return BotReport(
        name=name,
        updates_waiting=waiting["waiting"],
        updates_oldest_ms=waiting["oldest_ms"],
        turns_running=_one(tx, "reports.inbox_running", name)["running"],
        updates_dead=given_up["dead"],
        updates_quarantined=given_up["quarantined"],
        outbox=_waiting(tx, name),
        scheduled=scheduled["scheduled"],
        next_scheduled_ms=scheduled["next_ms"],
        outside=_one(tx, "reports.outbox_outside", name)["outside"],
        uncertain=held["uncertain"],
        review=held["review"],
        ended_last_hour={row["state"]: row["ended"] for row in ended},
        cooldowns=_cooling(tx, name, clock),
        pauses=pauses.of_bot(tx, name),
        refusals=[Refusal(**columns(row)) for row in refusals],
        bulk_learned=rates.learned(tx, name),
        limits_changed=rates.last_change(tx, name),
        paid_tenths=spending.spent(tx, name),
    )


def _waiting(tx: Tx, name: BotName) -> dict[str, WaitingReport]:
    found: dict[str, WaitingReport] = {}
    for row in tx.rows("reports.outbox_waiting", {"bot": name}):
        before = found.get(row["priority"], WaitingReport(0, 0, None))
        ages = [age for age in (before.oldest_ms, row["oldest_ms"]) if age is not None]
        found[row["priority"]] = WaitingReport(
            queued=before.queued + (row["waiting"] if row["state"] == OutboxState.QUEUED else 0),
            claimed=before.claimed + (row["waiting"] if row["state"] == OutboxState.CLAIMED else 0),
            oldest_ms=min(ages, default=None),
        )
    return found


def _cooling(tx: Tx, name: BotName, clock: Clock) -> Sequence[CooldownReport]:
    found = []
    for cooldown in cooldowns.of_bot(tx, name):
        left_ms = remaining_ms(cooldown.deadline, clock)
        if left_ms > 0:
            found.append(
                CooldownReport(cooldown.scope, left_ms, cooldown.deadline.wall_ms, cooldown.reason),
            )
    return sorted(found, key=lambda report: report.scope)


def _one(tx: Tx, name: str, bot: BotName) -> Row:
    row = tx.row(name, {"bot": bot})
    assert row is not None, "an aggregate always gives a row"
    return row


def _items_told(packed: str | None) -> Sequence[ItemTold]:
    return () if packed is None else [ItemTold(**item) for item in json.loads(packed)]
