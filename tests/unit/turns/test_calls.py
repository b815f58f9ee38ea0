"""What becomes of a call: its row, and what its caller is told."""

import json
from datetime import timedelta
from typing import cast

import pytest
from telegram import Message

from bot.turns.answers import answer_of
from bot.turns.calls import Call, Name, Occasion, Rules, row_of
from bot.turns.classes import CLASSES, CallClass, class_of
from bot.turns.serving import rules_of
from bot.turns.turn import Json
from bot.turns.wishes import Send
from storage.lifecycle import OnUncertain, Priority
from storage.methods import CallKind
from storage.options import DeliveryOptions
from storage.outgoing import Fallback, Outgoing, Source

RULES = Rules(reply_ttl_ms=3_600_000, bulk_ttl_ms=86_400_000, on_uncertain=OnUncertain.HOLD)
NOW_MS = 1_000_000
HEARD_MS = 990_000
SOURCE = Source("c:7", 33)
HEARD = Occasion(NOW_MS, HEARD_MS, SOURCE)
ME = {"id": 1, "is_bot": True, "first_name": "Ferry", "username": "ferry_bot"}
TRUE: object = True


def row(
    method: str,
    params: dict[str, str],
    wish: Send | None = None,
    *,
    occasion: Occasion = HEARD,
    rules: Rules = RULES,
) -> Outgoing:
    call = Call(method, params) if wish is None else Call(method, params, wish)
    return row_of(call, rules, occasion, Name("k", -9))


def told(params: dict[str, str], method: str = "sendMessage", update: Json | None = None) -> Json:
    occasion = Occasion(NOW_MS, HEARD_MS, update=update)
    return cast("Json", answer_of(Call(method, params), ME, occasion, placeholder=-9))


def test_a_reply_lives_as_long_as_configured_and_grows_old_with_its_question() -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"})
    assert sent.expires_at_ms == HEARD_MS + RULES.reply_ttl_ms
    assert sent.on_uncertain is OnUncertain.HOLD
    assert sent.priority is Priority.INTERACTIVE
    assert (sent.lane, sent.chat_id, sent.placeholder) == ("c:7", 7, -9)


def test_a_bulk_message_lives_as_long_as_a_broadcast() -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(urgency="bulk"))
    assert sent.priority is Priority.BULK
    assert sent.expires_at_ms == NOW_MS + RULES.bulk_ttl_ms


@pytest.mark.parametrize("span", [30, 30.0, timedelta(seconds=30)])
def test_a_wish_says_how_long_a_message_is_worth_sending(span: float | timedelta) -> None:
    sent = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(expires_in=span))
    assert sent.expires_at_ms == NOW_MS + 30_000


def test_a_supersede_name_means_this_chat_only() -> None:
    one = row("sendMessage", {"chat_id": "7", "text": "hi"}, Send(supersede="progress"))
    other = row("sendMessage", {"chat_id": "8", "text": "hi"}, Send(supersede="progress"))
    assert one.supersede_key != other.supersede_key


def test_a_chat_action_gets_one_try_within_five_seconds() -> None:
    action = row("sendChatAction", {"chat_id": "7", "action": "typing"})
    assert action.expires_at_ms == NOW_MS + 5_000
    assert action.attempts_max == 1
    assert action.on_uncertain is OnUncertain.DROP
    assert action.placeholder is None


def test_an_answer_waits_for_nobody_and_expires_with_the_press() -> None:
    """The client gives up 15 s after the press, not after the handler came round to it."""
    answer = row("answerCallbackQuery", {"callback_query_id": "55"})
    assert answer.lane == "q:55"
    assert answer.chat_id is None
    assert answer.expires_at_ms == HEARD_MS + 15_000
    assert answer.on_uncertain is OnUncertain.RESEND


