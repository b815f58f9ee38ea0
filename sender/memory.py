"""What the owner of a bot remembers: what left lately, who is cooling, whether Telegram answers.

No I/O. All of it can be had again from the database (attempts, cooldowns), which is what a new
owner does first. Moments are of the boot clock, which no step of the wall clock can move; they
become wall time only where they are stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sender import floods
from sender.breaker import Breaker
from sender.claiming import Inherited, Look, kind_of, merged
from sender.floods import SECOND_FLOOD_MS, FloodBook, FloodScope, edits_scope
from sender.pacing import NEVER_MS, Gates, PacedCall, Rates
from sender.policy import Wait, WaitCause
from sender.settling import Deadlined, moved_lane
from storage.clock import Clock, deadline_in, remaining_ms
from storage.cooldowns import BOT_SCOPE, Cooldown
from storage.leases import Lease
from storage.lifecycle import BotName, Priority

_CHAT_LANES = ("c:", "b:")


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one bot may be, and how much of it a flood stops."""

    rates: Rates
    flood_scope: FloodScope
    in_flight_max: int


class BotMemory:
    """The memory of one bot's owner."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self._pace = pace
        self._clock = clock
        self._floods = FloodBook(pace.flood_scope)
        self._bare_floods: dict[str, int] = {}
        # Replaced, never changed: a transaction on another thread may be looking at it.
        self._cooling: Mapping[str, int] = {}
        self.gates = Gates(pace.rates)
        self.breaker = Breaker()

    def inherit(self, found: Inherited) -> None:
        """Take up what earlier owners of the bot have left in the database."""
        now_ms, wall_ms = self._clock.boot_ms(), self._clock.now_ms()
        self._cooling = merged({}, found.cooldowns, self._clock)
        for cooldown in found.cooldowns:
            age_ms = wall_ms - cooldown.set_at_ms
            if cooldown.scope.startswith(_CHAT_LANES) and 0 <= age_ms < SECOND_FLOOD_MS:
                until_ms = now_ms + remaining_ms(cooldown.deadline, self._clock)
                self._floods.remember(cooldown.scope, at_ms=now_ms - age_ms, until_ms=until_ms)
        arrived = []
        for call in found.recent:
            paced = PacedCall(call.lane, call.chat_id, kind_of(call.method), call.priority)
            ended_ms = wall_ms if call.ended_at_ms is None else call.ended_at_ms
            # A wall clock that was set back makes ages negative: then the call counts as just made.
            arrived.append((now_ms - max(0, wall_ms - ended_ms), paced))
        arrived.sort(key=lambda pair: pair[0])
        self.gates.restore((paced, at_ms) for at_ms, paced in arrived)

    def learn(self, persisted: Sequence[Cooldown]) -> None:
        """Take over waits that others have persisted, as reads may meet floods too."""
        if persisted:
            self._cooling = merged(self._cooling, persisted, self._clock)

    def look(self, bot: BotName, lease: Lease, *, in_flight: int, reload_cooldowns: bool) -> Look:
        """What a claim made now goes by."""
        now_ms = self._clock.boot_ms()
        slots = self._pace.in_flight_max - in_flight
        room = {priority: min(slots, self.gates.room(priority, now_ms)) for priority in Priority}
        return Look(bot, lease, room, self._cooling, now_ms, self.gates, reload_cooldowns)

    def cooling_ms(self, call: PacedCall) -> int:
        """Milliseconds for which a wait still holds this call back."""
        if not self._cooling:
            return 0
        until_ms = floods.cooling_until_ms(self._cooling, call.lane, call.kind)
        return max(0, until_ms - self._clock.boot_ms())

    def bot_opens_at(self) -> int | None:
        """When the bot as a whole may go on, if a wait or a window of its own holds it now."""
        now_ms = self._clock.boot_ms()
        opens = [self.gates.bot_at(priority, now_ms) for priority in Priority]
        opens.append(self._cooling.get(BOT_SCOPE, 0))
        return min((at_ms for at_ms in opens if now_ms < at_ms < NEVER_MS), default=None)

    def chat_opens_wall_ms(self, call: PacedCall) -> int:
        """When the chat's own gate lets a call like this one through again, as wall time."""
        now_ms = self._clock.boot_ms()
        at_ms = self.gates.chat_at(call, now_ms)
        wait_ms = 0 if at_ms >= NEVER_MS else at_ms - now_ms
        return self._clock.now_ms() + max(wait_ms, self.cooling_ms(call))

    def bare_floods(self, lane: str) -> int:
        """How many floods without a wait this lane has met since it last got something through."""
        return self._bare_floods.get(lane, 0)

    def flooded(self, wait: Wait, lane: str) -> Sequence[Deadlined]:
        """A flood was met: who waits now, each with the deadline to persist."""
        if wait.cause is WaitCause.BARE_FLOOD:
            self._bare_floods[lane] = self.bare_floods(lane) + 1
        now_ms = self._clock.boot_ms()
        scoped = self._floods.judge(wait, lane, now_ms)
        cooling = {scope: at_ms for scope, at_ms in self._cooling.items() if at_ms > now_ms}
        for each in scoped:
            cooling[each.scope] = max(cooling.get(each.scope, 0), now_ms + each.wait_ms)
        self._cooling = cooling
        return [
            Deadlined(each.scope, deadline_in(each.wait_ms, self._clock), each.reason)
            for each in scoped
        ]

    def got_through(self, lane: str) -> None:
        """Something was accepted in this lane."""
        self._bare_floods.pop(lane, None)

    def moved(self, lane: str, new_chat_id: int) -> None:
        """A chat has a new id: what is remembered of it follows."""
        new_lane = moved_lane(lane, new_chat_id)
        self.gates.move(lane, new_lane=new_lane)
        renamed = {lane: new_lane, edits_scope(lane): edits_scope(new_lane)}
        self._cooling = {renamed.get(scope, scope): at_ms for scope, at_ms in self._cooling.items()}
