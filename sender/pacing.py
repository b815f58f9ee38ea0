"""Keep our own rate below the known limits, before Telegram has to refuse.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. The windows are
Telegram's, which counts a call when it arrives; all we know is that it arrived between the moment
it left and the moment its answer came. So a call holds its place from the moment it leaves until
its window has passed since the *answer*: then no window that Telegram may look at, whatever the
jitter on the way, ever holds more than it should. A call costs as many places as it carries
messages. Nothing here waits; it only says from when on.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from storage.lifecycle import Priority
from storage.methods import CallKind
from storage.outgoing import SETTINGS_LANE, TELEGRAM, channel_of

NEVER_MS = 1 << 62
"""Not before a call that is under way has ended: its end will ring."""

GROUP_WINDOW_MS = 60_000
SECOND_MS = 1_000
CLOCK_GRAIN_MS = 1
"""Both ends of a wait are cut to whole milliseconds, so that one more is needed to be sure."""

# https://core.telegram.org/bots/api#sendmediagroup: an album has 2 to 10 items.
ALBUM_ITEMS_MAX = 10

FORGET_EVERY_CALLS = 1_024
"""How often chats that have been quiet for their whole window are forgotten."""

# Telegram does not count answers to queries against the chat, nor, so far as is known, actions. Of
# edits it is known that they share the chat's budget; of the rest nothing is, so they are counted.
_NOT_COUNTED_BY_CHAT = frozenset({CallKind.ANSWER, CallKind.ACTION})


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits of one bot. In any T seconds a chat gets at most `chat_burst` + rate x T.

    `paid_per_second` is the ceiling of broadcasts that pay in Stars; 0 when there are none.
    """

    chat_per_second: float
    chat_burst: int
    group_per_minute: int
    bot_per_second: float
    bulk_per_second: float
    paid_per_second: int = 0

    @property
    def interval_ms(self) -> int:
        """How far apart a chat's messages are, spread evenly."""
        return _interval_ms(self.chat_per_second)

    @property
    def memory_ms(self) -> int:
        """How long ago a call may have left and still count against one of these limits."""
        windows = (self.bot_per_second, self.bulk_per_second)
        longest_ms = max(_second(per_second)[1] for per_second in windows)
        return max(GROUP_WINDOW_MS, longest_ms, ALBUM_ITEMS_MAX * self.interval_ms)


@dataclass(frozen=True, slots=True)
class PacedCall:
    """A call as the gates see it. A chat is a lane: its id, and the business connection if any.

    `items` is how many messages it carries: whether Telegram counts an album as one call or as its
    items is not documented, so it is counted at its dearest. `is_canary`: it is to find out whether
    a wait that was only inferred is needed.
    """

    lane: str
    chat_id: int | None
    kind: CallKind
    priority: Priority
    items: int = 1
    is_canary: bool = False

    @property
    def is_counted_by_chat(self) -> bool:
        """Whether it takes of the chat's own rate.

        What goes to no chat does not: an invoice link, or a file that is uploaded for a sticker.
        """
        return self.kind not in _NOT_COUNTED_BY_CHAT and self.lane != SETTINGS_LANE

    @property
    def is_to_group(self) -> bool:
        """Groups and channels have negative ids; a @name may be one, so it is taken for one.

        The limit of groups is Telegram's, and holds on no other channel.
        """
        is_low = self.chat_id is None or self.chat_id < 0
        return is_low and channel_of(self.lane) == TELEGRAM


@dataclass(frozen=True, slots=True)
class Room:
    """What a window holds at one moment: places under way, and when each of the others frees."""

    count: int
    under_way: int
    leaving_ms: Sequence[int]
    now_ms: int

    @property
    def free(self) -> int:
        """How many places may be taken now."""
        return max(0, self.count - self.under_way - len(self.leaving_ms))

    def opens_at(self, items: int) -> int:
        """The first moment, from now on, at which so many places may be taken at once.

        What is larger than the whole window is let through when the window is empty.
        """
        held = self.under_way + len(self.leaving_ms)
        over = held + items - max(self.count, items)
        if over <= 0:
            return self.now_ms
        return self.leaving_ms[over - 1] if over <= len(self.leaving_ms) else NEVER_MS

    def less(self, items: int) -> "Room":
        """The same after so many places were taken."""
        return replace(self, under_way=self.under_way + items)


