"""Files, albums, copies and forwards: what Telegram keeps, and what it tells of half of it."""

import json
from collections.abc import Sequence

import pytest

from tests.simulator.chats import ChatType
from tests.simulator.faults import Acceptance, Cut, HalfAlbum, HiddenFlood, Unnumbered
from tests.simulator.ledger import Arrival
from tests.simulator.media import file_id
from tests.unit.simulator.conftest import Town

PAGE = "https://example.org/"
KINDS = ("photo", "audio", "document", "video", "animation", "voice", "video_note", "sticker")
METHODS = dict(
    zip(
        KINDS,
        (
            *("sendPhoto", "sendAudio", "sendDocument", "sendVideo", "sendAnimation"),
            *("sendVoice", "sendVideoNote", "sendSticker"),
        ),
        strict=True,
    )
)


def album(town: Town, *kinds: str, caption: str = "") -> list[dict[str, str]]:
    """Photos or the like, by `file_id`; the first has the caption."""
    bot_id = town.bot.id
    media = [
        {"type": kind, "media": file_id(kind, bot_id, number)} for number, kind in enumerate(kinds)
    ]
    return [{**media[0], "caption": caption}, *media[1:]] if caption else media


def last(town: Town) -> Arrival:
    return town.telegram.ledger.arrivals()[-1]


