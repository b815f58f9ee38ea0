"""When a webhook gets which update: Telegram's queues, retries and connections, as one decider.

Pure: it holds the updates of one bot and is told the time. `begin` hands out the next attempt that
may start now, `finish` takes its outcome, `wake_ms` says when to ask again. Whoever posts (over
HTTP or in a virtual world) is courier.py. Sources: telegram.md §1.2-1.7; testing.md §1.4.
"""

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, assert_never

BACKOFF_S = (0, 2, 4, 8, 16, 32, 64)
SLOWEST_S = (60, 120)
RETRY_AFTER_S_MAX = 3_600
QUEUES_PER_CONNECTION = 2
PENDING_MAX = 100_000
OPENINGS_MAX, OPENINGS_WIDTH_MS = 10, 500
SINGLE_EVERY_MS = 2_000
GONE_AFTER_MS = 23 * 3_600_000
GONE = 410


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRules:
    """What a test or the demo may compress."""

    delay_scale: float = 1.0
    answer_timeout_ms: int = 60_000
    # So long without a success, and only one connection is kept trying.
    single_after_ms: int = 10_000


@dataclass(slots=True, kw_only=True, eq=False)
class Pending:
    """An update that waits to be handed over."""

    update_id: int
    kind: str
    queue: str
    body: bytes
    expires_at_ms: int
    due_ms: int = 0
    attempts: int = 0
    failures: int = 0
    in_flight: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery that has been started."""

    update_id: int
    number: int
    body: bytes
    started_at_ms: int
    generation: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A complete HTTP answer came."""

    status: int
    reason: str = ""
    retry_after_s: int | None = None
    closes: bool = False
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection was there, but no complete answer came in time."""

    error: str


@dataclass(frozen=True, slots=True)
class Unconnected:
    """No connection could be opened, so the update was not even tried."""

    error: str


Outcome: TypeAlias = Answered | Broken | Unconnected


class Fate(StrEnum):
    """What an attempt's end means for its update."""

    ACKNOWLEDGED = "acknowledged"
    RETRIED = "retried"
    EXPIRED = "expired"
    # The webhook was changed meanwhile, or the update confirmed: nobody listens any more.
    IGNORED = "ignored"


@dataclass(slots=True)
class _Connections:
    """How many connections stand open, and when they were opened."""

    open: int = 0
    busy: int = 0
    opened_at_ms: deque[int] = field(default_factory=deque)

    def opening_wait_ms(self, now_ms: int, *, single: bool) -> int:
        """Milliseconds until one more connection may be opened."""
        while self.opened_at_ms and self.opened_at_ms[0] <= now_ms - SINGLE_EVERY_MS:
            self.opened_at_ms.popleft()
        if single:
            return self.opened_at_ms[-1] + SINGLE_EVERY_MS - now_ms if self.opened_at_ms else 0
        if len(self.opened_at_ms) < OPENINGS_MAX:
            return 0
        return max(0, self.opened_at_ms[-OPENINGS_MAX] + OPENINGS_WIDTH_MS - now_ms)


