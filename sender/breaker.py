"""Tell an outage of Telegram from the failure of one call, and keep the queue whole meanwhile.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. While the
breaker is open nothing is claimed, so no row's attempts are spent; now and then one canary, a call
that changes nothing, finds out whether Telegram answers again.
"""

from enum import StrEnum

from sender.answer import Answer, Stage

OPEN_MS_BASE = 500
OPEN_MS_MAX = 30_000
JITTER = 0.5
"""A wait is lengthened by up to half, so that many bots do not knock all at once."""

SILENT_ANSWERS_MAX = 4
"""So many calls in a row without an answer, or with an error of the server, are an outage too.

Fewer than the attempts of a row: where it is the only one, it must outlive the outage.
"""

_SERVER_ERRORS_FROM = 500


class BreakerState(StrEnum):
    """Closed lets everything through; open nothing; probing waits for its canary."""

    CLOSED = "closed"
    OPEN = "open"
    PROBING = "probing"


def is_answered(answer: Answer) -> bool:
    """Whether Telegram itself answered, with whatever it had to say."""
    return answer.stage is Stage.ANSWERED and (answer.status or 0) < _SERVER_ERRORS_FROM


class Breaker:
    """The breaker of one bot."""

    def __init__(self) -> None:
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._silent = 0
        self._opened_ms = 0
        self._probe_at_ms = 0

    @property
    def state(self) -> BreakerState:
        """Whether calls go through."""
        return self._state

    @property
    def failures(self) -> int:
        """How often in a row it has opened."""
        return self._failures

    def probe_at(self) -> int:
        """When an open breaker sends its canary."""
        return self._probe_at_ms

    def note(self, answer: Answer) -> bool:
        """Take note of a call's end; say whether the breaker has to open."""
        if is_answered(answer):
            self._silent = 0
            return False
        if self._state is not BreakerState.CLOSED or answer.stage is Stage.HANDED_BACK:
            return False
        self._silent += 1
        return answer.stage is Stage.UNCONNECTED or self._silent >= SILENT_ANSWERS_MAX

    def open(self, now_ms: int, jitter: float) -> int:
        """Let nothing through; milliseconds until the first canary."""
        assert self._state is BreakerState.CLOSED, self._state
        self._opened_ms = now_ms
        return self._open(now_ms, jitter)

    def probe(self) -> None:
        """The canary is on its way."""
        assert self._state is BreakerState.OPEN, self._state
        self._state = BreakerState.PROBING

    def probed(self, answer: Answer, now_ms: int, jitter: float) -> int | None:
        """The canary is back: milliseconds since the outage began if it is over, else None."""
        assert self._state is BreakerState.PROBING, self._state
        if is_answered(answer):
            self._state = BreakerState.CLOSED
            self._failures = self._silent = 0
            return now_ms - self._opened_ms
        self._open(now_ms, jitter)
        return None

    def _open(self, now_ms: int, jitter: float) -> int:
        plain_ms = min(OPEN_MS_BASE << min(self._failures, 16), OPEN_MS_MAX)
        wait_ms = plain_ms + int(plain_ms * JITTER * jitter)
        self._state = BreakerState.OPEN
        self._failures += 1
        self._probe_at_ms = now_ms + wait_ms
        return wait_ms
