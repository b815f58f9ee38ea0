"""What the owner of a bot remembers: what left lately, who is cooling, whether Telegram answers.

No I/O. All of it can be had again from the database (attempts, cooldowns), which is what a new
owner does first. Moments are of the boot clock, which no step of the wall clock can move; they
become wall time only where they are stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sender import floods
from sender.breaker import Breaker, BreakerState
from sender.canary import Canary
from sender.claiming import STRAY_MS, Inherited, Look, kind_of, merged
from sender.floods import SECOND_FLOOD_MS, FloodBook, FloodScope, Judgement, edits_scope
from sender.learning import BulkRate
from sender.lessons import NO_LESSONS, Deadlined, Lessons, NewRate
from sender.pacing import NEVER_MS, Gates, PacedCall, Rates
from sender.paying import TENTHS_PER_STAR, Doubts
from sender.policy import Wait, WaitCause
from sender.settling import moved_lane
from storage.clock import Clock, deadline_in, remaining_ms
from storage.cooldowns import BOT_SCOPE, INFERRED_SCOPE, Cooldown
from storage.floods import Flood
from storage.leases import Lease
from storage.lifecycle import BotName, Priority

_CHAT_LANES = ("c:", "b:")

ANSWER_SLOTS = 4
"""Calls that may be under way beyond the others' number, for answers to queries alone."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one bot may be, how much of it a flood stops, and what it may spend."""

    rates: Rates
    flood_scope: FloodScope
    in_flight_max: int
    stars_budget: int = 0


