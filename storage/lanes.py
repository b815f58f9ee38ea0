"""Lanes: which row of a chat is next, and when it may be looked at.

A lane is the unit of order in the outbox: one chat and one priority. Its row in `lanes` names its
head, the oldest row that waits or is claimed, so that a claim looks only at lanes that are due, and
costs the same however much waits behind them. Every change of a row that stands in a lane goes
through these functions, in the same transaction.
"""

import json
from collections.abc import Sequence
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
        "outbox.join_lane",
        {"bot": bot, "lane": lane, "priority": priority, "id": row, "due_ms": due_ms},
    )


def defer(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int) -> None:
    """Look at this lane again no sooner than `due_ms` (UTC milliseconds)."""
    tx.run("outbox.defer", {"bot": bot, "lane": lane, "priority": priority, "due_ms": due_ms})


def hold_claimed(tx: Tx, heads: str) -> None:
    """Close lanes while their heads are in a sender's hand; `heads` is a JSON list of row ids."""
    tx.run("outbox.claim_lanes", {"ids": heads})


def advance(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int = 0) -> None:
    """A row that waited has left the lane: its oldest row is the head, or the lane is closed.

    The lane is not looked at before `due_ms`, nor before its head is due.
    """
    key = {"bot": bot, "lane": lane, "priority": priority}
    head = tx.row("outbox.lane_head", key)
    if head is None:
        tx.run("outbox.close_lane", key)
        return
    found = {"head_id": head["id"], "due_ms": max(head["due_ms"], due_ms)}
    tx.run("outbox.set_head", key | found)


def reopen(tx: Tx, freed: Sequence[Freed]) -> None:
    """The claimed rows of these lanes have left the sender's hand: the next ones may go."""
    packed = {"lanes": json.dumps([(it.bot, it.lane, it.priority, it.due_ms) for it in freed])}
    if tx.run("outbox.close_lanes", packed) < len(freed):
        tx.run("outbox.reopen_lanes", packed)


def rebuild(tx: Tx, bot: BotName) -> None:
    """Make all lanes of a bot anew from its rows; done whenever a sender takes the bot over."""
    tx.run("outbox.drop_lanes", {"bot": bot})
    tx.run("outbox.rebuild_lanes", {"bot": bot})
