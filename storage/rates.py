"""Rates on record: the bulk rate that floods have taught, and every change of a bot's limits.

What was learned outlives the process, so that a restart does not run into the same flood again.
Nothing here decides: what is learned is the sender's (`sender/learning.py`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from storage.database import Tx
from storage.lifecycle import BotName

LimitValues = Mapping[str, float | int | str]
"""A bot's limits by their names in the configuration."""


@dataclass(frozen=True, slots=True)
class LearnedRate:
    """How many bulk messages a second a bot dares, and what taught it."""

    bulk_per_second: float
    changed_at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class LimitChange:
    """When a bot's limits were changed while it ran, by what, from which values to which."""

    at_ms: int
    source: str
    before: LimitValues
    after: LimitValues


def learn(tx: Tx, bot: BotName, bulk_per_second: float, *, reason: str) -> None:
    """Remember the rate that a bot has come to."""
    tx.run(
        "rates.learn",
        {
            "bot": bot,
            "bulk_per_second": bulk_per_second,
            "now_ms": tx.now_ms(),
            "reason": reason,
        },
    )


def forget(tx: Tx, bot: BotName) -> None:
    """Forget what was learned: the bot is at its configured rate again."""
    tx.run("rates.forget", {"bot": bot})


def learned(tx: Tx, bot: BotName) -> LearnedRate | None:
    """The rate that was learned of a bot; None when no flood ever taught one."""
    row = tx.row("rates.learned", {"bot": bot})
    if row is None:
        return None
    return LearnedRate(row["bulk_per_second"], row["changed_at_ms"], row["reason"])


def record_change(
    tx: Tx, bot: BotName, *, source: str, before: LimitValues, after: LimitValues
) -> bool:
    """Remember that a bot's limits were changed; False when another process has said so already."""
    last = last_change(tx, bot)
    if last is not None and last.after == after:
        return False
    tx.run(
        "rates.record_change",
        {
            "bot": bot,
            "now_ms": tx.now_ms(),
            "source": source,
            "before": json.dumps(dict(before), sort_keys=True),
            "after": json.dumps(dict(after), sort_keys=True),
        },
    )
    return True


def last_change(tx: Tx, bot: BotName) -> LimitChange | None:
    """The latest change of a bot's limits; None when they were never changed while it ran."""
    row = tx.row("rates.last_change", {"bot": bot})
    if row is None:
        return None
    before, after = json.loads(row["before"]), json.loads(row["after"])
    return LimitChange(row["at_ms"], row["source"], before, after)
