"""What handlers remember comes back as it was, its messages belonging to the bot again."""

import asyncio
import pickle
import threading
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import pytest
from telegram import Bot, Chat, Message

from bot.turns.pickling import dumps, join, loads, missing_live, says_the_same, split

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


class Clinic:
    """An object of a handler's own, one of whose parts has no bytes."""

    def __init__(self) -> None:
        self.patients = 0
        self.lock = asyncio.Lock()


def test_what_has_no_bytes_is_told_apart_by_its_key() -> None:
    bot, lock = a_bot(), threading.Lock()
    found = split({"n": 1, "lock": lock}, bot)
    assert found.live == {"lock": lock}
    assert found.data is not None
    assert loads(found.data, bot) == {"n": 1}
    assert join(loads(found.data, bot), found.live) == {"n": 1, "lock": lock}


def test_what_has_no_bytes_is_told_apart_by_its_attribute() -> None:
    bot, clinic = a_bot(), Clinic()
    clinic.patients = 3
    found = split(clinic, bot)
    assert found.live == {"lock": clinic.lock}
    assert found.data is not None
    back = join(loads(found.data, bot), found.live)
    assert isinstance(back, Clinic)
    assert (back.patients, back.lock) == (3, clinic.lock)
    assert hasattr(clinic, "lock"), "the value itself is left alone"


def test_a_value_that_makes_itself_a_lock_has_one_again_after_a_restart() -> None:
    bot = a_bot()
    found = split(Clinic(), bot)
    assert found.data is not None
    back = loads(found.data, bot)
    assert isinstance(missing_live(back, Clinic, bot)["lock"], asyncio.Lock)


def test_what_can_not_be_taken_apart_is_live_as_a_whole() -> None:
    bot = a_bot()
    for value in ([threading.Lock()], {threading.Lock(): 1}, defaultdict(lambda: 0, a=1)):
        found = split(value, bot)
        assert found.data is None
        assert join(None, found.live) is value


@pytest.mark.parametrize("kind", [asyncio.Lock, asyncio.Event, asyncio.Queue, asyncio.Semaphore])
def test_what_others_wait_at_is_never_copied(kind: Callable[[], object]) -> None:
    """It has bytes; but nobody who waits at a copy would ever be woken."""
    assert split({"it": kind()}, a_bot()).live


def test_a_set_says_the_same_in_whatever_order_it_is_written() -> None:
    bot = a_bot()
    before = dumps({8, 0}, bot)
    assert {*loads(before, bot)} == {0, 8}
    assert says_the_same(dumps(loads(before, bot), bot), before, bot)
    assert not says_the_same(dumps({8, 0, 1}, bot), before, bot)
