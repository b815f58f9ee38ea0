"""What some updates tell the sender at once, before any handler has seen them.

Pure. A question was edited or deleted, a person of the business has answered, a user stopped the
bot in the middle of a draft, blocked it or let it in again: what waits to be said may have lost its
reason by that. The sender must know as soon as Telegram has our 200, however far behind the worker
is. Only these rare kinds are looked into; what does not look as it should tells nothing, and may
never raise, since the update itself is kept whatever is in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from storage.lifecycle import Withdrawal

# A body holds at most 1 MiB; a transaction must stay short whatever is in it.
DELETED_MAX: Final = 1_000

_Id = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Something in the update's chat that may take away the reason for what waits.

    `subject` is the message's or the draft's id, or empty where the whole chat is meant.
    """

    what: Withdrawal
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """Whether the bot can write to a chat from now on: `gone` says why not, or is None."""

    chat_id: int
    gone: str | None


Tidings = Withdrawn | Reach


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Peer(_Part):
    id: _Id


class _Edited(_Part):
    message_id: _Id


class _Deleted(_Part):
    message_ids: list[_Id]


class _Stopped(_Part):
    draft_id: _Id


class _Said(_Part):
    """A message in a chat of a business account (Bot API, Message.sender_business_bot)."""

    chat: _Peer
    sender: _Peer = Field(alias="from")
    by_bot: object = Field(default=None, alias="sender_business_bot")
    by_itself: object = Field(default=None, alias="is_from_offline")


class _Chat(_Peer):
    type: str


class _Member(_Part):
    status: str


class _Membership(_Part):
    """The bot's own membership has changed (Bot API, ChatMemberUpdated)."""

    chat: _Chat
    now: _Member = Field(alias="new_chat_member")


_GONE: Final = frozenset({"kicked", "left"})


def _edited(content: object) -> Sequence[Tidings]:
    message_id = _Edited.model_validate(content).message_id
    return [Withdrawn(Withdrawal.MESSAGE_EDITED, str(message_id))]


def _deleted(content: object) -> Sequence[Tidings]:
    message_ids = _Deleted.model_validate(content).message_ids
    return [
        Withdrawn(Withdrawal.MESSAGE_DELETED, str(message_id))
        for message_id in message_ids[:DELETED_MAX]
    ]


def _stopped(content: object) -> Sequence[Tidings]:
    draft_id = _Stopped.model_validate(content).draft_id
    return [Withdrawn(Withdrawal.GENERATION_STOPPED, str(draft_id))]


def _said(content: object) -> Sequence[Tidings]:
    """The chat bears the customer's number; whoever else writes there is of the business.

    An away or a greeting message is nobody's answer (Bot API, Message.is_from_offline).
    """
    message = _Said.model_validate(content)
    is_by_hand = message.by_bot is None and message.by_itself is not True
    if is_by_hand and message.sender.id != message.chat.id:
        return [Withdrawn(Withdrawal.PERSON_ANSWERED)]
    return []


def _membership(content: object) -> Sequence[Tidings]:
    told = _Membership.model_validate(content)
    gone = None
    if told.now.status in _GONE:
        where = f"the bot is out of the chat ({told.now.status})"
        gone = "the user blocked the bot" if told.chat.type == "private" else where
    return [Reach(told.chat.id, gone)]


_READERS: Final[Mapping[str, Callable[[object], Sequence[Tidings]]]] = MappingProxyType(
    {
        "edited_message": _edited,
        "edited_channel_post": _edited,
        "edited_business_message": _edited,
        "deleted_business_messages": _deleted,
        "stopped_message_generation": _stopped,
        "business_message": _said,
        "my_chat_member": _membership,
    }
)

TELLING: Final = frozenset(_READERS)
"""The kinds of update that may tell something; all others are never looked into."""

_parts = TypeAdapter(dict[str, object]).validate_json


def tidings_of(kind: str, body: bytes) -> Sequence[Tidings]:
    """What an update of this kind tells; nothing when it does not look as it should."""
    reader = _READERS.get(kind)
    if reader is None:
        return ()
    try:
        return reader(_parts(body).get(kind))
    except ValidationError:
        return ()
