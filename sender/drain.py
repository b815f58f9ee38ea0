"""Carry one bot's outbox to Telegram, for as long as this process owns the bot.

One long-lived task: it waits for a bell or the alarm, claims what every gate lets through now,
stamps it, and starts a call for each row. It decides nothing itself and never sleeps for time to
pass: what may go is the gates', what an answer means the verdict's, what follows the policy's.
Nothing is called that was not stamped in a committed transaction, so that whoever comes after a
crash knows what may have left.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sender.breaker import BreakerState
from sender.calls import Call, Unsayable, render
from sender.claiming import Heir, Inherited, Taken, lease_name, pick, take_over
from sender.delivery import Delivery, Sender, Tools
from sender.memory import BotMemory, Pace
from sender.policy import Bury, Fate, Hold, Requeue, Spend, StopBot
from sender.settling import Settling, settle
from sender.telling import tell_inherited, tell_picked
from sender.verdict import Fatal, classify
from storage import leases, outbox
from storage.database import Tx
from storage.errors import LeaseLost
from storage.leases import LEASE_MS, Lease
from storage.lifecycle import AttemptStage, OutboxState, Priority
from storage.outbox import AttemptEnd
from storage.telemetry import event

LEASE_MARGIN_MS = 1_000
"""No call is begun this close to the end of the lease: another sender may be about to take over."""

_CANARY = Call("getMe", b"")


class DrainState(StrEnum):
    """Where a drain stands: waiting for the bot, owning it, rejected by Telegram, or ended."""

    STANDBY = "standby"
    OWNING = "owning"
    STOPPED = "stopped"
    ENDED = "ended"

    @property
    def owns(self) -> bool:
        """Whether the bot is this process's."""
        return self in {DrainState.OWNING, DrainState.STOPPED}


@dataclass(frozen=True, slots=True)
class House:
    """How a drain is known to others, and whom it tells when it has to be woken."""

    owner: str
    is_dead: Callable[[str], bool]
    arm: Callable[[int], None]
    """Have everybody rung at this moment (UTC milliseconds), or sooner."""

    progress: Callable[[], None]
    """The work loop is alive."""

    changed: Callable[[], None]
    """The drain's state is another one."""


@dataclass(slots=True)
class DrainReport:
    """What became of the work in hand since the drain was told to stop."""

    finished: int = 0
    handed_back: int = 0
    uncertain: int = 0


