"""Our own waits, after somebody has set the machine's wall clock back.

A row that is to be tried again, its lane and a lease are dated by the wall clock: set back by a
month, it would have them wait a month longer. What a person has scheduled keeps its moment, and a
wait that Telegram ordered is counted by the clock that nobody sets (`storage.cooldowns`), so
neither is touched here. May never make anything due that the clock, left alone, would not have.
"""

from storage.database import Tx
from storage.leases import LEASE_MS

SET_BACK_MS_MIN = 1_000
"""Less is a clock that is being steered, and not worth a change."""


def redate(tx: Tx, *, seen_ms: int = 0) -> int:
    """Let nothing wait for a time that was taken back; by how many milliseconds, at least, it was.

    That the clock was set back shows in heartbeats that would have to come yet; the last one is
    seconds old, so they tell a little less than the whole. `seen_ms` is what a process has seen of
    it itself. 0 when nothing was set back, or another process has been here before.
    """
    now_ms = tx.now_ms()
    newest = tx.row("redating.newest", {})
    by_ms = 0 if newest is None or newest["newest_ms"] is None else newest["newest_ms"] - now_ms
    if by_ms < SET_BACK_MS_MIN:
        return 0
    by_ms = max(by_ms, seen_ms)
    step = {"by_ms": by_ms, "now_ms": now_ms}
    tx.run("redating.rows", step)
    tx.run("redating.lanes", step)
    tx.run("redating.leases", {"by_ms": by_ms, "latest_ms": now_ms + LEASE_MS})
    tx.run("redating.beats", {"now_ms": now_ms})
    return int(by_ms)
