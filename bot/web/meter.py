"""Count what the door does: how long Telegram waits for its 200, and whom we turned away.

Kept in memory and told in sums, once a second, because whoever is turned away may knock a thousand
times a second and must not be able to fill the disk with our log. No words, no addresses.
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from storage.telemetry import event

ACK_BUDGET_MS = 100
"""An acknowledgement that takes longer is an event: Telegram's queue for that chat stands still."""

_BUCKETS_MS = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 75, 100, 150, 250, 500, 1000, 2000, 5000, 10000)


@dataclass(frozen=True, slots=True)
class AckTimes:
    """Acknowledgements since the start; a percentile is the upper bound of its bucket, in ms."""

    count: int
    p50_ms: int
    p99_ms: int
    worst_ms: int


@dataclass(slots=True)
class Meter:
    """The door's counters."""

    _acks: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS_MS) + 1))
    _worst_ms: int = 0
    _slow: int = 0
    _slow_worst_ms: int = 0
    _refused: Counter[tuple[str, int]] = field(default_factory=Counter)
    _unstored: Counter[str] = field(default_factory=Counter)

    def acknowledged(self, took_ms: int) -> None:
        """Count one 200, from the last byte of the request to the answer."""
        self._acks[bisect_left(_BUCKETS_MS, took_ms)] += 1
        self._worst_ms = max(self._worst_ms, took_ms)
        if took_ms > ACK_BUDGET_MS:
            self._slow += 1
            self._slow_worst_ms = max(self._slow_worst_ms, took_ms)

    def refused(self, reason: str, status: int) -> None:
        """Count one request that was turned away before its body was looked at."""
        self._refused[reason, status] += 1

    def unstored(self, reason: str) -> None:
        """Count one 503: authentic, but it could not be kept."""
        self._unstored[reason] += 1

    def ack_times(self) -> AckTimes:
        """What acknowledgements took since the start."""
        return AckTimes(
            count=sum(self._acks),
            p50_ms=self._percentile(0.50),
            p99_ms=self._percentile(0.99),
            worst_ms=self._worst_ms,
        )

    def report(self) -> None:
        """Log what was counted since the last report, a line for each kind."""
        for (reason, status), count in self._refused.items():
            event("web.refused", reason=reason, status=status, count=count)
        for reason, count in self._unstored.items():
            event("web.unstored", reason=reason, count=count)
        if self._slow:
            event("web.slow", count=self._slow, worst_ms=self._slow_worst_ms)
        self._refused.clear()
        self._unstored.clear()
        self._slow = self._slow_worst_ms = 0

    def _percentile(self, share: float) -> int:
        rank = share * sum(self._acks)
        seen = 0
        for bound_ms, count in zip(_BUCKETS_MS, self._acks, strict=False):
            seen += count
            if seen >= rank:
                return min(bound_ms, self._worst_ms)
        return self._worst_ms
