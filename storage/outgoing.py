"""A call that we intend to make, as data: what the turn leaves and the sender carries out.

Pure. Nothing here knows how a call is sent; `sender/calls.py` turns a stored row into a request
again, with the same parameters that python-telegram-bot would have sent.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from storage.lifecycle import OnUncertain, Priority


class CallKind(StrEnum):
    """What a call does to a chat: it decides its gates and what its flood holds back."""

    SEND = "send"
    EDIT = "edit"
    DELETE = "delete"
    ANSWER = "answer"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """What must be known of a Bot API method before it may be deferred.

    `idempotent`: carrying it out twice changes nothing more, so that an uncertain outcome may go
    again by itself. `returns_message`: the answer is a Message, so that the row carries a
    placeholder for its id.
    """

    kind: CallKind
    idempotent: bool
    returns_message: bool


METHODS: Mapping[str, MethodFacts] = MappingProxyType(
    {
        "sendMessage": MethodFacts(CallKind.SEND, idempotent=False, returns_message=True),
        "editMessageText": MethodFacts(CallKind.EDIT, idempotent=True, returns_message=False),
        "editMessageReplyMarkup": MethodFacts(
            CallKind.EDIT, idempotent=True, returns_message=False
        ),
        "deleteMessage": MethodFacts(CallKind.DELETE, idempotent=True, returns_message=False),
        "answerCallbackQuery": MethodFacts(CallKind.ANSWER, idempotent=True, returns_message=False),
        "sendChatAction": MethodFacts(CallKind.ACTION, idempotent=True, returns_message=False),
    }
)
"""The deferrable methods. What is not here is a read, or is refused with `UnsupportedCall`."""


TELEGRAM = "telegram"
"""The channel of the Bot API; every other one is named in the configuration."""


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
class Outgoing:
    """One call to make.

    `params` are the form fields of the Bot API, in order: text as it is, everything else as JSON.
    `key` names the cause (`turn:812:0:1`), so that a second enqueue of the same cause is a no-op.
    `placeholder` is the negative message id that the handler was given for a message not sent yet.
    `attempts_max`: None for the configured number; 1 for what is worthless a moment later.
    Times are UTC milliseconds; `not_before_ms` 0 means at once.

    `channel` names the contract by which the call is made and its answer read. `items` is how many
    messages it carries (an album's size). Of two queued calls with the same `coalesce_key`, edits
    of one message, only the later one is made; a `supersede_key` does the same by wish.
    What may take the reason away: `source` deleted (edited: with `cancel_on_edit`), a person who
    answered after `caused_at_ms`, `generation` (a draft's id) stopped.
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


def chat_lane(chat_id: int | str, business_connection_id: str | None = None) -> str:
    """Name the lane of a chat.

    A chat of a business connection is another chat than the bot's own with the same number
    (Bot API, Message.business_connection_id), and so another lane.
    """
    if business_connection_id:
        return f"b:{business_connection_id}:{chat_id}"
    return f"c:{chat_id}"


def query_lane(query_id: str) -> str:
    """Name the lane of an answer to a query: its own, since answers wait for nobody."""
    return f"q:{query_id}"


def digest(method: str, params: Mapping[str, str]) -> str:
    """Fingerprint what a call says, so that one key never silently stands for two calls."""
    told = hashlib.blake2b(digest_size=12)
    for part in (method, *(piece for item in params.items() for piece in item)):
        raw = part.encode("utf-8", "surrogatepass")
        told.update(len(raw).to_bytes(4, "big"))
        told.update(raw)
    return told.hexdigest()