class Deliverer:
    """All pending updates of one bot, and the order in which a webhook gets them."""

    def __init__(self, draw: Callable[[], float], rules: DeliveryRules | None = None) -> None:
        self.rules = rules or DeliveryRules()
        self.active = False
        self.gone_for_good = False
        self._draw = draw
        self._connections_max = 1
        self._pending: dict[int, Pending] = {}
        self._backlog: deque[Pending] = deque()
        # No update expires before this moment.
        self._expiry_ms = sys.maxsize
        self._queues: dict[str, deque[Pending]] = {}
        self._connections = _Connections()
        self._generation = 0
        self._last_success_ms = 0
        self._gone_since_ms: int | None = None

    # Waiting updates

    @property
    def pending(self) -> list[Pending]:
        """What waits, oldest first."""
        return list(self._pending.values())

    def holds(self, update_id: int) -> bool:
        """Say whether an update still waits."""
        return update_id in self._pending

    def offer(self, update: Pending) -> bool:
        """Queue an update; False when Telegram's room for this bot is full and it is discarded."""
        if len(self._pending) >= PENDING_MAX:
            return False
        self._pending[update.update_id] = update
        self._backlog.append(update)
        self._expiry_ms = min(self._expiry_ms, update.expires_at_ms)
        return True

    def forget(self, update_id: int) -> bool:
        """Take an update out, whatever is under way; False when it was not there."""
        update = self._pending.pop(update_id, None)
        if update is None:
            return False
        if update.queue in self._queues and update in self._queues[update.queue]:
            self._queues[update.queue].remove(update)
            if not self._queues[update.queue]:
                del self._queues[update.queue]
        else:
            self._backlog.remove(update)
        return True

    def expired(self, now_ms: int) -> list[int]:
        """Take out and name what has outlived itself without being under way."""
        if now_ms < self._expiry_ms:
            return []
        late = [
            update.update_id
            for update in self._pending.values()
            if update.expires_at_ms <= now_ms and not update.in_flight
        ]
        for update_id in late:
            self.forget(update_id)
        # What is under way ends by itself.
        waiting = (each.expires_at_ms for each in self._pending.values() if not each.in_flight)
        self._expiry_ms = min(waiting, default=sys.maxsize)
        return late

    # The webhook

    def open(self, connections_max: int, now_ms: int) -> None:
        """Start with a new or changed webhook: everything pending is delivered anew, in order."""
        self.active = True
        self.gone_for_good = False
        self._connections_max = connections_max
        self._last_success_ms = now_ms
        self._restart()

    def close(self) -> None:
        """Stop delivering; what is pending stays."""
        self.active = False
        self._restart()

    def _restart(self) -> None:
        self._generation += 1
        self._connections = _Connections()
        self._gone_since_ms = None
        self._queues.clear()
        self._backlog = deque(sorted(self._pending.values(), key=lambda each: each.update_id))
        for update in self._backlog:
            update.in_flight = False
            update.failures = update.due_ms = 0

    # Attempts

    def begin(self, now_ms: int) -> Attempt | None:
        """Start the delivery that is due soonest, if one may start now."""
        update = self._next()
        if update is None or update.due_ms > now_ms or self._connection_wait_ms(now_ms) != 0:
            return None
        if self._connections.busy == self._connections.open:
            self._connections.open += 1
            self._connections.opened_at_ms.append(now_ms)
        self._connections.busy += 1
        update.in_flight = True
        update.attempts += 1
        return Attempt(update.update_id, update.attempts, update.body, now_ms, self._generation)

    def wake_ms(self, now_ms: int) -> int | None:
        """Milliseconds until `begin` may have something; None: only after another event."""
        update = self._next()
        if update is None:
            return None
        connection_ms = self._connection_wait_ms(now_ms)
        if connection_ms < 0:
            return None
        return max(0, update.due_ms - now_ms, connection_ms)

    def finish(self, attempt: Attempt, outcome: Outcome, now_ms: int) -> Fate:
        """Take the end of an attempt."""
        if attempt.generation != self._generation:
            # Its answer is not even read: the update is delivered again by the new webhook.
            return Fate.IGNORED
        self._free_connection(outcome)
        self._watch_for_gone(outcome, now_ms)
        update = self._pending.get(attempt.update_id)
        if update is None:
            return Fate.IGNORED
        update.in_flight = False
        match outcome:
            case Answered(status=status) if 200 <= status <= 299:
                self._last_success_ms = now_ms
                self.forget(update.update_id)
                return Fate.ACKNOWLEDGED
            case Answered() | Broken():
                delay_ms = self._delay_ms(update, outcome)
            case Unconnected():
                update.attempts -= 1
                delay_ms = 0
            case _:
                assert_never(outcome)
        if now_ms + delay_ms > update.expires_at_ms:
            self.forget(update.update_id)
            return Fate.EXPIRED
        update.due_ms = now_ms + delay_ms
        return Fate.RETRIED

    def _delay_ms(self, update: Pending, outcome: Answered | Broken) -> int:
        if isinstance(outcome, Answered) and outcome.retry_after_s is not None:
            # Honoured as it stands; the backoff does not advance.
            return min(outcome.retry_after_s, RETRY_AFTER_S_MAX) * 1000
        step = update.failures
        update.failures += 1
        if step < len(BACKOFF_S):
            delay_s = float(BACKOFF_S[step])
        else:
            delay_s = SLOWEST_S[0] + (SLOWEST_S[1] - SLOWEST_S[0]) * self._draw()
        return int(delay_s * 1000 * self.rules.delay_scale)

    def _free_connection(self, outcome: Outcome) -> None:
        self._connections.busy -= 1
        if not isinstance(outcome, Answered) or outcome.closes:
            self._connections.open -= 1

    def _watch_for_gone(self, outcome: Outcome, now_ms: int) -> None:
        if not (isinstance(outcome, Answered) and outcome.status == GONE):
            self._gone_since_ms = None
        elif self._gone_since_ms is None:
            self._gone_since_ms = now_ms
        elif now_ms - self._gone_since_ms > GONE_AFTER_MS:
            self.gone_for_good = True

    def _next(self) -> Pending | None:
        if not self.active:
            return None
        self._load()
        heads = (queue[0] for queue in self._queues.values())
        waiting = (head for head in heads if not head.in_flight)
        return min(waiting, key=lambda each: (each.due_ms, each.update_id), default=None)

    def _load(self) -> None:
        """Read on in the order of updates, until one needs a queue more than are kept in memory."""
        queues_max = QUEUES_PER_CONNECTION * self._connections_max
        while self._backlog:
            update = self._backlog[0]
            if update.queue not in self._queues and len(self._queues) >= queues_max:
                return
            self._queues.setdefault(update.queue, deque()).append(self._backlog.popleft())

    def _connection_wait_ms(self, now_ms: int) -> int:
        """Milliseconds until a connection is to be had; negative: when one becomes free."""
        single = now_ms - self._last_success_ms > self.rules.single_after_ms
        if self._connections.busy >= (1 if single else self._connections_max):
            return -1
        if self._connections.busy < self._connections.open:
            return 0
        return self._connections.opening_wait_ms(now_ms, single=single)
