"""Pauses: what people have stopped for a while, and why; it is kept until they let it go on.

Plain functions of a transaction. A scope is the whole bot, its bulk, or one chat's lane. A pause
with an end is over by itself. A paused lane is put off until then, so that no claim walks over what
is paused; so whoever changes a pause of a lane has the lane looked at again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage import lanes
from storage.carriers import columns
from storage.database import Tx
from storage.lifecycle import BotName, Priority

BOT_SCOPE = "bot"
BULK_SCOPE = "bulk"


@dataclass(frozen=True, slots=True)
class Pause:
    """Something that is paused. Times are UTC milliseconds; `until_ms` None means until resumed."""

    scope: str
    reason: str
    by_whom: str
    at_ms: int
    until_ms: int | None


def pause(
    tx: Tx, bot: BotName, scope: str, *, reason: str, by_whom: str, until_ms: int | None = None
) -> None:
    """Send nothing of this scope until `until_ms`, or until it is resumed.

    A pause of the same scope that is there already is replaced.
    """
    params = {
        "bot": bot,
        "scope": scope,
        "reason": reason,
        "by_whom": by_whom,
        "now_ms": tx.now_ms(),
        "until_ms": until_ms,
    }
    tx.run("pauses.pause", params)
    _look_again(tx, bot, scope)


def resume(tx: Tx, bot: BotName, scope: str) -> bool:
    """Let this scope go on; False when it was not paused."""
    was_paused = scope in among(tx, bot, [scope])
    tx.run("pauses.resume", {"bot": bot, "scope": scope})
    _look_again(tx, bot, scope)
    return was_paused


def move(tx: Tx, bot: BotName, old_lane: str, *, new_lane: str) -> None:
    """A chat has moved: what is paused in it stays paused, unless its new lane has a pause."""
    tx.run("pauses.move", {"bot": bot, "scope": old_lane, "to_scope": new_lane})


def among(tx: Tx, bot: BotName, scopes: Sequence[str]) -> Mapping[str, Pause]:
    """Those of these scopes that are paused now."""
    params = {"bot": bot, "scopes": json.dumps(list(scopes)), "now_ms": tx.now_ms()}
    return {row["scope"]: Pause(**columns(row)) for row in tx.rows("pauses.among", params)}


def holding(paused: Mapping[str, Pause], lane: str, priority: Priority) -> Pause | None:
    """The pause that holds a row of this lane and priority back, of those given."""
    held = paused.get(BOT_SCOPE) or paused.get(lane)
    if held is None and priority is not Priority.INTERACTIVE:
        held = paused.get(BULK_SCOPE)
    return held


def of_bot(tx: Tx, bot: BotName) -> Sequence[Pause]:
    """All that is paused of a bot now, by scope."""
    params = {"bot": bot, "now_ms": tx.now_ms()}
    return [Pause(**columns(row)) for row in tx.rows("pauses.of_bot", params)]


def prune(tx: Tx, *, before_ms: int) -> int:
    """Forget pauses that were over before `before_ms`."""
    return tx.run("pauses.prune", {"before_ms": before_ms})


def _look_again(tx: Tx, bot: BotName, scope: str) -> None:
    if scope in {BOT_SCOPE, BULK_SCOPE}:
        return
    for priority in Priority:
        lanes.advance(tx, bot, scope, priority, due_ms=tx.now_ms())
