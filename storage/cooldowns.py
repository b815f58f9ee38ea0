"""Cooldowns: waits that Telegram ordered, kept on disk so that no restart forgets them.

A deadline is stored on two clocks, wall time and boot time, so that a step of the wall clock can't
make us early (`storage.clock.remaining_ms`). Of two deadlines for one scope the later one stays.
Which scope a flood means is the sender's policy; here a scope is only a name: `bot`, or a kind of
call in a lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.clock import Deadline
from storage.database import Tx
from storage.lifecycle import BotName

BOT_SCOPE = "bot"


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A wait in force for a scope of one bot. `reason` says which answer ordered it."""

    scope: str
    deadline: Deadline
    set_at_ms: int
    reason: str


def merge(tx: Tx, bot: BotName, scope: str, deadline: Deadline, *, reason: str) -> bool:
    """Remember a wait unless a longer one is in force already; tell whether the deadline moved."""
    changed = tx.run(
        "cooldowns.merge",
        {
            "bot": bot,
            "scope": scope,
            "until_ms": deadline.wall_ms,
            "wait_ms": deadline.wait_ms,
            "boot_id": deadline.boot_id,
            "until_boot_ms": deadline.boot_ms,
            "now_ms": tx.now_ms(),
            "reason": reason,
        },
    )
    return changed == 1


def of_bot(tx: Tx, bot: BotName) -> Sequence[Cooldown]:
    """Every wait remembered for a bot; some may be over."""
    return [
        Cooldown(
            scope=row["scope"],
            deadline=Deadline(
                wall_ms=row["until_ms"],
                boot_id=row["boot_id"],
                boot_ms=row["until_boot_ms"],
                wait_ms=row["wait_ms"],
            ),
            set_at_ms=row["set_at_ms"],
            reason=row["reason"],
        )
        for row in tx.rows("cooldowns.of_bot", {"bot": bot})
    ]


def lift(tx: Tx, bot: BotName, scope: str) -> None:
    """Forget a wait before its time; only for what was inferred, never for what Telegram said."""
    tx.run("cooldowns.lift", {"bot": bot, "scope": scope})


def move(tx: Tx, bot: BotName, scope: str, *, new_scope: str) -> None:
    """Let a wait follow a chat that has moved."""
    tx.run("cooldowns.move", {"bot": bot, "scope": scope, "new_scope": new_scope})


def prune(tx: Tx, *, before_ms: int) -> int:
    """Forget waits that were over before `before_ms`."""
    return tx.run("cooldowns.prune", {"before_ms": before_ms})
