"""The parameters of each method, and the reading of a form against them.

Stricter than Telegram, which ignores what it does not know: an unknown parameter, a missing one or
a value of the wrong type is refused and noted as a bug of the client. The tables follow Bot API
10.2; a test compares them with an excerpt of the published description.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum

from tests.simulator.wire import JsonObject, Refused

_INTEGER = re.compile(r"-?\d{1,19}")


class Kind(StrEnum):
    """How a value is written."""

    INTEGER = "integer"
    TEXT = "text"
    FLAG = "flag"
    OBJECT = "object"
    LIST = "list"
    CHAT = "chat"  # an integer, or @username
    FILE = "file"


_TARGET = {"chat_id": Kind.CHAT, "message_id": Kind.INTEGER}

FIELDS: dict[str, dict[str, Kind]] = {
    "getMe": {},
    "getUpdates": {
        "offset": Kind.INTEGER,
        "limit": Kind.INTEGER,
        "timeout": Kind.INTEGER,
        "allowed_updates": Kind.LIST,
    },
    "setWebhook": {
        "url": Kind.TEXT,
        "certificate": Kind.FILE,
        "ip_address": Kind.TEXT,
        "max_connections": Kind.INTEGER,
        "allowed_updates": Kind.LIST,
        "drop_pending_updates": Kind.FLAG,
        "secret_token": Kind.TEXT,
    },
    "deleteWebhook": {"drop_pending_updates": Kind.FLAG},
    "getWebhookInfo": {},
    "sendMessage": {
        "business_connection_id": Kind.TEXT,
        "chat_id": Kind.CHAT,
        "message_thread_id": Kind.INTEGER,
        "direct_messages_topic_id": Kind.INTEGER,
        "receiver_user_id": Kind.INTEGER,
        "callback_query_id": Kind.TEXT,
        "text": Kind.TEXT,
        "parse_mode": Kind.TEXT,
        "entities": Kind.LIST,
        "link_preview_options": Kind.OBJECT,
        "disable_notification": Kind.FLAG,
        "protect_content": Kind.FLAG,
        "allow_paid_broadcast": Kind.FLAG,
        "message_effect_id": Kind.TEXT,
        "suggested_post_parameters": Kind.OBJECT,
        "reply_parameters": Kind.OBJECT,
        "reply_markup": Kind.OBJECT,
    },
    "editMessageText": {
        "business_connection_id": Kind.TEXT,
        **_TARGET,
        "inline_message_id": Kind.TEXT,
        "text": Kind.TEXT,
        "parse_mode": Kind.TEXT,
        "entities": Kind.LIST,
        "link_preview_options": Kind.OBJECT,
        "rich_message": Kind.OBJECT,
        "reply_markup": Kind.OBJECT,
    },
    "editMessageReplyMarkup": {
        "business_connection_id": Kind.TEXT,
        **_TARGET,
        "inline_message_id": Kind.TEXT,
        "reply_markup": Kind.OBJECT,
    },
    "deleteMessage": dict(_TARGET),
    "answerCallbackQuery": {
        "callback_query_id": Kind.TEXT,
        "text": Kind.TEXT,
        "show_alert": Kind.FLAG,
        "url": Kind.TEXT,
        "cache_time": Kind.INTEGER,
    },
    "sendChatAction": {
        "business_connection_id": Kind.TEXT,
        "chat_id": Kind.CHAT,
        "message_thread_id": Kind.INTEGER,
        "action": Kind.TEXT,
    },
    "getChat": {"chat_id": Kind.CHAT},
}

# What must be there, with Telegram's words when it is not.
REQUIRED: dict[str, dict[str, str]] = {
    "setWebhook": {"url": 'parameter "url" is required'},
    "sendMessage": {"chat_id": "chat_id is empty", "text": "message text is empty"},
    "deleteMessage": {"chat_id": "chat_id is empty", "message_id": "message identifier is empty"},
    "answerCallbackQuery": {"callback_query_id": 'parameter "callback_query_id" is required'},
    "sendChatAction": {
        "chat_id": "chat_id is empty",
        "action": "wrong parameter action in request",
    },
    "getChat": {"chat_id": "chat_id is empty"},
}


class Args:
    """A form that has been checked; every getter knows that its value is well written."""

    def __init__(self, form: Mapping[str, str], values: Mapping[str, object]) -> None:
        self.form = form
        self._values = values

    def text(self, name: str, default: str = "") -> str:
        """A text, as sent."""
        return self.form.get(name, default)

    def has(self, name: str) -> bool:
        """Say whether the parameter was sent."""
        return name in self._values

    def integer(self, name: str, default: int = 0) -> int:
        """An integer."""
        value = self._values.get(name, default)
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        """A boolean, false when left out."""
        return self._values.get(name, False) is True

    def mapping(self, name: str) -> JsonObject | None:
        """A JSON object, None when left out."""
        value = self._values.get(name)
        return value if isinstance(value, dict) else None

    def items(self, name: str) -> list[object] | None:
        """A JSON array, None when left out."""
        value = self._values.get(name)
        return value if isinstance(value, list) else None


def bug(text: str) -> Refused:
    """A 400 for what no correct client sends."""
    return Refused(400, text, client_bug=True)


def read(method: str, form: Mapping[str, str], files: Mapping[str, bytes]) -> Args:
    """Check a form; raises Refused, marked as a client's bug, for the first fault found."""
    known = FIELDS[method]
    for name in [*form, *files]:
        if name not in known:
            raise bug(f'unknown parameter "{name}" of {method}')
    for name in files:
        if known[name] is not Kind.FILE:
            raise bug(f'parameter "{name}" of {method} takes no file')
    for name, words in REQUIRED.get(method, {}).items():
        if name not in form:
            raise bug(words)
    return Args(form, {name: _value(known[name], name, text) for name, text in form.items()})


def _value(kind: Kind, name: str, text: str) -> object:
    match kind:
        case Kind.TEXT | Kind.FILE:
            return text
        case Kind.INTEGER:
            if _INTEGER.fullmatch(text) is None:
                raise bug(f'parameter "{name}" must be an Integer')
            return int(text)
        case Kind.CHAT:
            if _INTEGER.fullmatch(text) is not None:
                return int(text)
            if not text.startswith("@"):
                raise bug("chat_id must be an Integer or a username")
            return text
        case Kind.FLAG:
            if text not in ("true", "false"):
                raise bug(f'parameter "{name}" must be a Boolean')
            return text == "true"
        case Kind.OBJECT | Kind.LIST:
            return _json(kind, name, text)


def _json(kind: Kind, name: str, text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        raise bug(f"can't parse {name} JSON object") from None
    wanted = dict if kind is Kind.OBJECT else list
    if not isinstance(value, wanted):
        raise bug(f"parameter {name} must be a JSON {kind}")
    return value
