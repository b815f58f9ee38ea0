"""Topics and invite links, files for stickers."""

import json

import pytest

from tests.simulator.chats import ChatType
from tests.simulator.people import Impossible
from tests.unit.simulator.conftest import TOKEN, Town


@pytest.fixture
def group(town: Town) -> int:
    people = town.telegram.people
    chat = people.add_chat(ChatType.SUPERGROUP, "Crew", users=(town.ada,), bots=(town.bot.id,))
    return chat.id


def test_a_topic_is_opened_and_written_to(town: Town, group: int) -> None:
    town.telegram.people.opens_topics(town.ada, chat_id=group)
    topic = town.call("createForumTopic", chat_id=group, name="Piers")
    thread = topic["message_thread_id"]
    assert (topic["name"], topic["icon_color"]) == ("Piers", 0x6FB9F0)
    sent = town.call("sendMessage", chat_id=group, message_thread_id=thread, text="seven")
    assert sent["message_id"] > thread
    assert town.telegram.ledger.client_bugs() == []


@pytest.mark.parametrize(
    ("form", "refusal"),
    [({"name": ""}, "TOPIC_TITLE_EMPTY"), ({"name": "x" * 129}, "TOPIC_TITLE_TOO_LONG")],
)
def test_a_topic_has_a_name(town: Town, group: int, form: dict[str, object], refusal: str) -> None:
    town.telegram.people.opens_topics(town.ada, chat_id=group)
    refused = town.refusal("createForumTopic", chat_id=group, **form)
    assert refused == f"400 Bad Request: {refusal}"


def test_only_a_forum_has_topics_and_only_a_supergroup_is_one(town: Town, group: int) -> None:
    refused = town.refusal("createForumTopic", chat_id=group, name="Piers")
    assert refused == "400 Bad Request: the chat is not a forum"
    people = town.telegram.people
    plain = people.add_chat(ChatType.GROUP, "Few", users=(town.ada,)).id
    with pytest.raises(Impossible, match="no supergroup"):
        people.opens_topics(town.ada, chat_id=plain)
    bob = people.add_user("Bob").id
    with pytest.raises(Impossible, match="only its creator"):
        people.opens_topics(bob, chat_id=group)


def test_each_export_is_a_new_link_and_the_one_before_it_is_revoked(town: Town, group: int) -> None:
    first, second = (town.call("exportChatInviteLink", chat_id=group) for _ in range(2))
    assert first != second
    links = town.telegram.state.links[town.bot.id, group]
    assert [links[each]["is_revoked"] for each in (first, second)] == [True, False]


def test_a_link_is_made_as_asked_and_revoked(town: Town, group: int) -> None:
    made = town.call("createChatInviteLink", chat_id=group, name="Friends", member_limit=3)
    assert (made["name"], made["member_limit"], made["is_primary"]) == ("Friends", 3, False)
    about = {"chat_id": group, "invite_link": made["invite_link"]}
    assert town.call("revokeChatInviteLink", **about)["is_revoked"]
    about["invite_link"] = "https://t.me/+none"
    assert "INVITE_HASH_EXPIRED" in town.refusal("revokeChatInviteLink", **about)
    both = {"member_limit": 3, "creates_join_request": True}
    assert "member limit" in town.refusal("createChatInviteLink", chat_id=group, **both)
    assert "can't access" in town.refusal("exportChatInviteLink", chat_id=town.ada)


def test_a_file_for_a_sticker_is_taken_in(town: Town) -> None:
    form = {"user_id": str(town.ada), "sticker_format": "static"}
    reply = town.telegram.call(TOKEN, "uploadStickerFile", form, {"sticker": b"webp"})
    told = json.loads(reply.body)["result"]
    assert town.call("getFile", file_id=told["file_id"])["file_size"] == 4
    oil = form | {"sticker_format": "oil"}
    refused = town.telegram.call(TOKEN, "uploadStickerFile", oil, {"sticker": b"webp"})
    assert b"sticker format must be one of" in refused.body
