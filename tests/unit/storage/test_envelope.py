"""What is read of an update before it is stored: every kind, every wrong form, real payloads."""

import json
from importlib import resources
from typing import Any

import pytest
from telegram import Update

from storage.envelope import NO_KIND, ODD_KIND, UPDATE_ID_MAX, Envelope, Unreadable, read_envelope
from tests.live.corpus import collected

DATA = resources.files("tests") / "data"
KINDS = json.loads((DATA / "botapi" / "update-kinds.json").read_text("utf-8"))["10.3"]

USER = {"id": 7, "is_bot": False, "first_name": "Ada"}
CHAT = {"id": -1001, "type": "supergroup", "title": "River"}
IN_CHAT = {"chat": CHAT, "date": 1}
BUSINESS = {**IN_CHAT, "business_connection_id": "bc-1"}

Lanes = tuple[str | None, str | None]

# Each kind with the least of its content, and the lanes it belongs to.
TABLE: dict[str, tuple[dict[str, Any], Lanes]] = {
    "message": ({**IN_CHAT, "from": USER}, ("c:-1001", "u:7")),
    "edited_message": ({**IN_CHAT, "from": USER}, ("c:-1001", "u:7")),
    "channel_post": (IN_CHAT | {"sender_chat": CHAT}, ("c:-1001", None)),
    "edited_channel_post": (IN_CHAT, ("c:-1001", None)),
    "business_connection": ({"id": "bc-1", "user": USER, "user_chat_id": 7}, (None, "u:7")),
    "business_message": ({**BUSINESS, "from": USER}, ("b:bc-1:-1001", "u:7")),
    "edited_business_message": ({**BUSINESS, "from": USER}, ("b:bc-1:-1001", "u:7")),
    "deleted_business_messages": ({**BUSINESS, "message_ids": [1]}, ("b:bc-1:-1001", None)),
    "guest_message": ({**IN_CHAT, "from": USER}, ("c:-1001", "u:7")),
    "message_reaction": ({**IN_CHAT, "user": USER}, ("c:-1001", "u:7")),
    "message_reaction_count": ({**IN_CHAT, "reactions": []}, ("c:-1001", None)),
    "inline_query": ({"id": "1", "from": USER, "query": ""}, (None, "u:7")),
    "chosen_inline_result": ({"result_id": "1", "from": USER}, (None, "u:7")),
    "callback_query": ({"id": "1", "from": USER, "message": IN_CHAT}, ("c:-1001", "u:7")),
    "shipping_query": ({"id": "1", "from": USER}, (None, "u:7")),
    "pre_checkout_query": ({"id": "1", "from": USER}, (None, "u:7")),
    "purchased_paid_media": ({"from": USER, "paid_media_payload": "x"}, (None, "u:7")),
    "poll": ({"id": "41", "question": "?"}, ("p:41", None)),
    "poll_answer": ({"poll_id": "41", "user": USER}, (None, "u:7")),
    "my_chat_member": ({**IN_CHAT, "from": USER}, ("c:-1001", "u:7")),
    "chat_member": ({**IN_CHAT, "from": USER}, ("c:-1001", "u:7")),
    "chat_join_request": ({**IN_CHAT, "from": USER, "user_chat_id": 7}, ("c:-1001", "u:7")),
    "chat_boost": ({"chat": CHAT, "boost": {"source": {"user": USER}}}, ("c:-1001", None)),
    "removed_chat_boost": ({"chat": CHAT, "source": {"user": USER}}, ("c:-1001", None)),
    "managed_bot": ({"user": USER, "bot": {"id": 8}}, (None, "u:7")),
    "subscription": ({"user": USER}, (None, "u:7")),
    "stopped_message_generation": ({"chat": CHAT, "draft_id": 1}, ("c:-1001", None)),
}

# The same for forms that no kind of today always has.
FORMS: dict[str, tuple[str, object, Lanes]] = {
    "a kind of tomorrow": ("hologram_call", {"from": USER, "participants": [1]}, (None, "u:7")),
    "a reaction in a chat's name": (
        "message_reaction",
        {**IN_CHAT, "actor_chat": {"id": -5}},
        ("c:-1001", None),
    ),
    "a vote in a chat's name": (
        "poll_answer",
        {"poll_id": "41", "voter_chat": {"id": -5}},
        ("c:-5", None),
    ),
    "a vote of nobody": ("poll_answer", {"poll_id": "41"}, ("p:41", None)),
    "a button under an inline message": (
        "callback_query",
        {"id": "1", "from": USER, "inline_message_id": "x"},
        (None, "u:7"),
    ),
    "a button in a business chat": (
        "callback_query",
        {"id": "1", "from": USER, "message": BUSINESS},
        ("b:bc-1:-1001", "u:7"),
    ),
    "a known name in another sense": (
        "hologram_call",
        {"chat": "a text", "user": [1], "message": "another", "from": USER},
        (None, "u:7"),
    ),
    "a message with text for a user": ("message", {**IN_CHAT, "user": "Ada"}, ("c:-1001", None)),
    "an empty connection": (
        "message",
        {**IN_CHAT, "business_connection_id": ""},
        ("c:-1001", None),
    ),
    "an endless connection": (
        "message",
        {**IN_CHAT, "business_connection_id": "x" * 257},
        ("c:-1001", None),
    ),
    "an id in quotes": ("message", {"chat": {"id": "-1001"}, "from": USER}, (None, "u:7")),
    "an id beyond 64 bits": ("message", {"chat": {"id": 2**70}, "from": USER}, (None, "u:7")),
    "a truth for an id": ("message", {"chat": {"id": True}, "from": USER}, (None, "u:7")),
    "no content": ("message", None, (None, None)),
    "a list for a content": ("message", [{"chat": CHAT}], (None, None)),
}

