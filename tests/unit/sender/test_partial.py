"""Calls of several items that fail in part: what is known of each item, and what is not."""

import pytest

from sender.botapi import classify
from sender.verdict import ItemFate, Partial, Refused, RefusedKind, Sent, Unreachable
from tests.unit.sender.answers import refused, wrapped

SILENCE = "Telegram says nothing of it"


def unknown(number: int) -> ItemFate:
    return ItemFate(number, "unknown", SILENCE)


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ("USER_IS_BLOCKED", "closed: USER_IS_BLOCKED"),
        ("CHAT_SEND_PHOTOS_FORBIDDEN", "permission: CHAT_SEND_PHOTOS_FORBIDDEN"),
        ("message to copy not found", "target: message to copy not found"),
        ("PHOTO_INVALID_DIMENSIONS", "content: PHOTO_INVALID_DIMENSIONS"),
        ("WEBPAGE_CURL_FAILED", "later: WEBPAGE_CURL_FAILED"),
        ("Message was not sent", "partial: Message was not sent"),
        ("Too Many Requests: retry after 8", "flood: Too Many Requests: retry after 8"),
        ("SOMETHING_NEW", "SOMETHING_NEW"),
        ('can\'t parse entities: tag "my words"', "content: can't parse entities: tag …"),
    ],
)
def test_the_item_that_failed_is_told_with_its_reason_and_the_others_are_unknown(
    inner: str, reason: str
) -> None:
    found = classify(refused(400, wrapped(2, inner)), "sendMediaGroup", items=3)
    assert isinstance(found, Partial)
    assert found.items == (unknown(1), ItemFate(2, "failed", reason), unknown(3))


@pytest.mark.parametrize(
    "text", ["Bad Request: group send failed", wrapped(9, "MEDIA_EMPTY"), wrapped(0, "MEDIA_EMPTY")]
)
def test_where_telegram_names_no_item_of_the_call_all_are_unknown(text: str) -> None:
    found = classify(refused(400, text), "sendMediaGroup", items=2)
    assert isinstance(found, Partial)
    assert found.items == (unknown(1), unknown(2))


@pytest.mark.parametrize("method", ["sendMediaGroup", "copyMessages", "forwardMessages"])
@pytest.mark.parametrize("code", [400, 403])
def test_any_error_of_a_call_of_several_leaves_it_in_doubt(method: str, code: int) -> None:
    text = wrapped(1, "USER_IS_BLOCKED")
    found = classify(refused(code, text), method, items=3)
    assert isinstance(found, Partial)
    assert found.evidence == f"{code} {text}"


def test_an_album_is_of_several_whatever_the_row_says() -> None:
    """To take its error for that of a single send would repeat it whole."""
    found = classify(refused(400, wrapped(1, "Too Many Requests: retry after 8")), "sendMediaGroup")
    assert isinstance(found, Partial)


def test_a_copy_of_one_is_a_single_send() -> None:
    text = wrapped(1, "USER_IS_BLOCKED")
    assert isinstance(classify(refused(403, text), "copyMessages"), Unreachable)


def test_an_error_of_deleting_several_is_no_doubt() -> None:
    """Deleting twice changes nothing."""
    found = classify(
        refused(400, "Bad Request: message can't be deleted"), "deleteMessages", items=5
    )
    assert isinstance(found, Refused)
    assert found.kind is RefusedKind.TARGET
    done = classify(refused(400, "Bad Request: message to delete not found"), "deleteMessages")
    assert isinstance(done, Sent)
