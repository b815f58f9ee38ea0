"""What becomes of a call: its row, and what its caller is told."""

import json
from datetime import timedelta
from typing import cast

import pytest
from telegram import Message

from bot.turns.calls import (
    ACTION_TTL_MS,
    ANSWER_TTL_MS,
    Call,
    Rules,
    Speaker,
    Times,
    answer_of,
    row_of,
)
from bot.turns.turn import Json
from bot.turns.wishes import Send
from storage.lifecycle import OnUncertain, Priority
from storage.outgoing import Outgoing

RULES = Rules(reply_ttl_ms=3_600_000, bulk_ttl_ms=86_400_000, on_uncertain=OnUncertain.HOLD)
TIMES = Times(now_ms=1_000_000, heard_at_ms=990_000)
ME = {"id": 1, "is_bot": True, "first_name": "Ferry", "username": "ferry_bot"}
NOBODY = Speaker(ME)
TRUE: object = True


def row(method: str, params: dict[str, str], wish: Send | None = None) -> Outgoing:
    call = Call(method, params) if wish is None else Call(method, params, wish)
    return row_of(call, RULES, TIMES, key="k", placeholder=-9)


def told(params: dict[str, str], method: str = "sendMessage", speaker: Speaker = NOBODY) -> Json:
    return cast("Json", answer_of(Call(method, params), speaker, TIMES, placeholder=-9))


def test_a_reply_lives_as_long_as_configured() -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"})
    assert sent.expires_at_ms == TIMES.now_ms + RULES.reply_ttl_ms
    assert sent.on_uncertain is OnUncertain.HOLD
    assert sent.priority is Priority.INTERACTIVE
    assert (sent.lane, sent.chat_id, sent.placeholder) == ("c:7", 7, -9)


def test_a_bulk_message_lives_as_long_as_a_broadcast() -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(urgency="bulk"))
    assert sent.priority is Priority.BULK
    assert sent.expires_at_ms == TIMES.now_ms + RULES.bulk_ttl_ms


@pytest.mark.parametrize("span", [30, 30.0, timedelta(seconds=30)])
def test_a_wish_says_how_long_a_message_is_worth_sending(span: float | timedelta) -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(expires_in=span))
    assert sent.expires_at_ms == TIMES.now_ms + 30_000


def test_a_supersede_name_means_this_chat_only() -> None:
    one = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(supersede="progress"))
    other = row("sendMessage", {"chat_id": "8", "text": "hi"}, Send(supersede="progress"))
    assert one.supersede_key != other.supersede_key


def test_a_chat_action_gets_one_try_within_five_seconds() -> None:
    action = row("sendChatAction", {"chat_id": "7", "action": "typing"})
    assert action.expires_at_ms == TIMES.now_ms + ACTION_TTL_MS
    assert action.attempts_max == 1
    assert action.on_uncertain is OnUncertain.DROP
    assert action.placeholder is None


def test_an_answer_waits_for_nobody_and_expires_with_the_press() -> None:
    """The client gives up 15 s after the press, not after the handler came round to it."""
    answer = row("answerCallbackQuery", {"callback_query_id": "55"})
    assert answer.lane == "q:55"
    assert answer.chat_id is None
    assert answer.expires_at_ms == TIMES.heard_at_ms + ANSWER_TTL_MS
    assert answer.on_uncertain is OnUncertain.RESEND


@pytest.mark.parametrize(
    ("method", "expires_at_ms"),
    [("editMessageText", TIMES.now_ms + RULES.reply_ttl_ms), ("deleteMessage", None)],
)
def test_edits_and_deletes_may_go_again_by_themselves(
    method: str, expires_at_ms: int | None
) -> None:
    """What should not be seen should not be seen later either: a delete does not expire."""
    changed = row(method, {"chat_id": "7", "message_id": "3"})
    assert changed.on_uncertain is OnUncertain.RESEND
    assert changed.expires_at_ms == expires_at_ms


