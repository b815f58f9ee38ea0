"""What an order becomes: its row, or its problems. The bodies themselves are tests/data/orders."""

from dataclasses import replace
from typing import Any

import pytest

from bot.orders import Order, Unacceptable, read_order
from bot.producing import Terms, outgoing_of
from storage.lifecycle import OnUncertain, Priority
from storage.methods import METHODS, CallKind
from storage.outgoing import Outgoing

NOW_MS = 1_790_000_000_000
TERMS = Terms(
    bots=("main",),
    paying=("main",),
    channels=("telegram", "sms"),
    reply_ttl_ms=3_600_000,
    bulk_ttl_ms=86_400_000,
    on_uncertain=OnUncertain.HOLD,
)
TEXT = {"chat_id": 5, "text": "x"}


def ordered(method: str = "sendMessage", params: Any = None, **fields: Any) -> Order:  # noqa: ANN401 - any JSON
    body: Any = {"bot": "main", "method": method, "params": TEXT if params is None else params}
    return read_order(body | fields)


def row(order: Order, terms: Terms = TERMS) -> Outgoing:
    return outgoing_of(order, terms, now_ms=NOW_MS, key="post:1")


def problems(order: Order) -> dict[str, str]:
    with pytest.raises(Unacceptable) as raised:
        row(order)
    return {problem.field: problem.expected for problem in raised.value.problems}


def test_the_key_of_an_order_names_its_cause() -> None:
    assert row(ordered()).key == "post:1"
    assert row(ordered(key="invoice-7")).key == "api:invoice-7"


@pytest.mark.parametrize(
    ("fields", "lives_ms"),
    [
        ({}, 3_600_000),
        ({"class": "bulk"}, 86_400_000),
        ({"class": "paid"}, 86_400_000),
        ({"ttl_s": 0.5}, 500),
        ({"ttl_s": 60, "not_before": NOW_MS + 1_000}, 61_000),
        ({"not_before": NOW_MS + 1_000}, 3_601_000),
        ({"not_before": NOW_MS - 1_000}, 3_600_000),
        ({"expires_at": NOW_MS + 7}, 7),
    ],
)
def test_the_time_of_a_call_is_counted_from_when_it_may_be_made(
    fields: dict[str, Any], lives_ms: int
) -> None:
    assert row(ordered(**fields)).expires_at_ms == NOW_MS + lives_ms


def test_an_order_of_every_deferrable_method_becomes_a_row() -> None:
    """With nothing but what the method needs, each of a shape that passes."""
    shapes: dict[str, object] = {
        "chat_id": 5,
        "from_chat_id": -6,
        "message_id": 7,
        "media": [{"type": "photo", "media": "https://example.org/a.jpg"}],
        "stickers": [{"sticker": "https://example.org/a.webp"}],
        "options": ["a", "b"],
        "rich_message": {"html": "x"},
        **dict.fromkeys(
            ("photo", "live_photo", "audio", "document", "video", "animation", "voice"),
            "https://example.org/a",
        ),
        **dict.fromkeys(("video_note", "old_sticker"), "https://example.org/a"),
    }
    for method, facts in METHODS.items():
        params = {name: shapes.get(name, "given") for name in facts.needs}
        if "sticker" in params:
            params["sticker"] = "https://example.org/a.webp"
        if facts.kind is CallKind.EDIT:
            params |= {"chat_id": 5, "message_id": 7}
        made = row(ordered(method, params))
        assert (made.method, made.channel) == (method, "telegram")
        assert made.lane.startswith("q:" if facts.kind is CallKind.ANSWER else ("c:", "m:", "b:"))
        expected = OnUncertain.RESEND if facts.idempotent else OnUncertain.HOLD
        is_action = facts.kind is CallKind.ACTION
        assert made.on_uncertain is (OnUncertain.DROP if is_action else expected)
        assert (made.attempts_max == 1) is is_action


