"""What a world is like: which faults it has and how often, drawn from its seed.

Each fault is on with a chance of one half, at a rate drawn from its range (reliability.md 2.4).
SIGHTINGS says how often each must have been met in 400 simulated hours: a run that has not met a
fault has proved nothing about it, and fails. Pure.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from storage.options import Limits
from tests.simulation.network import Passage
from tests.simulator import faults
from tests.simulator.faults import Acceptance, Fault, FaultPlan, Target
from tests.simulator.limits import LimitRules

_ON: Final = 0.5
MEASURED_HOURS: Final = 400.0
_NOT_MODIFIED: Final = (
    "Bad Request: message is not modified: specified new message content and reply markup are"
    " exactly the same as a current content and reply markup of the message"
)
TWO_SENDERS_SHARE: Final = 0.3

PER_CALL: Final[Mapping[str, tuple[float, float]]] = {
    "flood": (0.005, 0.10),
    "bare flood": (0.002, 0.03),
    "server error": (0.005, 0.05),
    "not sent": (0.005, 0.05),
    "reset before": (0.002, 0.02),
    "reset after": (0.002, 0.02),
    "slow answer": (0.005, 0.05),
    "refused": (0.01, 0.05),
    "fatal answer": (0.0, 0.0003),
}
"""Chance for each call; the last is rare."""

PER_HOUR: Final[Mapping[str, tuple[float, float]]] = {
    "kill": (2.0, 20.0),
    "stopped process": (1.0, 8.0),
    "disk": (1.0, 5.0),
    "clock": (0.5, 4.0),
    "reboot": (0.2, 1.0),
    "outage": (0.2, 1.0),
    "admin": (4.0, 20.0),
    "block": (0.5, 4.0),
    "migration": (0.5, 2.0),
    "duplicate": (2.0, 12.0),
    "stranger": (1.0, 4.0),
}
"""How often an hour."""

PER_UPDATE: Final[Mapping[str, tuple[float, float]]] = {
    "bad handler": (0.005, 0.03),
    "lost answer": (0.0, 0.10),
    "lost ring": (0.01, 0.10),
}

SIGHTINGS: Final[Mapping[str, int]] = {
    "flood": 300,
    "bare flood": 100,
    "server error": 200,
    "not sent": 100,
    "reset before": 100,
    "reset after": 100,
    "slow answer": 200,
    "refused: chat not found": 100,
    "refused: blocked": 100,
    "refused: migrated": 20,
    "refused: not modified": 100,
    "refused: too long": 100,
    "fatal answer": 10,
    "duplicate update": 200,
    "update of a stranger": 100,
    "kill": 400,
    "two killed": 50,
    "busy": 100,
    "full": 20,
    "ioerr": 20,
    "clock": 100,
    "reboot": 20,
    "two senders": 20,
    "stopped owner": 40,
    "restart in a cooldown": 50,
    "outage": 20,
    "admin": 300,
    "handler raised": 50,
    "handler hung": 20,
    "handler slow": 20,
    "lost ring": 50,
}
"""At least so often in 400 simulated hours."""


@dataclass(frozen=True, slots=True)
class Swarm:
    """One world's rates; a fault that is off has none."""

    rates: Mapping[str, float] = field(default_factory=dict)
    two_senders: bool = False
    two_bots: bool = False
    two_workers: bool = False
    limits: Limits = field(default_factory=Limits)
    slow_disk: float = 0.0
    updates_per_hour: float = 120.0
    strictness: LimitRules = field(default_factory=lambda: LimitRules(chat_burst=1))
    """Telegram's own limits: at times tighter than those we know of."""

    def rate(self, name: str) -> float:
        """How often this fault comes; 0 when it is off."""
        return self.rates.get(name, 0.0)


def draw(dice: random.Random) -> Swarm:
    """Draw a world."""
    rates = {}
    for table in (PER_CALL, PER_HOUR, PER_UPDATE):
        for name, (least, most) in table.items():
            is_on, rate = dice.random() < _ON, dice.uniform(least, most)
            if is_on:
                rates[name] = rate
    limits = _limits(dice)
    two_senders = dice.random() < TWO_SENDERS_SHARE
    if two_senders:
        # What a second sender is for: the first stands still, and goes on.
        rates["stopped process"] = dice.uniform(4.0, 10.0)
    return Swarm(
        rates=rates,
        limits=limits,
        strictness=_strictness(dice, limits),
        two_senders=two_senders,
        two_bots=dice.random() < 0.25,
        two_workers=dice.random() < 0.2,
        slow_disk=dice.choice((0.0, 0.0, 0.05, 0.2)),
        updates_per_hour=dice.uniform(30.0, 110.0),
    )


def _limits(dice: random.Random) -> Limits:
    """What the house is configured to keep: at times so little that bursts run into it."""
    bot_per_second = dice.choice((30.0, 30.0, 6.0))
    return Limits(
        chat_burst=dice.choice((1, 1, 3)),
        group_per_minute=dice.choice((20, 20, 10)),
        bot_per_second=bot_per_second,
        bulk_per_second=dice.choice((25.0, 3.0)) if bot_per_second > 6 else 3.0,
        flood_scope=dice.choice(("adaptive", "adaptive", "bot", "chat")),
    )


