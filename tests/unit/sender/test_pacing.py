"""The gates: no sliding window that Telegram may look at ever holds more than it should."""

import heapq
import itertools
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from sender.pacing import FORGET_EVERY_CALLS, NEVER_MS, Gates, PacedCall, Rates
from storage.lifecycle import Priority
from storage.methods import CallKind
from storage.outgoing import SETTINGS_LANE, chat_lane

RATES = Rates(
    chat_per_second=1.0, chat_burst=1, group_per_minute=20, bot_per_second=30, bulk_per_second=25
)


def call(
    chat_id: int = 7,
    kind: CallKind = CallKind.SEND,
    priority: Priority = Priority.INTERACTIVE,
    lane: str | None = None,
    items: int = 1,
) -> PacedCall:
    return PacedCall(chat_lane(chat_id) if lane is None else lane, chat_id, kind, priority, items)


def sent(gates: Gates, made: PacedCall, now_ms: int) -> None:
    gates.began(made)
    gates.ended(made, now_ms)


def test_a_quiet_chat_lets_a_call_through_at_once() -> None:
    assert Gates(RATES).admit_at(call(), 1_000) == 1_000


def test_a_chat_counts_from_the_answer() -> None:
    gates = Gates(RATES)
    gates.began(call())
    assert gates.admit_at(call(), 10) == NEVER_MS, "one at a time"
    gates.ended(call(), 8_000)
    assert gates.admit_at(call(), 8_001) == 9_001
    assert gates.admit_at(call(8), 8_001) == 8_001


def test_a_burst_is_let_through_and_then_the_rate_holds() -> None:
    gates = Gates(Rates(1.0, 3, 20, 30, 25))
    for _ in range(3):
        assert gates.admit_at(call(), 1) == 1
        sent(gates, call(), 0)
    assert gates.admit_at(call(), 1) == 1_001


def test_a_group_has_a_minute_of_its_own() -> None:
    gates = Gates(Rates(1000.0, 1000, 20, 30_000, 25_000))
    for second in range(20):
        sent(gates, call(-7), second * 100)
    assert gates.admit_at(call(-7), 2_000) == 60_001
    assert gates.admit_at(call(7), 2_000) == 2_000
    assert gates.admit_at(call(-7, lane="b:conn:-7"), 2_000) == 2_000


def test_a_chat_known_by_name_alone_is_paced_like_a_group() -> None:
    gates = Gates(Rates(1000.0, 1000, 2, 30_000, 25_000))
    channel = PacedCall("c:@news", None, CallKind.SEND, Priority.INTERACTIVE)
    for _ in range(2):
        sent(gates, channel, 0)
    assert gates.admit_at(channel, 1_000) == 60_001


def test_what_goes_to_no_chat_has_no_chats_rate_and_no_groups_minute() -> None:
    """Twenty invoice links a minute would keep handlers waiting that wait for them."""
    gates = Gates(Rates(1.0, 1, 20, 30, 25))
    link = PacedCall(SETTINGS_LANE, None, CallKind.MANAGE, Priority.INTERACTIVE)
    for number in range(25):
        assert gates.admit_at(link, number * 100) == number * 100
        sent(gates, link, number * 100)


def test_answers_and_actions_do_not_take_of_the_chats_rate() -> None:
    gates = Gates(RATES)
    sent(gates, call(kind=CallKind.ACTION), 0)
    assert gates.admit_at(call(), 0) == 0
    sent(gates, call(), 0)
    assert gates.admit_at(call(kind=CallKind.ACTION), 1) == 1
    answer = call(kind=CallKind.ANSWER, lane="q:81")
    assert gates.admit_at(answer, 1) == 1


def test_bulk_leaves_room_for_the_others() -> None:
    gates = Gates(RATES)
    for chat in range(1, 26):
        sent(gates, call(chat, priority=Priority.BULK), 0)
    rooms = gates.rooms(0)
    assert rooms.free(Priority.BULK) == 0
    assert rooms.free(Priority.INTERACTIVE) == 5
    assert rooms.opens_at(Priority.BULK) == 1_001
    assert rooms.opens_at(Priority.INTERACTIVE) == 0


def test_a_call_that_never_connected_gives_its_places_back() -> None:
    gates = Gates(Rates(1.0, 1, 1, 1, 1))
    made = call(-7, priority=Priority.BULK)
    gates.began(made)
    gates.withdrew(made)
    assert gates.admit_at(made, 5) == 5


