"""Limits: sliding windows at arrival, floods that grow when they are ignored."""

from hypothesis import given
from hypothesis import strategies as st

from tests.simulator.ledger import most_within
from tests.simulator.limits import OFF, TELEGRAM, Charge, Limiter, LimitRules, Scope

CHAT = Charge(bot_id=1, chat_id=5, is_group=False)
GROUP = Charge(bot_id=1, chat_id=-5, is_group=True)


def admitted(limiter: Limiter, charge: Charge, at_ms: int) -> bool:
    if limiter.ignored(charge, at_ms) is not None:
        return False
    return limiter.admit(charge, at_ms).flood is None


def test_a_chat_takes_its_burst_at_once_and_then_one_call_a_second() -> None:
    limiter = Limiter(LimitRules(chat_burst=3, wait_s_min=0))
    assert [admitted(limiter, CHAT, 0) for _ in range(3)] == [True] * 3

    # A fourth would have to wait a whole second.
    ruling = limiter.admit(CHAT, 0)

    assert ruling.flood is not None
    assert ruling.flood.wait_s == 1
    assert admitted(limiter, CHAT, 1_000)


def test_the_strict_chat_limit_counts_from_arrival_to_arrival_not_by_calendar_seconds() -> None:
    limiter = Limiter(LimitRules(chat_burst=1))
    assert admitted(limiter, CHAT, 900)
    assert not admitted(limiter, CHAT, 1_100)


def test_the_wait_is_never_shorter_than_telegram_shows_to_bots() -> None:
    limiter = Limiter(LimitRules(chat_burst=1, wait_s_min=9))
    admitted(limiter, CHAT, 0)

    flood = limiter.admit(CHAT, 990).flood

    assert flood is not None
    assert flood.until_ms == 9_990


def test_a_group_takes_twenty_a_minute_and_no_more() -> None:
    limiter = Limiter(TELEGRAM)
    assert all(admitted(limiter, GROUP, each * 1_000) for each in range(20))

    flood = limiter.admit(GROUP, 20_000).flood

    assert flood is not None
    # The first of the twenty leaves the window after a minute.
    assert (flood.scope, flood.wait_s) == (Scope(1, -5), 40)


def test_a_bot_takes_thirty_a_second_over_all_its_chats() -> None:
    limiter = Limiter(TELEGRAM)
    assert all(admitted(limiter, Charge(1, each, is_group=False), 0) for each in range(30))

    flood = limiter.admit(Charge(1, 99, is_group=False), 999).flood

    assert flood is not None
    assert flood.scope == Scope(1, None)


def test_one_bot_does_not_use_up_what_another_may_say() -> None:
    limiter = Limiter(LimitRules(chat_burst=1))
    assert admitted(limiter, CHAT, 0)
    assert admitted(limiter, CHAT._replace(bot_id=2), 0)


def test_a_call_before_the_flood_has_ended_makes_it_start_again() -> None:
    limiter = Limiter(OFF)
    limiter.order(Scope(1, 5), 3, now_ms=0)

    ruling = limiter.ignored(CHAT, 2_900)

    assert ruling is not None
    assert ruling.early_by_ms == 100
    assert limiter.ignored(CHAT, 5_899) is not None
    assert limiter.ignored(CHAT, 5_899 + 3_000) is None


def test_a_shorter_flood_does_not_shorten_a_longer_one() -> None:
    limiter = Limiter(OFF)
    limiter.order(Scope(1, None), 60, now_ms=0)
    limiter.order(Scope(1, None), 1, now_ms=100)

    running = limiter.running(Scope(1, None), 59_999)

    assert running is not None
    assert running.until_ms == 60_000


def test_the_flood_of_a_chat_leaves_other_chats_alone_and_that_of_a_bot_none() -> None:
    limiter = Limiter(OFF)
    limiter.order(Scope(1, 5), 3, now_ms=0)
    assert limiter.ignored(GROUP, 0) is None

    limiter.order(Scope(1, None), 3, now_ms=0)
    assert limiter.ignored(GROUP, 0) is not None


def test_an_album_counts_for_each_of_its_messages() -> None:
    """It goes when its first message could, and the chat is in debt for the rest."""
    limiter = Limiter(LimitRules(chat_burst=1, wait_s_min=0))
    assert admitted(limiter, CHAT._replace(items=4), 0)

    flood = limiter.admit(CHAT, 0).flood

    assert flood is not None
    assert flood.wait_s == 4


def test_an_album_needs_room_for_all_of_it_in_a_group_and_in_the_bots_rate() -> None:
    limiter = Limiter(TELEGRAM)
    assert admitted(limiter, GROUP._replace(items=10), 0)
    assert admitted(limiter, GROUP._replace(items=10), 20_000)
    assert not admitted(limiter, GROUP, 40_000)

    limiter = Limiter(TELEGRAM)
    albums = [Charge(1, chat, is_group=False, items=8) for chat in range(4)]
    assert [admitted(limiter, album, 0) for album in albums] == [True, True, True, False]


def test_slow_mode_spaces_the_messages_of_a_chat() -> None:
    limiter = Limiter(OFF)
    slow = GROUP._replace(slow_ms=10_000)
    assert admitted(limiter, slow, 0)
    assert admitted(limiter, GROUP, 1)

    flood = limiter.admit(slow, 4_000).flood

    assert flood is not None
    assert (flood.scope, flood.wait_s) == (Scope(1, -5), 6)
    assert admitted(limiter, slow, 10_000)


class TestPaid:
    """A broadcast that pays may go beyond what is free, up to a ceiling of its own."""

    def test_what_is_above_the_free_thirty_a_second_is_counted_as_paid(self) -> None:
        limiter = Limiter(TELEGRAM)
        paid = [
            limiter.admit(Charge(1, chat, is_group=False, is_paid=True), 0).paid_items
            for chat in range(40)
        ]
        assert paid == [0] * 30 + [1] * 10

    def test_a_second_takes_a_thousand_of_them(self) -> None:
        limiter = Limiter(TELEGRAM)
        taken = [
            admitted(limiter, Charge(1, chat, is_group=False, is_paid=True), chat // 2)
            for chat in range(1_001)
        ]
        assert taken == [True] * 1_000 + [False]
        assert admitted(limiter, Charge(1, 2_000, is_group=False, is_paid=True), 5_000)

    def test_the_limits_of_a_chat_stay(self) -> None:
        limiter = Limiter(TELEGRAM)
        paid = CHAT._replace(is_paid=True)
        assert [admitted(limiter, paid, 0) for _ in range(4)] == [True, True, True, False]


@given(
    gaps_ms=st.lists(st.integers(0, 1_500), max_size=60),
    burst=st.integers(1, 4),
    rate=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_no_window_ever_admits_more_than_burst_and_rate_allow(
    gaps_ms: list[int], burst: int, rate: float
) -> None:
    """In any T seconds at most burst + rate x T, whatever the arrivals."""
    limiter = Limiter(LimitRules(chat_per_second=rate, chat_burst=burst, wait_s_min=0))
    now_ms = 0
    taken: list[int] = []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        if limiter.admit(CHAT, now_ms).flood is None:
            taken.append(now_ms)

    for width_ms in (1, 500, 1_000, 5_000, 30_000):
        assert most_within(taken, width_ms) <= burst + rate * width_ms / 1_000