UNREADABLE = {
    "nothing": b"",
    "no object": b"[]",
    "no id": b'{"message":{}}',
    "zero": b'{"update_id":0}',
    "negative": b'{"update_id":-1}',
    "beyond SQLite": b'{"update_id":%d}' % (UPDATE_ID_MAX + 1),
    "a truth": b'{"update_id":true}',
    "a float": b'{"update_id":1.0}',
    "an exponent": b'{"update_id":1e3}',
    "a text": b'{"update_id":"1"}',
    "null": b'{"update_id":null}',
    "not a number": b'{"update_id":NaN}',
    "thousands of digits": b'{"update_id":%s}' % (b"9" * 5000),
    "cut": b'{"update_id":1,"message":{"te',
    "more behind": b'{"update_id":1}{}',
    "a byte order mark": b'\xef\xbb\xbf{"update_id":1}',
    "UTF-16": '{"update_id":1}'.encode("utf-16"),
    "no UTF-8": b'{"update_id":1,"x":"\xff"}',
    "half a surrogate": b'{"update_id":1,"x":"\\ud83d"}',
    "a bare control character": b'{"update_id":1,"x":"\x01"}',
    "too deep": b'{"update_id":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "too deep with objects": b'{"update_id":1,"x":' + b'{"x":' * 5_000 + b"1" + b"}" * 5_001,
}


def body(kind: str, content: object, update_id: int = 5) -> bytes:
    return json.dumps({"update_id": update_id, kind: content}, separators=(",", ":")).encode()


def test_the_table_has_every_kind_there_is() -> None:
    assert sorted(TABLE) == sorted(KINDS)


@pytest.mark.parametrize("kind", TABLE)
def test_each_kind_belongs_to_its_chat_and_its_user(kind: str) -> None:
    content, lanes = TABLE[kind]
    assert read_envelope(body(kind, content)) == Envelope(5, kind, *lanes)


@pytest.mark.parametrize("form", FORMS)
def test_an_unusual_form_gives_the_lanes_that_can_be_read(form: str) -> None:
    kind, content, lanes = FORMS[form]
    assert read_envelope(body(kind, content)) == Envelope(5, kind, *lanes)


@pytest.mark.parametrize("form", UNREADABLE)
def test_what_has_no_usable_id_is_unreadable(form: str) -> None:
    assert isinstance(read_envelope(UNREADABLE[form]), Unreadable)


@pytest.mark.parametrize("update_id", [1, 2**31, 2**53 + 1, UPDATE_ID_MAX])
def test_an_id_is_read_exactly(update_id: int) -> None:
    found = read_envelope(body("message", {}, update_id))
    assert isinstance(found, Envelope)
    assert found.update_id == update_id


def test_an_update_without_a_kind_is_one() -> None:
    assert read_envelope(b'{"update_id":5}') == Envelope(5, NO_KIND, None, None)


@pytest.mark.parametrize("key", ["a user's words", "x" * 65, "übung", "a\\u0000b", ""])
def test_a_key_that_can_be_no_kind_does_not_become_one(key: str) -> None:
    found = read_envelope(f'{{"update_id":5,"{key}":{{}}}}'.encode())
    assert isinstance(found, Envelope)
    assert found.kind == ODD_KIND


def test_of_two_kinds_the_first_one_counts() -> None:
    two = {"update_id": 5, "x": 1, "message": {"chat": {"id": 1}}, "poll": {"id": "2"}}
    assert read_envelope(json.dumps(two).encode()) == Envelope(5, "message", "c:1", None)


def test_of_two_ids_the_last_one_counts_as_for_every_other_reader() -> None:
    twice = b'{"update_id":1,"message":{},"update_id":2}'
    found = read_envelope(twice)
    assert isinstance(found, Envelope)
    assert found.update_id == json.loads(twice)["update_id"] == 2


def test_numbers_that_are_none_do_no_harm_beside_an_id() -> None:
    assert read_envelope(
        b'{"update_id":5,"message":{},"x":NaN,"y":-Infinity,"z":1e400}'
    ) == Envelope(5, "message", None, None)


def test_a_reason_quotes_nothing_of_the_body() -> None:
    for raw in (b'{"update_id":"my secret words"}', b'{"my secret words', b'"my secret words"'):
        found = read_envelope(raw)
        assert isinstance(found, Unreadable)
        assert "secret" not in found.reason


@pytest.mark.parametrize("entry", collected(), ids=lambda entry: str(entry["name"]))
def test_lanes_are_those_of_the_effective_chat_and_user(entry: dict[str, Any]) -> None:
    """As python-telegram-bot sees them: by these a turn's state is kept."""
    raw = json.dumps(entry["update"], separators=(",", ":")).encode()
    found = read_envelope(raw)
    assert isinstance(found, Envelope)
    assert (found.update_id, found.kind) == (entry["update"]["update_id"], entry["kind"])
    if entry["ptb_22_8"] != "ok":
        return
    update = Update.de_json(json.loads(raw), None)
    if update.effective_user is not None:
        assert found.user_lane == f"u:{update.effective_user.id}"
    if update.effective_chat is not None:
        assert found.chat_lane is not None
        assert found.chat_lane.endswith(f":{update.effective_chat.id}")
