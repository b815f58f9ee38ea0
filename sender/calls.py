"""Turn a stored row into a call again: the same form that python-telegram-bot would have posted.

Pure. A row of another channel becomes a JSON object instead. What a handler was given for a message
not sent yet is a placeholder, a negative id; here it becomes Telegram's own id, once that is known.
A placeholder that never became a message takes the row with it: an edit of nothing is nothing.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import quote_plus

from storage.lifecycle import OutboxId, OutboxState
from storage.outbox import Resolution

# Placeholders stay above -2^53, so that they survive every JSON parser.
_PLACEHOLDER = re.compile(r"-[0-9]{1,16}")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
_MESSAGE_ID = "message_id"
_REPLY_PARAMETERS = "reply_parameters"


@dataclass(frozen=True, slots=True)
class Encoding:
    """How parameters become a body. `write` raises ValueError for what can't be written."""

    content_type: str
    write: Callable[[Mapping[str, str]], bytes]


@dataclass(frozen=True, slots=True)
class Call:
    """A call ready to be posted. The body holds users' words; never log it."""

    method: str
    body: bytes
    content_type: str = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Parentless:
    """The row refers to a message that does not exist and never will."""

    reason: str


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The row refers to a message about which a person has to decide first."""

    held: OutboxId


@dataclass(frozen=True, slots=True)
class TooSoon:
    """The row refers to a message that still waits to be sent."""

    placeholder: int


@dataclass(frozen=True, slots=True)
class Unsayable:
    """The row's parameters can't be written as its channel wants them."""

    reason: str


def references(params: Mapping[str, str]) -> tuple[int, ...]:
    """The placeholders that a row refers to."""
    found = (_negative(params.get(_MESSAGE_ID)), _replied_to(params))
    return tuple(placeholder for placeholder in found if placeholder is not None)


def resolve(
    known: Mapping[int, Resolution | None],
) -> Mapping[int, int] | Parentless | InDoubt | TooSoon:
    """Find Telegram's ids for a row's placeholders, or say why it has none."""
    message_ids: dict[int, int] = {}
    for placeholder, resolution in known.items():
        found = _resolved(placeholder, resolution)
        if not isinstance(found, int):
            return found
        message_ids[placeholder] = found
    return message_ids


def encode(form: Mapping[str, str]) -> bytes:
    """Encode a form byte for byte as httpx does, and so as python-telegram-bot sends it."""
    pairs = (f"{_quoted(name)}={_quoted(value)}" for name, value in form.items())
    return "&".join(pairs).encode("ascii")


def encode_json(form: Mapping[str, str]) -> bytes:
    """Encode parameters, each of them JSON already, as one JSON object.

    Raises ValueError for a parameter that is not JSON.
    """
    values = {name: json.loads(value) for name, value in form.items()}
    return json.dumps(values, ensure_ascii=False, allow_nan=False).encode()


FORM = Encoding("application/x-www-form-urlencoded", encode)
JSON = Encoding("application/json", encode_json)


def render(
    method: str,
    params: Mapping[str, str],
    message_ids: Mapping[int, int],
    encoding: Encoding = FORM,
) -> Call | Unsayable:
    """Make the call, each of its placeholders replaced by Telegram's id."""
    form = _with_message_ids(params, message_ids) if message_ids else params
    try:
        return Call(method, encoding.write(form), encoding.content_type)
    except UnicodeEncodeError:
        return Unsayable("a text holds half of a surrogate pair, which no call can carry")
    except (ValueError, RecursionError):
        return Unsayable("a parameter is not written as JSON")


def _quoted(text: str) -> str:
    # Names and numbers need no quoting, and finding that out is far cheaper than to try.
    return text if _PLAIN.fullmatch(text) else quote_plus(text)


def _resolved(
    placeholder: int, resolution: Resolution | None
) -> int | Parentless | InDoubt | TooSoon:
    if resolution is None:
        return Parentless("the message it refers to is not known")
    if resolution.doubt is not None:
        return InDoubt(resolution.doubt)
    match resolution.state:
        case OutboxState.SENT:
            if resolution.message_id is None:
                return Parentless("the message it refers to was sent without an id")
            return resolution.message_id
        case OutboxState.QUEUED | OutboxState.CLAIMED:
            return TooSoon(placeholder)
        case OutboxState.UNCERTAIN | OutboxState.REVIEW:
            raise AssertionError(f"a row that is {resolution.state} is a doubt by itself")
        case (
            OutboxState.DEAD | OutboxState.SUPERSEDED | OutboxState.EXPIRED | OutboxState.CANCELLED
        ):
            return Parentless(f"the message it refers to was not sent: {resolution.state}")
        case _:
            assert_never(resolution.state)


def _with_message_ids(params: Mapping[str, str], message_ids: Mapping[int, int]) -> dict[str, str]:
    form = dict(params)
    own = _negative(form.get(_MESSAGE_ID))
    if own is not None:
        form[_MESSAGE_ID] = str(message_ids[own])
    replied = _replied_to(form)
    if replied is not None:
        reply = json.loads(form[_REPLY_PARAMETERS]) | {_MESSAGE_ID: message_ids[replied]}
        form[_REPLY_PARAMETERS] = json.dumps(reply)
    return form


def _replied_to(params: Mapping[str, str]) -> int | None:
    text = params.get(_REPLY_PARAMETERS, "")
    if "-" not in text:
        return None
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return None
    value = reply.get(_MESSAGE_ID) if isinstance(reply, dict) else None
    is_placeholder = isinstance(value, int) and not isinstance(value, bool) and value < 0
    return value if is_placeholder else None


def _negative(text: str | None) -> int | None:
    """A negative number of plain digits, as a placeholder is written; None for all else."""
    return int(text) if text is not None and _PLACEHOLDER.fullmatch(text) else None
