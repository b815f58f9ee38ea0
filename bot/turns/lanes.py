"""Which waiting updates may start now.

Pure: no clock, no database. An update may start when it is the oldest in each of its lanes (its
chat's and its user's) and none of them has one running. An update that was put back keeps its place
and holds its lanes until its time has come: what came after it must not overtake it. Moments are of
a clock that is never set.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from storage.inbox import PendingUpdate
from storage.lifecycle import InboxId


@dataclass(slots=True)
class _Waiting:
    lanes: tuple[str, ...]
    not_before_ms: int
    running: bool = False


class Lanes:
    """The window of updates that a worker knows of: those that wait, and those that run."""

    def __init__(self) -> None:
        self._updates: dict[InboxId, _Waiting] = {}
        self._queues: dict[str, deque[InboxId]] = {}
        self._ready: list[InboxId] = []
        self._resting: list[tuple[int, InboxId]] = []
        self._running = 0

    def __len__(self) -> int:
        """How many updates are in the window."""
        return len(self._updates)

    @property
    def running(self) -> int:
        """How many turns run."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many updates wait."""
        return len(self._updates) - self._running

    def add(self, updates: Iterable[PendingUpdate]) -> int:
        """Put updates into the window, in order of arrival; give how many were new."""
        before = len(self._updates)
        for update in updates:
            if update.id in self._updates:
                continue
            waiting = _Waiting(lanes_of(update), update.not_before_ms)
            self._updates[update.id] = waiting
            for lane in waiting.lanes:
                self._queues.setdefault(lane, deque()).append(update.id)
            self._consider(update.id)
        return len(self._updates) - before

    def start(self, *, now_ms: int, slots: int) -> list[InboxId]:
        """Up to `slots` updates whose turns begin now, the oldest first."""
        while self._resting and self._resting[0][0] <= now_ms:
            heappush(self._ready, heappop(self._resting)[1])
        started: list[InboxId] = []
        while self._ready and len(started) < slots:
            update = heappop(self._ready)
            self._updates[update].running = True
            started.append(update)
        self._running += len(started)
        return started

    def finish(self, update: InboxId) -> None:
        """A turn is over: its lanes go on."""
        waiting = self._updates.pop(update)
        assert waiting.running, update
        self._running -= 1
        for lane in waiting.lanes:
            queue = self._queues[lane]
            head = queue.popleft()
            assert head == update, (head, update)
            if queue:
                self._consider(queue[0])
            else:
                del self._queues[lane]

    def put_back(self, update: InboxId, *, not_before_ms: int) -> None:
        """A turn is to be run again: it waits at its place, its lanes with it."""
        waiting = self._updates[update]
        assert waiting.running, update
        self._running -= 1
        waiting.running = False
        waiting.not_before_ms = not_before_ms
        self._consider(update)

    def _consider(self, update: InboxId) -> None:
        """Let an update be started if it is the head of all its lanes."""
        waiting = self._updates[update]
        if any(self._queues[lane][0] != update for lane in waiting.lanes):
            return
        heappush(self._resting, (waiting.not_before_ms, update))


def lanes_of(update: PendingUpdate) -> tuple[str, ...]:
    """The lanes of an update.

    A chat of a business connection is kept in order with the bot's own chat of the same number, as
    handlers remember both under that number.
    """
    lanes = []
    if update.chat_lane is not None:
        lane = update.chat_lane
        lanes.append(f"c:{lane.rsplit(':', 1)[1]}" if lane.startswith("b:") else lane)
    if update.user_lane is not None:
        lanes.append(update.user_lane)
    return tuple(lanes)
