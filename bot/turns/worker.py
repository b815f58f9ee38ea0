"""The worker's loop: which updates wait, which may start, many lanes at once.

It decides nothing about an update; `bot/turns/handling.py` does, nor about what is due without one,
ends to tell and reminders; `bot/turns/errands.py` does. It wakes when it is rung, when a
turn ends, and once a second anyway: a lost bell costs a second, never an update. A turn that ends
by an exception of ours ends the loop: what is in hand is then rescued by the next worker.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, assert_never

from bot.turns.errands import Errands, Place, is_errand
from bot.turns.handling import Again, Finish, Handling
from bot.turns.lanes import Lanes
from storage import inbox, leases
from storage.database import Tx
from storage.errors import StorageError
from storage.inbox import InboxItem
from storage.leases import Lease
from storage.lifecycle import InboxId
from storage.telemetry import event

# Updates that the worker knows of at once, those that run and those that wait.
WINDOW_MAX: Final = 10_000
# Looked through once a second for what came back to an old place: a dead letter requeued.
RESCAN_MAX: Final = 1_000
_RESCAN_MS: Final = 1_000
TICK_S: Final = 1.0
# A stopping worker finishes what runs; the process must be gone after 20 s in all.
DRAIN_S: Final = 15.0
CANCEL_S: Final = 2.0
_STORAGE_REST_MS: Final = 1_000
# Longer than this no update that was put back is believed to have to wait, when it is read again: a
# wall clock that was set back since would have it wait for the time that was taken away.
REST_MS_MAX: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Drained:
    """What became of the turns in hand when the worker stopped."""

    finished: int
    handed_back: int


@dataclass(frozen=True, slots=True)
class Signals:
    """How the worker tells others: the sender that there is work, the process that it lives.

    `round_done` is given how many turns run and how many updates wait.
    """

    ring_sender: Callable[[], None]
    round_done: Callable[[int, int], Awaitable[None]]


class Worker:
    """Takes the updates of one bot, under one lease."""

    def __init__(
        self, handling: Handling, lease: Lease, *, lanes_max: int, signals: Signals
    ) -> None:
        self._handling = handling
        self._db = handling.db
        self._clock = handling.clock
        self._bot = handling.bot
        self._lease = lease
        self._lanes_max = lanes_max
        self._signals = signals
        self._lanes = Lanes()
        self._errands = Errands(handling, lease)
        self._tasks: dict[InboxId, asyncio.Task[Finish | Again]] = {}
        self._seen = 0
        # A busy bot has no quiet second: what came back is looked for all the same.
        self._rescan_at_ms = 0
        self._woken = asyncio.Event()
        self._stopping = False
        self._failure: BaseException | None = None

    def wake(self) -> None:
        """Have the loop look again at once."""
        self._woken.set()

    def stop(self) -> None:
        """Start no further turns; `run` returns."""
        self._stopping = True
        self.wake()

    async def run(self) -> None:
        """Take updates until stopped.

        Raises LeaseLost when another worker owns the bot, and whatever ended a turn by accident.
        """
        await self._rescue()
        rescan = True
        while not self._stopping:
            self._woken.clear()
            if self._failure is not None:
                raise self._failure
            await self._look(after_id=self._look_after(rescan=rescan))
            await self._look_for_errands()
            await self._start()
            await self._signals.round_done(self._lanes.running, self._lanes.waiting)
            rescan = not await self._is_woken()

    async def drain(self) -> Drained:
        """Let running turns finish for a while; hand back the rest, uncounted."""
        running = dict(self._tasks)
        if not running:
            return Drained(0, 0)
        await asyncio.wait(running.values(), timeout=DRAIN_S)
        left = [
            update for update, task in running.items() if not (task.done() or is_errand(update))
        ]
        await self.abandon()
        if left:
            await self._db.write(partial(_release, left, self._lease), point="worker.hand_back")
            event("inbox.released", bot=self._bot, count=len(left), reason="the worker stopped")
        return Drained(len(running) - len(left), len(left))

    async def abandon(self) -> None:
        """Cancel what runs and wait for its end."""
        running = [task for task in self._tasks.values() if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CANCEL_S)

    async def _rescue(self) -> None:
        freed = await self._db.write(
            partial(inbox.rescue, bot=self._bot, epoch=self._lease.epoch), point="worker.rescue"
        )
        if freed:
            event("inbox.rescued", bot=self._bot, count=freed, epoch=self._lease.epoch)

    def _look_after(self, *, rescan: bool) -> int:
        """Where the next look begins: at the front once a second, else behind what is known."""
        now_ms = self._clock.boot_ms()
        if not rescan and now_ms < self._rescan_at_ms:
            return self._seen
        self._rescan_at_ms = now_ms + _RESCAN_MS
        return 0

    async def _look(self, *, after_id: int) -> None:
        """Read which updates wait, as far as the window has room for them."""
        room = WINDOW_MAX - len(self._lanes)
        limit = min(room, WINDOW_MAX if after_id else RESCAN_MAX)
        if limit <= 0:
            return
        try:
            waiting = await self._db.read(
                partial(inbox.pending, bot=self._bot, after_id=after_id, limit=limit)
            )
        except StorageError as error:
            event("storage.failed", bot=self._bot, operation="reading the inbox", error=error)
            return
        rested = [replace(each, not_before_ms=self._rested(each.not_before_ms)) for each in waiting]
        self._lanes.add(rested)
        if waiting:
            self._seen = max(self._seen, waiting[-1].id)

    async def _look_for_errands(self) -> None:
        try:
            self._lanes.add(await self._errands.look())
        except StorageError as error:
            event("storage.failed", bot=self._bot, operation="looking for errands", error=error)

    def _rested(self, not_before_ms: int) -> int:
        """The moment on the boot clock at which an update that was put back may go again."""
        left_ms = not_before_ms - self._clock.now_ms()
        return self._clock.boot_ms() + min(max(0, left_ms), REST_MS_MAX)

    async def _start(self) -> None:
        """Claim what may start now, and begin its turns."""
        slots = self._lanes_max - self._lanes.running
        now_ms = self._clock.boot_ms()
        chosen = self._lanes.start(now_ms=now_ms, slots=slots)
        for errand in filter(is_errand, chosen):
            self._run(errand, self._errands.handle(Place(errand)))
        updates = [each for each in chosen if not is_errand(each)]
        if not updates:
            return
        try:
            items = await self._db.write(
                partial(_claim, updates, self._lease), point="worker.claim"
            )
        except StorageError as error:
            event("storage.failed", bot=self._bot, operation="claiming updates", error=error)
            for update in updates:
                self._lanes.put_back(update, not_before_ms=now_ms + _STORAGE_REST_MS)
            return
        for update in set(updates) - {item.id for item in items}:
            self._lanes.finish(update)
        for item in items:
            self._begin(item)

    def _begin(self, item: InboxItem) -> None:
        event(
            "inbox.claimed",
            bot=self._bot,
            inbox_id=item.id,
            update_id=item.update_id,
            kind=item.kind,
            claims=item.claims,
            waited_ms=self._clock.now_ms() - item.received_at_ms,
        )
        self._run(item.id, self._handling.handle(item, self._lease))

    def _run(self, place: InboxId, work: Coroutine[Any, Any, Finish | Again]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"turn-at:{place}")
        self._tasks[place] = task
        task.add_done_callback(partial(self._ended, place))

    def _ended(self, update: InboxId, task: "asyncio.Task[Finish | Again]") -> None:
        del self._tasks[update]
        self.wake()
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._failure = self._failure or error
            return
        after = task.result()
        match after:
            case Finish(said):
                self._lanes.finish(update)
                if said:
                    self._signals.ring_sender()
            case Again(not_before_boot_ms):
                self._lanes.put_back(update, not_before_ms=not_before_boot_ms)
            case _:
                assert_never(after)

    async def _is_woken(self) -> bool:
        """Wait for a bell or a turn's end; False when a second has passed without one."""
        try:
            async with asyncio.timeout(TICK_S):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True


def _claim(updates: Sequence[InboxId], lease: Lease, tx: Tx) -> Sequence[InboxItem]:
    leases.require(tx, lease)
    return inbox.claim(tx, updates, lease.epoch)


def _release(updates: Sequence[InboxId], lease: Lease, tx: Tx) -> None:
    for update in updates:
        inbox.release(tx, update, lease.epoch)