@pytest.mark.parametrize(
    ("method", "expires_at_ms"),
    [("editMessageText", HEARD_MS + RULES.reply_ttl_ms), ("deleteMessage", None)],
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
    found = told({"chat_id": "-1005", "text": "x"}, update=update)
    assert found["chat"] == CREW
    other = told({"chat_id": "-1006", "text": "x"}, update=update)
    assert other["chat"] != CREW


def test_an_edit_is_answered_with_the_message_and_one_without_a_chat_with_true() -> None:
    found = told({"chat_id": "7", "message_id": "33", "text": "x"}, "editMessageText")
    assert (found["message_id"], found["edit_date"]) == (33, 1000)
    assert told({"inline_message_id": "i", "text": "x"}, "editMessageText") == TRUE


@pytest.mark.parametrize("method", ["deleteMessage", "answerCallbackQuery", "sendChatAction"])
def test_what_returns_no_message_is_answered_with_true(method: str) -> None:
    assert told({"chat_id": "7", "callback_query_id": "1"}, method) == TRUE


# What Telegram waits for, from the moment at which the query came in.
DEADLINES_MS = {
    "answerCallbackQuery": ("callback_query_id", 15_000),
    "answerInlineQuery": ("inline_query_id", 10_000),
    "answerShippingQuery": ("shipping_query_id", 10_000),
    "answerPreCheckoutQuery": ("pre_checkout_query_id", 10_000),
    "answerChatJoinRequestQuery": ("chat_join_request_query_id", 10_000),
    "sendChatJoinRequestWebApp": ("chat_join_request_query_id", 10_000),
}
AWAITED_ANSWERS = {"answerWebAppQuery", "answerGuestQuery"}


@pytest.mark.parametrize("method", DEADLINES_MS)
def test_each_answer_to_a_query_has_its_own_lane_and_its_deadline(method: str) -> None:
    name, window_ms = DEADLINES_MS[method]
    answer = row(method, {name: "55"})
    assert (answer.lane, answer.chat_id) == ("q:55", None)
    assert (answer.source, answer.caused_at_ms) == (None, HEARD_MS), "the press is the reason"
    assert answer.expires_at_ms == HEARD_MS + window_ms
    assert told({name: "55"}, method) == TRUE


def test_every_answer_that_a_handler_can_give_has_a_deadline() -> None:
    answers = {name for name in CLASSES if Call(name, {}).facts.kind is CallKind.ANSWER}
    assert answers == set(DEADLINES_MS) | AWAITED_ANSWERS
    assert {class_of(name) for name in AWAITED_ANSWERS} == {CallClass.AWAITED}


@pytest.mark.parametrize(("wished_s", "expires_at_ms"), [(60, HEARD_MS + 15_000), (1, 1_001_000)])
def test_a_wish_shortens_the_deadline_of_an_answer_and_never_extends_it(
    wished_s: int, expires_at_ms: int
) -> None:
    wish = Send(expires_in=wished_s)
    assert row("answerCallbackQuery", {"callback_query_id": "5"}, wish).expires_at_ms == (
        expires_at_ms
    )


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sendMessage", {"text": "x"}),
        ("editMessageText", {"message_id": "4", "text": "x"}),
        ("sendChatAction", {"action": "typing"}),
        ("sendMessageDraft", {"draft_id": "4", "text": "x"}),
    ],
)
def test_what_answers_a_message_remembers_it_and_when_it_came(
    method: str, params: dict[str, str]
) -> None:
    said = row(method, {"chat_id": "7", **params})
    assert (said.source, said.caused_at_ms, said.cancel_on_edit) == (SOURCE, HEARD_MS, False)


def test_a_delete_keeps_its_reason_whatever_becomes_of_the_message_that_asked_for_it() -> None:
    deleted = row("deleteMessage", {"chat_id": "7", "message_id": "4"}, Send(cancel_on_edit=True))
    assert (deleted.source, deleted.cancel_on_edit) == (None, False)


@pytest.mark.parametrize(
    "params", [{"chat_id": "8"}, {"chat_id": "7", "business_connection_id": "bc"}]
)
def test_what_goes_to_another_chat_is_no_answer_to_the_message(params: dict[str, str]) -> None:
    """An order is not taken back from the kitchen because its guest deletes a message."""
    said = row("sendMessage", {**params, "text": "x"}, Send(cancel_on_edit=True))
    assert (said.source, said.cancel_on_edit) == (None, False)
    assert said.caused_at_ms == HEARD_MS


def test_a_wish_lets_an_edit_of_the_message_cancel_its_answer() -> None:
    assert row(
        "sendMessage", {"chat_id": "7", "text": "x"}, Send(cancel_on_edit=True)
    ).cancel_on_edit


@pytest.mark.parametrize(
    ("method", "params", "wish", "generation"),
    [
        ("sendMessageDraft", {"draft_id": "41"}, None, "41"),
        ("sendMessage", {"text": "x"}, Send(generation=41), "41"),
        ("sendMessage", {"text": "x"}, Send(generation="41"), "41"),
        ("sendMessage", {"text": "x"}, None, None),
    ],
)
def test_a_draft_and_what_completes_it_belong_to_one_generation(
    method: str, params: dict[str, str], wish: Send | None, generation: str | None
) -> None:
    assert row(method, {"chat_id": "7", **params}, wish).generation == generation


def test_a_draft_gets_one_try_while_it_can_still_be_seen() -> None:
    draft = row("sendMessageDraft", {"chat_id": "7", "draft_id": "4", "text": "x"})
    assert draft.expires_at_ms == NOW_MS + 30_000
    assert (draft.attempts_max, draft.placeholder) == (1, None)
    assert told({"chat_id": "7", "draft_id": "4"}, "sendMessageDraft") == TRUE


