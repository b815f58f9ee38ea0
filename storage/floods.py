"""Floods on record: each refusal for haste, and what every policy would have made the bot wait.

Telegram does not say which limit was hit, so how much of a bot a flood stops is a choice
(`sender/floods.py`). Here is the evidence by which that choice can be judged: what the others would
have cost, and what became meanwhile of calls to chats that were not refused. No user's words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.carriers import columns
from storage.database import Tx
from storage.lifecycle import BotName


@dataclass(frozen=True, slots=True)
class Flood:
    """A flood as it was met: who drew it, how long its wait is, what it was taken for.

    `chosen` is the policy in force; the three times are what each policy has, or would have, made
    the whole bot wait.
    """

    lane: str
    method: str
    priority: str
    wait_ms: int
    hint: str
    chosen: str
    adaptive_ms: int
    bot_ms: int
    chat_ms: int


@dataclass(frozen=True, slots=True)
class FloodReport:
    """A recorded flood, and the calls to other chats that left while it lasted.

    `others_flooded` of them were refused by a flood too, `others_sent` were accepted.
    """

    id: int
    bot: BotName
    at_ms: int
    lane: str
    method: str
    priority: str
    wait_ms: int
    hint: str
    chosen: str
    adaptive_ms: int
    bot_ms: int
    chat_ms: int
    others_sent: int
    others_flooded: int


def record(tx: Tx, bot: BotName, flood: Flood) -> None:
    """Remember a flood that was met now."""
    tx.run(
        "floods.record",
        {
            "bot": bot,
            "now_ms": tx.now_ms(),
            "lane": flood.lane,
            "method": flood.method,
            "priority": flood.priority,
            "wait_ms": flood.wait_ms,
            "hint": flood.hint,
            "chosen": flood.chosen,
            "adaptive_ms": flood.adaptive_ms,
            "bot_ms": flood.bot_ms,
            "chat_ms": flood.chat_ms,
        },
    )


def lanes_since(tx: Tx, bot: BotName, *, since_ms: int) -> frozenset[str]:
    """The lanes whose calls have drawn a flood since a moment (UTC milliseconds)."""
    found = tx.rows("floods.lanes_since", {"bot": bot, "since_ms": since_ms})
    return frozenset(str(row["lane"]) for row in found)


def latest(tx: Tx, bot: BotName, *, limit: int) -> Sequence[FloodReport]:
    """The latest floods of a bot, newest first, each with what became of other chats meanwhile."""
    found = []
    for row in tx.rows("floods.latest", {"bot": bot, "limit": limit}):
        params = {
            "bot": bot,
            "lane": row["lane"],
            "at_ms": row["at_ms"],
            "until_ms": row["at_ms"] + row["wait_ms"],
        }
        others = tx.row("floods.others", params)
        assert others is not None, "an aggregate always gives a row"
        found.append(
            FloodReport(
                **columns(row), others_sent=others["sent"], others_flooded=others["flooded"]
            )
        )
    return found


def prune(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget up to `limit` floods that were met before a moment."""
    return tx.run("floods.prune", {"before_ms": before_ms, "limit": limit})
