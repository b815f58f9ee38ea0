"""Calls: the same form again, with Telegram's ids for our placeholders."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sender.calls import (
    JSON,
    Call,
    Unsayable,
    encode,
    render,
)


@given(
    st.dictionaries(
        st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
        min_size=1,
        max_size=6,
    ),
)
def test_a_form_is_byte_for_byte_what_httpx_would_post(form: dict[str, str]) -> None:
    assert encode(form) == httpx.Request("POST", "http://t/", data=form).read()


def test_placeholders_become_telegrams_ids() -> None:
    call = render("editMessageText", {"chat_id": "-100", "message_id": "-5"}, {-5: 77})
    assert isinstance(call, Call)
    assert call.body == b"chat_id=-100&message_id=77"


def test_a_placeholder_that_is_left_never_reaches_telegram() -> None:
    params = {"chat_id": "-100", "message_id": "-5"}
    assert isinstance(render("editMessageText", params, {}), Unsayable)
    assert isinstance(render("editMessageText", params, {-6: 77}), Unsayable)
    assert isinstance(render("deleteMessages", {"message_ids": "[-5]"}, {}), Unsayable)


def test_half_a_surrogate_pair_cannot_be_said() -> None:
    assert isinstance(render("sendMessage", {"text": "\ud800"}, {}), Unsayable)
    assert isinstance(render("notify", {"text": '"\ud800"'}, {}, JSON), Unsayable)


def test_another_channel_is_sent_one_json_object() -> None:
    """Whatever it calls a message is its own matter."""
    params = {"to": "7", "text": '"h\u00e9 \\u00e9"', "tags": '["a"]', "message_id": "-5"}
    call = render("notify", params, {}, JSON)
    assert isinstance(call, Call)
    assert call.content_type == "application/json"
    assert json.loads(call.body) == {
        "to": 7,
        "text": "h\u00e9 \u00e9",
        "tags": ["a"],
        "message_id": -5,
    }


@pytest.mark.parametrize("value", ["hello", "", "{", "NaN", "1e999", "[" * 100_000])
def test_what_is_not_json_can_not_be_said_to_another_channel(value: str) -> None:
    assert isinstance(render("notify", {"text": value}, {}, JSON), Unsayable)