def _strictness(dice: random.Random, limits: Limits) -> LimitRules:
    """Telegram's own limits: as configured, and at times tighter than anybody knows.

    Who takes each flood for one chat's can't stand a Telegram that floods the whole bot.
    """
    bot_per_second = int(limits.bot_per_second)
    if limits.flood_scope != "chat" and dice.random() < 0.3:
        bot_per_second = max(2, bot_per_second // 3)
    return LimitRules(
        chat_burst=limits.chat_burst,
        group_per_minute=dice.choice((limits.group_per_minute, 8)),
        bot_per_second=bot_per_second,
    )


def minimum(name: str, hours: float) -> int:
    """How often a fault must have been met in so many simulated hours."""
    return int(SIGHTINGS[name] * hours / MEASURED_HOURS)


class Troubles(FaultPlan):
    """What calls meet at Telegram and on their way, by the world's dice."""

    def __init__(self, swarm: Swarm, dice: random.Random, longest_s: "LongestWait") -> None:
        super().__init__()
        self._swarm = swarm
        self._dice = dice
        self._longest_s = longest_s
        self.is_healed = False
        self.lost: Counter[str] = Counter()
        """How often a call did not get to Telegram, by why."""

    def passage(self) -> Passage:
        """How the next call travels."""
        dice = self._dice
        there_s, back_s = dice.uniform(0.004, 0.06), dice.uniform(0.004, 0.06)
        if self.is_healed:
            return Passage(0.0, there_s, back_s)
        drawn = dice.random()
        for name, fails in (
            ("not sent", dice.choice(("refused", "incomplete"))),
            ("reset before", "reset"),
        ):
            rate = self._swarm.rate(name)
            if drawn < rate:
                self.lost[name] += 1
                return Passage(dice.choice((0.0, 0.2, 3.0)), there_s, back_s, fails)
            drawn -= rate
        if drawn < self._swarm.rate("slow answer"):
            return Passage(dice.choice((0.0, 0.5, 8.0)), there_s, back_s)
        return Passage(0.0, there_s, back_s)

    def take(self, call: Target) -> Fault | None:
        """The fault that this call meets."""
        if self.is_healed or call.method.startswith("get"):
            return None
        drawn = self._dice.random()
        for name, make in (
            ("flood", self._flood),
            ("bare flood", self._bare_flood),
            ("server error", self._server_error),
            ("reset after", self._reset_after),
            ("slow answer", self._slow),
            ("refused", self._refused),
            ("fatal answer", self._fatal),
        ):
            rate = self._swarm.rate(name)
            if drawn < rate:
                # A flood of what belongs to no chat is the whole bot's.
                is_whole = call.chat_id is None and self._swarm.limits.flood_scope == "chat"
                return None if is_whole and "flood" in name else make()
            drawn -= rate
        return None

    def wait_s(self) -> int:
        """How long a flood lasts: mostly short, at times an hour, never far beyond the world."""
        most = max(5, min(3_600, self._longest_s()))
        return max(1, int(most ** self._dice.random()))

    def _flood(self) -> Fault:
        if self._dice.random() < 0.15:
            return faults.HiddenFlood(self.wait_s())
        is_whole = self._swarm.limits.flood_scope != "chat" and self._dice.random() < 0.2
        scope = "bot" if is_whole else "chat"
        return faults.Flood(self.wait_s(), scope)  # type: ignore[arg-type]  # one of the two

    def _bare_flood(self) -> Fault:
        form = self._dice.choice(("absent", "zero", "negative", "bool", "string", "huge"))
        return faults.BareFlood(form)  # type: ignore[arg-type]  # one of its forms

    def _side(self) -> Acceptance:
        return self._dice.choice((Acceptance.BEFORE, Acceptance.AFTER))

    def _server_error(self) -> Fault:
        if self._dice.random() < 0.5:
            return faults.Gateway(self._side(), self._dice.choice((502, 503, 504)))
        return faults.ServerError(self._side())

    def _reset_after(self) -> Fault:
        if self._dice.random() < 0.3:
            return faults.Truncated(short_of_length=self._dice.random() < 0.5)
        return faults.Cut(Acceptance.AFTER, reset=self._dice.random() < 0.5)

    def _slow(self) -> Fault:
        return faults.Hold(int(50 * 2_400 ** self._dice.random()))

    def _refused(self) -> Fault:
        code, description = self._dice.choice(
            (
                (400, "Bad Request: chat not found"),
                (400, "Bad Request: message is too long"),
                (400, _NOT_MODIFIED),
                (403, "Forbidden: bot was blocked by the user"),
                (400, "Bad Request: not enough rights to send text messages to the chat"),
                (413, "Request Entity Too Large"),
            )
        )
        return faults.Refusal(code, description)

    def _fatal(self) -> Fault:
        code, description = self._dice.choice(
            (
                (401, "Unauthorized"),
                (404, "Not Found"),
                (409, "Conflict: terminated by other getUpdates request"),
            )
        )
        return faults.Refusal(code, description)


class LongestWait:
    """How long the world goes on, in seconds: no wait need be much longer."""

    def __init__(self) -> None:
        self.left_s = 3_600

    def __call__(self) -> int:
        """Seconds."""
        return self.left_s
