"""Lanes: which row of a chat is next, and when it may be looked at.

A lane is the unit of order in the outbox: one chat and one priority. Its row in `lanes` names its
head, the oldest row that waits or is claimed, so that a claim looks only at lanes that are due, and
costs the same however much waits behind them. Every change of a row that stands in a lane goes
through these functions, in the same transaction.
"""

from storage.database import Tx
from storage.lifecycle import BotName, OutboxId


def join(tx: Tx, bot: BotName, lane: str, priority: str, *, row: OutboxId, due_ms: int) -> None:
    """Put a row into its lane; behind a head that is older, before one that is younger."""
    tx.run(
        "outbox.join_lane",
        {"bot": bot, "lane": lane, "priority": priority, "id": row, "due_ms": due_ms},
    )


def defer(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int) -> None:
    """Look at this lane again no sooner than `due_ms` (UTC milliseconds)."""
    tx.run("outbox.defer", {"bot": bot, "lane": lane, "priority": priority, "due_ms": due_ms})


def hold_claimed(tx: Tx, bot: BotName, lane: str, priority: str) -> None:
    """Close a lane while its head is in a sender's hand."""
    tx.run("outbox.claim_lane", {"bot": bot, "lane": lane, "priority": priority})


def advance(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int = 0) -> None:
    """A row that waited has left the lane: its oldest row is the head, or the lane is closed.

    The lane is not looked at before `due_ms`, nor before its head is due.
    """
    _set_head(tx, bot, lane, priority, due_ms=due_ms, claimed_max=1)


def reopen(tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int) -> None:
    """The lane's claimed row has left the sender's hand: the next may go, not before `due_ms`."""
    _set_head(tx, bot, lane, priority, due_ms=due_ms, claimed_max=0)


def _set_head(
    tx: Tx, bot: BotName, lane: str, priority: str, *, due_ms: int, claimed_max: int
) -> None:
    key = {"bot": bot, "lane": lane, "priority": priority}
    head = tx.row("outbox.lane_head", key)
    if head is None:
        tx.run("outbox.close_lane", key)
        return
    due_ms = max(head["due_ms"], due_ms)
    found = {"head_id": head["id"], "due_ms": due_ms, "claimed_max": claimed_max}
    tx.run("outbox.set_head", key | found)


def rebuild(tx: Tx, bot: BotName) -> None:
    """Make all lanes of a bot anew from its rows; done whenever a sender takes the bot over."""
    tx.run("outbox.drop_lanes", {"bot": bot})
    tx.run("outbox.rebuild_lanes", {"bot": bot})
