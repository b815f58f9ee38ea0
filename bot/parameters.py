"""Read what a stranger's program gives as JSON, and make of it the form fields that Telegram takes.

Pure. Text goes as it is and everything else as JSON, as python-telegram-bot would have sent it, so
that a call from a program and one from a handler are the same row. What is refused here would make
a row that can't be stored, can't be sent, or makes Telegram's server open a file that nobody meant
to give away. Whether the call makes sense is Telegram's to say.
"""

import codecs
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from storage.methods import CallKind, MethodFacts

Json = str | int | float | bool | list["Json"] | dict[str, "Json"] | None

DEPTH_MAX: Final = 64
"""Nesting that nothing of the Bot API comes near, and that every reader of JSON survives."""

# Chat ids have at most 52 significant bits (Bot API, Chat.id); everything else fits into 64.
_CHAT_ID_BITS: Final = 52
_INTEGER_BITS: Final = 63
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CHAT_NUMBER: Final = re.compile(r"-?[1-9][0-9]{0,15}")
_CHAT_NAME: Final = re.compile(r"@[A-Za-z][A-Za-z0-9_]{2,63}")
_ID_CHARS_MAX: Final = 256
_MESSAGE_NUMBER: Final = re.compile(r"[1-9][0-9]{0,15}")
_FILE_ID: Final = re.compile(r"[A-Za-z0-9_-]{20,200}")
# What takes a file, wherever it stands in these parameters (Bot API, "Sending files").
_FILES: Final = frozenset(
    {
        *("animation", "audio", "cover", "document", "live_photo", "media", "old_sticker"),
        *("photo", "sticker", "thumbnail", "video", "video_note", "voice"),
    }
)
_HOLD_FILES: Final = frozenset({"explanation_media", "options", "rich_message", "stickers"})
_REPLY: Final = "reply_parameters"
_PACKED: Final = _FILES | _HOLD_FILES | {_REPLY}
_EXPECTED_FILE: Final = (
    "expected a file_id or an https:// address: Telegram fetches the file itself; one from your "
    "disk can't be sent with this call"
)
_EXPECTED_ID: Final = "expected an id that Telegram gave, a string"
_EXPECTED_MESSAGE: Final = "expected the id of a message: an integer from 1 up"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with what was given: its place, and what was expected. Quotes no words."""

    field: str
    expected: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.field}: {self.expected}"


class NotJson(ValueError):
    """These bytes are no JSON that can be taken; the message says why, and quotes nothing."""


def read_json(raw: bytes) -> Json:
    """Parse strictly: UTF-8, one meaning for each name, numbers that are numbers.

    Raises NotJson.
    """
    if not raw.strip():
        raise NotJson("expected JSON, found nothing")
    if raw.startswith(codecs.BOM_UTF8):
        raise NotJson("expected JSON without a byte order mark")
    try:
        found: Json = json.loads(
            raw.decode(), object_pairs_hook=_object, parse_constant=_no_constant
        )
    except NotJson:
        raise
    except UnicodeDecodeError:
        raise NotJson("expected JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        told = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise NotJson(f"expected JSON, found: {told}") from None
    except ValueError:
        raise NotJson("expected JSON with numbers of a sane length") from None
    except RecursionError:
        raise NotJson(f"expected JSON nested at most {DEPTH_MAX} deep") from None
    _check_all(found)
    return found


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotJson("expected each name once in an object")
    return made


def _no_constant(name: str) -> Json:
    raise NotJson(f"expected JSON, which has no {name}")


def _check_all(found: Json) -> None:
    level: list[Json] = [found]
    for _ in range(DEPTH_MAX + 1):
        if not level:
            return
        for value in level:
            _check_value(value)
        level = [inner for value in level for inner in _inside(value)]
    raise NotJson(f"expected JSON nested at most {DEPTH_MAX} deep")


def _inside(value: Json) -> Iterator[Json]:
    match value:
        case dict():
            yield from value.keys()
            yield from value.values()
        case list():
            yield from value
        case _:
            pass


def _check_value(value: Json) -> None:
    match value:
        case str():
            if not is_encodable(value):
                raise NotJson("expected whole characters, found half of a surrogate pair")
        case bool():
            pass
        case int():
            if value.bit_length() > _INTEGER_BITS:
                raise NotJson(f"expected integers of at most {_INTEGER_BITS} bits")
        case float():
            if not math.isfinite(value):
                raise NotJson("expected finite numbers")
        case _:
            pass


def is_encodable(text: str) -> bool:
    """Tell whether a text can be written as UTF-8 at all."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def form_of(params: Mapping[str, Json]) -> dict[str, str]:
    """The form fields of these parameters, by name, so that the same call is always the same.

    What is null is left out.
    """
    form: dict[str, str] = {}
    for name, value in sorted(params.items()):
        if value is not None:
            told = _unpacked(name, value)
            form[name] = told if isinstance(told, str) else json.dumps(told, sort_keys=True)
    return form


