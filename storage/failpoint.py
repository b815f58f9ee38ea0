"""Named moments at which a test may have this process die.

A crash test arms one point through `[testing] failpoint`; the process then ends itself by SIGKILL
on reaching it: no handler, no flush, no rollback of ours, just as in a power cut of the process.
Unarmed, `reach` does nothing. It may never do anything gentler than kill: a failpoint that raises
would test our own clean-up instead of its absence.

Each transaction of a role has two points of its own, on both sides of its commit. They are reached
on the database's thread: before anybody has been told.
"""

import os
import signal
from collections.abc import Iterable, Mapping
from types import MappingProxyType

COMMITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "web": ("receive", "tell_apart", "keep_aside", "leave_call", "beat", "leave"),
        "worker": (
            *("bind", "take", "rescue", "claim", "turn", "retry", "hand_back"),
            *("say", "flush", "write", "poll", "identify", "cool_reads"),
            *("told", "reminded", "redate"),
            *("renew", "release", "beat", "leave"),
        ),
        "sender": (
            *("bind", "take_over", "claim", "stamp", "hand_back", "settle", "settle_late"),
            *("renew", "release", "beat", "leave"),
            *("expire", "prune", "checkpoint", "record_limits"),
        ),
        "storage": ("migrate",),
    }
)
"""What each role writes. `.committing` is the last moment before a commit, `.committed` the first
after it. Of a checkpoint and a migration they are the beginning and the end."""

MOMENTS = (
    "web.received",
    "web.committed",
    "web.answered",
    "worker.claimed",
    "worker.handled",
    "worker.committed",
    "sender.claimed",
    "sender.stamped",
    "sender.half_written",
    "sender.answered",
    "sender.cooled",
    "sender.settled",
)
"""What lies between the commits."""

POINTS = (
    *MOMENTS,
    *(
        f"{role}.{name}.{side}"
        for role, names in COMMITS.items()
        for name in names
        for side in ("committing", "committed")
    ),
)


class Failpoints:
    """The armed point of this process, if any: `name`, or `name:3` for its third pass."""

    def __init__(self, armed: str = "") -> None:
        """Raise ValueError if `armed` names no known point or its pass is not a number from 1."""
        self._name, self._passes_left = parse(armed)

    @property
    def is_armed(self) -> bool:
        """Whether this process is to die somewhere."""
        return bool(self._name)

    def reach(self, name: str) -> None:
        """Die here if this point is armed and its pass has come."""
        assert name in POINTS, name
        if name != self._name:
            return
        self._passes_left -= 1
        if self._passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def committing(self, names: Iterable[str]) -> None:
        """Transactions of these names are about to be committed together."""
        self._reach_all(names, "committing")

    def committed(self, names: Iterable[str]) -> None:
        """They are on disk, and nobody knows yet."""
        self._reach_all(names, "committed")

    def _reach_all(self, names: Iterable[str], side: str) -> None:
        if not self._name:
            return
        for name in dict.fromkeys(filter(None, names)):
            self.reach(f"{name}.{side}")


def parse(armed: str) -> tuple[str, int]:
    """Split `name` or `name:3` into point and pass; an empty string arms nothing.

    Raises ValueError, whose text says what was expected.
    """
    if not armed:
        return "", 0
    name, _, nth = armed.partition(":")
    if name not in POINTS:
        raise ValueError(f"expected one of {', '.join(POINTS)}")
    if ":" in armed and not (nth.isdecimal() and int(nth) >= 1):
        raise ValueError("expected the pass, a number from 1, after the colon")
    return name, int(nth or 1)


UNARMED = Failpoints()
