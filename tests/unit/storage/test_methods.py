"""The table of methods against the Bot API's own description, of which a part is copied here."""

import json
from collections.abc import Collection, Mapping
from importlib import resources
from typing import Any

import pytest

from storage.methods import METHODS, NOT_DEFERRABLE, CallKind, MethodFacts, Returns, items_of

BOT_API: Mapping[str, Any] = json.loads(
    (resources.files("tests") / "data" / "botapi" / "methods-10.2.json").read_text("utf-8")
)
# Optional since Bot API 10.3, as a rich message may stand in its place.
OPTIONAL_NOW = {("editEphemeralMessageText", "text")}
RETURNS = {
    "Message": Returns.MESSAGE,
    "MessageId": Returns.MESSAGE_ID,
    "Array of Message": Returns.MESSAGES,
    "Array of MessageId": Returns.MESSAGE_IDS,
    "Boolean": Returns.TRUE,
    "Message|Boolean": Returns.EDITED,
    "": Returns.TRUE,
}


def unplaced(
    known: Collection[str], deferrable: Collection[str], refused: Collection[str]
) -> list[str]:
    """Methods that have no class, or two, or that the Bot API does not have."""
    return sorted(
        name
        for name in {*known, *deferrable, *refused}
        if (name in known) + ((name in deferrable) != (name in refused)) != 2
    )


def test_every_method_of_the_newest_bot_api_has_exactly_one_class() -> None:
    assert unplaced(BOT_API, METHODS, NOT_DEFERRABLE) == []
    assert len(BOT_API) == 185


def test_a_method_without_a_class_or_with_two_is_seen() -> None:
    fewer = {name: facts for name, facts in METHODS.items() if name != "sendMessage"}
    assert unplaced(BOT_API, fewer, NOT_DEFERRABLE) == ["sendMessage"]
    assert unplaced(BOT_API, METHODS, {**NOT_DEFERRABLE, "sendDice": "why"}) == ["sendDice"]
    assert unplaced(BOT_API, {**METHODS, "sendNothing": 0}, NOT_DEFERRABLE) == ["sendNothing"]


@pytest.mark.parametrize("method", METHODS)
def test_a_method_needs_what_the_bot_api_requires(method: str) -> None:
    required = {name for name in BOT_API[method]["required"] if (method, name) not in OPTIONAL_NOW}
    assert set(METHODS[method].needs) == required


@pytest.mark.parametrize("method", METHODS)
def test_a_method_returns_what_the_bot_api_says(method: str) -> None:
    told = RETURNS.get("|".join(BOT_API[method]["returns"]), Returns.OTHER)
    if method == "editMessageChecklist":
        told = Returns.EDITED
    assert METHODS[method].returns is told


def test_what_may_be_paid_is_what_takes_the_parameter() -> None:
    taking = {name for name, told in BOT_API.items() if told.get("may_be_paid")}
    assert {name for name, facts in METHODS.items() if facts.may_be_paid} == taking


def test_what_only_asks_is_never_deferred_and_nothing_else_is_called_asking() -> None:
    asking = {name for name, reason in NOT_DEFERRABLE.items() if "only asks" in reason}
    named = {name for name in BOT_API if name.startswith("get")}
    assert named - asking == {"getUpdates", "getManagedBotToken"}
    assert asking <= named


@pytest.mark.parametrize(
    "method",
    [name for name in BOT_API if "Gift" in name and not name.startswith("get")]
    + ["transferBusinessAccountStars", "refundStarPayment"],
)
def test_money_and_gifts_are_never_left_for_later(method: str) -> None:
    if method == "setBusinessAccountGiftSettings":
        assert METHODS[method].idempotent
    else:
        assert "never be made twice" in NOT_DEFERRABLE[method]


IDEMPOTENT_KINDS = (CallKind.EDIT, CallKind.DELETE, CallKind.ANSWER, CallKind.ACTION)


@pytest.mark.parametrize(("method", "facts"), METHODS.items())
def test_what_puts_something_into_a_chat_is_not_idempotent_and_what_changes_it_is(
    method: str, facts: MethodFacts
) -> None:
    if facts.kind is CallKind.SEND:
        assert not facts.idempotent
    elif facts.kind in IDEMPOTENT_KINDS:
        assert facts.idempotent
    if method.startswith(("send", "forward", "copy", "create", "export")):
        is_passing = facts.kind in (CallKind.ACTION, CallKind.ANSWER)
        assert facts.idempotent is is_passing, "a second time would say it twice"


def test_unpinning_is_not_idempotent_as_it_takes_whatever_is_newest() -> None:
    assert not METHODS["unpinChatMessage"].idempotent
    assert METHODS["pinChatMessage"].idempotent


@pytest.mark.parametrize(("method", "facts"), METHODS.items())
def test_an_answer_names_its_query_and_has_a_window_and_nothing_else_does(
    method: str, facts: MethodFacts
) -> None:
    is_answer = facts.kind is CallKind.ANSWER
    assert (facts.query is not None) == is_answer
    assert (facts.window_ms is not None) == (is_answer or facts.kind is CallKind.ACTION)
    if facts.query is not None:
        assert facts.query.endswith("_query_id")
        assert "chat_id" not in facts.needs


@pytest.mark.parametrize(
    ("method", "facts"),
    [(m, f) for m, f in METHODS.items() if f.kind not in (CallKind.ANSWER, CallKind.MANAGE)],
)
def test_what_happens_in_a_chat_names_it(method: str, facts: MethodFacts) -> None:
    """An edit may instead name a message that was sent inline."""
    assert "chat_id" in facts.needs or facts.kind is CallKind.EDIT


def test_a_placeholder_goes_with_the_one_message_that_a_call_makes() -> None:
    named = {name for name, facts in METHODS.items() if facts.returns_message}
    sends = {name for name, facts in METHODS.items() if facts.kind is CallKind.SEND}
    assert named == sends - {
        *("sendMediaGroup", "forwardMessages", "copyMessages", "createForumTopic"),
    }


@pytest.mark.parametrize(
    ("method", "params", "items"),
    [
        ("sendMessage", {"text": "[1, 2, 3]"}, 1),
        ("sendMediaGroup", {"media": '[{"type": "photo"}, {"type": "photo"}]'}, 2),
        ("forwardMessages", {"message_ids": "[1,2,3]"}, 3),
        ("copyMessages", {"message_ids": "[7]"}, 1),
        ("sendPaidMedia", {"media": '[{"type": "photo"}, {"type": "photo"}]'}, 1),
        ("deleteMessages", {"message_ids": "[1, 2, 3]"}, 1),
        ("sendMediaGroup", {}, 1),
        ("sendMediaGroup", {"media": "[]"}, 1),
        ("sendMediaGroup", {"media": "no list"}, 1),
        ("sendMediaGroup", {"media": "[" * 100_000}, 1),
        ("sendNothing", {"media": "[1, 2]"}, 1),
    ],
)
def test_an_album_counts_as_many_messages_as_it_makes(
    method: str, params: dict[str, str], items: int
) -> None:
    assert items_of(method, params) == items
