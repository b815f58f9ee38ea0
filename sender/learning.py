"""Decide how fast bulk may go after floods: slower at once, faster again step by step.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. Telegram's
limits are not fixed ("unpredictable events", says its maintainer), so the configured share is only
the most that is ever tried. Everything here is our own choice.
"""

LOWERED_TO = 0.8
"""What is left of the rate after a flood."""

FLOOR_PER_SECOND = 1.0
RAISED_BY_PER_SECOND = 1.0
QUIET_MS = 60_000
"""The rate is raised once in so long without a flood."""

ONE_FLOOD_MS = 10_000
"""Refusals within so long tell of one flood: what was under way when it began is no new lesson."""


class BulkRate:
    """The bulk rate of one bot: what is configured, and what floods have made of it."""

    def __init__(self, configured: float) -> None:
        self._configured = configured
        self._learned = configured
        self._flooded_ms: int | None = None
        self._quiet_since_ms = 0

    @property
    def per_second(self) -> float:
        """The rate to keep now."""
        return min(self._learned, self._configured)

    @property
    def is_lowered(self) -> bool:
        """Whether floods have taught a lower rate than the configured one."""
        return self._learned < self._configured

    def restore(self, learned: float, now_ms: int) -> None:
        """Take up what an earlier owner has learned; its quiet minute begins anew."""
        self._learned = min(learned, self._configured)
        self._quiet_since_ms = now_ms

    def configure(self, configured: float) -> None:
        """Have another rate as the most; what was learned stays, unless nothing was."""
        self._learned = min(self._learned, configured) if self.is_lowered else configured
        self._configured = configured

    def flooded(self, now_ms: int) -> bool:
        """Bulk has drawn a flood, or one that stops the whole bot came: whether the rate fell."""
        self._quiet_since_ms = now_ms
        if self._flooded_ms is not None and now_ms - self._flooded_ms < ONE_FLOOD_MS:
            return False
        self._flooded_ms = now_ms
        floor = min(FLOOR_PER_SECOND, self._configured)
        lowered = max(floor, self.per_second * LOWERED_TO)
        has_fallen = lowered < self.per_second
        self._learned = lowered
        return has_fallen

    def went_through(self, now_ms: int) -> bool:
        """A bulk call was accepted: whether the rate rises, as it has been quiet for long."""
        minutes = (now_ms - self._quiet_since_ms) // QUIET_MS
        if not self.is_lowered or minutes < 1:
            return False
        self._quiet_since_ms += minutes * QUIET_MS
        risen = self._learned + minutes * RAISED_BY_PER_SECOND
        self._learned = min(self._configured, risen)
        return True