def test_of_a_draft_only_the_latest_state_is_worth_showing() -> None:
    one, newer, other = (
        row("sendMessageDraft", {"chat_id": "7", "draft_id": draft, "text": text})
        for draft, text in (("4", "a"), ("4", "ab"), ("5", "c"))
    )
    assert one.supersede_key == newer.supersede_key != other.supersede_key
    assert one.supersede_key not in {row("sendMessage", {"chat_id": "7"}).supersede_key, None}


def test_of_two_edits_of_one_message_only_the_later_is_worth_making() -> None:
    one, newer, other = (
        row("editMessageText", {"chat_id": "7", "message_id": message, "text": text})
        for message, text in (("4", "a"), ("4", "b"), ("5", "c"))
    )
    assert one.coalesce_key == newer.coalesce_key != other.coalesce_key
    assert row("sendMessage", {"chat_id": "7", "text": "x"}).coalesce_key is None


def pressed(**message: object) -> Occasion:
    """A button was pressed under this message."""
    shown = {"message_id": 90, "date": 1, "chat": {"id": 7, "type": "private"}, **message}
    return Occasion(NOW_MS, HEARD_MS, update={"callback_query": {"id": "55", "message": shown}})


CREW_CHAT = {"id": -1005, "type": "supergroup", "title": "Crew"}
LOUD = Rules(3_600_000, 86_400_000, OnUncertain.HOLD, late_as_message=True)
ANSWER = {"callback_query_id": "55", "text": "Booked", "show_alert": "true"}
PRIVATE = Fallback("sendMessage", {"chat_id": "7", "text": "Booked"}, "c:7", 7, 3_600_000)
IN_CREW = Fallback(
    "sendMessage", {"chat_id": "-1005", "text": "Booked"}, "c:-1005", -1005, 3_600_000
)


@pytest.mark.parametrize(
    ("rules", "wish", "message", "fallback"),
    [
        (RULES, Send(), {}, None),
        (RULES, Send(late_as_message=True), {}, PRIVATE),
        (LOUD, Send(), {}, PRIVATE),
        (LOUD, Send(late_as_message=False), {}, None),
        (LOUD, Send(), {"chat": CREW_CHAT}, None),
        (LOUD, Send(late_as_message=True), {"chat": CREW_CHAT}, IN_CREW),
    ],
)
def test_an_answer_that_comes_too_late_becomes_a_message_where_that_is_wanted(
    rules: Rules, wish: Send, message: dict[str, object], fallback: Fallback | None
) -> None:
    """In a group all would read what was meant for the one who pressed: that takes a wish."""
    said = row("answerCallbackQuery", ANSWER, wish, occasion=pressed(**message), rules=rules)
    assert said.fallback == fallback


def test_a_late_answer_is_said_in_the_topic_and_the_business_chat_of_its_button() -> None:
    places = {
        "business_connection_id": "bc",
        "is_topic_message": True,
        "message_thread_id": 3,
        "direct_messages_topic": {"topic_id": 9},
    }
    said = row("answerCallbackQuery", ANSWER, occasion=pressed(**places), rules=LOUD).fallback
    assert said is not None
    assert said.lane == "b:bc:7"
    assert said.params == {
        "chat_id": "7",
        "business_connection_id": "bc",
        "message_thread_id": "3",
        "direct_messages_topic_id": "9",
        "text": "Booked",
    }


@pytest.mark.parametrize(
    ("params", "occasion"),
    [
        ({"callback_query_id": "55"}, pressed()),
        ({**ANSWER, "callback_query_id": "56"}, pressed()),
        (ANSWER, HEARD),
        (ANSWER, Occasion(NOW_MS, HEARD_MS, update={"callback_query": {"id": "55"}})),
    ],
    ids=["no text", "another press", "no press", "an inline message's press"],
)
def test_without_a_text_or_a_place_a_late_answer_is_dropped(
    params: dict[str, str], occasion: Occasion
) -> None:
    assert row("answerCallbackQuery", params, occasion=occasion, rules=LOUD).fallback is None


def test_the_configuration_says_what_becomes_of_late_answers() -> None:
    assert rules_of(DeliveryOptions()) == RULES
    assert rules_of(DeliveryOptions(late_answers="message")) == LOUD


def test_the_configuration_says_whether_an_edit_takes_back_the_answer_unless_a_wish_does() -> None:
    rules = rules_of(DeliveryOptions(cancel_on_edit=True))
    params = {"chat_id": "7", "text": "x"}
    assert row("sendMessage", params, rules=rules).cancel_on_edit
    assert not row("sendMessage", params, Send(cancel_on_edit=False), rules=rules).cancel_on_edit