def test_a_rate_below_one_a_second_is_kept_too() -> None:
    gates = Gates(Rates(0.5, 1, 20, 0.25, 0.25))
    sent(gates, call(), 0)
    assert gates.chat_at(call(), 1) == 2_001
    assert gates.rooms(1).opens_at(Priority.INTERACTIVE) == 4_001


def test_the_last_minute_is_taken_up_again_after_a_restart() -> None:
    gates = Gates(Rates(1000.0, 1000, 2, 30, 25))
    gates.restore([(call(-7), 40_000), (call(-7), 50_000)])
    assert gates.admit_at(call(-7), 50_100) == 100_001


def test_a_moved_chats_past_holds_for_both_of_its_names() -> None:
    gates = Gates(RATES)
    sent(gates, call(-7), 0)
    gates.move("c:-7", new_lane="c:-1007")
    assert gates.admit_at(call(-1007), 0) == 1_001
    assert gates.admit_at(call(-7), 0) == 1_001


def test_a_moved_chat_joins_what_is_under_way_at_its_new_id() -> None:
    gates = Gates(RATES)
    sent(gates, call(-7), 0)
    gates.began(call(-1007))
    gates.move("c:-7", new_lane="c:-1007")
    assert gates.admit_at(call(-1007), 0) == NEVER_MS
    gates.ended(call(-1007), 500)
    assert gates.admit_at(call(-1007), 600) == 2_001


def test_chats_that_have_been_quiet_are_forgotten() -> None:
    gates = Gates(Rates(1.0, 1, 20, 1e6, 1e6))
    for number in range(20 * FORGET_EVERY_CALLS):
        sent(gates, call(number + 1), number)
    assert gates.chats_remembered < 3 * FORGET_EVERY_CALLS


def test_edits_share_the_chats_budget_with_messages() -> None:
    gates = Gates(RATES)
    sent(gates, call(kind=CallKind.EDIT), 0)
    assert gates.admit_at(call(), 1) == 1_001
    sent(gates, call(), 1_001)
    assert gates.admit_at(call(kind=CallKind.EDIT), 1_002) == 2_002


def test_an_edit_counts_in_a_groups_minute_too() -> None:
    gates = Gates(Rates(1000.0, 1000, 2, 30, 25))
    for kind in (CallKind.EDIT, CallKind.SEND):
        sent(gates, call(-7, kind), 0)
    assert gates.admit_at(call(-7, CallKind.EDIT), 5_000) == 60_001


def test_an_answer_to_a_query_passes_a_chat_that_waits_and_takes_none_of_its_rate() -> None:
    gates = Gates(RATES)
    sent(gates, call(), 0)
    answer = call(kind=CallKind.ANSWER)
    assert gates.chat_at(answer, 1) == 1
    sent(gates, answer, 1)
    assert gates.chat_at(call(), 1) == 1_001


def test_an_album_costs_its_size_in_a_chat() -> None:
    gates = Gates(RATES)
    sent(gates, call(items=4), 0)
    assert gates.admit_at(call(), 1) == 4_001


def test_an_album_fits_into_what_is_left_of_the_burst_or_waits_for_it() -> None:
    gates = Gates(Rates(1.0, 5, 20, 30, 25))
    for _ in range(2):
        sent(gates, call(), 0)
    assert gates.chat_at(call(items=3), 1) == 1
    assert gates.chat_at(call(items=4), 1) == 1_001
    assert gates.chat_at(call(items=9), 1) == 2_001, "larger than the burst: owing nothing"


def test_an_album_costs_its_size_in_a_groups_minute() -> None:
    gates = Gates(Rates(1000.0, 1000, 20, 30, 25))
    sent(gates, call(-7, items=10), 0)
    sent(gates, call(-7, items=5), 20_000)
    assert gates.chat_at(call(-7, items=5), 30_000) == 30_000
    assert gates.chat_at(call(-7, items=6), 30_000) == 60_001


