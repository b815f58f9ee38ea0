"""References: where calls name messages, and what stands there once those were sent."""

import json
from pathlib import Path

import pytest

from sender.references import (
    PLACES,
    InDoubt,
    Need,
    Parentless,
    Reference,
    TooSoon,
    filled_in,
    leftover,
    references,
    resolve,
)
from storage.lifecycle import HELD, TERMINAL, OutboxId, OutboxState
from storage.message_ids import Resolution

SENT = Resolution(OutboxState.SENT, 77)
DEAD = Resolution(OutboxState.DEAD, None)
SENT_IN_GROUP = Resolution(OutboxState.SENT, 5, chat_id=-77)
DATA = Path(__file__).parents[2] / "data" / "botapi" / "message-places-10.2.json"

# Numbers of topics and of messages that only one user sees: no answer that is made up holds one.
NOT_OURS = {"direct_messages_topic_id", "message_thread_id", "ephemeral_message_id"}


def listed(*placeholders: int, has_others: bool = False) -> list[Reference]:
    return [Reference(each, None, Need.LISTED, has_others) for each in placeholders]


def form_at(place: str, value: int) -> dict[str, str]:
    """A form that names a message at this place of the Bot API's description."""
    outer, _, inner = place.partition(".")
    if inner:
        return {outer: json.dumps({inner: value})}
    return {outer: json.dumps([value]) if outer.endswith("s") else str(value)}


@pytest.mark.parametrize("place", json.loads(DATA.read_text()))
def test_every_place_of_the_bot_api_that_names_a_message_is_known(place: str) -> None:
    found = [each.placeholder for each in references(form_at(place, -5))]
    assert found == ([] if place.rpartition(".")[2] in NOT_OURS else [-5])


@pytest.mark.parametrize("place", json.loads(DATA.read_text()))
def test_no_negative_id_passes_the_last_look_at_any_of_these_places(place: str) -> None:
    if place.rpartition(".")[2] in NOT_OURS:
        return
    assert leftover(form_at(place, -5)) is not None
    assert leftover(form_at(place, 5)) is None
    filled = filled_in(form_at(place, -5), {-5: 77})
    assert filled == form_at(place, 77)


def test_the_places_are_those_parameters() -> None:
    outer = {place.partition(".")[0] for place in json.loads(DATA.read_text())}
    # The server still reads the old name of a reply, which the description has dropped.
    assert outer - NOT_OURS | {"reply_to_message_id"} == PLACES


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"message_id": "-5"}, [-5]),
        ({"message_id": "5"}, []),
        ({"message_id": "-"}, []),
        ({"message_id": "-5x"}, []),
        ({"message_id": "--5"}, []),
        ({"message_id": "-12345678901234567"}, []),
        ({"message_ids": "[1, -6, -7]"}, [-6, -7]),
        ({"message_ids": '["-6"]'}, [-6]),
        ({"message_ids": "[true, null, -1.5]"}, []),
        ({"message_ids": "-6"}, []),
        ({"message_ids": "[-"}, []),
        ({"reply_to_message_id": "-6"}, [-6]),
        ({"reply_parameters": '{"message_id": -6}'}, [-6]),
        ({"reply_parameters": '{"message_id": "-6"}'}, [-6]),
        ({"reply_parameters": '{"message_id": 6, "chat_id": -100}'}, []),
        ({"reply_parameters": '{"message_id": true, "q": "-"}'}, []),
        ({"reply_parameters": "-no json"}, []),
        ({"reply_parameters": "[-1]"}, []),
        ({"message_id": "-5", "reply_parameters": '{"message_id": -6}'}, [-5, -6]),
        ({"text": "-5", "chat_id": "-100", "message_thread_id": "-5"}, []),
    ],
)
def test_placeholders_are_found_where_a_message_is_meant(
    params: dict[str, str], found: list[int]
) -> None:
    assert [each.placeholder for each in references(params)] == found


@pytest.mark.parametrize(
    ("params", "chat_id"),
    [
        ({"chat_id": "-100", "message_id": "-5"}, -100),
        ({"chat_id": "@name", "message_id": "-5"}, None),
        ({"chat_id": "7", "from_chat_id": "-100", "message_id": "-5"}, -100),
        ({"chat_id": "7", "from_chat_id": "-100", "message_ids": "[-5]"}, -100),
        ({"chat_id": "7", "reply_parameters": '{"message_id": -5}'}, 7),
        ({"chat_id": "7", "reply_parameters": '{"message_id": -5, "chat_id": -100}'}, -100),
        ({"chat_id": "7", "reply_parameters": '{"message_id": -5, "chat_id": "@name"}'}, None),
    ],
)
def test_a_message_is_meant_in_the_chat_that_the_call_says(
    params: dict[str, str], chat_id: int | None
) -> None:
    assert [each.chat_id for each in references(params)] == [chat_id]


