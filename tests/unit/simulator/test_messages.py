"""sendMessage, edits and deletes: what Telegram keeps, and its words when it refuses."""

import pytest

from tests.simulator.chats import ChatType
from tests.simulator.faults import Acceptance, Cut
from tests.simulator.people import Impossible
from tests.unit.simulator.conftest import Town

KEYBOARD = {"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}


def test_a_message_is_in_the_ledger_and_in_the_chat(town: Town) -> None:
    sent = town.call("sendMessage", chat_id=town.ada, text=" hello ", reply_markup=KEYBOARD)

    assert sent["text"] == "hello"
    assert sent["chat"] == {
        "id": town.ada,
        "first_name": "Ada",
        "username": "ada",
        "type": "private",
    }
    assert sent["reply_markup"] == KEYBOARD
    assert [each.text for each in town.telegram.ledger.messages(town.bot.id, town.ada)] == ["hello"]


def test_method_names_have_no_case(town: Town) -> None:
    assert town.call("SENDmessage", chat_id=town.ada, text="x")["text"] == "x"


def test_private_chats_of_a_bot_share_one_row_of_message_ids(town: Town) -> None:
    bob = town.telegram.people.add_user("Bob")
    first = town.send()
    theirs = town.telegram.people.says(bob.id, "hi", bot_id=town.bot.id)

    assert theirs.message.message_id == first + 1


@pytest.mark.parametrize(
    ("form", "refusal"),
    [
        ({"text": "x" * 4_097}, "400 Bad Request: message is too long"),
        ({"text": "x" * 32_769}, "400 Bad Request: text is too long"),
        ({"text": ""}, "400 Bad Request: message text is empty"),
        ({"text": " \n "}, "400 Bad Request: text must be non-empty"),
        (
            {"text": "<b>x", "parse_mode": "HTML"},
            (
                "400 Bad Request: can't parse entities: "
                'Can\'t find end tag corresponding to start tag "b"'
            ),
        ),
        ({"text": "x", "parse_mode": "RTF"}, "400 Bad Request: unsupported parse_mode"),
        ({"text": "x", "chat_id": 77}, "400 Bad Request: chat not found"),
        ({"text": "x", "chat_id": "@nobody"}, "400 Bad Request: chat not found"),
        ({"text": "x", "message_thread_id": 3}, "400 Bad Request: message thread not found"),
        (
            {"text": "x", "business_connection_id": "b1"},
            "400 Bad Request: business connection not found",
        ),
        (
            {"text": "x", "reply_parameters": {"message_id": 99}},
            "400 Bad Request: message to be replied not found",
        ),
        (
            {"text": "x", "reply_parameters": {"message_id": 1, "quote": "never said"}},
            "400 Bad Request: QUOTE_TEXT_INVALID",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_in_telegrams_words(
    town: Town, form: dict[str, object], refusal: str
) -> None:
    assert town.refusal("sendMessage", **{"chat_id": town.ada, **form}) == refusal
    assert town.telegram.ledger.client_bugs() == []


def test_length_is_counted_in_code_points_after_parsing(town: Town) -> None:
    text = "<b>" + "🌊" * 4_096 + "</b>"
    assert len(town.call("sendMessage", chat_id=town.ada, text=text, parse_mode="HTML")["text"])


@pytest.mark.parametrize(
    ("button", "refusal"),
    [
        ({"text": "x", "callback_data": "d" * 65}, "BUTTON_DATA_INVALID"),
        ({"text": "x", "callback_data": ""}, "BUTTON_DATA_INVALID"),
        ({"text": "x", "url": "not an address"}, "BUTTON_URL_INVALID"),
        (
            {"text": "x"},
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
    ],
)
def test_broken_buttons_are_refused(town: Town, button: dict[str, str], refusal: str) -> None:
    markup = {"inline_keyboard": [[button]]}
    refused = town.refusal("sendMessage", chat_id=town.ada, text="x", reply_markup=markup)
    assert refused == f"400 Bad Request: {refusal}"


def test_callback_data_is_measured_in_bytes(town: Town) -> None:
    fits = {"inline_keyboard": [[{"text": "x", "callback_data": "é" * 32}]]}
    assert town.call("sendMessage", chat_id=town.ada, text="x", reply_markup=fits)


def test_a_number_on_a_button_is_taken_as_a_string(town: Town) -> None:
    markup = {"inline_keyboard": [[{"text": 2027, "callback_data": 7}]]}
    sent = town.call("sendMessage", chat_id=town.ada, text="when?", reply_markup=markup)
    assert sent["reply_markup"]["inline_keyboard"] == [[{"text": "2027", "callback_data": "7"}]]


def test_a_reply_shows_what_it_answers_unless_that_is_gone_and_it_may_go_without(
    town: Town,
) -> None:
    asked = town.telegram.people.says(town.ada, "when?", bot_id=town.bot.id).message.message_id
    reply: dict[str, object] = {"message_id": asked}
    answer = town.call("sendMessage", chat_id=town.ada, text="now", reply_parameters=reply)
    assert answer["reply_to_message"]["text"] == "when?"

    town.telegram.people.deletes(town.ada, asked, bot_id=town.bot.id)
    gone = town.refusal("sendMessage", chat_id=town.ada, text="now", reply_parameters=reply)
    assert gone == "400 Bad Request: message to be replied not found"

    reply["allow_sending_without_reply"] = True
    late = town.call("sendMessage", chat_id=town.ada, text="now", reply_parameters=reply)
    assert "reply_to_message" not in late


def test_an_edit_changes_the_text_and_drops_the_keyboard_that_is_not_sent_again(
    town: Town,
) -> None:
    sent = town.call("sendMessage", chat_id=town.ada, text="a", reply_markup=KEYBOARD)
    town.clock.advance_ms(2_000)
    edited = town.call("editMessageText", chat_id=town.ada, message_id=sent["message_id"], text="b")

    assert (edited["text"], edited["edit_date"]) == ("b", sent["date"] + 2)
    assert "reply_markup" not in edited


def test_an_edit_that_changes_nothing_is_told_so(town: Town) -> None:
    message_id = town.send("same")
    refused = town.refusal("editMessageText", chat_id=town.ada, message_id=message_id, text="same")
    assert refused.startswith("400 Bad Request: message is not modified: specified new message")


def test_a_keyboard_can_be_changed_alone(town: Town) -> None:
    message_id = town.send()
    where = {"chat_id": town.ada, "message_id": message_id}
    assert town.call("editMessageReplyMarkup", **where, reply_markup=KEYBOARD)["reply_markup"]
    refused = town.refusal("editMessageReplyMarkup", **where, reply_markup=KEYBOARD)
    assert "message is not modified" in refused


def test_only_a_bots_own_messages_can_be_edited(town: Town) -> None:
    theirs = town.telegram.people.says(town.ada, "mine", bot_id=town.bot.id).message.message_id
    refused = town.refusal("editMessageText", chat_id=town.ada, message_id=theirs, text="x")
    assert refused == "400 Bad Request: message can't be edited"


def test_a_deleted_message_can_be_neither_edited_nor_deleted_again(town: Town) -> None:
    where = {"chat_id": town.ada, "message_id": town.send()}
    assert town.call("deleteMessage", **where) is True

    assert town.refusal("deleteMessage", **where) == "400 Bad Request: message to delete not found"
    refused = town.refusal("editMessageText", **where, text="x")
    assert refused == "400 Bad Request: message to edit not found"


def test_after_two_days_a_message_stays(town: Town) -> None:
    message_id = town.send()
    town.clock.advance_ms(48 * 3_600_000 + 1_000)
    refused = town.refusal("deleteMessage", chat_id=town.ada, message_id=message_id)
    assert refused == "400 Bad Request: message can't be deleted for everyone"


def test_inline_messages_can_be_edited_once_they_are_known(town: Town) -> None:
    refused = town.refusal("editMessageText", inline_message_id="i1", text="x")
    assert refused == "400 Bad Request: MESSAGE_ID_INVALID"

    update = {
        "callback_query": {
            "id": "q1",
            "from": {"id": town.ada, "is_bot": False, "first_name": "Ada"},
            "inline_message_id": "i1",
            "chat_instance": "1",
            "data": "go",
        }
    }
    town.telegram.people.inject(town.bot.id, update)
    assert town.call("editMessageText", inline_message_id="i1", text="x") is True


@pytest.mark.parametrize(
    ("method", "form", "words"),
    [
        ("sendMessage", {"text": "x"}, "chat_id is empty"),
        ("sendMessage", {"chat_id": 1}, "message text is empty"),
        ("sendMessage", {"chat_id": 1, "text": "x", "txet": "y"}, "unknown parameter"),
        ("sendMessage", {"chat_id": "one", "text": "x"}, "chat_id must be an Integer"),
        ("sendMessage", {"chat_id": 1, "text": "x", "protect_content": "1"}, "must be a Boolean"),
        ("sendMessage", {"chat_id": 1, "text": "x", "reply_markup": "{"}, "can't parse"),
        ("deleteMessage", {"chat_id": 1, "message_id": "x"}, "must be an Integer"),
        ("editMessageText", {"chat_id": 1, "message_id": -5, "text": "x"}, "not specified"),
        ("sendChatAction", {"chat_id": 1}, "wrong parameter action"),
        ("banChatMember", {"chat_id": 1}, "method not found"),
    ],
)
def test_what_no_correct_client_sends_is_noted_as_its_bug(
    town: Town, method: str, form: dict[str, object], words: str
) -> None:
    assert words in town.refusal(method, **form)
    assert len(town.telegram.ledger.client_bugs()) == 1


@pytest.mark.parametrize(
    ("token", "status"),
    [("123456:other-secret", 401), ("999:simulated-secret", 401), ("nonsense", 404)],
)
def test_a_wrong_token_is_unauthorized_and_a_malformed_one_not_found(
    town: Town, token: str, status: int
) -> None:
    assert town.telegram.call(token, "getMe", {}).status == status


def test_a_revoked_token_is_unauthorized(town: Town) -> None:
    town.bot.revoked = True
    assert town.refusal("getMe") == "401 Unauthorized"


def test_the_ledger_tells_what_arrived_whatever_was_answered(town: Town) -> None:
    town.telegram.faults.next("sendMessage", Cut(Acceptance.AFTER))
    town.reply("sendMessage", chat_id=town.ada, text="lost answer")

    arrival = town.telegram.ledger.arrivals("sendMessage")[-1]

    assert (arrival.effect, arrival.code, arrival.fault) == (True, None, "Cut")
    assert arrival.params == {"chat_id": str(town.ada), "text": "lost answer"}


class TestPlaces:
    """Who may be written to, and the words when not."""

    def test_a_person_who_blocks_the_bot_is_not_reached_until_they_write_again(
        self, town: Town
    ) -> None:
        town.telegram.people.blocks(town.ada, bot_id=town.bot.id)
        refused = town.refusal("sendMessage", chat_id=town.ada, text="x")
        assert refused == "403 Forbidden: bot was blocked by the user"

        town.telegram.people.says(town.ada, "sorry", bot_id=town.bot.id)
        assert town.send()

    def test_a_deleted_account_is_not_reached(self, town: Town) -> None:
        town.telegram.people.deactivates(town.ada)
        refused = town.refusal("sendMessage", chat_id=town.ada, text="x")
        assert refused == "403 Forbidden: user is deactivated"

    def test_a_bot_does_not_begin_a_conversation(self, town: Town) -> None:
        bob = town.telegram.people.add_user("Bob")
        assert "chat not found" in town.refusal("sendMessage", chat_id=bob.id, text="x")

        town.telegram.people.add_chat(ChatType.GROUP, "Quay", users=(bob.id,), bots=(town.bot.id,))
        refused = town.refusal("sendMessage", chat_id=bob.id, text="x")
        assert refused == "403 Forbidden: bot can't initiate conversation with a user"

    @pytest.mark.parametrize("kind", [ChatType.GROUP, ChatType.SUPERGROUP, ChatType.CHANNEL])
    def test_a_bot_thrown_out_of_a_group_is_told_so(self, town: Town, kind: ChatType) -> None:
        quay = town.telegram.people.add_chat(kind, "Quay", users=(town.ada,), bots=(town.bot.id,))
        assert town.call("sendMessage", chat_id=quay.id, text="x")["chat"]["type"] == kind

        town.telegram.people.kicks_bot(town.ada, bot_id=town.bot.id, chat_id=quay.id)
        refused = town.refusal("sendMessage", chat_id=quay.id, text="x")
        assert refused == f"403 Forbidden: bot was kicked from the {kind} chat"

    def test_a_group_that_became_a_supergroup_tells_its_new_id(self, town: Town) -> None:
        people = town.telegram.people
        old = people.add_chat(ChatType.GROUP, "Quay", users=(town.ada,), bots=(town.bot.id,))
        sent = town.call("sendMessage", chat_id=old.id, text="x")["message_id"]
        new = people.upgrades(town.ada, chat_id=old.id)

        reply = town.reply("sendMessage", chat_id=old.id, text="x")
        assert f'"migrate_to_chat_id":{new.id}'.encode() in reply.body
        assert b"group chat was upgraded to a supergroup chat" in reply.body
        # An edit is not told where to: it just fails.
        edit = town.refusal("editMessageText", chat_id=old.id, message_id=sent, text="y")
        assert edit == "400 Bad Request: message to edit not found"
        assert town.call("sendMessage", chat_id=new.id, text="x")["chat"]["type"] == "supergroup"

    def test_nobody_writes_into_a_group_that_has_moved(self, town: Town) -> None:
        people = town.telegram.people
        old = people.add_chat(ChatType.GROUP, "Quay", users=(town.ada,), bots=(town.bot.id,))
        people.upgrades(town.ada, chat_id=old.id)
        with pytest.raises(Impossible):
            people.says(town.ada, "still here?", chat_id=old.id)

    def test_a_group_that_its_creator_deleted_is_gone(self, town: Town) -> None:
        people = town.telegram.people
        bob = people.add_user("Bob")
        quay = people.add_chat(
            ChatType.GROUP, "Quay", users=(town.ada, bob.id), bots=(town.bot.id,)
        )
        with pytest.raises(Impossible):
            people.dissolves(bob.id, chat_id=quay.id)
        people.dissolves(town.ada, chat_id=quay.id)
        refused = town.refusal("sendMessage", chat_id=quay.id, text="x")
        assert refused == "403 Forbidden: the group chat was deleted"

    def test_get_chat_and_chat_actions_find_the_same_chats(self, town: Town) -> None:
        assert town.call("getChat", chat_id=town.ada)["first_name"] == "Ada"
        assert town.call("sendChatAction", chat_id=town.ada, action="typing") is True
        refused = town.refusal("sendChatAction", chat_id=town.ada, action="dancing")
        assert refused == "400 Bad Request: wrong parameter action in request"


class TestAnswers:
    """Button presses wait for one answer, and not for ever."""

    def press(self, town: Town) -> str:
        sent = town.call("sendMessage", chat_id=town.ada, text="?", reply_markup=KEYBOARD)
        query = town.telegram.people.presses(town.ada, sent["message_id"], "go", bot_id=town.bot.id)
        return query.id

    def test_a_press_is_answered_once(self, town: Town) -> None:
        query_id = self.press(town)
        assert town.call("answerCallbackQuery", callback_query_id=query_id, text="ok") is True
        assert town.telegram.state.queries[query_id].answer == {"text": "ok", "show_alert": False}
        assert "query is too old" in town.refusal("answerCallbackQuery", callback_query_id=query_id)

    def test_a_press_waits_fifteen_seconds(self, town: Town) -> None:
        query_id = self.press(town)
        town.clock.advance_ms(15_001)
        refused = town.refusal("answerCallbackQuery", callback_query_id=query_id)
        assert refused == (
            "400 Bad Request: query is too old and response timeout expired or query ID is invalid"
        )

    def test_an_answer_has_room_for_two_hundred_characters(self, town: Town) -> None:
        query_id = self.press(town)
        refused = town.refusal("answerCallbackQuery", callback_query_id=query_id, text="x" * 201)
        assert refused == "400 Bad Request: MESSAGE_TOO_LONG"

    def test_only_a_button_that_is_there_can_be_pressed(self, town: Town) -> None:
        with pytest.raises(Impossible):
            town.telegram.people.presses(town.ada, town.send(), "go", bot_id=town.bot.id)