def test_an_album_waits_until_the_bot_has_room_for_all_of_it() -> None:
    gates = Gates(Rates(1.0, 1, 20, 12, 12))
    for chat, at_ms in ((1, 0), (2, 100), (3, 200)):
        sent(gates, call(chat), at_ms)
    assert gates.admit_at(call(7, items=9), 300) == 300
    assert gates.admit_at(call(7, items=10), 300) == 1_001
    assert gates.admit_at(call(7, items=11), 300) == 1_101


def test_an_album_larger_than_a_window_waits_until_it_is_empty_and_keeps_the_rate() -> None:
    gates = Gates(Rates(1.0, 1, 20, 3, 3))
    sent(gates, call(1), 0)
    album = call(7, items=10)
    assert gates.admit_at(album, 500) == 1_001
    sent(gates, album, 1_001)
    assert gates.admit_at(call(2), 1_002) == 4_002, "ten messages at three a second"
    assert gates.rooms(4_002).free(Priority.INTERACTIVE) == 2


def test_paid_calls_have_a_ceiling_of_their_own_and_take_none_of_the_free_rate() -> None:
    gates = Gates(Rates(1.0, 1, 20, 2, 1, paid_per_second=3))
    for chat in (1, 2, 3):
        sent(gates, call(chat, priority=Priority.PAID), 0)
    rooms = gates.rooms(1)
    assert rooms.opens_at(Priority.PAID) == 1_001
    assert rooms.free(Priority.INTERACTIVE) == 2
    assert rooms.free(Priority.BULK) == 1


def test_paid_calls_keep_their_chats_limits() -> None:
    gates = Gates(Rates(1.0, 1, 20, 30, 25, paid_per_second=1000))
    sent(gates, call(priority=Priority.PAID), 0)
    assert gates.admit_at(call(priority=Priority.PAID), 1) == 1_001


def test_nothing_paid_goes_while_it_is_off() -> None:
    rooms = Gates(RATES).rooms(0)
    assert rooms.free(Priority.PAID) == 0
    assert rooms.opens_at(Priority.PAID) == NEVER_MS


def test_what_a_look_takes_fills_the_rooms_of_that_look_alone() -> None:
    gates = Gates(RATES)
    rooms = gates.rooms(0)
    copied = rooms.copy()
    copied.take(Priority.BULK, 10)
    assert (copied.free(Priority.BULK), copied.free(Priority.INTERACTIVE)) == (15, 20)
    assert rooms.free(Priority.BULK) == 25


def test_a_higher_limit_lets_no_call_forget_what_has_left() -> None:
    gates = Gates(Rates(1.0, 1, 20, 2, 2))
    for chat in (1, 2):
        sent(gates, call(chat), 0)
    gates.retune(Rates(1.0, 1, 20, 3, 3), 100)
    assert gates.rooms(100).free(Priority.INTERACTIVE) == 1


def test_a_lower_limit_holds_at_once_for_what_has_left_before() -> None:
    gates = Gates(RATES)
    for chat in range(10):
        sent(gates, call(chat), 0)
    gates.retune(Rates(0.5, 1, 20, 5, 5), 100)
    assert gates.admit_at(call(99), 100) == 1_001
    assert gates.chat_at(call(3), 100) == 2_001


def test_a_lower_rate_below_one_a_second_holds_for_what_has_left_before() -> None:
    gates = Gates(RATES)
    sent(gates, call(1), 0)
    gates.retune(Rates(1.0, 1, 20, 0.5, 0.5), 100)
    assert gates.admit_at(call(2), 100) == 2_001


def test_a_faster_chat_owes_what_it_was_sent_at_the_new_rate() -> None:
    gates = Gates(Rates(0.5, 1, 20, 30, 25))
    sent(gates, call(items=3), 0)
    gates.retune(Rates(2.0, 1, 20, 30, 25), 100)
    assert gates.chat_at(call(), 100) == 1_501


def test_calls_under_way_are_not_lost_by_a_change_of_limits() -> None:
    gates = Gates(Rates(1.0, 1, 20, 1, 1, paid_per_second=5))
    free, paid = call(1), call(2, priority=Priority.PAID)
    gates.began(free)
    gates.began(paid)
    gates.retune(Rates(1.0, 1, 20, 2, 2), 0)
    assert gates.rooms(0).free(Priority.INTERACTIVE) == 1
    gates.ended(free, 10)
    gates.ended(paid, 10)
    assert gates.admit_at(call(1), 11) == 1_011


