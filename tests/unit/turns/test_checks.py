"""What Telegram would certainly refuse fails where it is said, and what it might take passes."""

import json

import pytest
from telegram.error import BadRequest

from bot.turns.calls import Call
from bot.turns.checks import check
from bot.turns.classes import CLASSES, CallClass
from tests.simulator.arguments import METHODS


def refused(method: str, **params: object) -> str:
    """The words with which a call is refused."""
    with pytest.raises(BadRequest) as caught:
        check(call(method, **params))
    return caught.value.message


def call(method: str, **params: object) -> Call:
    form = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in params.items()
    }
    return Call(method, {"chat_id": "7", **form})


def keyboard(**button: object) -> dict[str, object]:
    return {"inline_keyboard": [[{"text": "ok", "callback_data": "a"}], [{"text": "x", **button}]]}


@pytest.mark.parametrize(
    "text", ["a" * 4096, "🏟" * 4096, " " * 9 + "a" * 4096 + "\n", "a\r" * 4096]
)
def test_a_text_of_4096_code_points_passes(text: str) -> None:
    check(call("sendMessage", text=text))


def test_a_longer_text_is_refused_with_the_limit_and_the_byte() -> None:
    told = refused("sendMessage", text="é" * 4097)
    assert told.startswith("Message is too long: text has 4097 characters")
    assert "4096 are allowed; it passes that at byte offset 8192" in told


def test_markup_does_not_count() -> None:
    check(call("sendMessage", text="<b>" + "a" * 4096 + "</b>", parse_mode="HTML"))
    told = refused("sendMessage", text="<b>" + "a" * 4097 + "</b>", parse_mode="HTML")
    assert told.startswith("Message is too long: text has 4097 characters after entities parsing")


def test_a_text_over_the_bytes_that_are_read_at_all_is_refused() -> None:
    told = refused("sendMessage", text="<b></b>" * 5000 + "a", parse_mode="HTML")
    assert told.startswith("Text is too long: text has 35001 bytes with its markup, 32768 are")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "Message text is empty"),
        ({"text": ""}, "Message text is empty"),
        ({"text": " \n\u200b"}, "Text must be non-empty"),
        ({"text": "<b> </b>", "parse_mode": "HTML"}, "Text must be non-empty"),
    ],
)
def test_a_message_must_show_something(params: dict[str, object], words: str) -> None:
    assert refused("sendMessage", **params).startswith(words)


@pytest.mark.parametrize(
    ("mode", "text", "words"),
    [
        (
            "HTML",
            "é<b>x",
            "Can't parse entities: can't find end tag corresponding to start tag \"b\"",
        ),
        ("HTML", "é<x>", 'Can\'t parse entities: unsupported start tag "x" at byte offset 2'),
        ("MarkdownV2", "é a.", "Can't parse entities: character '.' is reserved"),
        (
            "MarkdownV2",
            "*a",
            "Can't parse entities: can't find end of bold entity at byte offset 0",
        ),
        ("Markdown", "a _", "Can't parse entities: can't find end of the entity starting at byte"),
        ("BBCode", "a", "Unsupported parse_mode"),
    ],
)
def test_broken_markup_is_refused_as_the_library_would_hand_it_on(
    mode: str, text: str, words: str
) -> None:
    told = refused("sendMessage", text=text, parse_mode=mode)
    assert told.startswith(words)
    assert "at byte offset" in told


def test_half_a_character_is_refused() -> None:
    told = refused("sendMessage", text="a\ud83d")
    assert told.startswith("Strings must be encoded in utf-8 (at byte offset 1)")


def test_entities_must_lie_in_their_text() -> None:
    entity = {"type": "bold", "offset": 1, "length": 5}
    check(call("sendMessage", text="a🏟bcd", entities=[entity]))
    told = refused("sendMessage", text="a🏟b", entities=[entity])
    assert told.startswith("Entity beginning at utf-16 offset 1 ends after the end of the text")
    # With a parse_mode Telegram does not look at them, and what is no entity is Telegram's to tell.
    check(call("sendMessage", text="a", entities=[entity], parse_mode="HTML"))
    check(call("sendMessage", text="a", entities=[{"kind": "new"}]))
    check(call("sendMessage", text="a", entities="nonsense"))