def test_a_wish_decides_what_is_done_when_nobody_can_tell() -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(on_uncertain="resend"))
    assert sent.on_uncertain is OnUncertain.RESEND


@pytest.mark.parametrize(
    ("params", "lane", "chat_id"),
    [
        ({"chat_id": "-100123"}, "c:-100123", -100123),
        ({"chat_id": "@harbour"}, "c:@harbour", None),
        ({"chat_id": "7", "business_connection_id": "bc"}, "b:bc:7", 7),
        ({"inline_message_id": "AbC"}, "i:AbC", None),
    ],
)
def test_a_call_stands_in_the_lane_of_its_chat(
    params: dict[str, str], lane: str, chat_id: int | None
) -> None:
    changed = row("editMessageText", {**params, "text": "x"})
    assert (changed.lane, changed.chat_id) == (lane, chat_id)


def test_a_handler_is_given_a_message_that_leads_back_to_the_same_place() -> None:
    """Without the echo the next reply would land in another topic, or outside the business chat."""
    markup = {"inline_keyboard": [[{"text": "a", "callback_data": "b"}]]}
    found = told(
        {
            "chat_id": "-1005",
            "text": "hi",
            "entities": json.dumps([{"type": "bold", "offset": 0, "length": 2}]),
            "reply_markup": json.dumps(markup),
            "message_thread_id": "42",
            "business_connection_id": "bc",
            "direct_messages_topic_id": "9",
        }
    )
    message = Message.de_json(dict(found), None)
    assert message.message_id == -9
    assert message.text == "hi"
    assert message.entities[0].type == "bold"
    assert message.reply_markup is not None
    assert (message.message_thread_id, message.is_topic_message) == (42, True)
    assert message.business_connection_id == "bc"
    assert message.direct_messages_topic is not None
    assert message.direct_messages_topic.topic_id == 9
    assert message.from_user is not None
    assert message.from_user.username == "ferry_bot"


def test_a_reply_keyboard_is_not_echoed() -> None:
    """Telegram shows it to the user; its Message does not have it."""
    found = told({"chat_id": "7", "text": "x", "reply_markup": json.dumps({"keyboard": [["a"]]})})
    assert "reply_markup" not in found


@pytest.mark.parametrize(
    ("chat_id", "kind"),
    [("7", "private"), ("-200", "group"), ("-1001234567890", "supergroup"), ("@a", "channel")],
)
def test_the_chat_of_an_echo_is_guessed_where_the_update_does_not_tell(
    chat_id: str, kind: str
) -> None:
    assert told({"chat_id": chat_id, "text": "x"})["chat"]["type"] == kind


CREW = {"id": -1005, "type": "channel", "title": "Crew"}


@pytest.mark.parametrize(
    "update",
    [{"channel_post": {"chat": CREW}}, {"callback_query": {"message": {"chat": CREW}}}],
    ids=list,
)
def test_the_chat_of_an_echo_is_the_updates_own_where_it_tells(update: Json) -> None:
    found = told({"chat_id": "-1005", "text": "x"}, speaker=Speaker(ME, update))
    assert found["chat"] == CREW
    other = told({"chat_id": "-1006", "text": "x"}, speaker=Speaker(ME, update))
    assert other["chat"] != CREW


def test_an_edit_is_answered_with_the_message_and_one_without_a_chat_with_true() -> None:
    found = told({"chat_id": "7", "message_id": "33", "text": "x"}, "editMessageText")
    assert (found["message_id"], found["edit_date"]) == (33, 1000)
    assert told({"inline_message_id": "i", "text": "x"}, "editMessageText") == TRUE


@pytest.mark.parametrize("method", ["deleteMessage", "answerCallbackQuery", "sendChatAction"])
def test_what_returns_no_message_is_answered_with_true(method: str) -> None:
    assert told({"chat_id": "7", "callback_query_id": "1"}, method) == TRUE
