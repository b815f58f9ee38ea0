"""A text that is too long becomes several messages, as one unit."""

import json

import pytest
from telegram.error import BadRequest

from bot.turns.calls import Call
from bot.turns.checks import check
from bot.turns.splitting import PARTS_MAX, split
from bot.turns.wishes import Send

SPLIT = Send(split=True)


def call(wish: Send = SPLIT, **params: str) -> Call:
    return Call("sendMessage", {"chat_id": "7", **params}, wish)


def test_a_text_that_fits_goes_as_it_was_given() -> None:
    short = call(text="<b>" + "a" * 4096 + "</b>", parse_mode="HTML")
    assert split(short) == (short,)


def test_without_a_wish_nothing_is_split() -> None:
    long = call(Send(), text="a" * 5000)
    assert split(long) == (long,)
    with pytest.raises(BadRequest, match="Message is too long"):
        check(long)


def test_a_caption_can_not_be_split() -> None:
    photo = Call("sendPhoto", {"chat_id": "7", "photo": "x", "caption": "a" * 1025}, SPLIT)
    assert split(photo) == (photo,)
    with pytest.raises(BadRequest, match="Message caption is too long"):
        check(photo)


def test_markup_is_carried_across_a_cut_as_entities() -> None:
    whole = call(
        text="<b>" + "a" * 4000 + " " + "🏟" * 4000 + "</b> &amp; <code>z</code>",
        parse_mode="HTML",
        disable_notification="true",
    )
    first, second = split(whole)
    assert first.params == {
        "chat_id": "7",
        "text": "a" * 4000,
        "entities": json.dumps([{"type": "bold", "offset": 0, "length": 4000}]),
        "disable_notification": "true",
    }
    assert second.params["text"] == "🏟" * 4000 + " & z"
    assert json.loads(second.params["entities"]) == [
        {"type": "bold", "offset": 0, "length": 8000},
        {"type": "code", "offset": 8003, "length": 1},
    ]
    assert "parse_mode" not in second.params
    for part in (first, second):
        check(part)


def test_entities_that_were_given_are_carried_across_too() -> None:
    mention = {"type": "text_mention", "offset": 0, "length": 5000, "user": {"id": 5}}
    parts = split(call(text="a" * 5000, entities=json.dumps([mention])))
    found = [json.loads(part.params["entities"]) for part in parts]
    assert found == [[{**mention, "length": 4096}], [{**mention, "length": 904}]]


def test_the_reply_is_the_first_parts_and_the_keyboard_the_last_ones() -> None:
    parts = split(
        call(
            text="a" * 9000,
            reply_parameters='{"message_id": 5}',
            message_effect_id="9",
            reply_markup='{"inline_keyboard": []}',
            message_thread_id="3",
        )
    )
    assert [sorted(part.params) for part in parts] == [
        ["chat_id", "message_effect_id", "message_thread_id", "reply_parameters", "text"],
        ["chat_id", "message_thread_id", "text"],
        ["chat_id", "message_thread_id", "reply_markup", "text"],
    ]


def test_what_decides_whether_a_text_is_begun_is_the_first_parts() -> None:
    wish = Send(split=True, wait=True, supersede="s", cancel_on_edit=True, key="k", expires_in=60)
    first, middle, last = (part.wish for part in split(call(wish, text="a" * 9000)))
    assert (first.supersede, first.cancel_on_edit, first.key) == ("s", True, "k")
    assert (middle.supersede, middle.cancel_on_edit, middle.key) == (None, False, "k/2")
    assert last.key == "k/3"
    assert [each.wait for each in (first, middle, last)] == [False, False, True]
    assert all(each.expires_in == 60 and not each.split for each in (first, middle, last))


def test_broken_markup_is_refused_however_long() -> None:
    with pytest.raises(BadRequest, match="at byte offset 5000"):
        split(call(text="a" * 5000 + "<x>", parse_mode="HTML"))


def test_a_text_of_more_than_a_hundred_parts_is_refused() -> None:
    with pytest.raises(BadRequest, match="text would be 101 messages, 100 are allowed"):
        split(call(text="a" * (4096 * PARTS_MAX + 1)))


def test_a_long_text_without_anything_to_see_is_refused_as_empty() -> None:
    (only,) = split(call(text=" " * 5000))
    with pytest.raises(BadRequest, match="Text must be non-empty"):
        check(only)
