"""Heartbeats: which processes are at work, in which state, and when they were last heard of.

A heartbeat is written by the work loop itself, so that a process which only hangs falls silent too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.database import Tx

BEAT_EVERY_MS = 5_000
SILENT_AFTER_MS = 15_000
FORGET_AFTER_MS = 600_000


class RoleState(StrEnum):
    """What a process is doing as a whole."""

    STARTING = "starting"
    READY = "ready"
    STANDBY = "standby"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A process as last heard of. `owner` is its doorbell's name; `facts` are its figures."""

    owner: str
    role: str
    started_at_ms: int
    beat_at_ms: int
    state: RoleState
    facts: Mapping[str, int | str]


def beat(
    tx: Tx, owner: str, role: str, state: RoleState, facts: Mapping[str, int | str] | None = None
) -> None:
    """Say that this process is there, and forget those that this role has lost.

    A silent process is remembered, for an operator to see, until another one serves its role.
    """
    now_ms = tx.now_ms()
    told = {"state": state, "now_ms": now_ms, "facts": json.dumps(dict(facts or {}))}
    tx.run("heartbeats.beat", {"owner": owner, "role": role, **told})
    tx.run(
        "heartbeats.prune",
        {
            "owner": owner,
            "role": role,
            "before_ms": now_ms - FORGET_AFTER_MS,
            "silent_before_ms": now_ms - SILENT_AFTER_MS,
        },
    )


def leave(tx: Tx, owner: str) -> None:
    """Say that this process has ended in good order."""
    tx.run("heartbeats.leave", {"owner": owner})


def everyone(tx: Tx) -> Sequence[Heartbeat]:
    """Every process heard of lately."""
    return [
        Heartbeat(
            owner=row["owner"],
            role=row["role"],
            started_at_ms=row["started_at_ms"],
            beat_at_ms=row["beat_at_ms"],
            state=RoleState(row["state"]),
            facts=json.loads(row["facts"]),
        )
        for row in tx.rows("heartbeats.all", {})
    ]
