"""Keep our own rate below the known limits, before Telegram has to refuse.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. The windows are
Telegram's, which counts a call when it arrives; all we know is that it arrived between the moment
it left and the moment its answer came. So a call holds its place from the moment it leaves until
its window has passed since the *answer*: then no window that Telegram may look at, whatever the
jitter on the way, ever holds more than it should. Nothing here waits; it only says from when on.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from storage.lifecycle import Priority
from storage.outgoing import CallKind

NEVER_MS = 1 << 62
"""Not before a call that is under way has ended: its end will ring."""

GROUP_WINDOW_MS = 60_000
SECOND_MS = 1_000
CLOCK_GRAIN_MS = 1
"""Both ends of a wait are cut to whole milliseconds, so that one more is needed to be sure."""

FORGET_EVERY_CALLS = 1_024
"""How often chats that have been quiet for their whole window are forgotten."""

# Telegram does not count answers to queries against the chat, nor, so far as is known, actions.
_COUNTED_BY_CHAT = frozenset({CallKind.SEND, CallKind.EDIT, CallKind.DELETE})


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits of one bot. In any T seconds a chat gets at most `chat_burst` + rate x T."""

    chat_per_second: float
    chat_burst: int
    group_per_minute: int
    bot_per_second: float
    bulk_per_second: float


@dataclass(frozen=True, slots=True)
class PacedCall:
    """A call as the gates see it. A chat is a lane: its id, and the business connection if any."""

    lane: str
    chat_id: int | None
    kind: CallKind
    priority: Priority

    @property
    def is_counted_by_chat(self) -> bool:
        """Whether it takes of the chat's own rate."""
        return self.kind in _COUNTED_BY_CHAT

    @property
    def is_to_group(self) -> bool:
        """Groups and channels have negative ids; a @name may be one, so it is taken for one."""
        return self.chat_id is None or self.chat_id < 0


class Window:
    """At most `count` calls in any `span_ms`, as the other end sees them."""

    __slots__ = ("_count", "_ended", "_span_ms", "_under_way")

    def __init__(self, count: int, span_ms: int) -> None:
        assert count >= 1, count
        self._count = count
        self._span_ms = span_ms
        self._under_way = 0
        # Moments from which on an ended call no longer counts, in order.
        self._ended: deque[int] = deque()

    def admit_at(self, now_ms: int) -> int:
        """The first moment, from now on, at which one more call may leave."""
        self._forget(now_ms)
        over = self._under_way + len(self._ended) - self._count
        if over < 0:
            return now_ms
        return self._ended[over] if over < len(self._ended) else NEVER_MS

    def room(self, now_ms: int) -> int:
        """How many calls may leave now."""
        self._forget(now_ms)
        return max(0, self._count - self._under_way - len(self._ended))

    def began(self) -> None:
        """One more call is under way."""
        self._under_way += 1

    def ended(self, now_ms: int) -> None:
        """A call that was under way has arrived, by now at the latest."""
        self._under_way -= 1
        self._ended.append(now_ms + CLOCK_GRAIN_MS + self._span_ms)

    def withdrew(self) -> None:
        """A call that was under way has not arrived and never will."""
        self._under_way -= 1

    def _forget(self, now_ms: int) -> None:
        ended = self._ended
        while ended and ended[0] <= now_ms:
            ended.popleft()


@dataclass(frozen=True, slots=True)
class _Chat:
    """What one chat was sent lately. A value: it is replaced, so that any thread may read it.

    `spread_until_ms` is when everything that left would be over had it been spread evenly;
    `minute_ms` are the moments from which on a call no longer counts in a group's minute.
    """

    under_way: int = 0
    spread_until_ms: int = -NEVER_MS
    minute_ms: tuple[int, ...] = ()