class Window:
    """At most `count` messages in any `span_ms`, as the other end sees them."""

    __slots__ = ("_count", "_leaving_ms", "_span_ms", "_under_way")

    def __init__(self, count: int, span_ms: int) -> None:
        assert count >= 1, count
        self._count = count
        self._span_ms = span_ms
        self._under_way = 0
        # Moments from which on an ended message no longer counts, in order.
        self._leaving_ms: deque[int] = deque()

    def room(self, now_ms: int) -> Room:
        """What it holds now."""
        leaving_ms = self._leaving_ms
        while leaving_ms and leaving_ms[0] <= now_ms:
            leaving_ms.popleft()
        return Room(self._count, self._under_way, tuple(leaving_ms), now_ms)

    def began(self, items: int) -> None:
        """So many more are under way."""
        self._under_way += items

    def ended(self, items: int, now_ms: int) -> None:
        """What was under way has arrived, by now at the latest."""
        self._under_way -= items
        added = _leaving(now_ms, items, count=self._count, span_ms=self._span_ms)
        is_late = bool(self._leaving_ms) and self._leaving_ms[-1] > added[0]
        self._leaving_ms.extend(added)
        if is_late:
            self._leaving_ms = deque(sorted(self._leaving_ms))

    def withdrew(self, items: int) -> None:
        """What was under way has not arrived and never will."""
        self._under_way -= items

    def retune(self, count: int, span_ms: int) -> None:
        """Hold another limit from now on, and what has left against it."""
        longer_ms = span_ms - self._span_ms
        if longer_ms:
            self._leaving_ms = deque(at_ms + longer_ms for at_ms in self._leaving_ms)
        self._count, self._span_ms = count, span_ms


class Rooms:
    """The bot's windows as one look finds them; what the look takes fills them for the look."""

    __slots__ = ("_bot", "_bulk", "_paid")

    def __init__(self, bot: Room, bulk: Room, paid: Room | None) -> None:
        self._bot = bot
        self._bulk = bulk
        self._paid = paid

    def copy(self) -> "Rooms":
        """The same once more, for another try."""
        return Rooms(self._bot, self._bulk, self._paid)

    def free(self, priority: Priority) -> int:
        """How many messages of this priority may leave now."""
        return min((room.free for room in self._passed(priority)), default=0)

    def opens_at(self, priority: Priority, items: int = 1) -> int:
        """The first moment, from now on, at which so many messages may leave together."""
        passed = self._passed(priority)
        return max((room.opens_at(items) for room in passed), default=NEVER_MS)

    def take(self, priority: Priority, items: int) -> None:
        """So many leave."""
        if priority is Priority.PAID:
            assert self._paid is not None, "nothing paid is let through while it is off"
            self._paid = self._paid.less(items)
            return
        self._bot = self._bot.less(items)
        if priority is Priority.BULK:
            self._bulk = self._bulk.less(items)

    def _passed(self, priority: Priority) -> Sequence[Room]:
        match priority:
            case Priority.PAID:
                return () if self._paid is None else (self._paid,)
            case Priority.BULK:
                return (self._bot, self._bulk)
            case Priority.INTERACTIVE:
                return (self._bot,)