@pytest.mark.parametrize(
    ("params", "lane", "chat_id"),
    [
        (TEXT, "c:5", 5),
        ({**TEXT, "chat_id": "-1001234567890"}, "c:-1001234567890", -1_001_234_567_890),
        ({**TEXT, "chat_id": "@some_channel"}, "c:@some_channel", None),
        ({**TEXT, "business_connection_id": "conn"}, "b:conn:5", 5),
    ],
)
def test_the_lane_is_the_chat_that_it_reaches(
    params: dict[str, object], lane: str, chat_id: int | None
) -> None:
    made = row(ordered(params=params, supersede="progress"))
    assert (made.lane, made.chat_id) == (lane, chat_id)
    assert made.supersede_key == f"{lane}/progress"


def test_what_pays_is_paid_and_a_paid_call_says_that_it_pays() -> None:
    by_class = row(ordered(**{"class": "paid"}))
    assert by_class.priority is Priority.PAID
    assert by_class.params["allow_paid_broadcast"] == "true"
    by_parameter = row(ordered(params={**TEXT, "allow_paid_broadcast": True}))
    assert by_parameter == by_class


@pytest.mark.parametrize(
    ("fields", "field", "expected"),
    [
        ({"class": "paid"}, "class", "expected interactive or bulk"),
        (
            {"params": {**TEXT, "allow_paid_broadcast": True}},
            "params.allow_paid_broadcast",
            "expected none",
        ),
    ],
)
def test_nothing_is_left_to_be_paid_for_where_nothing_is_paid(
    fields: dict[str, Any], field: str, expected: str
) -> None:
    with pytest.raises(Unacceptable) as raised:
        row(ordered(**fields), replace(TERMS, paying=()))
    [problem] = raised.value.problems
    why = "paid broadcasts of this bot are off (limits.paid_per_second is 0)"
    assert (problem.field, problem.expected) == (field, f"{expected}: {why}")


def test_the_same_call_is_the_same_form_in_whatever_order_it_is_told() -> None:
    one = {"chat_id": 5, "text": "x", "reply_parameters": {"message_id": 7, "quote": "q"}}
    other = {"reply_parameters": '{"quote": "q", "message_id": 7}', "text": "x", "chat_id": "5"}
    assert list(row(ordered(params=one)).params.items()) == list(
        row(ordered(params=other)).params.items()
    )


def test_a_call_of_another_channel_is_json_in_a_lane_of_its_own() -> None:
    params = {"text": "Öl", "chat_id": "+49123", "urgent": True, "nothing": None}
    made = row(ordered("messages.send", params, channel="sms"))
    assert (made.channel, made.method, made.lane) == ("sms", "messages.send", "x:sms:+49123")
    assert made.params == {
        "chat_id": '"+49123"',
        "nothing": "null",
        "text": '"\\u00d6l"',
        "urgent": "true",
    }
    assert (made.chat_id, made.items, made.coalesce_key) == (None, 1, None)
    assert made.on_uncertain is OnUncertain.HOLD, "nothing is known of what a second time does"


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"method": "../send"}, "method"),
        ({"method": "messages..send"}, "method"),
        ({"params": {"text": "x"}}, "params.chat_id"),
        ({"params": {"chat_id": True}}, "params.chat_id"),
        ({"params": {"chat_id": "a\nb"}}, "params.chat_id"),
        ({"class": "paid"}, "class"),
    ],
)
def test_a_call_of_another_channel_is_looked_at_too(fields: dict[str, Any], wrong: str) -> None:
    given = {"method": "send", "params": {"chat_id": "a"}, **fields}
    assert list(problems(ordered(**given, channel="sms"))) == [wrong]


def test_every_problem_is_told_at_once() -> None:
    wrong = ordered(params={"chat_id": 0}, bot="nobody", expires_at=NOW_MS, ttl_s=5)
    assert list(problems(wrong)) == [
        *("bot", "ttl_s", "expires_at"),
        *("params.text", "params.chat_id"),
    ]


def test_an_unknown_channel_is_told_with_the_one_that_was_meant() -> None:
    assert problems(ordered("send", channel="sns")) == {
        "channel": "unknown channel sns; did you mean sms?"
    }