@dataclass
class Telegram:
    """What arrives, and when: between the moment a call leaves and that of its answer."""

    arrivals: dict[str, list[int]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    bulk: list[int] = field(default_factory=list)
    paid: list[int] = field(default_factory=list)
    largest: int = 1

    def hears(self, made: PacedCall, at_ms: int) -> None:
        messages = [at_ms] * made.items
        self.largest = max(self.largest, made.items)
        (self.paid if made.priority is Priority.PAID else self.free).extend(messages)
        if made.priority is Priority.BULK:
            self.bulk.extend(messages)
        if made.is_counted_by_chat:
            self.arrivals.setdefault(made.lane, []).extend(messages)


def fullest(moments: list[int], span_ms: int) -> int:
    """The most calls that any window of this length holds, its end not counted."""
    moments = sorted(moments)
    most = first = 0
    for last, at_ms in enumerate(moments):
        while moments[first] <= at_ms - span_ms:
            first += 1
        most = max(most, last - first + 1)
    return most


CALLS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, -4, -5]),
        st.sampled_from(list(CallKind)),
        st.sampled_from(list(Priority)),
        st.integers(0, 400),  # how long until the next one is wanted
        st.integers(0, 9_000),  # how long its answer takes
        st.floats(0, 1),  # when, of that time, it arrives
        st.sampled_from([1, 1, 1, 2, 3, 5, 10]),  # how many messages it carries
    ),
    min_size=1,
    max_size=120,
)
LIMITS = st.builds(
    Rates,
    chat_per_second=st.sampled_from([0.5, 1.0, 3.0]),
    chat_burst=st.integers(1, 4),
    group_per_minute=st.integers(1, 6),
    bot_per_second=st.sampled_from([0.5, 1, 3, 8]),
    bulk_per_second=st.sampled_from([0.5, 1, 2, 5]),
    paid_per_second=st.sampled_from([1, 4, 12]),
)


@settings(max_examples=300)
@given(rates=LIMITS, calls=CALLS, largest=st.sampled_from([1, 2, 3, 5, 10]))
def test_no_sliding_window_is_ever_exceeded_at_telegrams_end(
    rates: Rates, calls: list[tuple[int, CallKind, Priority, int, int, float, int]], largest: int
) -> None:
    gates, telegram = Gates(rates), Telegram()
    now_ms = 0
    order = itertools.count()
    under_way: list[tuple[int, int, PacedCall]] = []
    for chat_id, kind, priority, gap_ms, answer_ms, share, items in calls:
        made = call(chat_id, kind, priority, items=min(items, largest))
        now_ms += gap_ms
        while (at_ms := gates.admit_at(made, now_ms)) > now_ms:
            ends_ms = under_way[0][0] if under_way else NEVER_MS
            now_ms = min(at_ms, max(now_ms, ends_ms))
            assert now_ms < NEVER_MS, "somebody waits for nothing"
            while under_way and under_way[0][0] <= now_ms:
                ended_ms, _, ended = heapq.heappop(under_way)
                gates.ended(ended, max(ended_ms, now_ms))
        gates.began(made)
        telegram.hears(made, now_ms + int(answer_ms * share))
        heapq.heappush(under_way, (now_ms + answer_ms, next(order), made))
    _check(telegram, rates)


def _check(telegram: Telegram, rates: Rates) -> None:
    """An album that is larger than a window is alone in it; every other one fits in whole."""
    for moments, per_second in (
        (telegram.free, rates.bot_per_second),
        (telegram.bulk, rates.bulk_per_second),
        (telegram.paid, rates.paid_per_second),
    ):
        span_ms = 1_000 if per_second >= 1 else round(1_000 / per_second)
        assert fullest(moments, span_ms) <= max(1, int(per_second), telegram.largest)
        for seconds in (5, 20):
            allowed = seconds * max(1, int(per_second)) + telegram.largest
            assert fullest(moments, seconds * span_ms) <= allowed
    for lane, moments in telegram.arrivals.items():
        if lane.startswith("c:-"):
            assert fullest(moments, 60_000) <= max(rates.group_per_minute, telegram.largest)
        for span_ms in (1, 500, 1_000, 2_500, 10_000):
            burst = max(rates.chat_burst, telegram.largest)
            assert fullest(moments, span_ms) <= burst + rates.chat_per_second * span_ms / 1_000
