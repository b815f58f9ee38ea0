"""What an update tells of its chat."""

import pytest
from telegram import Update

from bot.turns.facts import ChatFact, fact_of, source_of
from bot.turns.scopes import scopes_of
from storage.outgoing import Source
from tests.integration.turns.stand import membership, message, press


def parsed(**content: object) -> Update:
    return Update.de_json({"update_id": 1, **content}, None)


@pytest.mark.parametrize(
    "kind", ["message", "edited_message", "channel_post", "edited_channel_post"]
)
def test_a_chat_that_was_heard_of_can_be_written_to(kind: str) -> None:
    found = fact_of(parsed(**{kind: message("hi", chat=-1005)}))
    assert found == ChatFact(-1005, "supergroup")


def test_a_pressed_button_tells_of_its_chat() -> None:
    assert fact_of(parsed(callback_query=press("x"))) == ChatFact(7, "private")


@pytest.mark.parametrize("status", ["kicked", "left", "member"])
def test_a_change_of_membership_tells_that_it_is_one(status: str) -> None:
    """What it means was written when it came; a chat that it is about is not revived by it."""
    found = fact_of(parsed(my_chat_member=membership(status, chat=-1005)))
    assert found == ChatFact(-1005, "supergroup", membership=True)


def test_a_button_under_a_message_too_old_to_be_seen_tells_of_its_chat() -> None:
    """The library warns whoever asks it for the message."""
    pressed = press("x") | {
        "message": {"message_id": 1, "date": 0, "chat": {"id": 7, "type": "private"}}
    }
    update = parsed(callback_query=pressed)
    assert fact_of(update) == ChatFact(7, "private")
    assert scopes_of(update, []).names() == ["user:7", "chat:7"]


def test_an_update_without_a_chat_tells_nothing() -> None:
    assert fact_of(parsed(moon_landing={})) is None


@pytest.mark.parametrize(
    "content",
    [
        {"business_message": message("hi") | {"business_connection_id": "bc"}},
        {
            "callback_query": press("x")
            | {"message": message("a") | {"business_connection_id": "bc"}}
        },
        {"guest_message": message("hi", chat=-1005)},
        {
            "deleted_business_messages": {
                "business_connection_id": "bc",
                "chat": {"id": 7, "type": "private"},
                "message_ids": [1],
            }
        },
    ],
    ids=list,
)
def test_the_chats_of_others_are_not_the_bots_own(content: dict[str, object]) -> None:
    """A broadcast must not reach the customers of whoever connected the bot."""
    assert fact_of(parsed(**content)) is None


@pytest.mark.parametrize(
    "kind", ["message", "edited_message", "channel_post", "edited_channel_post"]
)
def test_an_update_is_about_its_message(kind: str) -> None:
    assert source_of(parsed(**{kind: message("hi", chat=-1005)})) == Source("c:-1005", 5)


@pytest.mark.parametrize("kind", ["business_message", "edited_business_message"])
def test_a_message_of_a_business_chat_is_another_chats_than_the_bots_own(kind: str) -> None:
    business = message("hi") | {"business_connection_id": "bc"}
    assert source_of(parsed(**{kind: business})) == Source("b:bc:7", 5)


@pytest.mark.parametrize(
    "content",
    [
        {"callback_query": press("x")},
        {"guest_message": message("hi")},
        {"my_chat_member": membership("member")},
        {"message": message("hi") | {"message_id": 0}},
        {"moon_landing": {}},
    ],
    ids=["a press", "a guest's", "a membership", "not there yet", "unknown"],
)
def test_what_is_about_no_message_has_no_source(content: dict[str, object]) -> None:
    """Who presses a button is answered for the press, not for the message under which it was."""
    assert source_of(parsed(**content)) is None
