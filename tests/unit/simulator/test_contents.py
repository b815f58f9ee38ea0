"""Polls, dice, places, marks, drafts and the answers to queries that are no button presses."""

import json

import pytest

from tests.simulator.chats import ChatType
from tests.simulator.people import Impossible
from tests.unit.simulator.conftest import Town

OPTIONS = [{"text": "yes"}, {"text": "no"}]
INVOICE = {
    "title": "Ticket",
    "description": "Across and back",
    "payload": "ticket-1",
    "provider_token": "made:up",
    "currency": "EUR",
    "prices": [{"label": "across", "amount": 200}, {"label": "back", "amount": 150}],
}


@pytest.mark.parametrize(
    ("method", "form", "shown"),
    [
        ("sendPoll", {"question": "sure?", "options": OPTIONS}, "poll"),
        ("sendDice", {}, "dice"),
        ("sendDice", {"emoji": "🎰"}, "dice"),
        ("sendLocation", {"latitude": 52.5, "longitude": 13}, "location"),
        (
            "sendVenue",
            {"latitude": 1, "longitude": 2, "title": "Quay", "address": "East"},
            "venue",
        ),
        ("sendContact", {"phone_number": "+1", "first_name": "Bob"}, "contact"),
        ("sendInvoice", INVOICE, "invoice"),
    ],
)
def test_what_is_no_text_shows_itself(
    town: Town, method: str, form: dict[str, object], shown: str
) -> None:
    assert shown in town.call(method, chat_id=town.ada, **form)
    assert town.telegram.ledger.client_bugs() == []


@pytest.mark.parametrize(
    ("method", "form", "refusal"),
    [
        ("sendPoll", {"question": "?", "options": []}, "poll must have at least 1 option"),
        ("sendPoll", {"question": "?", "options": OPTIONS * 7}, "too many options"),
        ("sendDice", {"emoji": "x"}, "EMOTICON_INVALID"),
        ("sendLocation", {"latitude": 91, "longitude": 0}, "wrong location specified"),
        ("pinChatMessage", {"message_id": 999}, "message to pin not found"),
        ("setMessageReaction", {"message_id": 999}, "message to react not found"),
        ("stopPoll", {"message_id": 999}, "message with poll to stop not found"),
        ("sendInvoice", {**INVOICE, "title": "t" * 33}, "INVOICE_TITLE_INVALID"),
        ("sendInvoice", {**INVOICE, "provider_token": ""}, "PAYMENT_PROVIDER_INVALID"),
        ("sendInvoice", {**INVOICE, "currency": "XTR"}, "CURRENCY_TOTAL_AMOUNT_INVALID"),
    ],
)
def test_what_cannot_be_is_refused(
    town: Town, method: str, form: dict[str, object], refusal: str
) -> None:
    refused = town.refusal(method, chat_id=town.ada, **form)
    assert refused == f"400 Bad Request: {refusal}"


def test_an_invoice_tells_the_sum_of_its_prices(town: Town) -> None:
    shown = town.call("sendInvoice", chat_id=town.ada, **INVOICE)
    assert (shown["invoice"]["currency"], shown["invoice"]["total_amount"]) == ("EUR", 350)


def test_what_a_person_shows_has_its_words_as_a_caption(town: Town) -> None:
    sizes = [{"file_id": "of-hers", "file_unique_id": "1", "width": 1, "height": 1}]
    said = town.telegram.people.says(town.ada, "me", bot_id=town.bot.id, shows={"photo": sizes})
    assert said.message.to_json()["caption"] == "me"
    assert said.message.to_json()["photo"] == sizes


def test_a_poll_is_stopped_once(town: Town) -> None:
    poll = town.call("sendPoll", chat_id=town.ada, question="?", options=OPTIONS)
    about = {"chat_id": town.ada, "message_id": poll["message_id"]}
    assert town.call("stopPoll", **about)["is_closed"]
    assert town.refusal("stopPoll", **about) == "400 Bad Request: poll can't be stopped"


def test_pins_and_reactions_may_be_set_again(town: Town) -> None:
    about = {"chat_id": town.ada, "message_id": town.send()}
    reaction = [{"type": "emoji", "emoji": "👍"}]
    for _ in range(2):
        assert town.call("pinChatMessage", **about) is True
        assert town.call("setMessageReaction", **about, reaction=reaction) is True
    message = town.telegram.state.conversation(town.bot.id, town.ada).find(about["message_id"])
    assert message is not None
    assert (message.pinned, message.reactions) == (True, {town.bot.id: ("👍",)})
    assert town.call("setMessageReaction", **about) is True
    assert town.call("unpinChatMessage", chat_id=town.ada) is True
    assert (message.pinned, message.reactions) == (False, {town.bot.id: ()})


