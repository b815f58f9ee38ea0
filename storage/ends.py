"""How calls ended, for those who wait to hear of it: Telegram's own answer, or why there is none.

Plain functions of a transaction that only read. What they give may hold users' words; never log it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.outgoing import Outgoing, digest


@dataclass(frozen=True, slots=True)
class Named:
    """A row by the name of its cause. `is_same`: it is the very call that was asked about."""

    id: OutboxId
    is_same: bool
    method: str
    placeholder: int | None


@dataclass(frozen=True, slots=True)
class End:
    """A row that waits for no answer any more.

    `result`: the body of an accepting answer. `code`, `description`, `wait_ms`: what the last
    attempt was told, if any was made. `reason`: why it ended so, in our words.
    """

    id: OutboxId
    method: str
    state: OutboxState
    result: bytes | None
    reason: str | None
    code: int | None
    description: str | None
    wait_ms: int | None


def named(tx: Tx, bot: BotName, outgoing: Outgoing) -> Sequence[Named]:
    """The rows that have this call's key, the one that is the very call first."""
    fingerprint = digest(outgoing.method, outgoing.params, outgoing.files)
    found = [
        Named(OutboxId(row["id"]), row["digest"] == fingerprint, row["method"], row["placeholder"])
        for row in tx.rows("ends.named", {"bot": bot, "key": outgoing.key})
    ]
    return sorted(found, key=lambda row: not row.is_same)


def among(tx: Tx, ids: Iterable[OutboxId]) -> Sequence[End]:
    """Those of these rows that have ended, or are held for a person."""
    return [
        End(
            OutboxId(row["id"]),
            row["method"],
            OutboxState(row["state"]),
            row["result"],
            row["reason"],
            row["code"],
            row["description"],
            row["wait_ms"],
        )
        for row in tx.rows("ends.among", {"ids": json.dumps([*ids])})
    ]
