"""What becomes of each method: the table against the Bot API's own description."""

import json
from importlib import resources

import pytest

from bot.turns.answers import answer_of
from bot.turns.calls import Call, Occasion
from bot.turns.classes import CLASSES, REASONS, CallClass, class_of, name_of
from storage.methods import CallKind, Returns, method_facts

BOT_API = json.loads(
    (resources.files("tests") / "data" / "botapi" / "methods-10.2.json").read_text("utf-8")
)
OF_CLASS = {each: {name for name, found in CLASSES.items() if found is each} for each in CallClass}
ROWS = sorted(set(CLASSES) - OF_CLASS[CallClass.READ] - OF_CLASS[CallClass.REFUSED])
MONEY = ("Gift", "Stars", "StarPayment", "StarSubscription", "PremiumSubscription")


def test_every_method_of_the_newest_bot_api_has_a_class_and_no_other_has() -> None:
    assert set(CLASSES) == set(BOT_API)


def test_only_what_asks_is_a_read() -> None:
    assert OF_CLASS[CallClass.READ] == {
        name for name in BOT_API if name.startswith("get") and name != "getUpdates"
    }


@pytest.mark.parametrize("method", ROWS)
def test_of_each_method_that_becomes_a_row_the_facts_are_known(method: str) -> None:
    facts = method_facts(method)
    assert facts is not None
    assert set(facts.needs) >= set(BOT_API[method]["required"]) - {"text"}


def test_whatever_moves_money_is_never_repeated_and_no_setting_is_taken_for_it() -> None:
    moving = {
        name
        for name in BOT_API
        if any(word in name for word in MONEY) and not name.startswith("get")
    }
    setting = {"setBusinessAccountGiftSettings"}
    assert OF_CLASS[CallClass.NEVER_REPEATED] == (moving - setting) | {"logOut", "close"}


def test_what_shows_for_seconds_is_ephemeral_and_nothing_else_is() -> None:
    assert OF_CLASS[CallClass.EPHEMERAL] == {
        name for name in ROWS if Call(name, {}).facts.kind is CallKind.ACTION
    }


# What only Telegram knows, although it is in a message.
ONLY_TELEGRAM_KNOWS = {"sendPoll", "sendDice"}


def test_what_nobody_can_make_up_is_awaited() -> None:
    made_up = {name for name in ROWS if Call(name, {}).facts.returns is not Returns.OTHER}
    assert made_up - ONLY_TELEGRAM_KNOWS - OF_CLASS[CallClass.NEVER_REPEATED] == (
        OF_CLASS[CallClass.DEFERRED] | OF_CLASS[CallClass.EPHEMERAL]
    )
    with pytest.raises(AssertionError, match="createForumTopic"):
        answer_of(Call("createForumTopic", {}), {}, Occasion(0, 0), placeholder=None)


@pytest.mark.parametrize(
    ("method", "found"),
    [
        ("getSomethingOfTomorrow", CallClass.READ),
        ("GETSOMETHING", CallClass.READ),
        ("doSomethingOfTomorrow", CallClass.AWAITED),
        ("sendMoon", CallClass.AWAITED),
    ],
)
def test_a_method_newer_than_the_table_is_a_read_by_its_name_or_awaited(
    method: str, found: CallClass
) -> None:
    assert class_of(method) is found
    assert name_of(method) == method


def test_a_name_is_known_in_any_case() -> None:
    """Telegram's server does not mind either; so `SetWebHook` must not slip through."""
    assert class_of("SetWebHook") is CallClass.REFUSED
    assert class_of("sendmessage") is CallClass.DEFERRED
    assert name_of("sendmessage") == "sendMessage"


def test_every_refusal_has_its_reason() -> None:
    assert OF_CLASS[CallClass.REFUSED] == set(REASONS)
