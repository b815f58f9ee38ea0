"""Read the outside of an update: who it is, what kind, and which lanes it belongs to.

Pure. One strict parse, on the way to the 200, so that the identity that deduplicates an update and
the lanes that order it come from the same reading. It reads no more than that: what an update
means is the worker's business, long after Telegram has its answer. It may never raise, whatever
the bytes: a refusal would make Telegram deliver the same poison for a day, and hold back all that
comes behind it.

The lanes follow what python-telegram-bot calls the effective chat and the effective user, as it is
by these that a turn's state is kept.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from storage.outgoing import chat_lane as chat_lane_of

UPDATE_ID_MAX = 2**63 - 1
"""SQLite's largest integer; Telegram's own ids have 31 bits."""

KIND_CHARS_MAX = 64
NO_KIND = "none"
"""The kind of an update that has nothing in it but its id."""
ODD_KIND = "odd"
"""The kind of an update whose key cannot be a kind's name, so that no stray text becomes one."""

_LANE_PART_CHARS_MAX = 256
"""Bound of the texts that become a part of a lane: ids of business connections and of polls."""


class Envelope(NamedTuple):
    """What the inbox keeps beside the bytes.

    `chat_lane` names the chat, or the poll where there is neither chat nor user.
    An update without any lane waits for nobody.
    """

    update_id: int
    kind: str
    chat_lane: str | None
    user_lane: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why these bytes are no update. The reason quotes nothing of them."""

    reason: str


_UpdateId = Annotated[int, Field(strict=True, ge=1, le=UPDATE_ID_MAX)]
_PeerId = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]


class _Peer(BaseModel):
    """A Chat or a User."""

    model_config = ConfigDict(extra="ignore", strict=True)
    id: _PeerId


# Each part may be anything at all (`object`), since a kind of tomorrow may use a name in another
# sense: then that part gives no lane, and the update is kept like any other.
_PeerOrAny = Annotated[_Peer | object, Field(union_mode="left_to_right")]


class _Origin(BaseModel):
    """The message under which a button was pressed."""

    model_config = ConfigDict(extra="ignore", strict=True)
    chat: _PeerOrAny = None
    business_connection_id: object = None


class _Content(BaseModel):
    """The inside of an update, of whatever kind, as far as it tells a lane."""

    model_config = ConfigDict(extra="ignore", strict=True)
    chat: _PeerOrAny = None
    message: Annotated[_Origin | object, Field(union_mode="left_to_right")] = None
    voter_chat: _PeerOrAny = None
    sender: _PeerOrAny = Field(default=None, alias="from")
    user: _PeerOrAny = None
    business_connection_id: object = None
    id: object = None
    poll_id: object = None


class _Update(BaseModel):
    """An id, and beside it the kind: known or not."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, Annotated[_Content | object, Field(union_mode="left_to_right")]]
    update_id: _UpdateId


_read = _Update.model_validate_json


def read_envelope(body: bytes) -> Envelope | Unreadable:
    """Read the outside of one update; what is no update comes back as `Unreadable`."""
    try:
        update = _read(body)
    except ValidationError as error:
        return Unreadable(_reason(error))
    extra = update.__pydantic_extra__
    for key, content in extra.items():
        if isinstance(content, _Content):
            chat_lane, user_lane = _lanes(key, content)
            return Envelope(update.update_id, _kind(key), chat_lane, user_lane)
    return Envelope(update.update_id, _kind(next(iter(extra), NO_KIND)), None, None)


def _lanes(kind: str, content: _Content) -> tuple[str | None, str | None]:
    user = content.sender if isinstance(content.sender, _Peer) else content.user
    user_lane = f"u:{user.id}" if isinstance(user, _Peer) else None
    chat, connection = content.chat, content.business_connection_id
    if not isinstance(chat, _Peer):
        if isinstance(content.message, _Origin):
            chat = content.message.chat
            connection = connection or content.message.business_connection_id
        if not isinstance(chat, _Peer):
            chat = content.voter_chat
    if isinstance(chat, _Peer):
        return chat_lane_of(chat.id, _lane_part(connection)), user_lane
    return (_poll_lane(kind, content) if user_lane is None else None), user_lane


def _poll_lane(kind: str, content: _Content) -> str | None:
    poll_id = _lane_part(content.id if kind == "poll" else content.poll_id)
    return None if poll_id is None else f"p:{poll_id}"


def _lane_part(value: object) -> str | None:
    if isinstance(value, str) and 0 < len(value) <= _LANE_PART_CHARS_MAX:
        return value
    return None


def _kind(key: str) -> str:
    if len(key) <= KIND_CHARS_MAX and key.isascii() and key.isidentifier():
        return key
    return ODD_KIND


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    match first["type"]:
        case "json_invalid":
            return f"no JSON: {first['msg'].removeprefix('Invalid JSON: ')}"
        case "model_type":
            return "no JSON object"
        case "missing":
            return "no update_id"
        case "greater_than_equal" | "less_than_equal":
            return "update_id is out of range"
        case _:
            return "update_id is no integer"
