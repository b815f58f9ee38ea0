"""Updates from elsewhere: whoever they speak of can be answered as at Telegram."""

import json
from pathlib import Path

import pytest

from tests.simulator.people import Impossible
from tests.unit.simulator.conftest import Town

EVE = {"id": 900, "is_bot": False, "first_name": "Eve"}
EVES_CHAT = {"id": 900, "first_name": "Eve", "type": "private"}
QUAY = {"id": -100_900, "title": "Quay", "type": "supergroup"}
MESSAGE = {"message_id": 41, "date": 1_700_000_000, "chat": EVES_CHAT, "from": EVE, "text": "hi"}


def inject(town: Town, **update: object) -> int:
    return town.telegram.people.inject(town.bot.id, update)


def test_a_strangers_message_can_be_answered_and_quoted(town: Town) -> None:
    inject(town, message=MESSAGE)
    answer = town.call(
        "sendMessage", chat_id=900, text="hello", reply_parameters={"message_id": 41}
    )
    assert answer["reply_to_message"]["text"] == "hi"
    assert answer["message_id"] > 41


def test_the_update_itself_is_delivered_as_it_came(town: Town) -> None:
    inject(town, message={**MESSAGE, "a_field_of_the_future": {"x": 1}})
    assert town.call("getUpdates")[-1]["message"]["a_field_of_the_future"] == {"x": 1}


def test_a_message_in_an_unknown_group_makes_the_group_known(town: Town) -> None:
    inject(town, message={**MESSAGE, "chat": QUAY})
    assert town.call("sendMessage", chat_id=QUAY["id"], text="x")["chat"] == QUAY


def test_a_strangers_button_press_can_be_answered_and_its_message_edited(town: Town) -> None:
    pressed = {**MESSAGE, "from": town.bot.to_json(), "text": "choose"}
    query = {"id": "q7", "from": EVE, "message": pressed, "chat_instance": "1", "data": "x"}
    inject(town, callback_query=query)

    assert town.call("answerCallbackQuery", callback_query_id="q7") is True
    assert town.call("editMessageText", chat_id=900, message_id=41, text="chosen")


def test_business_messages_open_a_chat_of_their_own(town: Town) -> None:
    inject(town, business_message={**MESSAGE, "business_connection_id": "b1"})
    sent = town.call("sendMessage", chat_id=900, business_connection_id="b1", text="x")
    assert sent["business_connection_id"] == "b1"
    # Without the connection the bot has never met this person.
    assert "chat not found" in town.refusal("sendMessage", chat_id=900, text="x")


def test_news_of_ones_own_standing_hold(town: Town) -> None:
    member = {"user": town.bot.to_json(), "status": "kicked", "until_date": 0}
    change = {"chat": EVES_CHAT, "from": EVE, "date": 1_700_000_000, "new_chat_member": member}
    inject(town, my_chat_member=change)
    assert "bot was blocked" in town.refusal("sendMessage", chat_id=900, text="x")

    inject(town, message={**MESSAGE, "chat": QUAY})
    inject(town, my_chat_member={**change, "chat": QUAY})
    refused = town.refusal("sendMessage", chat_id=QUAY["id"], text="x")
    assert refused == "403 Forbidden: bot was kicked from the supergroup chat"


def test_an_update_may_keep_its_own_number_once(town: Town) -> None:
    people = town.telegram.people
    assert people.inject(town.bot.id, {"update_id": 77, "message": MESSAGE}, keep_id=True) == 77
    with pytest.raises(Impossible):
        people.inject(town.bot.id, {"update_id": 77, "message": MESSAGE}, keep_id=True)
    with pytest.raises(Impossible):
        people.inject(town.bot.id, {"message": MESSAGE}, keep_id=True)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"chat": 5, "from": [], "message_id": "x", "date": None},
        {"chat": {"id": True, "type": "private"}, "from": {"id": "x", "first_name": 1}},
        {"chat": {"id": 1, "type": "moon"}, "text": 7, "entities": {"a": 1}, "message_id": 1},
        {"reply_markup": {"inline_keyboard": [5, [6]]}, **MESSAGE, "entities": [1, {}]},
    ],
)
@pytest.mark.parametrize("kind", ["message", "callback_query", "my_chat_member", "of_the_future"])
def test_malformed_updates_are_delivered_as_they_are(
    town: Town, kind: str, payload: dict[str, object]
) -> None:
    update_id = inject(town, **{kind: payload})
    assert town.call("getUpdates")[-1] == {"update_id": update_id, kind: payload}


CORPUS = sorted((Path(__file__).parents[2] / "data" / "updates").glob("*.json"))


def test_every_collected_update_can_be_delivered_under_its_own_number(town: Town) -> None:
    collected = [each["update"] for file in CORPUS for each in json.loads(file.read_text("utf-8"))]
    assert collected
    for update in collected:
        update_id = town.telegram.people.inject(town.bot.id, update, keep_id=True)
        assert json.loads(town.bot.archive[update_id].body) == update
        assert town.bot.archive[update_id].expires_at_ms > town.clock.now_ms()


def test_an_injected_update_arrives_whatever_kinds_the_bot_wants(town: Town) -> None:
    update_id = inject(town, chat_member={"chat": QUAY, "from": EVE, "date": 1})
    assert town.call("getUpdates")[-1]["update_id"] == update_id
