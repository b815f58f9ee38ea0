"""Telegram's limits on a bot: who may speak now, and how long a flood lasts.

Everything is counted at arrival, in the model's time, in sliding windows (never calendar seconds).
Pure: the present moment comes in as an argument. Figures: telegram.md §2.1, §2.3.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

SECOND_MS = 1_000
MINUTE_MS = 60_000


class Scope(NamedTuple):
    """Whom a flood holds back: one chat of a bot, or (chat None) the whole bot."""

    bot_id: int
    chat_id: int | None


class Charge(NamedTuple):
    """What a call counts against."""

    bot_id: int
    chat_id: int | None
    is_group: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRules:
    """The limits in force; None switches one off."""

    # In any T seconds a chat accepts at most chat_burst + chat_per_second x T calls.
    chat_per_second: float | None = 1.0
    chat_burst: int = 3
    group_per_minute: int | None = 20
    bot_per_second: int | None = 30
    # Telegram absorbs short waits itself, so the waits a bot gets to see are rarely shorter.
    wait_s_min: int = 3


TELEGRAM = LimitRules()
STRICT = LimitRules(chat_burst=1)
GENEROUS = LimitRules(
    chat_per_second=20.0, chat_burst=40, group_per_minute=1_200, bot_per_second=600
)
OFF = LimitRules(chat_per_second=None, group_per_minute=None, bot_per_second=None)
PRESETS = {"telegram": TELEGRAM, "strict": STRICT, "generous": GENEROUS, "off": OFF}


@dataclass(frozen=True, slots=True)
class Flood:
    """A wait that Telegram ordered; it ends at `until_ms`."""

    scope: Scope
    wait_s: int
    ordered_at_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Ruling:
    """The limiter's word on one arrival; `early_by_ms` is set when a running flood was ignored."""

    flood: Flood | None
    early_by_ms: int = 0
    ordered_at_ms: int | None = None


ADMITTED = Ruling(None)


class Limiter:
    """Keeps the windows and the floods of all bots."""

    def __init__(self, rules: LimitRules = TELEGRAM) -> None:
        """Begin with empty windows."""
        self.rules = rules
        self._due_ms: dict[Scope, float] = {}
        self._windows: dict[Scope, deque[int]] = {}
        self._floods: dict[Scope, Flood] = {}

    def order(self, scope: Scope, wait_s: int, now_ms: int) -> Flood:
        """Order a flood wait; a longer one already running stays."""
        flood = Flood(scope, wait_s, now_ms, now_ms + wait_s * SECOND_MS)
        running = self._floods.get(scope)
        if running is not None and running.until_ms > flood.until_ms:
            flood = replace(running, ordered_at_ms=now_ms)
        self._floods[scope] = flood
        return flood

    def running(self, scope: Scope, now_ms: int) -> Flood | None:
        """Return the flood that holds this scope back now, if any."""
        flood = self._floods.get(scope)
        return flood if flood is not None and flood.until_ms > now_ms else None

    def ignored(self, charge: Charge, now_ms: int) -> Ruling | None:
        """Judge an arrival against the running floods; None when it ignores none."""
        scopes = {Scope(charge.bot_id, charge.chat_id), Scope(charge.bot_id, None)}
        floods = [flood for scope in scopes if (flood := self.running(scope, now_ms))]
        if not floods:
            return None
        flood = max(floods, key=lambda each: each.until_ms)
        # Telegram keeps a limit alive while it is being ignored (telegram.md §2.3).
        fresh = self.order(flood.scope, flood.wait_s, now_ms)
        return Ruling(fresh, flood.until_ms - now_ms, flood.ordered_at_ms)

    def admit(self, charge: Charge, now_ms: int) -> Ruling:
        """Judge one arrival that ignores no flood, and count it if it is admitted."""
        wait_ms, scope = self._excess(charge, now_ms)
        if wait_ms > 0:
            wait_s = max(self.rules.wait_s_min, -(-wait_ms // SECOND_MS))
            return Ruling(self.order(scope, wait_s, now_ms))
        self._count(charge, now_ms)
        return ADMITTED

    def _excess(self, charge: Charge, now_ms: int) -> tuple[int, Scope]:
        """How long until all windows would admit this call, and the scope that needs longest."""
        rules = self.rules
        bot = Scope(charge.bot_id, None)
        waits = [(self._window_wait_ms(bot, rules.bot_per_second, SECOND_MS, now_ms), bot)]
        if charge.chat_id is not None:
            chat = Scope(charge.bot_id, charge.chat_id)
            waits.append((self._pace_wait_ms(chat, now_ms), chat))
            if charge.is_group:
                group_max = rules.group_per_minute
                waits.append((self._window_wait_ms(chat, group_max, MINUTE_MS, now_ms), chat))
        return max(waits, key=lambda wait: wait[0])

    def _pace_wait_ms(self, chat: Scope, now_ms: int) -> int:
        if self.rules.chat_per_second is None:
            return 0
        interval_ms = SECOND_MS / self.rules.chat_per_second
        earliest_ms = self._due_ms.get(chat, 0.0) - (self.rules.chat_burst - 1) * interval_ms
        return max(0, -int(-(earliest_ms - now_ms) // 1))

    def _window_wait_ms(
        self, scope: Scope, calls_max: int | None, width_ms: int, now_ms: int
    ) -> int:
        if calls_max is None:
            return 0
        window = self._windows.get(scope, deque())
        while window and window[0] <= now_ms - width_ms:
            window.popleft()
        return window[-calls_max] + width_ms - now_ms if len(window) >= calls_max else 0

    def _count(self, charge: Charge, now_ms: int) -> None:
        rules = self.rules
        if rules.bot_per_second is not None:
            self._windows.setdefault(Scope(charge.bot_id, None), deque()).append(now_ms)
        if charge.chat_id is None:
            return
        chat = Scope(charge.bot_id, charge.chat_id)
        if rules.chat_per_second is not None:
            due_ms = max(self._due_ms.get(chat, 0.0), float(now_ms))
            self._due_ms[chat] = due_ms + SECOND_MS / rules.chat_per_second
        if charge.is_group and rules.group_per_minute is not None:
            self._windows.setdefault(chat, deque()).append(now_ms)
