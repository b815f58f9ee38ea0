"""Decide when one call may find out whether a wait is needed that we have only inferred.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. Floods of two
chats make us believe that the whole bot is meant, but Telegram has said so of these chats only. So
after a minute one message to a chat that was not involved goes ahead. If it gets through, what was
inferred is lifted; what Telegram said stays. If it meets a flood too, the wait is confirmed and
nothing is tested any more, as each that is refused keeps the limit alive. All of this is our own
choice.
"""

STANDS_MS = 60_000
"""How long an inferred wait stands before it is tested, and after a test that told nothing."""


class Canary:
    """The test of one bot's inferred wait."""

    def __init__(self) -> None:
        self._involved: frozenset[str] = frozenset()
        self._stands_since_ms = 0
        self._is_under_way = False
        self._is_confirmed = False

    @property
    def involved(self) -> frozenset[str]:
        """The chats whose floods the wait was inferred from: none of them may be the canary."""
        return self._involved

    def inferred(self, lanes: frozenset[str], now_ms: int) -> None:
        """A flood of these chats has made or lengthened the wait; it is tested in a minute."""
        self._involved |= lanes
        self._stands_since_ms = now_ms

    def goes_at(self) -> int | None:
        """The moment from which on a canary may go; None while one is under way, or none will."""
        if self._is_under_way or self._is_confirmed:
            return None
        return self._stands_since_ms + STANDS_MS

    def confirmed(self) -> None:
        """The canary met a flood too: the wait is waited out."""
        self._is_confirmed = True

    def may_go(self, now_ms: int) -> bool:
        """Whether a canary may go now."""
        at_ms = self.goes_at()
        return at_ms is not None and at_ms <= now_ms

    def went(self) -> None:
        """The canary is on its way."""
        assert not self._is_under_way, "one canary at a time"
        self._is_under_way = True

    def came_back(self, now_ms: int) -> None:
        """It was answered, or not: while the wait stands, the next one goes in a minute."""
        self._is_under_way = False
        self._stands_since_ms = now_ms

    def was_kept(self) -> None:
        """It has not left after all; another one may go at once."""
        self._is_under_way = False

    def over(self) -> None:
        """The wait has been lifted or has run out."""
        self._involved = frozenset()
        self._is_confirmed = False
