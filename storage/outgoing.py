"""A call that we intend to make, as data: what the turn leaves and the sender carries out.

Pure. Nothing here knows how a call is sent; `sender/calls.py` turns a stored row into a request
again, with the same parameters that python-telegram-bot would have sent.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from storage.lifecycle import OnUncertain, Priority

TELEGRAM = "telegram"
"""The channel of the Bot API; every other one is named in the configuration."""

SETTINGS_LANE = "m:"
"""The lane of all that has no chat and answers no query: mostly the bot's settings, in order."""

_OTHER_CHANNEL = "x:"

_MARKUP = "markup"
_EDITED_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "editMessageText": "text",
        "editMessageCaption": "caption",
        "editMessageMedia": "media",
        "editMessageReplyMarkup": _MARKUP,
    }
)


@dataclass(frozen=True, slots=True)
class Source:
    """The message that a call answers: when it is gone, so is the reason for the call."""

    lane: str
    message_id: int


@dataclass(frozen=True, slots=True)
class Fallback:
    """What to say instead, once a query can't be answered any more."""

    method: str
    params: Mapping[str, str] = field(hash=False)
    lane: str
    chat_id: int | None
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file that goes with a call: the part of the form that carries it, and what it is.

    `part` is the parameter's name, or the one that an `attach://` in another parameter names.
    `sha256` is its content's, in hex, under which the content is kept (`storage/blobs.py`).
    """

    part: str
    filename: str
    mime: str
    sha256: str
    size_bytes: int = 0


class Tell(StrEnum):
    """Of which ends of a call the bot's own code is told."""

    NOTHING = ""
    FAILURES = "failures"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One call to make.

    `params` are the form fields of the Bot API, in order: text as it is, everything else as JSON;
    of another channel everything as JSON.
    `key` names the cause (`turn:812:0:1`), so that a second enqueue of the same cause is a no-op.
    `placeholder` is the negative message id that the handler was given for a message not sent yet.
    `attempts_max`: None for the configured number; 1 for what is worthless a moment later.
    Times are UTC milliseconds; `not_before_ms` 0 means at once.

    `channel` names the contract by which the call is made and its answer read. `items` is how many
    messages it carries (an album's size). Of two queued calls with the same `coalesce_key`, edits
    of one message, only the later one is made; a `supersede_key` does the same by wish.
    What may take the reason away: `source` deleted (edited: with `cancel_on_edit`), a person who
    answered after `caused_at_ms`, `generation` (a draft's id) stopped.

    `exclusive`: its key stands for this call and no other: who leaves another one under it is told
    so, where else that would be a row of its own.

    `files` go with it. `inbox_id`: the update to which it is due. `follows`: the placeholder of a
    message without which it is not made. `awaited`: a handler waits for its answer. `tell`: of
    which ends the bot is told. Of these only the files are part of what the call says.
    """

    method: str
    params: Mapping[str, str] = field(hash=False)
    lane: str
    key: str
    chat_id: int | None = None
    priority: Priority = Priority.INTERACTIVE
    on_uncertain: OnUncertain = OnUncertain.HOLD
    expires_at_ms: int | None = None
    not_before_ms: int = 0
    supersede_key: str | None = None
    placeholder: int | None = None
    attempts_max: int | None = None
    channel: str = TELEGRAM
    items: int = 1
    coalesce_key: str | None = None
    source: Source | None = None
    cancel_on_edit: bool = False
    generation: str | None = None
    caused_at_ms: int | None = None
    fallback: Fallback | None = None
    files: tuple[FilePart, ...] = ()
    inbox_id: int | None = None
    follows: int | None = None
    awaited: bool = False
    tell: Tell = Tell.NOTHING
    exclusive: bool = False


def chat_lane(
    chat_id: int | str, business_connection_id: str | None = None, *, channel: str = TELEGRAM
) -> str:
    """Name the lane of a chat.

    A chat of a business connection is another chat than the bot's own with the same number
    (Bot API, Message.business_connection_id), and so another lane. So is one of another channel.
    """
    if channel != TELEGRAM:
        return f"{_OTHER_CHANNEL}{channel}:{chat_id}"
    if business_connection_id:
        return f"b:{business_connection_id}:{chat_id}"
    return f"c:{chat_id}"


def channel_of(lane: str) -> str:
    """Name the channel that a lane belongs to."""
    return lane.split(":", 2)[1] if lane.startswith(_OTHER_CHANNEL) else TELEGRAM


def query_lane(query_id: str) -> str:
    """Name the lane of an answer to a query: its own, since answers wait for nobody."""
    return f"q:{query_id}"


def digest(method: str, params: Mapping[str, str], files: Sequence[FilePart] = ()) -> str:
    """Fingerprint what a call says, so that one key never silently stands for two calls."""
    told = hashlib.blake2b(digest_size=12)
    said = [method, *(piece for item in params.items() for piece in item)]
    for file in sorted(files, key=lambda each: each.part):
        said += [file.part, file.filename, file.mime, file.sha256]
    for piece in said:
        raw = piece.encode("utf-8", "surrogatepass")
        told.update(len(raw).to_bytes(4, "big"))
        told.update(raw)
    return told.hexdigest()


def coalesce_key(method: str, params: Mapping[str, str], lane: str) -> str | None:
    """Name what an edit changes: of such queued edits only the latest is made; None for no edit.

    The message is named as the caller knows it, by its id, its placeholder or its inline id.
    """
    part = _EDITED_PARTS.get(method)
    if part is None:
        return None
    if inline_id := params.get("inline_message_id"):
        return f"{part}|i:{inline_id}"
    message_id = params.get("message_id")
    return f"{part}|{lane}:{message_id}" if message_id else None


def coalesced_keys(key: str) -> tuple[str, ...]:
    """The keys of the older edits that an edit with this key makes pointless.

    Whatever an edit changes, it sets the inline keyboard too: without `reply_markup` there is none
    after it (Bot API, editMessageText, editMessageCaption, editMessageMedia).
    """
    part, bar, target = key.partition("|")
    is_whole = bar and part in _EDITED_PARTS.values() and part != _MARKUP
    return (key, f"{_MARKUP}|{target}") if is_whole else (key,)


def packed_fallback(fallback: Fallback | None) -> str | None:
    """A fallback as it is stored."""
    if fallback is None:
        return None
    told = {
        "method": fallback.method,
        "params": dict(fallback.params),
        "lane": fallback.lane,
        "chat_id": fallback.chat_id,
        "ttl_ms": fallback.ttl_ms,
    }
    return json.dumps(told, separators=(",", ":"))


def unpacked_fallback(packed: str | None) -> Fallback | None:
    """A stored fallback."""
    return None if packed is None else Fallback(**json.loads(packed))


def priority_for(params: Mapping[str, str], asked: Priority) -> Priority:
    """The priority of a call: what pays is paid, whatever was asked, and nothing else is.

    Telegram's server reads a yes in these three ways, in any case (telegram-bot-api, `to_bool`).
    """
    if params.get("allow_paid_broadcast", "").strip().lower() in {"true", "yes", "1"}:
        return Priority.PAID
    return Priority.BULK if asked is Priority.PAID else asked
