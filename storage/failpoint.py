"""Named moments at which a test may have this process die.

A crash test arms one point through `[testing] failpoint`; the process then ends itself by SIGKILL
on reaching it: no handler, no flush, no rollback of ours, just as in a power cut of the process.
Unarmed, `reach` does nothing. It may never do anything gentler than kill: a failpoint that raises
would test our own clean-up instead of its absence.
"""

import os
import signal

POINTS = (
    "web.received",
    "web.committed",
    "worker.claimed",
    "worker.handled",
    "worker.committed",
    "sender.claimed",
    "sender.stamped",
    "sender.answered",
    "sender.settled",
)


class Failpoints:
    """The armed point of this process, if any: `name`, or `name:3` for its third pass."""

    def __init__(self, armed: str = "") -> None:
        """Raise ValueError if `armed` names no known point or its pass is not a number from 1."""
        self._name, self._passes_left = parse(armed)

    def reach(self, name: str) -> None:
        """Die here if this point is armed and its pass has come."""
        assert name in POINTS, name
        if name != self._name:
            return
        self._passes_left -= 1
        if self._passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


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
