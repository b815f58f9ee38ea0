"""The parameters of each method, and the reading of a form against them.

Stricter than Telegram, which ignores what it does not know: an unknown parameter, a missing one or
a value of the wrong type is refused and noted as a bug of the client. The tables are the published
description of Bot API 10.2 itself (tests/data/botapi).
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.simulator.wire import JsonObject, Refused

PUBLISHED = Path(__file__).parents[1] / "data" / "botapi" / "excerpt-10.2.json"

_INTEGER = re.compile(r"-?\d{1,19}")
_NUMBER = re.compile(r"-?\d{1,19}(\.\d{1,19})?")


class Kind(StrEnum):
    """How a value is written."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    FLAG = "flag"
    OBJECT = "object"
    LIST = "list"
    CHAT = "chat"  # an integer, or @username
    FILE = "file"


_NAMED: Mapping[str, Kind] = {
    "Integer": Kind.INTEGER,
    "Float": Kind.NUMBER,
    "String": Kind.TEXT,
    "Boolean": Kind.FLAG,
    "InputFile": Kind.FILE,
}
# Telegram's words when something that must be there is not; the rest are named by themselves.
_MISSING: Mapping[str, str] = {
    "chat_id": "chat_id is empty",
    "message_id": "message identifier is empty",
    "action": "wrong parameter action in request",
    "sendMessage.text": "message text is empty",
}


def _kind(types: list[str]) -> Kind:
    if types == ["Integer", "String"]:
        return Kind.CHAT
    return Kind.LIST if types[0].startswith("Array of") else _NAMED.get(types[0], Kind.OBJECT)


def _published() -> dict[str, list[dict[str, Any]]]:
    methods: dict[str, list[dict[str, Any]]] = json.loads(PUBLISHED.read_text("utf-8"))["methods"]
    return methods


def _words(method: str, name: str) -> str:
    return _MISSING.get(f"{method}.{name}", _MISSING.get(name, f'parameter "{name}" is required'))


FIELDS: dict[str, dict[str, Kind]] = {
    method: {each["name"]: _kind(each["types"]) for each in parameters}
    for method, parameters in _published().items()
}
# What must be there, with Telegram's words when it is not.
REQUIRED: dict[str, dict[str, str]] = {
    method: {each["name"]: _words(method, each["name"]) for each in parameters if each["required"]}
    for method, parameters in _published().items()
}
# The file of a parameter, or of a part of one, that came beside the form.
ATTACHED = "attach://"


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

    def number(self, name: str, default: float = 0.0) -> float:
        """A number, whole or not."""
        value = self._values.get(name, default)
        assert isinstance(value, int | float), name
        return float(value)

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
    for name in form:
        if name not in known:
            raise bug(f'unknown parameter "{name}" of {method}')
    for name in files:
        if name not in known and not any(ATTACHED + name in text for text in form.values()):
            raise bug(f'unknown parameter "{name}" of {method}')
        if name in known and known[name] is not Kind.FILE:
            raise bug(f'parameter "{name}" of {method} takes no file')
    for name, words in REQUIRED.get(method, {}).items():
        if name not in form and name not in files:
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
        case Kind.NUMBER:
            if _NUMBER.fullmatch(text) is None:
                raise bug(f'parameter "{name}" must be a Float')
            return float(text)
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
