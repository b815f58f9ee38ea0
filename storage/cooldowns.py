"""Cooldowns: waits that Telegram ordered, kept on disk so that no restart forgets them.

A deadline is stored on two clocks, wall time and boot time, so that a step of the wall clock can't
make us early (`storage.clock.remaining_ms`). Of two deadlines for one scope the later one stays.
Which scope a flood means is the sender's policy; here a scope is only a name: `bot`, or a kind of
call in a lane.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from storage.carriers import Row
from storage.clock import Clock, Deadline
from storage.database import Tx
from storage.lifecycle import BotName
from storage.outgoing import TELEGRAM, channel_of

BOT_SCOPE = "bot"
"""All that a bot says to Telegram."""

INFERRED_SCOPE = f"{BOT_SCOPE}:inferred"
"""All that a bot says to Telegram except answers to queries: what is only concluded about it."""

ANSWERS_SCOPE = "answers"
"""Answers to queries, which Telegram counts against no chat."""


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A wait in force for a scope of one bot. `reason` says which answer ordered it.

    `inferred`: we have concluded it from floods of single chats, so it may be lifted.
    """

    scope: str
    deadline: Deadline
    set_at_ms: int
    reason: str
    inferred: bool = False


def bot_scope(lane: str) -> str:
    """Name the scope of all that a bot says on the channel of this lane.

    One channel's waits say nothing about another's.
    """
    channel = channel_of(lane)
    return BOT_SCOPE if channel == TELEGRAM else f"{BOT_SCOPE}@{channel}"


def inferred_scope(lane: str) -> str:
    """Name the scope of what is only concluded about a bot on the channel of this lane.

    It is kept apart from what was said, which no conclusion and no lifting may touch.
    """
    return f"{bot_scope(lane)}:inferred"


def merge(
    tx: Tx,
    bot: BotName,
    scope: str,
    deadline: Deadline,
    *,
    reason: str,
    inferred: bool = False,
) -> bool:
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
            "inferred": int(inferred),
        },
    )
    return changed == 1


def redate(tx: Tx, bot: BotName, clock: Clock) -> None:
    """Have a wait from before this boot last no longer than it was to, whoever has set the clock.

    Only the wall clock tells what is left of it. Where that was set back, the whole wait would be
    left at each look, for as long as it was set back by: so its end is counted from now, once, and
    by the boot clock. An end that wall time can still tell is left alone, as a clock that is ahead
    for a moment must not make us early.
    """
    now = {"now_ms": tx.now_ms(), "boot_id": clock.boot_id, "boot_ms": clock.boot_ms()}
    tx.run("cooldowns.redate", {"bot": bot, **now})


def of_bot(tx: Tx, bot: BotName) -> Sequence[Cooldown]:
    """Every wait remembered for a bot; some may be over."""
    return [_cooldown(row) for row in tx.rows("cooldowns.of_bot", {"bot": bot})]


def among(tx: Tx, bot: BotName, scopes: Sequence[str]) -> Sequence[Cooldown]:
    """The waits remembered for these scopes of a bot; some may be over."""
    params = {"bot": bot, "scopes": json.dumps([*scopes])}
    return [_cooldown(row) for row in tx.rows("cooldowns.among", params)]


def _cooldown(row: Row) -> Cooldown:
    return Cooldown(
        scope=row["scope"],
        deadline=Deadline(
            wall_ms=row["until_ms"],
            boot_id=row["boot_id"],
            boot_ms=row["until_boot_ms"],
            wait_ms=row["wait_ms"],
        ),
        set_at_ms=row["set_at_ms"],
        reason=row["reason"],
        inferred=bool(row["inferred"]),
    )


def lift(tx: Tx, bot: BotName, scope: str) -> bool:
    """Forget a wait before its time, if it was only inferred; what Telegram said stays."""
    return tx.run("cooldowns.lift", {"bot": bot, "scope": scope}) == 1


def move(tx: Tx, bot: BotName, scope: str, *, new_scope: str) -> None:
    """Let a wait follow a chat that has moved; it shortens none that its new id has."""
    params = {"bot": bot, "scope": scope, "new_scope": new_scope}
    tx.run("cooldowns.move", params)
    tx.run("cooldowns.forget", params)


def prune(tx: Tx, clock: Clock, *, before_ms: int) -> int:
    """Forget waits that were over before `before_ms` (UTC), and are over by the boot clock too."""
    now = {"boot_id": clock.boot_id, "boot_ms": clock.boot_ms()}
    return tx.run("cooldowns.prune", {"before_ms": before_ms, **now})
