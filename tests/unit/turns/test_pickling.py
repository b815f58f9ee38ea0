"""What handlers remember comes back as it was, its messages belonging to the bot again."""

import pickle
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from telegram import Bot, Chat, Message

from bot.turns.pickling import dumps, loads

T = TypeVar("T")


def a_bot(alias: str = "TOKEN-OF-1") -> Bot:
    return Bot(alias)


def a_message(bot: Bot | None) -> Message:
    message = Message(5, datetime(2027, 1, 1, tzinfo=UTC), Chat(7, "private"), text="hi")
    message.set_bot(bot)
    return message


def and_back(value: T, bot: Bot) -> T:
    found: T = loads(dumps(value, bot), bot)
    return found


def test_plain_values_come_back_equal() -> None:
    value = {"name": "Ann", "seats": [1, 2], ("a", 1): {"x": None}}
    assert and_back(value, a_bot()) == value


def test_a_remembered_message_can_still_be_answered() -> None:
    bot = a_bot()
    found = and_back({"menu": a_message(bot)}, bot)["menu"]
    assert found.text == "hi"
    assert found.get_bot() is bot


def test_a_message_without_a_bot_comes_back_without_one() -> None:
    with pytest.raises(RuntimeError):
        and_back(a_message(None), a_bot()).get_bot()


def test_the_bot_itself_is_not_stored() -> None:
    """Its bytes would hold its addresses, and it could not be called by them."""
    bot = a_bot()
    assert and_back({"bot": bot}, bot)["bot"] is bot
    assert b"TOKEN-OF" not in dumps({"bot": bot}, bot)


def test_another_bot_is_forgotten() -> None:
    assert and_back({"bot": a_bot("TOKEN-OF-2")}, a_bot())["bot"] is None


def test_what_can_not_be_stored_is_said() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)):
        dumps({"task": lambda: None}, a_bot())


def test_the_same_value_gives_the_same_bytes_again() -> None:
    """A turn that changes nothing writes nothing."""
    bot = a_bot()
    data = dumps({"name": "Ann", "seats": [1, 2], "again": "Ann"}, bot)
    assert dumps(loads(data, bot), bot) == data
