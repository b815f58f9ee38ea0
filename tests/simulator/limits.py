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
    """What a call counts against, and for how many messages; an album is as many as its items.

    `slow_ms`: how far apart the chat wants its messages, when this is one and slow mode is on.
    """

    bot_id: int
    chat_id: int | None
    is_group: bool
    items: int = 1
    is_paid: bool = False
    slow_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRules:
    """The limits in force; None switches one off."""

    # In any T seconds a chat accepts at most chat_burst + chat_per_second x T calls.
    chat_per_second: float | None = 1.0
    chat_burst: int = 3
    group_per_minute: int | None = 20
    bot_per_second: int | None = 30
    # Of paid broadcasts, what is above `bot_per_second` costs Stars (telegram.md §2.2).
    paid_per_second: int | None = 1_000
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
    # How many of its messages were above what is free.
    paid_items: int = 0


ADMITTED = Ruling(None)


class Limiter:
    """Keeps the windows and the floods of all bots."""

    def __init__(self, rules: LimitRules = TELEGRAM) -> None:
        """Begin with empty windows."""
        self.rules = rules
        self._due_ms: dict[Scope, float] = {}
        self._windows: dict[Scope, deque[int]] = {}
        self._paid: dict[int, deque[int]] = {}
        self._last_ms: dict[Scope, int] = {}
        self._floods: dict[Scope, Flood] = {}
        self._siblings: dict[Scope, tuple[int, Flood]] = {}

    def order(self, scope: Scope, wait_s: int, now_ms: int) -> Flood:
        """Order a flood wait; a longer one already running stays."""
        flood = Flood(scope, wait_s, now_ms, now_ms + wait_s * SECOND_MS)
        running = self._floods.get(scope)
        if running is not None and running.until_ms > flood.until_ms:
            flood = replace(running, ordered_at_ms=now_ms)
        self._floods[scope] = flood
        return flood

    def order_siblings(self, flood: Flood, until_ms: int) -> None:
        """Let whoever comes to that scope until then share the flood's fate, as if it was queued.

        Sends of a chat that wait behind a limited one fail with it, and with the same wait.
        """
        self._siblings[flood.scope] = (until_ms, flood)

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
        queued_until_ms, queued_behind = self._siblings.get(flood.scope, (0, flood))
        if now_ms <= queued_until_ms:
            return Ruling(queued_behind)
        # Telegram keeps a limit alive while it is being ignored (telegram.md §2.3).
        fresh = self.order(flood.scope, flood.wait_s, now_ms)
        return Ruling(fresh, flood.until_ms - now_ms, flood.ordered_at_ms)

    def admit(self, charge: Charge, now_ms: int) -> Ruling:
        """Judge one arrival that ignores no flood, and count it if it is admitted."""
        paid_items = self.above_free(charge, now_ms) if charge.is_paid else 0
        wait_ms, scope = self._excess(charge, now_ms, paid_items)
        if wait_ms > 0:
            wait_s = max(self.rules.wait_s_min, -(-wait_ms // SECOND_MS))
            return Ruling(self.order(scope, wait_s, now_ms))
        self._count(charge, now_ms, paid_items)
        return ADMITTED if paid_items == 0 else Ruling(None, paid_items=paid_items)

    def above_free(self, charge: Charge, now_ms: int) -> int:
        """How many messages of a call are above what the bot may say for nothing now."""
        free_max = self.rules.bot_per_second
        if free_max is None:
            return 0
        window = self._window(Scope(charge.bot_id, None), SECOND_MS, now_ms)
        return min(charge.items, max(0, len(window) + charge.items - free_max))

    def _excess(self, charge: Charge, now_ms: int, paid_items: int) -> tuple[int, Scope]:
        """How long until all windows would admit this call, and the scope that needs longest."""
        rules = self.rules
        bot = Scope(charge.bot_id, None)
        free = self._window(bot, SECOND_MS, now_ms)
        free_items = charge.items - paid_items
        waits = [(_wait_ms(free, free_items, rules.bot_per_second, SECOND_MS, now_ms), bot)]
        if paid_items:
            paid = self._paid.setdefault(charge.bot_id, deque())
            _leave(paid, SECOND_MS, now_ms)
            waits.append((_wait_ms(paid, paid_items, self._paid_max, SECOND_MS, now_ms), bot))
        if charge.chat_id is not None:
            chat = Scope(charge.bot_id, charge.chat_id)
            waits.append((self._pace_wait_ms(chat, now_ms), chat))
            slow_ms = self._last_ms.get(chat, now_ms - charge.slow_ms) + charge.slow_ms - now_ms
            waits.append((slow_ms if charge.slow_ms else 0, chat))
            if charge.is_group:
                of_group = self._window(chat, MINUTE_MS, now_ms)
                group_max = rules.group_per_minute
                wait_ms = _wait_ms(of_group, charge.items, group_max, MINUTE_MS, now_ms)
                waits.append((wait_ms, chat))
        return max(waits, key=lambda wait: wait[0])

    @property
    def _paid_max(self) -> int | None:
        """How many messages a second may be paid for; the free ones are part of the whole."""
        whole, free = self.rules.paid_per_second, self.rules.bot_per_second
        return None if whole is None or free is None else whole - free

    def _pace_wait_ms(self, chat: Scope, now_ms: int) -> int:
        """How long until the chat takes another message; an album runs into debt with the rest."""
        if self.rules.chat_per_second is None:
            return 0
        interval_ms = SECOND_MS / self.rules.chat_per_second
        earliest_ms = self._due_ms.get(chat, 0.0) - (self.rules.chat_burst - 1) * interval_ms
        return max(0, -int(-(earliest_ms - now_ms) // 1))

    def _window(self, scope: Scope, width_ms: int, now_ms: int) -> deque[int]:
        window = self._windows.setdefault(scope, deque())
        _leave(window, width_ms, now_ms)
        return window

    def _count(self, charge: Charge, now_ms: int, paid_items: int) -> None:
        rules, items = self.rules, charge.items
        if rules.bot_per_second is not None:
            free = self._window(Scope(charge.bot_id, None), SECOND_MS, now_ms)
            free.extend([now_ms] * (items - paid_items))
        if paid_items:
            self._paid[charge.bot_id].extend([now_ms] * paid_items)
        if charge.chat_id is None:
            return
        chat = Scope(charge.bot_id, charge.chat_id)
        if charge.slow_ms:
            self._last_ms[chat] = now_ms
        if rules.chat_per_second is not None:
            due_ms = max(self._due_ms.get(chat, 0.0), float(now_ms))
            self._due_ms[chat] = due_ms + items * SECOND_MS / rules.chat_per_second
        if charge.is_group and rules.group_per_minute is not None:
            self._window(chat, MINUTE_MS, now_ms).extend([now_ms] * items)


def _leave(window: deque[int], width_ms: int, now_ms: int) -> None:
    """Let go of what has left the window."""
    while window and window[0] <= now_ms - width_ms:
        window.popleft()


def _wait_ms(
    window: deque[int], items: int, calls_max: int | None, width_ms: int, now_ms: int
) -> int:
    """How long until the window has room for so many; for more than ever fit, until it is empty."""
    if calls_max is None or items == 0:
        return 0
    excess = len(window) + items - calls_max
    if excess <= 0 or not window:
        return 0
    return window[min(excess, len(window)) - 1] + width_ms - now_ms