def test_placeholders_become_telegrams_ids_and_nothing_else_changes() -> None:
    params = {
        "chat_id": "-100",
        "message_id": "-5",
        "reply_parameters": '{"message_id": -6, "quote": "a-b"}',
        "text": "-5",
    }
    form = filled_in(params, {-5: 77, -6: 78})
    assert form["message_id"] == "77"
    assert json.loads(form["reply_parameters"]) == {"message_id": 78, "quote": "a-b"}
    assert (form["chat_id"], form["text"]) == ("-100", "-5")
    assert list(form) == list(params), "the order is kept"
    assert leftover(form) is None


def test_messages_that_never_were_fall_out_of_a_list() -> None:
    assert filled_in({"message_ids": "[3, -5, -6]"}, {-5: 77})["message_ids"] == "[3, 77]"
    assert filled_in({"message_ids": "[3, -6]"}, {})["message_ids"] == "[3]"
    assert filled_in({"message_ids": "[3, 4]"}, {})["message_ids"] == "[3, 4]"


@pytest.mark.parametrize("value", ["-5", " -5", "-05", "-5.0", "- 5", "-99999999999999999999"])
def test_the_last_look_refuses_whatever_may_be_read_as_negative(value: str) -> None:
    assert leftover({"message_id": value}) is not None
    assert leftover({"message_ids": json.dumps([4, value])}) is not None
    assert leftover({"reply_parameters": json.dumps({"message_id": value})}) is not None


def test_all_known_placeholders_resolve() -> None:
    assert resolve([(Reference(-5), SENT)]) == {-5: 77}
    assert resolve([]) == {}


@pytest.mark.parametrize("state", [OutboxState.QUEUED, OutboxState.CLAIMED])
@pytest.mark.parametrize("need", Need)
def test_a_parent_that_still_waits_is_waited_for(state: OutboxState, need: Need) -> None:
    assert resolve([(Reference(-5, need=need), Resolution(state, None))]) == TooSoon(-5)


NEVER_A_MESSAGE = [
    None,
    Resolution(OutboxState.SENT, None),
    *[Resolution(state, None) for state in OutboxState if state in TERMINAL - {OutboxState.SENT}],
]


@pytest.mark.parametrize("resolution", NEVER_A_MESSAGE)
def test_a_parent_that_never_became_a_message_takes_its_child_along(
    resolution: Resolution | None,
) -> None:
    found = resolve([(Reference(-4), SENT), (Reference(-5), resolution)])
    assert isinstance(found, Parentless)


@pytest.mark.parametrize("resolution", NEVER_A_MESSAGE)
def test_a_list_goes_on_with_the_messages_that_there_are(resolution: Resolution | None) -> None:
    one, two = listed(-5, -6)
    assert resolve([(one, resolution), (two, SENT)]) == {-6: 77}
    assert isinstance(resolve([(one, resolution), (two, resolution)]), Parentless)
    [among_others] = listed(-5, has_others=True)
    assert resolve([(among_others, resolution)]) == {}


def test_what_can_not_be_said_any_more_waits_for_nothing() -> None:
    waiting = (Reference(-4), Resolution(OutboxState.CLAIMED, None))
    assert isinstance(resolve([waiting, (Reference(-5), DEAD)]), Parentless)
    assert resolve([waiting, (listed(-5)[0], DEAD)]) == TooSoon(-4)


@pytest.mark.parametrize("state", [*HELD, OutboxState.QUEUED])
def test_a_parent_in_doubt_leaves_its_child_to_a_person(state: OutboxState) -> None:
    """Also one that waits itself for a decision about another row."""
    doubtful = Resolution(state, None, OutboxId(9))
    assert resolve([(Reference(-4), SENT), (Reference(-5), doubtful)]) == InDoubt(OutboxId(9))


def test_what_only_follows_a_message_needs_no_id_of_it() -> None:
    after = Reference(-5, need=Need.SENT)
    assert resolve([(after, Resolution(OutboxState.SENT, None))]) == {}
    assert isinstance(resolve([(after, DEAD)]), Parentless)


@pytest.mark.parametrize(
    ("chat_id", "is_there"), [(-77, True), (-1_000_000_000_077, False), (7, True), (None, True)]
)
def test_a_message_of_a_group_is_not_sought_in_the_supergroup_that_it_became(
    chat_id: int | None, *, is_there: bool
) -> None:
    """There another message has its number."""
    found = resolve([(Reference(-5, chat_id), SENT_IN_GROUP)])
    assert (found == {-5: 5}) is is_there
    assert isinstance(found, Parentless) is not is_there
