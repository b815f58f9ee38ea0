"""Spans, moments and Telegram's words, as the page shows them."""

import pytest

from bot.web.dashboard.wording import moment, since, span, unquoted


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (5_820_000, "1 h 37 min"),
        (3_600_000, "1 h"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_a_span_has_at_most_two_units(ms: int, words: str) -> None:
    assert span(ms) == words


def test_moments() -> None:
    assert moment(1_800_000_000_000) == "2027-01-15 08:00:00 UTC"
    assert since(None, 5) == ""
    assert since(1_000, 4_500) == "3 s"
    assert since(9_000, 4_500) == "0 ms", "clocks of two processes may differ"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (None, None),
        ("Too Many Requests: retry after 3", "Too Many Requests: retry after 3"),
        ('Bad Request: can\'t find "my words" here', "Bad Request: can't find … here"),
        ('cut off: "my wor', "cut off: …"),
    ],
)
def test_what_telegram_quotes_is_not_shown(said: str | None, shown: str | None) -> None:
    assert unquoted(said) == shown
