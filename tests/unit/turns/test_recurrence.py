"""What comes again and again keeps to the clocks of its zone, on days when these are set too."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.turns.recurrence import (
    Daily,
    Every,
    Rule,
    first_ms,
    moment_ms,
    next_ms,
    packed,
    unpacked,
)

HOUR_MS = 3_600_000
_DAY_MS = 24 * HOUR_MS


def ms(text: str) -> int:
    return moment_ms(datetime.fromisoformat(text))


def told(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat()


def run(rule: Rule, start: str, times: int) -> list[str]:
    """The next moments of a rule, each asked for at the one before."""
    found = []
    now_ms = ms(start)
    for _ in range(times):
        now_ms = next_ms(rule, due_ms=now_ms, now_ms=now_ms)
        found.append(told(now_ms))
    return found


def test_an_ordinary_day_follows_the_next() -> None:
    rule = Daily(time(9, 30), "Europe/Berlin")
    assert run(rule, "2026-06-01T06:00:00+00:00", 3) == [
        "2026-06-01T07:30:00+00:00",
        "2026-06-02T07:30:00+00:00",
        "2026-06-03T07:30:00+00:00",
    ]


def test_a_time_in_a_gap_happens_at_the_first_moment_after_it() -> None:
    """On 2026-03-29 the clocks of Berlin go from 02:00 to 03:00, at 01:00 UTC."""
    rule = Daily(time(2, 30), "Europe/Berlin")
    assert run(rule, "2026-03-28T00:00:00+00:00", 3) == [
        "2026-03-28T01:30:00+00:00",
        "2026-03-29T01:00:00+00:00",
        "2026-03-30T00:30:00+00:00",
    ]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (time(1, 59, 59), "2026-03-29T00:59:59+00:00"),
        (time(2), "2026-03-29T01:00:00+00:00"),
        (time(2, 59, 59, 999_999), "2026-03-29T01:00:00+00:00"),
        (time(3), "2026-03-29T01:00:00+00:00"),
        (time(3, 0, 1), "2026-03-29T01:00:01+00:00"),
    ],
)
def test_the_edges_of_a_gap_lie_at_its_end(at: time, expected: str) -> None:
    assert run(Daily(at, "Europe/Berlin"), "2026-03-28T12:00:00+00:00", 1) == [expected]


def test_a_time_that_exists_twice_happens_once_at_the_first_of_the_two() -> None:
    """On 2026-10-25 the clocks of Berlin go from 03:00 back to 02:00, at 01:00 UTC."""
    rule = Daily(time(2, 30), "Europe/Berlin")
    assert run(rule, "2026-10-24T12:00:00+00:00", 2) == [
        "2026-10-25T00:30:00+00:00",
        "2026-10-26T01:30:00+00:00",
    ]
    assert run(rule, "2026-10-25T00:45:00+00:00", 1) == ["2026-10-26T01:30:00+00:00"], (
        "asked between the two, the second is no time of its own"
    )


def test_half_an_hour_is_a_gap_and_an_overlap_too() -> None:
    """Lord Howe goes from 02:00 to 02:30 on 2026-10-04, and back on 2026-04-05."""
    gap = Daily(time(2, 15), "Australia/Lord_Howe")
    assert run(gap, "2026-10-02T16:00:00+00:00", 2) == [
        "2026-10-03T15:30:00+00:00",
        "2026-10-04T15:15:00+00:00",
    ]
    overlap = Daily(time(1, 45), "Australia/Lord_Howe")
    assert run(overlap, "2026-04-04T12:00:00+00:00", 2) == [
        "2026-04-04T14:45:00+00:00",
        "2026-04-05T15:15:00+00:00",
    ]


def test_what_falls_on_a_day_that_was_left_out_happens_as_the_next_one_begins() -> None:
    """Apia had no 30th of December 2011: after the 29th came the 31st, at 10:00 UTC."""
    rule = Daily(time(8), "Pacific/Apia")
    assert run(rule, "2011-12-29T00:00:00+00:00", 3) == [
        "2011-12-29T18:00:00+00:00",
        "2011-12-30T10:00:00+00:00",
        "2011-12-30T18:00:00+00:00",
    ]
    on_fridays = Daily(time(8), "Pacific/Apia", days=[4])
    assert run(on_fridays, "2011-12-29T00:00:00+00:00", 2) == [
        "2011-12-30T10:00:00+00:00",
        "2012-01-05T18:00:00+00:00",
    ]
    assert run(Daily(time(0), "Pacific/Apia"), "2011-12-29T12:00:00+00:00", 2) == [
        "2011-12-30T10:00:00+00:00",
        "2011-12-31T10:00:00+00:00",
    ], "the day left out and the next begin at one moment, which happens once"


def test_a_midnight_that_does_not_exist_happens_at_the_day_s_first_moment() -> None:
    """Cairo goes from 00:00 to 01:00 on the last Friday of April: 2026-04-24."""
    rule = Daily(time(0), "Africa/Cairo")
    assert run(rule, "2026-04-23T00:00:00+00:00", 2) == [
        "2026-04-23T22:00:00+00:00",
        "2026-04-24T21:00:00+00:00",
    ]


def test_only_the_days_that_are_named_count() -> None:
    rule = Daily(time(12), "UTC", days=[0, 4])
    assert run(rule, "2026-06-01T12:00:00+00:00", 3) == [
        "2026-06-05T12:00:00+00:00",
        "2026-06-08T12:00:00+00:00",
        "2026-06-12T12:00:00+00:00",
    ]


def test_what_was_missed_is_one_with_what_was_due() -> None:
    daily = Daily(time(9), "UTC")
    missed = next_ms(daily, due_ms=ms("2026-06-01T09:00:00Z"), now_ms=ms("2026-06-05T10:00:00Z"))
    assert told(missed) == "2026-06-06T09:00:00+00:00"
    every = Every(timedelta(hours=1))
    due_ms = ms("2026-06-01T09:20:00Z")
    assert told(next_ms(every, due_ms=due_ms, now_ms=due_ms + 5 * HOUR_MS + 1)) == (
        "2026-06-01T15:20:00+00:00"
    )


def test_a_clock_that_was_set_back_repeats_no_day() -> None:
    due_ms = ms("2026-06-05T09:00:00Z")
    following = next_ms(Daily(time(9), "UTC"), due_ms=due_ms, now_ms=due_ms - 3 * _DAY_MS)
    assert told(following) == "2026-06-06T09:00:00+00:00"


def test_a_span_counts_what_passes_while_the_clocks_are_set() -> None:
    rule = Every(timedelta(days=1))
    assert run(rule, "2026-03-28T12:00:00+01:00", 2) == [
        "2026-03-29T11:00:00+00:00",
        "2026-03-30T11:00:00+00:00",
    ]
    assert first_ms(rule, now_ms=5) == _DAY_MS + 5


@pytest.mark.parametrize(
    "rule",
    [Daily(time(3, 30, 5), "Europe/Helsinki", days=[6, 0]), Every(timedelta(minutes=90))],
)
def test_a_rule_is_the_same_after_it_was_stored(rule: Rule) -> None:
    assert unpacked(packed(rule)) == rule


def test_what_could_never_happen_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="'Europe/Nowhere' is no zone"):
        Daily(time(9), "Europe/Nowhere")
    with pytest.raises(ValueError, match="is no zone"):
        Daily(time(9), "../etc/passwd")
    with pytest.raises(ValueError, match="days: expected some of"):
        Daily(time(9), "UTC", days=[])
    with pytest.raises(ValueError, match="days: expected some of"):
        Daily(time(9), "UTC", days=[7])
    with pytest.raises(ValueError, match="without a zone"):
        Daily(time(9, tzinfo=UTC), "UTC")
    with pytest.raises(ValueError, match="at least 1 s"):
        Every(timedelta(milliseconds=10))
    with pytest.raises(ValueError, match="with a zone"):
        moment_ms(datetime(2026, 6, 1, 9))  # noqa: DTZ001  # the fault itself


@given(
    zone=st.sampled_from(
        ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Asia/Gaza"]
    ),
    at=st.times(),
    days=st.sets(st.integers(0, 6), min_size=1),
    start_ms=st.integers(ms("1990-01-01T00:00:00Z"), ms("2035-01-01T00:00:00Z")),
)
def test_the_next_moment_is_later_and_at_most_a_week_and_a_day_away(
    zone: str, at: time, days: set[int], start_ms: int
) -> None:
    following = next_ms(Daily(at, zone, days), due_ms=start_ms, now_ms=start_ms)
    assert start_ms < following <= start_ms + 9 * _DAY_MS