@pytest.mark.parametrize(
    "method", ["sendPhoto", "sendDocument", "copyMessage", "editMessageCaption"]
)
def test_a_caption_has_1024_characters_and_may_be_empty(method: str) -> None:
    check(call(method, caption=""))
    check(call(method))
    check(call(method, caption="a" * 1024))
    told = refused(method, caption="a" * 1025)
    assert told.startswith("Message caption is too long: caption has 1025 characters")


def test_a_story_takes_twice_the_caption() -> None:
    check(call("postStory", caption="a" * 2048))
    assert refused("postStory", caption="a" * 2049).startswith("Message caption is too long")


def test_an_edit_is_held_to_what_a_message_is_held_to() -> None:
    assert refused("editMessageText", text="a" * 4097).startswith("Message is too long")
    assert refused("editMessageText", text=" ").startswith("Text must be non-empty")
    check(call("editMessageText", rich_message={"markdown": "a"}))


def test_a_draft_may_be_empty() -> None:
    check(call("sendMessageDraft", draft_id=1, text=""))
    assert refused("sendMessageDraft", draft_id=1, text="a" * 4097).startswith(
        "Message is too long"
    )


def test_an_answer_to_a_press_has_200_characters() -> None:
    check(call("answerCallbackQuery"))
    check(call("answerCallbackQuery", text="🏟" * 200))
    told = refused("answerCallbackQuery", text="a" * 201)
    assert "text has 201 characters" in told
    assert "200 are allowed" in told


def test_a_button_carries_64_bytes() -> None:
    check(call("sendMessage", text="a", reply_markup=keyboard(callback_data="é" * 32)))
    told = refused("sendMessage", text="a", reply_markup=keyboard(callback_data="é" * 33))
    assert told.lower().startswith(
        "button_data_invalid: callback_data has 66 bytes, 64 are allowed"
    )
    assert told.endswith("reply_markup.inline_keyboard[1][0]")


@pytest.mark.parametrize(
    "markup",
    [
        keyboard(url="https://a.b", callback_data=""),
        keyboard(pay=True),
        keyboard(something_new={}),
        {"inline_keyboard": []},
        {"keyboard": [["text"]]},
        {"remove_keyboard": True},
        {"force_reply": True},
        "",
    ],
)
def test_a_keyboard_that_telegram_may_take_passes(markup: object) -> None:
    check(call("sendMessage", text="a", reply_markup=markup))


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        (keyboard(callback_data=""), "Can't parse inline keyboard button: text buttons are"),
        (keyboard(), "Can't parse inline keyboard button: text buttons are unallowed"),
        ({"inline_keyboard": [[{"text": "", "url": "a.b"}]]}, "Inline keyboard button text must"),
        ({"inline_keyboard": [[5]]}, "Can't parse inline keyboard button: inlinekeyboardbutton"),
        ({"inline_keyboard": [{"text": "a"}]}, 'Field "inline_keyboard" of the'),
    ],
)
def test_a_malformed_keyboard_is_refused_at_its_button(markup: object, words: str) -> None:
    told = refused("editMessageReplyMarkup", message_id=1, reply_markup=markup)
    assert told.startswith(words)
    assert "reply_markup.inline_keyboard[" in told


def album(*kinds: str, **more: object) -> list[dict[str, object]]:
    return [{"type": kind, "media": "attach://a", **more} for kind in kinds]


def test_an_album_has_ten_items_at_most() -> None:
    check(call("sendMediaGroup", media=album(*["photo", "video"] * 5)))
    told = refused("sendMediaGroup", media=album(*["photo"] * 11))
    assert told.startswith("Too many messages to send as an album: 11 items, 10 are allowed")
    assert refused("sendMediaGroup", media=[]).startswith("There are no messages to send")


def test_an_album_of_one_is_sent_by_telegram_and_so_passes() -> None:
    check(call("sendMediaGroup", media=album("photo")))


def test_audio_and_documents_stay_among_themselves() -> None:
    check(call("sendMediaGroup", media=album("document", "document")))
    told = refused("sendMediaGroup", media=album("photo", "document"))
    assert told.startswith("Document can't be mixed with other media types: media[1]")
    told = refused("sendMediaGroup", media=album("audio", "audio", "video"))
    assert told.startswith("Audio can't be mixed with other media types: media[2]")
    assert "animation" in refused("sendMediaGroup", media=album("photo", "animation"))


