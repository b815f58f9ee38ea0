"""What a webhook call is judged by before its body."""

import pytest

from bot.web.head import SECRET_HEADER, Head, is_one_of, read_head
from bot.web.webhook import Door
from storage.lifecycle import BotName


def test_a_usual_head_is_read_in_one_pass() -> None:
    headers = [(b"host", b"x"), (SECRET_HEADER, b"s"), (b"content-length", b"228")]
    assert read_head(headers) == Head(b"s", is_encoded=False, declared_bytes=228)


def test_nothing_told_is_nothing_known() -> None:
    assert read_head([]) == Head(b"", is_encoded=False, declared_bytes=0)


@pytest.mark.parametrize("times", [2, 3])
def test_a_secret_told_more_than_once_fits_none(times: int) -> None:
    assert read_head([(SECRET_HEADER, b"s")] * times).secret == b""


def test_any_encoding_is_seen() -> None:
    assert read_head([(b"content-encoding", b"")]).is_encoded


@pytest.mark.parametrize("told", [b"-5", b"x", b"", b"1.5", "²".encode()])
def test_a_length_that_is_no_number_is_left_to_the_count(told: bytes) -> None:
    assert read_head([(b"content-length", told)]).declared_bytes == 0


def test_a_length_of_thousands_of_digits_is_only_large() -> None:
    assert read_head([(b"content-length", b"9" * 5000)]).declared_bytes > 1 << 40


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (b"new", True),
        (b"old", True),
        (b"", False),
        (b"ne", False),
        (b"newer", False),
        ("ñew".encode("latin-1"), False),
        ("ñew".encode(), False),
        (b"new\x00", False),
    ],
)
def test_each_secret_is_valid_and_nothing_else(given: bytes, fits: bool) -> None:  # noqa: FBT001 - a table
    assert is_one_of(given, (b"new", b"old")) is fits


def test_where_there_is_no_secret_nothing_fits() -> None:
    assert not is_one_of(b"", ())


def test_no_repr_gives_a_secret_away() -> None:
    assert "s3cret" not in repr(read_head([(SECRET_HEADER, b"s3cret")]))
    assert "s3cret" not in repr(Door({BotName("main"): (b"s3cret",)}))
