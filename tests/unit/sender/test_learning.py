"""The bulk rate that floods teach: down at once, up again step by step."""

from hypothesis import given
from hypothesis import strategies as st

from sender.learning import FLOOR_PER_SECOND, ONE_FLOOD_MS, QUIET_MS, BulkRate


def lowered(times: int = 1) -> BulkRate:
    rate = BulkRate(25)
    for number in range(times):
        rate.flooded(number * ONE_FLOOD_MS)
    return rate


def test_without_floods_it_is_the_configured_rate() -> None:
    rate = BulkRate(25)
    assert not rate.went_through(10 * QUIET_MS)
    assert (rate.per_second, rate.is_lowered) == (25, False)


def test_a_flood_takes_a_fifth_of_it() -> None:
    rate = BulkRate(25)
    assert rate.flooded(0)
    assert rate.per_second == 20


def test_refusals_of_one_flood_are_one_lesson() -> None:
    rate = BulkRate(25)
    assert [rate.flooded(ms) for ms in (0, 1, 500, ONE_FLOOD_MS - 1)] == [True, False, False, False]
    assert rate.per_second == 20
    assert rate.flooded(ONE_FLOOD_MS)


def test_it_never_falls_below_one_a_second() -> None:
    assert lowered(100).per_second == FLOOR_PER_SECOND
    slow = BulkRate(0.5)
    assert not slow.flooded(0)
    assert slow.per_second == 0.5


def test_each_quiet_minute_gives_one_back() -> None:
    rate = lowered()
    assert not rate.went_through(QUIET_MS - 1)
    assert rate.went_through(QUIET_MS)
    assert rate.per_second == 21
    assert not rate.went_through(2 * QUIET_MS - 1)
    assert rate.went_through(4 * QUIET_MS + 5)
    assert rate.per_second == 24


def test_it_comes_back_to_what_is_configured_and_no_further() -> None:
    rate = lowered()
    assert rate.went_through(100 * QUIET_MS)
    assert (rate.per_second, rate.is_lowered) == (25, False)


def test_a_flood_ends_the_quiet_even_when_it_is_no_new_lesson() -> None:
    rate = lowered()
    rate.flooded(ONE_FLOOD_MS - 1)
    assert not rate.went_through(QUIET_MS)


def test_what_an_earlier_owner_learned_is_taken_up() -> None:
    rate = BulkRate(25)
    rate.restore(8, 1_000)
    assert rate.per_second == 8
    assert not rate.went_through(1_000 + QUIET_MS - 1)
    assert rate.went_through(1_000 + QUIET_MS)


def test_a_lesson_above_what_is_configured_teaches_nothing() -> None:
    rate = BulkRate(5)
    rate.restore(20, 0)
    assert (rate.per_second, rate.is_lowered) == (5, False)


def test_another_configured_rate_keeps_what_was_learned() -> None:
    rate = lowered()
    rate.configure(40)
    assert rate.per_second == 20
    rate.configure(10)
    assert (rate.per_second, rate.is_lowered) == (10, False)
    rate.configure(30)
    assert rate.per_second == 30


@given(
    configured=st.floats(0.1, 1_000),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 3 * QUIET_MS)), max_size=60),
)
def test_it_stays_between_the_floor_and_what_is_configured(
    configured: float, steps: list[tuple[bool, int]]
) -> None:
    rate, now_ms = BulkRate(configured), 0
    for is_flood, pause_ms in steps:
        now_ms += pause_ms
        before = rate.per_second
        if is_flood:
            rate.flooded(now_ms)
            assert rate.per_second <= before
        else:
            rate.went_through(now_ms)
            assert rate.per_second >= before
        assert min(FLOOR_PER_SECOND, configured) <= rate.per_second <= configured