def left(town: Town) -> list[str]:
    return [each.text for each in town.telegram.ledger.messages(town.bot.id, town.ada)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_sent_by_its_id_and_by_its_address(town: Town, kind: str) -> None:
    named = file_id(kind, town.bot.id)
    by_id = town.call(METHODS[kind], chat_id=town.ada, **{kind: named})
    by_address = town.call(METHODS[kind], chat_id=town.ada, **{kind: PAGE + kind})
    again = by_address[kind][0] if kind == "photo" else by_address[kind]

    assert named in json.dumps(by_id[kind])
    assert town.call(METHODS[kind], chat_id=town.ada, **{kind: again["file_id"]})
    assert town.telegram.ledger.client_bugs() == []


@pytest.mark.parametrize(
    ("named", "refusal"),
    [
        (
            file_id("photo", 987),
            "wrong remote file identifier specified: can't unserialize it. Wrong last symbol",
        ),
        (file_id("video", 123456), "can't use file of type Video as Photo"),
        ("/etc/hostname", "wrong file identifier/HTTP URL specified"),
        ("file:///etc/hostname", "wrong file identifier/HTTP URL specified"),
    ],
)
def test_a_file_that_is_not_this_bots_photo_is_refused(
    town: Town, named: str, refusal: str
) -> None:
    refused = town.refusal("sendPhoto", chat_id=town.ada, photo=named)
    assert refused == f"400 Bad Request: {refusal}"


def test_a_file_may_come_along(town: Town) -> None:
    form = {"chat_id": str(town.ada), "photo": "attach://p"}
    reply = town.telegram.call(town.bot.token, "sendPhoto", form, {"p": b"png"})
    assert reply.status == 200
    reply = town.telegram.call(
        town.bot.token, "sendPhoto", {"chat_id": str(town.ada)}, {"photo": b"png"}
    )
    assert reply.status == 200
    assert "no file" in town.refusal("sendPhoto", chat_id=town.ada, photo="attach://q")


def test_a_caption_is_shown_measured_and_edited(town: Town) -> None:
    named = file_id("photo", town.bot.id)
    sent = town.call(
        "sendPhoto", chat_id=town.ada, photo=named, caption="<i>a</i>", parse_mode="HTML"
    )
    assert (sent["caption"], sent["caption_entities"][0]["type"]) == ("a", "italic")

    about = {"chat_id": town.ada, "message_id": sent["message_id"]}
    assert town.call("editMessageCaption", **about, caption="b")["caption"] == "b"
    again = town.refusal("editMessageCaption", **about, caption="b")
    assert "message is not modified" in again
    assert "no text in the message" in town.refusal("editMessageText", **about, text="c")
    long = town.refusal("editMessageCaption", **about, caption="x" * 1_025)
    assert long == "400 Bad Request: message caption is too long"
    text = town.send()
    refused = town.refusal("editMessageCaption", chat_id=town.ada, message_id=text, caption="b")
    assert refused == "400 Bad Request: there is no caption in the message to edit"


def test_another_file_takes_the_place_of_one(town: Town) -> None:
    photo, video = (file_id(kind, town.bot.id) for kind in ("photo", "video"))
    sent = town.call("sendPhoto", chat_id=town.ada, photo=photo, caption="a")
    about = {"chat_id": town.ada, "message_id": sent["message_id"]}
    new = {"type": "video", "media": video, "caption": "a"}

    edited = town.call("editMessageMedia", **about, media=new)

    assert "photo" not in edited
    assert edited["video"]["file_id"] == video
    assert "not modified" in town.refusal("editMessageMedia", **about, media=new)


class TestAlbums:
    """One call, one message for each item, and one error for all of them."""

    def test_an_album_is_a_message_for_each_item_and_counts_for_as_many(self, town: Town) -> None:
        sent = town.call("sendMediaGroup", chat_id=town.ada, media=album(town, "photo", "video"))

        assert len({each["message_id"] for each in sent}) == 2
        assert len({each["media_group_id"] for each in sent}) == 1
        assert (last(town).items, last(town).messages_left) == (2, 2)

    @pytest.mark.parametrize(
        ("kinds", "refusal"),
        [
            (["photo"] * 11, "too many messages to send as an album"),
            (["photo", "audio"], "audio can't be mixed with other media types"),
            (["document", "photo"], "document can't be mixed with other media types"),
            (["photo", "voice"], "can't use the media of the specified type in the album"),
        ],
    )
    def test_what_is_no_album_is_refused_whole(
        self, town: Town, kinds: Sequence[str], refusal: str
    ) -> None:
        refused = town.refusal("sendMediaGroup", chat_id=town.ada, media=album(town, *kinds))
        assert refused == f"400 Bad Request: {refusal}"
        assert left(town) == []

    def test_an_album_of_one_is_a_clients_bug(self, town: Town) -> None:
        town.refusal("sendMediaGroup", chat_id=town.ada, media=album(town, "photo"))
        assert len(town.telegram.ledger.client_bugs()) == 1

    def test_half_an_album_is_one_error_and_the_rest_is_there(self, town: Town) -> None:
        media = album(town, "photo", "photo", "photo")
        town.telegram.faults.next("sendMediaGroup", HalfAlbum(2))

        refused = town.refusal("sendMediaGroup", chat_id=town.ada, media=media)

        assert refused == (
            "400 Bad Request: failed to send message #2 with the error message "
            '"Message was not sent"'
        )
        assert left(town) == [media[0]["media"], media[2]["media"]]
        assert (last(town).effect, last(town).messages_left) == (True, 2)

    def test_who_has_blocked_the_bot_shows_inside_the_error_as_telegram_itself_says_it(
        self, town: Town
    ) -> None:
        town.telegram.people.blocks(town.ada, bot_id=town.bot.id)
        media = album(town, "photo", "photo")
        refused = town.refusal("sendMediaGroup", chat_id=town.ada, media=media)
        assert refused == (
            '403 Forbidden: failed to send message #1 with the error message "USER_IS_BLOCKED"'
        )

    def test_a_flood_hides_inside_the_error_of_an_album(self, town: Town) -> None:
        town.telegram.faults.next("sendMediaGroup", HiddenFlood(8))
        media = album(town, "photo", "photo")
        refused = town.refusal("sendMediaGroup", chat_id=town.ada, media=media)
        assert refused == (
            "400 Bad Request: failed to send message #1 with the error message "
            '"Too Many Requests: retry after 8"'
        )
        assert left(town) == []

    def test_a_call_of_one_message_is_refused_with_the_inner_words(self, town: Town) -> None:
        town.telegram.faults.next(None, HalfAlbum(inner="PEER_ID_INVALID"))
        refused = town.refusal("sendMessage", chat_id=town.ada, text="x")
        assert refused == "400 Bad Request: PEER_ID_INVALID"


class TestCopies:
    """What is gone is passed over without a word."""

    def test_a_copy_has_no_author_and_a_forward_has_one(self, town: Town) -> None:
        said = town.telegram.people.says(town.ada, "mine", bot_id=town.bot.id).message.message_id
        about = {"chat_id": town.ada, "from_chat_id": town.ada, "message_id": said}

        copied = town.call("copyMessage", **about)
        forwarded = town.call("forwardMessage", **about)

        assert set(copied) == {"message_id"}
        assert forwarded["forward_origin"]["sender_user"]["id"] == town.ada
        assert left(town) == ["mine", "mine"]

    def test_a_copy_may_have_another_caption(self, town: Town) -> None:
        named = file_id("photo", town.bot.id)
        sent = town.call("sendPhoto", chat_id=town.ada, photo=named, caption="a")
        about = {"chat_id": town.ada, "from_chat_id": town.ada, "message_id": sent["message_id"]}
        town.call("copyMessage", **about, caption="b")
        assert left(town) == ["a", "b"]

    @pytest.mark.parametrize(
        ("method", "refusal"),
        [
            ("copyMessage", "message to copy not found"),
            ("forwardMessage", "message to forward not found"),
        ],
    )
    def test_one_that_is_gone_is_refused(self, town: Town, method: str, refusal: str) -> None:
        about = {"chat_id": town.ada, "from_chat_id": town.ada, "message_id": 999}
        assert town.refusal(method, **about) == f"400 Bad Request: {refusal}"

    @pytest.mark.parametrize("method", ["copyMessages", "forwardMessages"])
    def test_of_many_those_that_are_gone_are_passed_over(self, town: Town, method: str) -> None:
        ids = [town.send(text) for text in ("a", "b", "c")]
        town.call("deleteMessage", chat_id=town.ada, message_id=ids[1])
        about = {"chat_id": town.ada, "from_chat_id": town.ada}

        made = town.call(method, **about, message_ids=ids)

        assert [set(each) for each in made] == [{"message_id"}] * 2
        assert left(town)[3:] == ["a", "c"]
        assert (last(town).items, last(town).messages_left) == (3, 2)
        assert "not found" in town.refusal(method, **about, message_ids=[998, 999])
        assert town.telegram.ledger.client_bugs() == []
        town.refusal(method, **about, message_ids=ids[::-1])
        assert len(town.telegram.ledger.client_bugs()) == 1

    def test_half_of_several_copies_is_one_error(self, town: Town) -> None:
        ids = [town.send(text) for text in ("a", "b", "c")]
        town.telegram.faults.next("copyMessages", HalfAlbum(1))
        about = {"chat_id": town.ada, "from_chat_id": town.ada, "message_ids": ids}
        assert "failed to send message #1" in town.refusal("copyMessages", **about)
        assert left(town)[3:] == ["b", "c"]

    def test_what_is_protected_stays_where_it_is(self, town: Town) -> None:
        sent = town.call("sendMessage", chat_id=town.ada, text="x", protect_content=True)
        about = {"chat_id": town.ada, "from_chat_id": town.ada, "message_id": sent["message_id"]}
        refused = town.refusal("forwardMessage", **about)
        assert refused == "400 Bad Request: message has protected content and can't be forwarded"


def test_a_message_that_is_only_scheduled_has_the_number_zero(town: Town) -> None:
    town.telegram.faults.next("sendVideo", Unnumbered())
    sent = town.call("sendVideo", chat_id=town.ada, video=file_id("video", town.bot.id))
    assert sent["message_id"] == 0
    assert [each.message_id for each in town.telegram.ledger.messages(town.bot.id, town.ada)] == [0]


def test_a_lost_answer_hides_a_whole_album(town: Town) -> None:
    town.telegram.faults.next("sendMediaGroup", Cut(Acceptance.AFTER))
    town.reply("sendMediaGroup", chat_id=town.ada, media=album(town, "photo", "photo"))
    assert (last(town).code, last(town).effect, last(town).messages_left) == (None, True, 2)


def test_several_messages_are_deleted_in_one_call(town: Town) -> None:
    channel = town.telegram.people.add_chat(ChatType.CHANNEL, "News", bots=(town.bot.id,))
    posts = [town.call("sendMessage", chat_id=channel.id, text=text)["message_id"] for text in "ab"]
    assert town.call("deleteMessages", chat_id=channel.id, message_ids=[*posts, 999]) is True
    town.refusal("deleteMessage", chat_id=channel.id, message_id=posts[0])


def uploaded(town: Town, content: bytes) -> str:
    form = {"chat_id": str(town.ada)}
    reply = town.telegram.call(town.bot.token, "sendDocument", form, {"document": content})
    found: str = json.loads(reply.body)["result"]["document"]["file_id"]
    return found


def test_what_was_uploaded_can_be_downloaded_by_its_bot(town: Town) -> None:
    told = town.call("getFile", file_id=uploaded(town, b"pdf"))
    assert told["file_size"] == 3
    assert town.telegram.download(town.bot.token, told["file_path"]) == b"pdf"
    assert town.telegram.download("1:A", told["file_path"]) is None
    assert town.telegram.download(town.bot.token, "documents/file_1") is None


@pytest.mark.parametrize(
    "named", ["nonsense", file_id("photo", 987), file_id("document", 123456, 77)]
)
def test_a_file_that_nobody_uploaded_can_not(town: Town, named: str) -> None:
    told = "wrong file_id or the file is temporarily unavailable"
    assert town.refusal("getFile", file_id=named) == f"400 Bad Request: {told}"


def test_the_same_file_has_another_name_for_each_kind_and_bot(town: Town) -> None:
    named = uploaded(town, b"pdf")
    assert f"-{town.bot.id}-" in named
    assert named == uploaded(town, b"pdf")


def test_a_photo_that_is_too_large_is_refused_and_so_is_an_empty_file(town: Town) -> None:
    form = {"chat_id": str(town.ada)}
    for content, told in ((bytes((10 << 20) + 1), b"too big for a photo"), (b"", b"non-empty")):
        reply = town.telegram.call(town.bot.token, "sendPhoto", form, {"photo": content})
        assert told in reply.body
