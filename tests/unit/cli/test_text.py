"""What a person reads: spans, moments, tables, and texts that may do no harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.text import (
    WIDTH,
    counted,
    facts,
    moment,
    or_dash,
    printable,
    since,
    span,
    table,
    unquoted,
    until,
)


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 m"),
        (200_000, "3 m 20 s"),
        (3_600_000, "1 h"),
        (5_820_000, "1 h 37 m"),
        (3_605_000, "1 h"),
        (90_000_000, "1 d 1 h"),
        (-200_000, "-3 m 20 s"),
        (-5, "-5 ms"),
    ],
)
def test_a_span_is_told_in_at_most_two_units(ms: int, told: str) -> None:
    assert span(ms) == told


def test_moments_are_in_utc() -> None:
    assert moment(1_800_000_000_000) == "2027-01-15 08:00:00 UTC"


def test_what_is_not_there_is_a_dash() -> None:
    assert [moment(None), since(None, 5), until(None, 5), or_dash(None), or_dash("")] == ["-"] * 5


def test_nothing_lies_before_its_own_past() -> None:
    """A clock that was set back must not make an age negative."""
    assert since(2_000, 1_000) == "0 ms"
    assert until(1_000, 2_000) == "now"
    assert until(3_500, 2_000) == "in 1 s"


def test_a_text_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\rc\nd\x00é") == "a\\x1b[2Jb\\rc d\\x00é"


@given(st.text())
def test_any_text_becomes_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()


def test_what_telegram_quotes_is_left_out() -> None:
    """It may be a user's words."""
    told = unquoted('Bad Request: unsupported start tag "my diary" at byte 4, "cut off')
    assert told == 'Bad Request: unsupported start tag "…" at byte 4, "…"'


def test_a_table_keeps_its_columns_in_line() -> None:
    assert table(("ID", "STATE", "WHY"), [("c1", "queued", "-"), ("c100", "dead", "no")]) == [
        "ID    STATE   WHY",
        "c1    queued  -",
        "c100  dead    no",
    ]


def test_the_last_column_gives_way_to_the_width() -> None:
    lines = table(("ID", "WHY"), [("c1", "x" * 300)])
    assert len(lines[1]) == WIDTH
    assert lines[1].endswith("…")


def test_an_empty_table_still_has_its_titles() -> None:
    assert table(("ID", "WHY"), []) == ["ID  WHY"]


def test_facts_stand_below_each_other() -> None:
    assert facts([("bot", "main"), ("state", "dead")]) == ["bot    main", "state  dead"]


def test_a_noun_agrees_with_its_number() -> None:
    assert [counted(1, "fault"), counted(2, "fault")] == ["1 fault", "2 faults"]
