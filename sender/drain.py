"""Carry one bot's outbox to Telegram, for as long as this process owns the bot.

One long-lived task: it waits for a bell or the alarm, claims what every gate lets through now,
stamps it, and starts a call for each row. It decides nothing itself and never sleeps for time to
pass: what may go is the gates', what an answer means the verdict's, what follows the policy's.
Nothing is called that was not stamped in a committed transaction, so that whoever comes after a
crash knows what may have left.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sender.botapi import classify
from sender.breaker import BreakerState
from sender.calls import Call
from sender.claiming import Heir, Inherited, Taken, pick, take_over
from sender.delivery import Delivery, Sender, Ties, Tools
from sender.dispatch import Dispatch, Ready, Way
from sender.memory import BotMemory, Pace
from sender.policy import Fate, Hold, StopBot
from sender.sharing import Sharer, lease_name
from sender.telling import tell_inherited, tell_picked
from sender.verdict import Fatal
from storage import leases
from storage.errors import LeaseLost
from storage.leases import LEASE_MS, Lease
from storage.lifecycle import OutboxState
from storage.outgoing import TELEGRAM
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

    sharer: Sharer
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
        self._handing_over = False
        self._is_waiting = False
        self._has_told_waiting = False
        self._lease: Lease | None = None
        self._held_until_ms = 0
        self._is_lost = False
        self._failure: BaseException | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._in_flight = 0
        self._begin()
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
        """Whether it waits to be rung, with nothing left to write; calls may be under way."""
        is_written = len(self._under_way) == self._in_flight
        return self._is_waiting and is_written and not self._wake.is_set()

    @property
    def in_flight(self) -> int:
        """How many calls are under way. One that was answered and is being recorded is not."""
        return self._in_flight

    def ring(self, *, reload_cooldowns: bool = False) -> None:
        """Something may have changed: look. Others may have persisted a wait in the meantime."""
        self._reload_cooldowns |= reload_cooldowns
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; `run` returns when the calls under way have ended."""
        self._stopping = True
        self._wake.set()

    def retune(self, pace: Pace) -> None:
        """Keep other limits from now on; what was sent lately counts against them."""
        self._pace = pace
        self._memory.retune(pace)
        self._wake.set()

    def hand_over(self) -> None:
        """Give the bot back when the calls under way have ended, for another sender to take."""
        self._handing_over = True
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
            await self._tools.db.write(lambda tx: leases.renew(tx, lease), point="sender.renew")
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
            sharer=self._house.sharer,
            attempts_max=self._sender.attempts_max,
            jitter=self._tools.dice.random(),
            recent_ms=self._pace.rates.memory_ms,
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
        tell_inherited(heir.bot, heir.sharer.owner, inherited)
        return inherited

    def _begin(self) -> None:
        """Begin with an empty memory, as what an earlier ownership remembered may be wrong now."""
        self._memory = BotMemory(self._pace, self._tools.clock)
        ties = Ties(is_held=self._is_held, on_answered=self._answered)
        self._delivery = Delivery(self._tools, self._sender, self._memory, ties)
        way = Way(
            self._reason_to_keep,
            start=lambda ready: self._start(self._deliver(ready)),
            channels=self._sender.channels,
        )
        self._dispatch = Dispatch(self._tools, self._memory, way)

    async def _own(self, inherited: Inherited) -> None:
        lease = self._lease = inherited.lease
        self._is_lost = self._has_told_waiting = self._handing_over = False
        self._begin()
        self._memory.inherit(inherited)
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
        while not (self._stopping or self._handing_over or self._failure):
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
        is_ending = self._stopping or self._handing_over or self._failure
        if is_ending or self._state is DrainState.STOPPED:
            return False
        if self._memory.breaker.state is not BreakerState.CLOSED:
            self._probe()
        look = self._memory.look(
            self._sender.bot,
            lease,
            in_flight=self._in_flight,
            reload_cooldowns=self._reload_cooldowns,
        )
        if not look.has_room:
            self._arm(None, since_ms=look.now_ms)
            return False
        self._reload_cooldowns = False
        clock, guard = self._tools.clock, self._tools.guard
        picked = await self._tools.write("claim", lambda tx: pick(tx, look, clock, guard))
        self._memory.learn(picked.cooldowns)
        if self._memory.is_news(picked.unpayable):
            event("paid.budget_spent", bot=self.bot, reason=picked.unpayable)
        tell_picked(self._sender.bot, picked, self._tools.clock.now_ms())
        self._tools.let_hear(ended.item for ended in picked.findings.ended)
        kept = 0
        if picked.taken:
            kept = await self._dispatch.send_out(lease, picked.taken)
            self._count_back(kept)
        self._arm(picked.next_due_ms, since_ms=look.now_ms)
        return picked.look_again or kept > 0

    def _enter(self, state: DrainState) -> None:
        self._state = state
        self._house.changed()

    def _require(self, lease: Lease) -> None:
        if not self._is_held():
            raise LeaseLost(f"lease {lease.name} was not renewed in time")

    def _is_held(self) -> bool:
        """Whether the bot is still ours, and will be when a call that leaves now arrives."""
        ends_ms = self._held_until_ms - LEASE_MARGIN_MS
        return not self._is_lost and self._tools.clock.boot_ms() <= ends_ms

    def _arm(self, next_due_ms: int | None, *, since_ms: int) -> None:
        """Have the alarm ring when something is due next; what is under way rings when it ends."""
        opens_ms = self._memory.bot_opens_at(since_ms)
        clock = self._tools.clock
        moments = [] if next_due_ms is None else [next_due_ms]
        if opens_ms is not None:
            moments.append(clock.now_ms() + opens_ms - clock.boot_ms())
        if moments:
            self._house.arm(min(moments))

    def _reason_to_keep(self, taken: Taken) -> str:
        """Why a row may not go now, whatever its chat; empty when it may."""
        if self._stopping or self._handing_over:
            return "stopping"
        is_out = self._memory.breaker.state is not BreakerState.CLOSED
        if is_out and taken.claim.item.channel == TELEGRAM:
            return "outage"
        return "" if self._is_held() else "lease"

    async def _deliver(self, ready: Ready) -> None:
        delivered = await self._delivery.deliver(ready.taken, ready.call)
        if delivered.is_lost:
            self._is_lost = True
        elif isinstance(delivered.fate, StopBot):
            self._enter(DrainState.STOPPED)
        if self._stopping:
            self._count(delivered.fate)

    def _count_back(self, kept: int) -> None:
        if self._stopping:
            self.report.handed_back += kept

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
        self._answered()
        verdict = classify(answer, _CANARY.method)
        if isinstance(verdict, Fatal):
            self._enter(DrainState.STOPPED)
            event("sender.bot_stopped", bot=self.bot, reason=verdict.reason, code=answer.status)
        duration_ms = breaker.probed(answer, clock.boot_ms(), self._tools.dice.random())
        if duration_ms is not None:
            event("sender.breaker_closed", bot=self.bot, duration_ms=duration_ms)

    def _answered(self) -> None:
        """A call is over: the next claim may be written together with its settlement."""
        self._in_flight -= 1
        self._wake.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._in_flight += 1
        task = asyncio.get_running_loop().create_task(work, name=f"call of {self.bot}")
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._wake.set()