def test_a_member_of_a_supergroup_may_not_pin(town: Town) -> None:
    group = town.telegram.people.add_chat(
        ChatType.SUPERGROUP, "Quay", users=(town.ada,), bots=(town.bot.id,)
    )
    sent = town.call("sendMessage", chat_id=group.id, text="x")
    refused = town.refusal("pinChatMessage", chat_id=group.id, message_id=sent["message_id"])
    assert "not enough rights" in refused


class TestDrafts:
    """A text that is being written before somebody's eyes."""

    def test_a_draft_grows_until_a_message_takes_its_place(self, town: Town) -> None:
        for text in ("Once", "Once upon"):
            assert town.call("sendMessageDraft", chat_id=town.ada, draft_id=7, text=text) is True
        assert town.telegram.state.drafts == {(town.bot.id, town.ada, 7): "Once upon"}
        town.send("Once upon a time")
        assert town.telegram.state.drafts == {}

    def test_only_a_person_has_a_draft_before_their_eyes(self, town: Town) -> None:
        group = town.telegram.people.add_chat(ChatType.GROUP, "Quay", bots=(town.bot.id,))
        refused = town.refusal("sendMessageDraft", chat_id=group.id, draft_id=7, text="x")
        assert refused == "400 Bad Request: PEER_ID_INVALID"

    def test_its_person_may_stop_it(self, town: Town) -> None:
        town.call("sendMessageDraft", chat_id=town.ada, draft_id=7, text="x")
        town.telegram.people.stops_generation(town.ada, 7, bot_id=town.bot.id)
        newest = json.loads(town.bot.deliverer.pending[-1].body)
        assert newest["stopped_message_generation"]["draft_id"] == 7
        with pytest.raises(Impossible):
            town.telegram.people.stops_generation(town.ada, 7, bot_id=town.bot.id)


class TestQueries:
    """Questions that wait a few seconds."""

    def test_an_inline_query_is_answered_once(self, town: Town) -> None:
        query = town.telegram.people.asks_inline(town.ada, "ships", bot_id=town.bot.id)
        results = [{"type": "article", "id": "1"}]
        about = {"inline_query_id": query.id, "results": results}
        assert town.call("answerInlineQuery", **about) is True
        assert query.answer == {"results": ["1"]}
        assert "query is too old" in town.refusal("answerInlineQuery", **about)

    @pytest.mark.parametrize(
        ("results", "refusal"),
        [
            ([{"id": str(n)} for n in range(51)], "RESULTS_TOO_MUCH"),
            ([{"id": "1"}, {"id": "1"}], "RESULT_ID_DUPLICATE"),
        ],
    )
    def test_results_that_are_none_are_refused(
        self, town: Town, results: list[dict[str, str]], refusal: str
    ) -> None:
        query = town.telegram.people.asks_inline(town.ada, "ships", bot_id=town.bot.id)
        refused = town.refusal("answerInlineQuery", inline_query_id=query.id, results=results)
        assert refused == f"400 Bad Request: {refusal}"

    def test_a_checkout_waits_ten_seconds(self, town: Town) -> None:
        people = town.telegram.people
        first, second = (people.checks_out(town.ada, "p", bot_id=town.bot.id) for _ in range(2))
        town.clock.advance_ms(10_000)
        assert town.call("answerPreCheckoutQuery", pre_checkout_query_id=first.id, ok=True) is True
        town.clock.advance_ms(1)
        late = town.refusal("answerPreCheckoutQuery", pre_checkout_query_id=second.id, ok=True)
        assert "query is too old" in late

    def test_a_no_at_the_checkout_has_a_reason(self, town: Town) -> None:
        query = town.telegram.people.checks_out(town.ada, "p", bot_id=town.bot.id)
        town.refusal("answerPreCheckoutQuery", pre_checkout_query_id=query.id, ok=False)
        assert len(town.telegram.ledger.client_bugs()) == 1

    def test_a_query_is_answered_by_the_method_of_its_kind(self, town: Town) -> None:
        query = town.telegram.people.asks_inline(town.ada, "ships", bot_id=town.bot.id)
        refused = town.refusal("answerCallbackQuery", callback_query_id=query.id)
        assert "query is too old" in refused

    @pytest.mark.parametrize(
        ("kind", "method"),
        [
            ("inline_query", "answerInlineQuery"),
            ("pre_checkout_query", "answerPreCheckoutQuery"),
            ("shipping_query", "answerShippingQuery"),
        ],
    )
    def test_a_query_from_elsewhere_can_be_answered(
        self, town: Town, kind: str, method: str
    ) -> None:
        asked = {"id": "q1", "from": {"id": 99, "is_bot": False, "first_name": "Eve"}}
        town.telegram.people.inject(town.bot.id, {kind: asked})
        answer: dict[str, object] = {f"{kind}_id": "q1", "ok": True}
        if kind == "inline_query":
            answer = {"inline_query_id": "q1", "results": []}
        assert town.call(method, **answer) is True