class BotMemory:
    """The memory of one bot's owner."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._floods = FloodBook(pace.flood_scope)
        self._rate = BulkRate(pace.rates.bulk_per_second)
        self._canary = Canary()
        self._balance = Doubts()
        self._unpayable = ""
        self._lifted_at_ms = -1
        self._bare_floods: dict[str, int] = {}
        # Replaced, never changed: a transaction on another thread may be looking at it.
        self._cooling: Mapping[str, int] = {}
        self.gates = Gates(pace.rates)
        self.breaker = Breaker()

    def inherit(self, found: Inherited) -> None:
        """Take up what earlier owners of the bot have left in the database."""
        now_ms, wall_ms = self._clock.boot_ms(), self._clock.now_ms()
        self._cooling = merged({}, found.cooldowns, self._clock)
        # Whether a canary was under way is not known, so the wait has to stand for a minute anew.
        self._canary.inferred(found.flooded, now_ms)
        for cooldown in found.cooldowns:
            age_ms = wall_ms - cooldown.set_at_ms
            left_ms = remaining_ms(cooldown.deadline, self._clock)
            is_of_now = left_ms > 0 or 0 <= age_ms < SECOND_FLOOD_MS
            if cooldown.scope.startswith(_CHAT_LANES) and is_of_now:
                at_ms = now_ms - max(0, age_ms)
                self._floods.remember(cooldown.scope, at_ms=at_ms, until_ms=now_ms + left_ms)
        arrived = []
        for call in found.recent:
            kind = kind_of(call.method, call.lane)
            paced = PacedCall(call.lane, call.chat_id, kind, call.priority, call.items)
            ended_ms = found.as_of_ms if call.ended_at_ms is None else call.ended_at_ms
            # A wall clock that was set back makes ages negative: then the call counts as just made.
            late_ms = STRAY_MS if call.is_abandoned else 0
            arrived.append((now_ms - max(0, found.as_of_ms - ended_ms) + late_ms, paced))
        arrived.sort(key=lambda pair: pair[0])
        self.gates.restore((paced, at_ms) for at_ms, paced in arrived)
        if found.learned is not None:
            self._rate.restore(found.learned, now_ms)
            self._keep_rate(now_ms)

    def learn(self, persisted: Sequence[Cooldown]) -> None:
        """Take over waits that others have persisted, as reads may meet floods too."""
        # What a canary has lifted may stand in the database until that is written down.
        news = [each for each in persisted if not self._is_lifted(each)]
        if not news:
            return
        before_ms = self._cooling.get(INFERRED_SCOPE, 0)
        self._cooling = merged(self._cooling, news, self._clock)
        if self._cooling.get(INFERRED_SCOPE, 0) > before_ms:
            self._canary.inferred(frozenset(), self._clock.boot_ms())

    def is_news(self, unpayable: str) -> bool:
        """Whether paid rows wait since now; told once, until something paid gets through."""
        is_news = bool(unpayable) and not self._unpayable
        self._unpayable = unpayable or self._unpayable
        return is_news

    def retune(self, pace: Pace) -> None:
        """Keep other limits from now on; what is remembered counts against them."""
        self._pace = pace
        self._floods.change(pace.flood_scope)
        self._rate.configure(pace.rates.bulk_per_second)
        self._keep_rate(self._clock.boot_ms())

    def look(self, bot: BotName, lease: Lease, *, in_flight: int, reload_cooldowns: bool) -> Look:
        """What a claim made now goes by."""
        now_ms = self._clock.boot_ms()
        slots = max(0, self._pace.in_flight_max - in_flight)
        return Look(
            bot=bot,
            lease=lease,
            slots=slots,
            answer_slots=max(0, self._pace.in_flight_max + ANSWER_SLOTS - in_flight),
            rooms=self.gates.rooms(now_ms),
            cooling=self._cooling,
            now_ms=now_ms,
            gates=self.gates,
            reload_cooldowns=reload_cooldowns,
            is_telegram_out=self.breaker.state is not BreakerState.CLOSED,
            not_canaries=self._canary.involved if self._may_test(now_ms) else None,
            pays=self._pace.rates.paid_per_second > 0,
            budget_tenths=self._pace.stars_budget * TENTHS_PER_STAR,
        )

    def began(self, call: PacedCall) -> None:
        """This call is about to leave."""
        self.gates.began(call)
        if call.is_canary:
            self._canary.went()

    def ended(self, call: PacedCall) -> None:
        """This call is over, whatever was answered."""
        now_ms = self._clock.boot_ms()
        self.gates.ended(call, now_ms)
        if call.is_canary:
            self._canary.came_back(now_ms)

    def withdrew(self, call: PacedCall) -> None:
        """This call has not left, and will not."""
        self.gates.withdrew(call)
        if call.is_canary:
            self._canary.was_kept()

    def cooling_ms(self, call: PacedCall) -> int:
        """Milliseconds for which a wait still holds this call back."""
        if not self._cooling:
            return 0
        until_ms = floods.cooling_until_ms(self._cooling, call)
        return max(0, until_ms - self._clock.boot_ms())

    def certain_ms(self, call: PacedCall) -> int:
        """Milliseconds for which a wait that no canary can lift holds this call back."""
        return self.cooling_ms(replace(call, is_canary=True))

    def bot_opens_at(self, since_ms: int) -> int | None:
        """When the bot as a whole may go on, if a wait or a window of its own held it `since_ms`.

        That is the moment of the last look: what has opened after it, even if it is over by now,
        nobody has looked at.
        """
        rooms = self.gates.rooms(since_ms)
        opens = [rooms.opens_at(priority) for priority in Priority]
        opens.append(self._cooling.get(BOT_SCOPE, 0))
        inferred_ms = self._cooling.get(INFERRED_SCOPE, 0)
        opens.append(inferred_ms)
        test_ms = self._canary.goes_at()
        if inferred_ms > since_ms and test_ms is not None:
            opens.append(test_ms)
        return min((at_ms for at_ms in opens if since_ms < at_ms < NEVER_MS), default=None)

    def chat_opens_wall_ms(self, call: PacedCall) -> int:
        """When the chat's own gate lets a call like this one through again, as wall time.

        What was only inferred of the whole bot counts no longer than it stands: it may be lifted,
        and no lane must wait for what is gone.
        """
        now_ms = self._clock.boot_ms()
        at_ms = self.gates.chat_at(call, now_ms)
        wait_ms = 0 if at_ms >= NEVER_MS else at_ms - now_ms
        return self._clock.now_ms() + max(wait_ms, self.certain_ms(call))

    def bare_floods(self, lane: str) -> int:
        """How many floods without a wait this lane has met since it last got something through."""
        return self._bare_floods.get(lane, 0)

    def flooded(self, wait: Wait, call: PacedCall, method: str) -> Lessons:
        """A flood was met: who waits now, and all else that is to be written down of it."""
        lane = call.lane
        if wait.cause is not WaitCause.FLOOD:
            self._bare_floods[lane] = self.bare_floods(lane) + 1
        now_ms = self._clock.boot_ms()
        judged = self._floods.judge(wait, call, now_ms)
        self._cool(judged, now_ms)
        if call.is_canary and judged.is_bot_wide:
            self._canary.confirmed()
        waits = [
            Deadlined(
                each.scope, deadline_in(each.wait_ms, self._clock), each.reason, each.inferred
            )
            for each in judged.waits
        ]
        if wait.cause.is_chats_alone:
            return Lessons(waits)
        flood = Flood(
            lane=lane,
            method=method,
            priority=call.priority,
            wait_ms=wait.wait_ms,
            hint=wait.hint,
            chosen=judged.chosen,
            adaptive_ms=judged.adaptive_ms,
            bot_ms=judged.bot_ms,
            chat_ms=judged.chat_ms,
        )
        is_paid = call.priority is Priority.PAID
        doubts = is_paid and self._balance.refused(wait.wait_ms)
        rate = self._slower(call, judged, now_ms)
        return Lessons(waits, flood, rate=rate, doubts_balance=doubts)

    def got_through(self, call: PacedCall) -> Lessons:
        """This call was accepted: what its lane, the bulk rate and a canary make of it."""
        self._bare_floods.pop(call.lane, None)
        if call.priority is Priority.PAID:
            self._balance.accepted()
            self._unpayable = ""
        rate = self._faster() if call.priority is Priority.BULK else None
        lifted = self._lift() if call.is_canary else ()
        return Lessons(lifted=lifted, rate=rate) if lifted or rate else NO_LESSONS

    def moved(self, lane: str, new_chat_id: int) -> None:
        """A chat has a new id: what is remembered of it follows."""
        new_lane = moved_lane(lane, new_chat_id)
        self.gates.move(lane, new_lane=new_lane)
        renamed = {lane: new_lane, edits_scope(lane): edits_scope(new_lane)}
        cooling: dict[str, int] = {}
        for scope, at_ms in self._cooling.items():
            name = renamed.get(scope, scope)
            cooling[name] = max(at_ms, cooling.get(name, 0))
        self._cooling = cooling

    def _may_test(self, now_ms: int) -> bool:
        """Whether a canary may find out now if the inferred wait is needed."""
        return self._cooling.get(INFERRED_SCOPE, 0) > now_ms and self._canary.may_go(now_ms)

    def _cool(self, judged: Judgement, now_ms: int) -> None:
        cooling = {scope: at_ms for scope, at_ms in self._cooling.items() if at_ms > now_ms}
        if INFERRED_SCOPE not in cooling:
            self._canary.over()
        for each in judged.waits:
            cooling[each.scope] = max(cooling.get(each.scope, 0), now_ms + each.wait_ms)
        if any(each.scope == INFERRED_SCOPE for each in judged.waits):
            self._canary.inferred(judged.involved, now_ms)
        self._cooling = cooling

    def _lift(self) -> Sequence[str]:
        if INFERRED_SCOPE not in self._cooling:
            return ()
        self._cooling = {
            scope: at_ms for scope, at_ms in self._cooling.items() if scope != INFERRED_SCOPE
        }
        self._canary.over()
        self._lifted_at_ms = self._clock.now_ms()
        return (INFERRED_SCOPE,)

    def _is_lifted(self, wait: Cooldown) -> bool:
        return wait.inferred and wait.set_at_ms <= self._lifted_at_ms

    def _slower(self, call: PacedCall, judged: Judgement, now_ms: int) -> NewRate | None:
        is_bulks = call.priority is Priority.BULK or judged.is_bot_wide
        if not (is_bulks and self._rate.flooded(now_ms)):
            return None
        self._keep_rate(now_ms)
        what = "the whole bot" if judged.is_bot_wide else "a bulk call"
        return self._new_rate(f"a flood of {what}", has_risen=False)

    def _faster(self) -> NewRate | None:
        now_ms = self._clock.boot_ms()
        if not self._rate.went_through(now_ms):
            return None
        self._keep_rate(now_ms)
        return self._new_rate("a quiet minute", has_risen=True)

    def _new_rate(self, reason: str, *, has_risen: bool) -> NewRate:
        return NewRate(self._rate.per_second, has_risen, self._rate.is_lowered, reason)

    def _keep_rate(self, now_ms: int) -> None:
        rates = replace(self._pace.rates, bulk_per_second=self._rate.per_second)
        self.gates.retune(rates, now_ms)
