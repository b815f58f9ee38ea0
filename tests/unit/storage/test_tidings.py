"""What an update tells the sender at once, and what tells nothing."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from storage.lifecycle import Withdrawal
from storage.tidings import DELETED_MAX, TELLING, Reach, Tidings, Withdrawn, tidings_of

CUSTOMER = {"id": 7, "is_bot": False, "first_name": "Ann"}
OWNER = {"id": 8, "is_bot": False, "first_name": "Bo"}
OTHER_BOT = {"id": 9, "is_bot": True, "first_name": "Helper"}
CHAT = {"id": 7, "type": "private", "first_name": "Ann"}
BUSINESS = {"business_connection_id": "bc", "chat": CHAT, "message_id": 5}
ANSWERED = [Withdrawn(Withdrawal.PERSON_ANSWERED)]


def told(kind: str, content: object) -> list[Tidings]:
    body = json.dumps({"update_id": 1, kind: content}).encode()
    return list(tidings_of(kind, body))


@pytest.mark.parametrize(
    "kind", ["edited_message", "edited_channel_post", "edited_business_message"]
)
def test_an_edit_tells_which_message_says_something_else_now(kind: str) -> None:
    assert told(kind, BUSINESS) == [Withdrawn(Withdrawal.MESSAGE_EDITED, "5")]


def test_a_deletion_in_a_business_chat_tells_of_each_message() -> None:
    deleted = {"business_connection_id": "bc", "chat": CHAT, "message_ids": [123, 321]}
    assert told("deleted_business_messages", deleted) == [
        Withdrawn(Withdrawal.MESSAGE_DELETED, "123"),
        Withdrawn(Withdrawal.MESSAGE_DELETED, "321"),
    ]


def test_of_a_deletion_without_end_only_the_first_are_told() -> None:
    deleted = {"chat": CHAT, "message_ids": list(range(1, DELETED_MAX + 500))}
    assert len(told("deleted_business_messages", deleted)) == DELETED_MAX


def test_a_stopped_generation_tells_its_draft() -> None:
    stopped = {"chat": CHAT, "message_thread_id": 7, "draft_id": 41}
    assert told("stopped_message_generation", stopped) == [
        Withdrawn(Withdrawal.GENERATION_STOPPED, "41")
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"from": OWNER}, ANSWERED),
        ({"from": CUSTOMER}, []),
        ({"from": OWNER, "sender_business_bot": OTHER_BOT}, []),
        ({"from": OWNER, "is_from_offline": True}, []),
        ({"from": OWNER, "is_from_offline": False}, ANSWERED),
        ({}, []),
    ],
    ids=["the owner", "the customer", "a bot", "an away message", "by hand", "nobody"],
)
def test_only_a_person_of_the_business_who_writes_himself_has_answered(
    message: Mapping[str, Any], expected: list[Tidings]
) -> None:
    assert told("business_message", {**BUSINESS, **message}) == expected


@pytest.mark.parametrize(
    ("kind", "status", "gone"),
    [
        ("private", "kicked", "the user blocked the bot"),
        ("private", "member", None),
        ("supergroup", "kicked", "the bot is out of the chat (kicked)"),
        ("group", "left", "the bot is out of the chat (left)"),
        ("channel", "administrator", None),
    ],
)
def test_a_change_of_membership_tells_whether_the_bot_can_write(
    kind: str, status: str, gone: str | None
) -> None:
    changed = {"chat": {"id": -5, "type": kind}, "new_chat_member": {"status": status}}
    assert told("my_chat_member", changed) == [Reach(-5, gone)]


@pytest.mark.parametrize("kind", ["message", "callback_query", "chat_member", "moon_landing"])
def test_an_ordinary_update_tells_nothing_and_is_not_read(kind: str) -> None:
    assert tidings_of(kind, b"not even JSON") == ()
    assert kind not in TELLING


@pytest.mark.parametrize("kind", sorted(TELLING))
@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        "text",
        {},
        {"message_id": True, "message_ids": 5, "draft_id": "41", "chat": CHAT},
        {"message_id": 2**64, "message_ids": [2**64], "draft_id": -(2**64)},
        {"message_id": 5.0, "message_ids": ["5"], "draft_id": None, "from": 7, "chat": 7},
        {"chat": {"id": 7, "type": 1}, "new_chat_member": "kicked", "from": CUSTOMER},
    ],
)
def test_what_does_not_look_as_it_should_tells_nothing(kind: str, content: object) -> None:
    assert told(kind, content) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"edited_message": ', b"\xff", b"null"])
def test_no_bytes_make_it_raise(body: bytes) -> None:
    for kind in TELLING:
        assert tidings_of(kind, body) == ()