@dataclass(frozen=True, slots=True)
class _Chat:
    """What one chat was sent lately. A value: it is replaced, so that any thread may read it.

    `spread_until_ms` is when everything that left would be over had it been spread evenly;
    `minute_ms` are the moments from which on a message no longer counts in a group's minute.
    """

    under_way: int = 0
    spread_until_ms: int = -NEVER_MS
    minute_ms: tuple[int, ...] = ()

    def spread_anew(self, now_ms: int, before_ms: int, after_ms: int) -> "_Chat":
        """The same messages spread at another distance, as far as they are not over."""
        owed = max(0, -((now_ms - self.spread_until_ms) // before_ms))
        moved_ms = owed * (after_ms - before_ms)
        return replace(self, spread_until_ms=self.spread_until_ms + moved_ms)


class Gates:
    """What one bot may send now, and from when on what it may not."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._bot = Window(*_second(rates.bot_per_second))
        self._bulk = Window(*_second(rates.bulk_per_second))
        self._paid = Window(*_second(max(1, rates.paid_per_second)))
        self._chats: dict[str, _Chat] = {}
        self._calls_until_forget = FORGET_EVERY_CALLS

    @property
    def rates(self) -> Rates:
        """The limits that are kept now."""
        return self._rates

    @property
    def chats_remembered(self) -> int:
        """How many chats are held in memory."""
        return len(self._chats)

    def retune(self, rates: Rates, now_ms: int) -> None:
        """Keep other limits from now on. What was sent lately counts against them."""
        before_ms, after_ms = self._rates.interval_ms, rates.interval_ms
        self._rates = rates
        self._bot.retune(*_second(rates.bot_per_second))
        self._bulk.retune(*_second(rates.bulk_per_second))
        self._paid.retune(*_second(max(1, rates.paid_per_second)))
        if before_ms != after_ms:
            self._chats = {
                lane: chat.spread_anew(now_ms, before_ms, after_ms)
                for lane, chat in self._chats.items()
            }

    def rooms(self, now_ms: int) -> Rooms:
        """What the bot as a whole may send now."""
        paid = self._paid.room(now_ms) if self._rates.paid_per_second else None
        return Rooms(self._bot.room(now_ms), self._bulk.room(now_ms), paid)

    def chat_at(self, call: PacedCall, now_ms: int) -> int:
        """The first moment at which this call's chat lets it through; one at a time.

        Changes nothing, and may be asked from another thread. An album waits until what is left of
        the burst holds it; a larger one until the chat owes nothing.
        """
        chat = self._chats.get(call.lane)
        if chat is None:
            return now_ms
        if chat.under_way:
            return NEVER_MS
        if not call.is_counted_by_chat:
            return now_ms
        rates = self._rates
        burst_ms = max(0, rates.chat_burst - call.items) * rates.interval_ms
        at_ms = max(now_ms, chat.spread_until_ms - burst_ms)
        if not call.is_to_group:
            return at_ms
        still = chat.minute_ms[bisect_right(chat.minute_ms, now_ms) :]
        minute = Room(rates.group_per_minute, 0, still, now_ms)
        return max(at_ms, minute.opens_at(call.items))

    def admit_at(self, call: PacedCall, now_ms: int) -> int:
        """The first moment, from now on, at which every gate lets this call through."""
        bot_at_ms = self.rooms(now_ms).opens_at(call.priority, call.items)
        return max(bot_at_ms, self.chat_at(call, now_ms))

    def began(self, call: PacedCall) -> None:
        """This call is about to leave; it holds its place until `ended` or `withdrew`."""
        for window in self._windows(call.priority):
            window.began(call.items)
        chat = self._chats.get(call.lane, _UNKNOWN)
        self._chats[call.lane] = replace(chat, under_way=chat.under_way + 1)

    def ended(self, call: PacedCall, now_ms: int) -> None:
        """This call's answer came, or will not come any more: it has arrived, if at all, by now."""
        for window in self._windows(call.priority):
            window.ended(call.items, now_ms)
        self._chats[call.lane] = self._after(self._chats[call.lane], call, now_ms)
        self._calls_until_forget -= 1
        if self._calls_until_forget <= 0:
            self._forget(now_ms)

    def withdrew(self, call: PacedCall) -> None:
        """This call never reached Telegram: its places are free again."""
        for window in self._windows(call.priority):
            window.withdrew(call.items)
        chat = self._chats[call.lane]
        self._chats[call.lane] = replace(chat, under_way=chat.under_way - 1)

    def restore(self, calls: Iterable[tuple[PacedCall, int]]) -> None:
        """Remember the last minute's calls, oldest first, each with when it had arrived by."""
        for call, arrived_ms in calls:
            self.began(call)
            self.ended(call, arrived_ms)

    def move(self, lane: str, *, new_lane: str) -> None:
        """Let what is remembered of a chat hold for its new id too.

        It holds for the old one as well, to which somebody who has not heard of the move may write.
        """
        chat = self._chats.get(lane)
        if chat is None:
            return
        there = self._chats.get(new_lane, _UNKNOWN)
        minute_ms = tuple(sorted((*chat.minute_ms, *there.minute_ms)))
        self._chats[new_lane] = _Chat(
            there.under_way,
            max(chat.spread_until_ms, there.spread_until_ms),
            minute_ms[-self._rates.group_per_minute :],
        )

    def _windows(self, priority: Priority) -> Sequence[Window]:
        match priority:
            case Priority.PAID:
                return (self._paid,)
            case Priority.BULK:
                return (self._bot, self._bulk)
            case Priority.INTERACTIVE:
                return (self._bot,)

    def _after(self, chat: _Chat, call: PacedCall, now_ms: int) -> _Chat:
        under_way = chat.under_way - 1
        if not call.is_counted_by_chat:
            return replace(chat, under_way=under_way)
        cost_ms = call.items * self._rates.interval_ms
        spread_until_ms = max(now_ms + CLOCK_GRAIN_MS, chat.spread_until_ms) + cost_ms
        if not call.is_to_group:
            return _Chat(under_way, spread_until_ms)
        count = self._rates.group_per_minute
        added = _leaving(now_ms, call.items, count=count, span_ms=GROUP_WINDOW_MS)
        minute_ms = tuple(sorted((*chat.minute_ms, *added)))
        return _Chat(under_way, spread_until_ms, minute_ms[-count:])

    def _forget(self, now_ms: int) -> None:
        self._calls_until_forget = FORGET_EVERY_CALLS
        idle = [lane for lane, chat in self._chats.items() if _is_idle(chat, now_ms)]
        for lane in idle:
            del self._chats[lane]


_UNKNOWN = _Chat()


def _is_idle(chat: _Chat, now_ms: int) -> bool:
    counting = chat.minute_ms and chat.minute_ms[-1] > now_ms
    return not (chat.under_way or counting or chat.spread_until_ms > now_ms)


def _leaving(now_ms: int, items: int, *, count: int, span_ms: int) -> Sequence[int]:
    """When each of these messages leaves its window, in order.

    An album larger than the window goes on counting as if the rest came in the windows after it.
    """
    arrived_ms = now_ms + CLOCK_GRAIN_MS
    return [arrived_ms + span_ms * (1 + item // count) for item in range(items)]


def _interval_ms(per_second: float) -> int:
    return -int(-SECOND_MS // per_second)


def _second(per_second: float) -> tuple[int, int]:
    """A sliding second; for less than one call a second, one call in a longer window."""
    if per_second >= 1:
        return int(per_second), SECOND_MS
    return 1, _interval_ms(per_second)