class Gates:
    """What one bot may send now, and from when on what it may not."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._interval_ms = _interval_ms(rates.chat_per_second)
        self._bot = _second_window(rates.bot_per_second)
        self._bulk = _second_window(rates.bulk_per_second)
        self._chats: dict[str, _Chat] = {}
        self._calls_until_forget = FORGET_EVERY_CALLS

    @property
    def chats_remembered(self) -> int:
        """How many chats are held in memory."""
        return len(self._chats)

    def room(self, priority: Priority, now_ms: int) -> int:
        """How many calls of this priority the bot as a whole may make now."""
        room = self._bot.room(now_ms)
        if priority is Priority.BULK:
            return min(room, self._bulk.room(now_ms))
        return room

    def bot_at(self, priority: Priority, now_ms: int) -> int:
        """The first moment at which the bot as a whole may make a call of this priority."""
        at_ms = self._bot.admit_at(now_ms)
        if priority is Priority.BULK:
            return max(at_ms, self._bulk.admit_at(now_ms))
        return at_ms

    def chat_at(self, call: PacedCall, now_ms: int) -> int:
        """The first moment at which this call's chat lets it through; one at a time.

        Changes nothing, and may be asked from another thread.
        """
        chat = self._chats.get(call.lane)
        if chat is None:
            return now_ms
        if chat.under_way:
            return NEVER_MS
        if not call.is_counted_by_chat:
            return now_ms
        burst_ms = (self._rates.chat_burst - 1) * self._interval_ms
        at_ms = max(now_ms, chat.spread_until_ms - burst_ms)
        if call.is_to_group and len(chat.minute_ms) >= self._rates.group_per_minute:
            return max(at_ms, chat.minute_ms[-self._rates.group_per_minute])
        return at_ms

    def admit_at(self, call: PacedCall, now_ms: int) -> int:
        """The first moment, from now on, at which every gate lets this call through."""
        return max(self.bot_at(call.priority, now_ms), self.chat_at(call, now_ms))

    def began(self, call: PacedCall) -> None:
        """This call is about to leave; it holds its place until `ended` or `withdrew`."""
        self._bot.began()
        if call.priority is Priority.BULK:
            self._bulk.began()
        chat = self._chats.get(call.lane, _UNKNOWN)
        self._chats[call.lane] = replace(chat, under_way=chat.under_way + 1)

    def ended(self, call: PacedCall, now_ms: int) -> None:
        """This call's answer came, or will not come any more: it has arrived, if at all, by now."""
        self._bot.ended(now_ms)
        if call.priority is Priority.BULK:
            self._bulk.ended(now_ms)
        self._chats[call.lane] = self._after(self._chats[call.lane], call, now_ms)
        self._calls_until_forget -= 1
        if self._calls_until_forget <= 0:
            self._forget(now_ms)

    def withdrew(self, call: PacedCall) -> None:
        """This call never reached Telegram: its places are free again."""
        self._bot.withdrew()
        if call.priority is Priority.BULK:
            self._bulk.withdrew()
        chat = self._chats[call.lane]
        self._chats[call.lane] = replace(chat, under_way=chat.under_way - 1)

    def restore(self, calls: Iterable[tuple[PacedCall, int]]) -> None:
        """Remember the last minute's calls, oldest first, each with when it had arrived by."""
        for call, arrived_ms in calls:
            self.began(call)
            self.ended(call, arrived_ms)

    def move(self, lane: str, *, new_lane: str) -> None:
        """Let what is remembered of a chat follow it to its new id."""
        chat = self._chats.pop(lane, None)
        if chat is None:
            return
        there = self._chats.get(new_lane, _UNKNOWN)
        minute_ms = tuple(sorted((*chat.minute_ms, *there.minute_ms)))
        self._chats[new_lane] = _Chat(
            there.under_way,
            max(chat.spread_until_ms, there.spread_until_ms),
            minute_ms[-self._rates.group_per_minute :],
        )

    def _after(self, chat: _Chat, call: PacedCall, now_ms: int) -> _Chat:
        under_way = chat.under_way - 1
        if not call.is_counted_by_chat:
            return replace(chat, under_way=under_way)
        arrived_ms = now_ms + CLOCK_GRAIN_MS
        spread_until_ms = max(arrived_ms, chat.spread_until_ms) + self._interval_ms
        if not call.is_to_group:
            return _Chat(under_way, spread_until_ms)
        minute_ms = (*chat.minute_ms, arrived_ms + GROUP_WINDOW_MS)
        return _Chat(under_way, spread_until_ms, minute_ms[-self._rates.group_per_minute :])

    def _forget(self, now_ms: int) -> None:
        self._calls_until_forget = FORGET_EVERY_CALLS
        idle = [lane for lane, chat in self._chats.items() if _is_idle(chat, now_ms)]
        for lane in idle:
            del self._chats[lane]


_UNKNOWN = _Chat()


def _is_idle(chat: _Chat, now_ms: int) -> bool:
    counting = chat.minute_ms and chat.minute_ms[-1] > now_ms
    return not (chat.under_way or counting or chat.spread_until_ms > now_ms)


def _interval_ms(per_second: float) -> int:
    return -int(-SECOND_MS // per_second)


def _second_window(per_second: float) -> Window:
    """A sliding second; for less than one call a second, one call in a longer window."""
    if per_second >= 1:
        return Window(int(per_second), SECOND_MS)
    return Window(1, _interval_ms(per_second))