def problems_of(method: str, facts: MethodFacts, params: Mapping[str, Json]) -> Iterator[Problem]:
    """Whatever makes these parameters no call; nothing when they are one."""
    given = {name: value for name, value in params.items() if value is not None}
    for name in (*facts.needs, *_target(facts, given)):
        if name not in given:
            yield Problem(f"params.{name}", f"expected a value: {method} needs one")
    for name, value in given.items():
        if not _NAME.fullmatch(name):
            yield Problem("params", "expected names of the Bot API's parameters, such as chat_id")
        elif name == facts.query:
            if not is_id(value):
                yield Problem(f"params.{name}", _EXPECTED_ID)
        else:
            yield from _problems_in(name, value)


def _target(facts: MethodFacts, given: Mapping[str, Json]) -> tuple[str, ...]:
    """What an edit needs and no list says: a message of a chat, or one sent inline."""
    if facts.kind is not CallKind.EDIT or "chat_id" in facts.needs or "inline_message_id" in given:
        return ()
    return ("chat_id", "message_id")


def _problems_in(name: str, value: Json) -> Iterator[Problem]:
    field = f"params.{name}"
    match name:
        case "chat_id" | "from_chat_id":
            if not _is_chat(value):
                expected = "expected a chat: its number other than 0, or the @name of a public one"
                yield Problem(field, expected)
        case "message_id":
            if not _is_message(value):
                yield Problem(field, _EXPECTED_MESSAGE)
        case "business_connection_id" | "inline_message_id":
            if not is_id(value):
                yield Problem(field, _EXPECTED_ID)
        case "reply_parameters":
            yield from _reply_problems(field, _unpacked(name, value))
        case _ if name in _PACKED:
            content = _unpacked(name, value)
            if name in _HOLD_FILES and isinstance(content, str):
                yield Problem(field, "expected a list or an object")
            else:
                yield from _file_problems(field, name, content)
        case _:
            pass


def _reply_problems(field: str, reply: Json) -> Iterator[Problem]:
    if not isinstance(reply, dict):
        yield Problem(field, 'expected an object, such as {"message_id": 5}')
    elif "message_id" in reply and not _is_message(reply["message_id"]):
        yield Problem(f"{field}.message_id", _EXPECTED_MESSAGE)


def _is_chat(value: Json) -> bool:
    if isinstance(value, str):
        if _CHAT_NAME.fullmatch(value):
            return True
        if not _CHAT_NUMBER.fullmatch(value):
            return False
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return value != 0 and value.bit_length() <= _CHAT_ID_BITS


def _is_message(value: Json) -> bool:
    # A negative one would be taken for a placeholder of ours.
    if isinstance(value, str):
        return _MESSAGE_NUMBER.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def is_id(value: Json) -> bool:
    """Tell whether this may be an id that somebody else gave: a short string, as it is printed."""
    if not isinstance(value, str) or not value.isprintable():
        return False
    return 0 < len(value) <= _ID_CHARS_MAX


def _unpacked(name: str, value: Json) -> Json:
    """What a program packed into a string itself, read here so that it has one meaning only."""
    if not isinstance(value, str) or name not in _PACKED:
        return value
    if name in _FILES and not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return read_json(value.encode())
    except NotJson:
        return value


def _file_problems(field: str, name: str, value: Json) -> Iterator[Problem]:
    match value:
        case str():
            if name in _FILES and not _is_file(value):
                yield Problem(field, _EXPECTED_FILE)
        case dict():
            for key, inner in value.items():
                shown = key if _NAME.fullmatch(key) else "?"
                yield from _file_problems(f"{field}.{shown}", key, inner)
        case list():
            for index, inner in enumerate(value):
                yield from _file_problems(f"{field}[{index}]", name, inner)
        case _:
            pass


def _is_file(text: str) -> bool:
    if _FILE_ID.fullmatch(text):
        return True
    try:
        parts = urlsplit(text)
        return parts.scheme == "https" and bool(parts.hostname) and text.isprintable()
    except ValueError:
        return False