class Drain:
    """The sending of one bot."""

    def __init__(self, sender: Sender, pace: Pace, tools: Tools, house: House) -> None:
        self._sender = sender
        self._pace = pace
        self._tools = tools
        self._house = house
        self._wake = asyncio.Event()
        self._reload_cooldowns = False
        self._state = DrainState.STANDBY
        self._stopping = False
        self._is_waiting = False
        self._has_told_waiting = False
        self._lease: Lease | None = None
        self._held_until_ms = 0
        self._is_lost = False
        self._failure: BaseException | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._memory = BotMemory(pace, tools.clock)
        self._delivery = Delivery(tools, sender, self._memory)
        self.report = DrainReport()

    @property
    def bot(self) -> str:
        """Name of the bot."""
        return self._sender.bot

    @property
    def state(self) -> DrainState:
        """Where this drain stands."""
        return self._state

    @property
    def is_resting(self) -> bool:
        """Whether it waits to be rung, with nothing left to look at; calls may be under way."""
        return self._is_waiting and not self._wake.is_set()

    @property
    def in_flight(self) -> int:
        """How many calls are under way."""
        return len(self._under_way)

    def ring(self, *, reload_cooldowns: bool = False) -> None:
        """Something may have changed: look. Others may have persisted a wait in the meantime."""
        self._reload_cooldowns |= reload_cooldowns
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; `run` returns when the calls under way have ended."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> DrainReport:
        """Own the bot whenever nobody else does, until `stop`; say what became of the rest.

        Raises StorageError when the database fails for good.
        """
        self._wake.set()
        while not self._stopping:
            await self._rung()
            inherited = await self._take_over()
            if inherited is not None:
                await self._own(inherited)
        self._enter(DrainState.ENDED)
        return self.report

    async def renew(self) -> None:
        """Hold the lease a while longer; it counts from before the renewal was written."""
        lease = self._lease
        if lease is None or self._is_lost:
            return
        until_ms = self._tools.clock.boot_ms() + LEASE_MS
        try:
            await self._tools.db.write(lambda tx: leases.renew(tx, lease))
        except LeaseLost:
            self._is_lost = True
            self._wake.set()
        else:
            self._held_until_ms = until_ms

    async def _take_over(self) -> Inherited | None:
        if self._stopping:
            return None
        heir = Heir(
            bot=self._sender.bot,
            owner=self._house.owner,
            is_dead=self._house.is_dead,
            attempts_max=self._sender.attempts_max,
            jitter=self._tools.dice.random(),
        )
        until_ms = self._tools.clock.boot_ms() + LEASE_MS
        inherited = await self._tools.write("take over", lambda tx: take_over(tx, heir))
        name = lease_name(heir.bot)
        if inherited is None:
            if not self._has_told_waiting:
                event("lease.waiting", bot=heir.bot, name=name)
            self._has_told_waiting = True
            return None
        self._held_until_ms = until_ms
        tell_inherited(heir.bot, heir.owner, inherited)
        return inherited

    async def _own(self, inherited: Inherited) -> None:
        lease = self._lease = inherited.lease
        self._is_lost = self._has_told_waiting = False
        self._memory = BotMemory(self._pace, self._tools.clock)
        self._memory.inherit(inherited)
        self._delivery = Delivery(self._tools, self._sender, self._memory)
        self._enter(DrainState.OWNING)
        self._wake.set()
        try:
            await self._serve(lease)
        except LeaseLost:
            self._is_lost = True
        finally:
            while self._under_way:
                await asyncio.wait(self._under_way)
            self._lease = None
            self._enter(DrainState.STANDBY)
        if self._failure is not None:
            raise self._failure
        if self._is_lost:
            event("lease.lost", bot=self.bot, name=lease.name, epoch=lease.epoch)
            return
        await self._tools.write("release", lambda tx: leases.release(tx, lease))
        event("lease.released", bot=self.bot, name=lease.name, epoch=lease.epoch)

    async def _serve(self, lease: Lease) -> None:
        while not self._stopping and self._failure is None:
            await self._rung()
            while await self._round(lease):
                self._house.progress()

    async def _rung(self) -> None:
        self._is_waiting = True
        await self._wake.wait()
        self._is_waiting = False
        self._wake.clear()
        self._house.progress()

    async def _round(self, lease: Lease) -> bool:
        """Claim and start what may go now; say whether to look again at once."""
        self._require(lease)
        if self._stopping or self._failure or self._state is DrainState.STOPPED:
            return False
        if self._memory.breaker.state is not BreakerState.CLOSED:
            self._probe()
            return False
        look = self._memory.look(
            self._sender.bot,
            lease,
            in_flight=len(self._under_way),
            reload_cooldowns=self._reload_cooldowns,
        )
        if look.room[Priority.INTERACTIVE] <= 0:
            self._arm(None)
            return False
        self._reload_cooldowns = False
        picked = await self._tools.write("claim", lambda tx: pick(tx, look, self._tools.clock))
        self._memory.learn(picked.cooldowns)
        tell_picked(self._sender.bot, picked, self._tools.clock.now_ms())
        if picked.taken:
            await self._send_out(lease, picked.taken)
        self._arm(picked.next_due_ms)
        return picked.look_again

    def _enter(self, state: DrainState) -> None:
        self._state = state
        self._house.changed()

    def _require(self, lease: Lease) -> None:
        """Refuse to go on with a lease that is lost, or may be by the time a call arrives."""
        if self._is_lost or self._tools.clock.boot_ms() > self._held_until_ms - LEASE_MARGIN_MS:
            raise LeaseLost(f"lease {lease.name} was not renewed in time")

    def _arm(self, next_due_ms: int | None) -> None:
        """Have the alarm ring when something is due next; what is under way rings when it ends."""
        opens_ms = self._memory.bot_opens_at()
        clock = self._tools.clock
        moments = [] if next_due_ms is None else [next_due_ms]
        if opens_ms is not None:
            moments.append(clock.now_ms() + opens_ms - clock.boot_ms())
        if moments:
            self._house.arm(min(moments))

    async def _send_out(self, lease: Lease, claimed: Sequence[Taken]) -> None:
        """Stamp what was claimed and start its calls, looking at the gates before and after."""
        for taken in claimed:
            self._memory.gates.began(taken.paced)
        self._tools.failpoints.reach("sender.claimed")
        ready = await self._render(await self._look_once_more(claimed))
        if not ready:
            return

        def stamp(tx: Tx) -> None:
            leases.require(tx, lease)
            outbox.stamp(tx, [taken.claim for taken, _ in ready])

        await self._tools.write("stamp", stamp)
        self._tools.failpoints.reach("sender.stamped")
        going = await self._look_once_more([taken for taken, _ in ready])
        self._require(lease)
        rendered = {taken.claim.attempt_id: call for taken, call in ready}
        for taken in going:
            self._start(self._deliver(taken, rendered[taken.claim.attempt_id]))

    async def _look_once_more(self, claimed: Sequence[Taken]) -> Sequence[Taken]:
        """Hand back what may not go any more: a wait was ordered, or we are to stop."""
        going = []
        back = []
        for taken in claimed:
            wait_ms = self._memory.cooling_ms(taken.paced)
            if wait_ms > 0:
                back.append(self._back(taken, wait_ms, "cooling"))
            elif self._stopping or self._memory.breaker.state is not BreakerState.CLOSED:
                back.append(self._back(taken, 0, "stopping" if self._stopping else "outage"))
            else:
                going.append(taken)
        if back:
            await self._settle_unsent(back)
        return going

    def _back(self, taken: Taken, wait_ms: int, reason: str) -> Settling:
        event("outbox.handed_back", bot=self.bot, outbox_id=taken.claim.item.id, reason=reason)
        self._memory.gates.withdrew(taken.paced)
        self.report.handed_back += self._stopping
        due_ms = self._tools.clock.now_ms() + wait_ms
        end = AttemptEnd(AttemptStage.HANDED_BACK, None)
        return Settling(taken.claim, end, Requeue(due_ms, Spend.NOTHING, reason))

    async def _render(self, claimed: Sequence[Taken]) -> Sequence[tuple[Taken, Call]]:
        """Make the calls; a row that can't be said is buried."""
        ready = []
        unsayable = []
        for taken in claimed:
            item = taken.claim.item
            call = render(item.method, item.params, taken.message_ids)
            if isinstance(call, Unsayable):
                self._memory.gates.withdrew(taken.paced)
                end = AttemptEnd(AttemptStage.HANDED_BACK, None, description=call.reason)
                unsayable.append(Settling(taken.claim, end, Bury(call.reason)))
                event(
                    "outbox.dead",
                    bot=self.bot,
                    outbox_id=item.id,
                    method=item.method,
                    reason=call.reason,
                )
            else:
                ready.append((taken, call))
        if unsayable:
            await self._settle_unsent(unsayable)
        return ready

    async def _settle_unsent(self, settlings: Sequence[Settling]) -> None:
        def settle_all(tx: Tx) -> None:
            for settling in settlings:
                settle(tx, settling)

        await self._tools.write("hand back", settle_all)

    async def _deliver(self, taken: Taken, call: Call) -> None:
        delivered = await self._delivery.deliver(taken, call)
        if delivered.is_lost:
            self._is_lost = True
        elif isinstance(delivered.fate, StopBot):
            self._enter(DrainState.STOPPED)
        if self._stopping:
            self._count(delivered.fate)

    def _count(self, fate: Fate) -> None:
        match fate:
            case Hold(state=OutboxState.UNCERTAIN):
                self.report.uncertain += 1
            case _:
                self.report.finished += 1

    def _probe(self) -> None:
        """Send the canary when it is time; until then have the alarm ring for it."""
        breaker, clock = self._memory.breaker, self._tools.clock
        if breaker.state is not BreakerState.OPEN:
            return
        wait_ms = breaker.probe_at() - clock.boot_ms()
        if wait_ms > 0:
            self._house.arm(clock.now_ms() + wait_ms)
            return
        breaker.probe()
        self._start(self._send_canary())

    async def _send_canary(self) -> None:
        breaker, clock = self._memory.breaker, self._tools.clock
        answer = await self._tools.transport.call(self._sender.address, _CANARY)
        verdict = classify(answer, _CANARY.method)
        if isinstance(verdict, Fatal):
            self._enter(DrainState.STOPPED)
            event("sender.bot_stopped", bot=self.bot, reason=verdict.reason, code=answer.status)
        duration_ms = breaker.probed(answer, clock.boot_ms(), self._tools.dice.random())
        if duration_ms is not None:
            event("sender.breaker_closed", bot=self.bot, duration_ms=duration_ms)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"call of {self.bot}")
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._wake.set()
