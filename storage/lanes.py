"""Lanes: which row of a chat is next, and when it may be looked at.

A lane is the unit of order in the outbox: one chat and one priority. Its row in `lanes` names its
head, the oldest row that waits or is claimed, so that a claim looks only at lanes that are due, and
costs the same however much waits behind them. Every change of a row that stands in a lane goes
through these functions, in the same transaction.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.database import Tx
from storage.lifecycle import BotName, OutboxId


@dataclass(frozen=True, slots=True)
class Freed:
    """A lane whose claimed row has left the sender's hand; not looked at before `due_ms`."""

    bot: BotName
    lane: str
    priority: str
    due_ms: int


def join(tx: Tx, bot: BotName, lane: str, priority: str, *, row: OutboxId, due_ms: int) -> None:
    """Put a row into its lane; behind a head that is older, before one that is younger."""
    tx.run(
        "lanes.join",
        {"bot": bot, "lane": lane, "priority": priority, "id": row, "due_ms": due_ms},
    )


def open_anew(tx: Tx, bot: BotName, lane: str, priority: str) -> None:
    """Rows have come into the lane from another one: its oldest row is the head."""
    head = tx.row("lanes.head", {"bot": bot, "lane": lane, "priority": priority})
    if head is not None:
        join(tx, bot, lane, priority, row=OutboxId(head["id"]), due_ms=int(head["due_ms"]))
        advance(tx, bot, lane, priority)


def defer(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int) -> None:
    """Look at this lane again no sooner than `due_ms` (UTC milliseconds)."""
    tx.run("lanes.defer", {"bot": bot, "lane": lane, "priority": priority, "due_ms": due_ms})


def look_again(tx: Tx, bot: BotName) -> None:
    """What a lane was put off for may hold no more: look at each as soon as its head is due."""
    tx.run("lanes.look_again", {"bot": bot, "now_ms": tx.now_ms()})


def hold_claimed(tx: Tx, heads: str) -> None:
    """Close lanes while their heads are in a sender's hand; `heads` is a JSON list of row ids."""
    tx.run("lanes.hold_claimed", {"ids": heads})


def advance(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int = 0) -> None:
    """A row that waited has left the lane: its oldest row is the head, or the lane is closed.

    The lane is not looked at before `due_ms`, nor before its head is due.
    """
    key = {"bot": bot, "lane": lane, "priority": priority}
    head = tx.row("lanes.head", key)
    if head is None:
        tx.run("lanes.close", key)
        return
    found = {"head_id": head["id"], "due_ms": max(head["due_ms"], due_ms)}
    tx.run("lanes.set_head", key | found)


def let_on(tx: Tx, bot: BotName, left: Iterable[tuple[str, str]]) -> None:
    """Rows that waited have left these lanes, each a name and a priority: they go on, no sooner."""
    for lane, priority in sorted(set(left)):
        key = {"bot": bot, "lane": lane, "priority": priority}
        found = tx.row("lanes.due", key)
        advance(tx, bot, lane, priority, due_ms=0 if found is None else int(found["due_ms"]))


def step_out(tx: Tx, bot: BotName, row: OutboxId, *, waits_for: OutboxId, reason: str) -> None:
    """Take a queued row out of its lane until it is decided about the row `waits_for`."""
    params = {"id": row, "waits_for": waits_for, "reason": reason}
    found = tx.row("lanes.step_out", params)
    if found is not None:
        let_on(tx, bot, [(found["lane"], found["priority"])])


def step_in(tx: Tx, decided: Sequence[OutboxId]) -> int:
    """It is decided about these rows: what waited for them joins its lane again; its number."""
    rows = tx.rows("lanes.step_in", {"decided": json.dumps(list(decided))})
    for row in sorted(rows, key=lambda found: int(found["id"])):
        bot = BotName(row["bot"])
        join(tx, bot, row["lane"], row["priority"], row=row["id"], due_ms=tx.now_ms())
    return len(rows)


def reopen(tx: Tx, freed: Sequence[Freed]) -> None:
    """The claimed rows of these lanes have left the sender's hand: the next ones may go."""
    packed = {"lanes": json.dumps([(it.bot, it.lane, it.priority, it.due_ms) for it in freed])}
    if tx.run("lanes.close_all", packed) < len(freed):
        tx.run("lanes.reopen", packed)


def rebuild(tx: Tx, bot: BotName) -> None:
    """Make all lanes of a bot anew from its rows; done whenever a sender takes the bot over."""
    tx.run("lanes.drop", {"bot": bot})
    tx.run("lanes.rebuild", {"bot": bot})
