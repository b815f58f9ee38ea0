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
    """Say that this process is there; forget those that were silent for long."""
    params = {"owner": owner, "role": role, "state": state, "now_ms": tx.now_ms()}
    tx.run("heartbeats.beat", {**params, "facts": json.dumps(dict(facts or {}))})
    tx.run("heartbeats.prune", {"before_ms": tx.now_ms() - FORGET_AFTER_MS})


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