def test_captions_inside_media_are_checked() -> None:
    media = [*album("photo"), *album("photo", caption="<b>", parse_mode="HTML")]
    assert refused("sendMediaGroup", media=media).endswith("in media[1].caption")
    told = refused("editMessageMedia", media=album("photo", caption="a" * 1025)[0])
    assert "media.caption has 1025 characters" in told
    assert refused("sendPaidMedia", media=[]).startswith("Invalid number of paid media")


def test_a_poll_has_a_question_and_one_to_twelve_short_answers() -> None:
    check(call("sendPoll", question="a" * 300, options=[{"text": "a" * 100}] * 12))
    check(call("sendPoll", question="q", options=["a"]))
    told = refused("sendPoll", question="a" * 301, options=["a"])
    assert told.startswith("Poll question length must not exceed 300: question has 301 characters")
    told = refused("sendPoll", question="q", options=["a", "b" * 101])
    assert told.startswith("Poll options length must not exceed 100: options[1].text has 101")
    told = refused("sendPoll", question="q", options=["a"] * 13)
    assert told.startswith("Poll can't have more than 12 options: 13 are given")
    assert refused("sendPoll", question="q", options=[]).startswith("Poll must have at least one")
    assert refused("sendPoll", question=" ", options=["a"]).startswith("Text must be non-empty")


def test_inline_results_are_looked_into() -> None:
    content = {"message_text": "<b>", "parse_mode": "HTML"}
    result = {"type": "article", "id": "1", "title": "t", "input_message_content": content}
    told = refused("answerInlineQuery", results=[result])
    assert told.endswith("in results[0].input_message_content.message_text")
    assert refused("answerWebAppQuery", result=result).endswith(
        "in result.input_message_content.message_text"
    )
    photo = {"type": "photo", "id": "1", "caption": "a" * 1025}
    assert "results[0].caption has 1025" in refused("answerInlineQuery", results=[photo])
    pressed = {"type": "photo", "id": "1", "reply_markup": keyboard(callback_data="a" * 65)}
    assert refused("answerInlineQuery", results=[pressed]).endswith(
        "results[0].reply_markup.inline_keyboard[1][0]"
    )
    told = refused("answerInlineQuery", results=[{"type": "game", "id": "1"}] * 51)
    assert told.startswith("Too many inline query results specified: 51 are given")


def test_a_quote_is_checked() -> None:
    reply = {"message_id": 1, "quote": "<b>", "quote_parse_mode": "HTML"}
    told = refused("sendMessage", text="a", reply_parameters=reply)
    assert told.endswith("in reply_parameters.quote")


@pytest.mark.parametrize("method", ["copyMessages", "forwardMessages", "deleteMessages"])
def test_a_hundred_messages_at_once(method: str) -> None:
    check(call(method, message_ids=[1] * 100))
    assert "101 are given" in refused(method, message_ids=[1] * 101)
    assert refused(method, message_ids=[]).startswith("Message identifiers are not specified")


def test_a_refusal_quotes_nothing_that_was_said() -> None:
    told = refused("sendMessage", text="secret*" * 2000, parse_mode="Markdown")
    assert "secret" not in told


def test_what_is_unknown_passes() -> None:
    check(call("sendSomethingNew", text="", caption="a" * 9999))
    check(call("sendMediaGroup", media="no json"))


MARKED_UP = [
    (method, mode)
    for method, fields in METHODS.items()
    if CLASSES[method] is not CallClass.READ
    for mode in fields
    if mode.endswith("parse_mode")
]


@pytest.mark.parametrize(("method", "mode"), MARKED_UP)
def test_every_text_that_may_be_marked_up_is_read(method: str, mode: str) -> None:
    """A newer description of the Bot API shows what is not looked at."""
    name = mode.removesuffix("_parse_mode")
    named = ["text", "caption"] if name == "parse_mode" else [name]
    given = {each: "<b>" for each in named if each in METHODS[method]}
    rest = {"question": "q", "options": ["a"]} if method == "sendPoll" else {}
    assert "end tag corresponding" in refused(method, **{**rest, **given, mode: "HTML"})
