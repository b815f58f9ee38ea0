"""What an update tells of its chat."""

import pytest
from telegram import Update

from bot.turns.facts import ChatFact, fact_of
from bot.turns.scopes import scopes_of
from tests.integration.turns.stand import membership, message, press


def parsed(**content: object) -> Update:
    return Update.de_json({"update_id": 1, **content}, None)


@pytest.mark.parametrize(
    "kind", ["message", "edited_message", "channel_post", "edited_channel_post"]
)
def test_a_chat_that_was_heard_of_can_be_written_to(kind: str) -> None:
    found = fact_of(parsed(**{kind: message("hi", chat=-1005)}))
    assert found == ChatFact(-1005, "supergroup", None)


def test_a_pressed_button_tells_of_its_chat() -> None:
    assert fact_of(parsed(callback_query=press("x"))) == ChatFact(7, "private", None)


@pytest.mark.parametrize(
    ("status", "gone"),
    [
        ("kicked", "the user blocked the bot"),
        ("left", "the user blocked the bot"),
        ("member", None),
    ],
)
def test_a_user_who_blocks_the_bot_is_gone(status: str, gone: str | None) -> None:
    assert fact_of(parsed(my_chat_member=membership(status))) == ChatFact(7, "private", gone)


@pytest.mark.parametrize("status", ["kicked", "left"])
def test_a_group_without_the_bot_is_gone(status: str) -> None:
    found = fact_of(parsed(my_chat_member=membership(status, chat=-1005)))
    assert found is not None
    assert found.gone == f"the bot is out of the chat ({status})"


def test_a_button_under_a_message_too_old_to_be_seen_tells_of_its_chat() -> None:
    """The library warns whoever asks it for the message."""
    pressed = press("x") | {
        "message": {"message_id": 1, "date": 0, "chat": {"id": 7, "type": "private"}}
    }
    update = parsed(callback_query=pressed)
    assert fact_of(update) == ChatFact(7, "private", None)
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
