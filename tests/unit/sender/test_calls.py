"""Calls: the same form again, with Telegram's ids for our placeholders."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sender.calls import (
    JSON,
    Call,
    InDoubt,
    Parentless,
    TooSoon,
    Unsayable,
    encode,
    references,
    render,
    resolve,
)
from storage.lifecycle import HELD, TERMINAL, OutboxId, OutboxState
from storage.outbox import Resolution

SENT = Resolution(OutboxState.SENT, 77)


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


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"message_id": "-5"}, (-5,)),
        ({"message_id": "5"}, ()),
        ({"message_id": "-"}, ()),
        ({"message_id": "-5x"}, ()),
        ({"message_id": "--5"}, ()),
        ({"reply_parameters": '{"message_id": -6}'}, (-6,)),
        ({"reply_parameters": '{"message_id": 6, "chat_id": -100}'}, ()),
        ({"reply_parameters": '{"message_id": true, "q": "-"}'}, ()),
        ({"reply_parameters": "-no json"}, ()),
        ({"reply_parameters": "[-1]"}, ()),
        ({"message_id": "-5", "reply_parameters": '{"message_id": -6}'}, (-5, -6)),
        ({"text": "-5", "chat_id": "-100"}, ()),
    ],
)
def test_placeholders_are_found_where_a_message_is_meant(
    params: dict[str, str],
    found: tuple[int, ...],
) -> None:
    assert references(params) == found


def test_placeholders_become_telegrams_ids_and_nothing_else_changes() -> None:
    params = {
        "chat_id": "-100",
        "message_id": "-5",
        "reply_parameters": '{"message_id": -6, "quote": "a-b"}',
        "text": "-5",
    }
    call = render("editMessageText", params, {-5: 77, -6: 78})
    assert isinstance(call, Call)
    form = httpx.QueryParams(call.body.decode())
    assert form["message_id"] == "77"
    assert json.loads(form["reply_parameters"]) == {"message_id": 78, "quote": "a-b"}
    assert (form["chat_id"], form["text"]) == ("-100", "-5")
    assert list(form.keys()) == list(params), "the order is kept"


def test_all_known_placeholders_resolve() -> None:
    assert resolve({-5: SENT}) == {-5: 77}
    assert resolve({}) == {}


@pytest.mark.parametrize("state", [OutboxState.QUEUED, OutboxState.CLAIMED])
def test_a_parent_that_still_waits_is_waited_for(state: OutboxState) -> None:
    assert resolve({-5: Resolution(state, None)}) == TooSoon(-5)


@pytest.mark.parametrize(
    "resolution",
    [
        None,
        Resolution(OutboxState.SENT, None),
        *[
            Resolution(state, None)
            for state in OutboxState
            if state in TERMINAL - {OutboxState.SENT}
        ],
    ],
)
def test_a_parent_that_never_became_a_message_takes_its_child_along(
    resolution: Resolution | None,
) -> None:
    assert isinstance(resolve({-4: SENT, -5: resolution}), Parentless)


@pytest.mark.parametrize("state", [*HELD, OutboxState.QUEUED])
def test_a_parent_in_doubt_leaves_its_child_to_a_person(state: OutboxState) -> None:
    """Also one that waits itself for a decision about another row."""
    assert resolve({-4: SENT, -5: Resolution(state, None, OutboxId(9))}) == InDoubt(OutboxId(9))


def test_half_a_surrogate_pair_cannot_be_said() -> None:
    assert isinstance(render("sendMessage", {"text": "\ud800"}, {}), Unsayable)
    assert isinstance(render("notify", {"text": '"\ud800"'}, {}, JSON), Unsayable)


def test_another_channel_is_sent_one_json_object() -> None:
    params = {"to": "7", "text": '"h\u00e9 \\u00e9"', "tags": '["a"]', "message_id": "-5"}
    call = render("notify", params, {-5: 77}, JSON)
    assert isinstance(call, Call)
    assert call.content_type == "application/json"
    assert json.loads(call.body) == {
        "to": 7,
        "text": "h\u00e9 \u00e9",
        "tags": ["a"],
        "message_id": 77,
    }


@pytest.mark.parametrize("value", ["hello", "", "{", "NaN", "1e999", "[" * 100_000])
def test_what_is_not_json_can_not_be_said_to_another_channel(value: str) -> None:
    assert isinstance(render("notify", {"text": value}, {}, JSON), Unsayable)
