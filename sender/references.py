"""Where a call names a message of ours, and what stands there once that message has been sent.

Pure. What a handler was given for a message not sent yet is a placeholder, a negative id; here it
becomes Telegram's own id. A placeholder that never became a message takes the call with it: an edit
of nothing is nothing. A call that lists messages goes on with those that there are.

Messages are named by number in these places and no others (Bot API 10.2; a test compares): as
`message_id` of a method or of its reply, as `message_ids`, and as `reply_to_message_id`, which the
server still reads. No id of Telegram's is negative there.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from storage.lifecycle import OutboxId, OutboxState
from storage.message_ids import Resolution

MESSAGE_ID: Final = "message_id"
MESSAGE_IDS: Final = "message_ids"
REPLY_PARAMETERS: Final = "reply_parameters"
REPLY_TO_MESSAGE_ID: Final = "reply_to_message_id"

# The message stands in the chat that is copied from, not in the one that is written to.
_FROM_CHAT: Final = "from_chat_id"
_CHAT: Final = "chat_id"

PLACES: Final = frozenset({MESSAGE_ID, MESSAGE_IDS, REPLY_PARAMETERS, REPLY_TO_MESSAGE_ID})
"""The parameters in which a message is named by number."""

# Placeholders stay above -2^53, so that they survive every JSON parser.
_PLACEHOLDER = re.compile(r"-[0-9]{1,16}")
_NEGATIVE = re.compile(r"\s*-\s*0*[1-9][0-9]*(\.0*)?\s*")
# Supergroups and channels have ids below this, plain groups above (Bot API, dialog ids).
_SUPERGROUPS_BELOW: Final = -1_000_000_000_000


class Need(Enum):
    """What a call needs of a message that it refers to.

    message  the message itself: without it there is nothing to do
    listed   one of several messages: the call has its sense without it
    sent     only that it was sent before
    """

    MESSAGE = "message"
    LISTED = "listed"
    SENT = "sent"


@dataclass(frozen=True, slots=True)
class Reference:
    """A place where a row names a message by its placeholder.

    `chat_id`: the chat in which the message must be, where the row says so by number.
    `has_others`: the list that it stands in also names messages that are there anyway.
    """

    placeholder: int
    chat_id: int | None = None
    need: Need = Need.MESSAGE
    has_others: bool = False


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


def references(params: Mapping[str, str]) -> tuple[Reference, ...]:
    """Where the form of a call names messages by placeholders."""
    if PLACES.isdisjoint(params):
        return ()
    own = _placeholder(params.get(MESSAGE_ID))
    found = () if own is None else (Reference(own, _chat_of(params)),)
    return (*found, *_all_listed(params), *_replied_to(params))


def resolve(
    known: Sequence[tuple[Reference, Resolution | None]],
) -> Mapping[int, int] | Parentless | InDoubt | TooSoon:
    """Find Telegram's ids for a row's placeholders, or say why it may not go.

    What is listed and never became a message is left out. What can't be said any more is told
    before what can't be said yet.
    """
    message_ids: dict[int, int] = {}
    waits: list[InDoubt | TooSoon] = []
    lost: list[Parentless] = []
    for reference, resolution in known:
        found = _resolved(reference, resolution)
        match found:
            case int():
                message_ids[reference.placeholder] = found
            case Parentless() if reference.need is Need.LISTED:
                lost.append(found)
            case Parentless():
                return found
            case InDoubt() | TooSoon():
                waits.append(found)
            case None:
                pass
            case _:
                assert_never(found)
    if waits:
        return waits[0]
    return lost[0] if lost and not _is_any_left(known, message_ids) else message_ids


def filled_in(params: Mapping[str, str], message_ids: Mapping[int, int]) -> Mapping[str, str]:
    """The form with Telegram's ids for its placeholders; all else stays as it is.

    A listed message without an id is left out of its list.
    """
    if PLACES.isdisjoint(params):
        return params
    form = dict(params)
    for name in (MESSAGE_ID, REPLY_TO_MESSAGE_ID):
        message_id = _known(form.get(name), message_ids)
        if message_id is not None:
            form[name] = str(message_id)
    listed = _listed(form)
    if listed is not None and any(_placeholder(each) is not None for each in listed):
        named = [_id_or_itself(each, message_ids) for each in listed]
        there = [each for each in named if each is not None]
        form[MESSAGE_IDS] = json.dumps(there or listed)
    reply = _reply(form)
    message_id = _known(reply.get(MESSAGE_ID), message_ids)
    if message_id is not None:
        form[REPLY_PARAMETERS] = json.dumps(reply | {MESSAGE_ID: message_id})
    return form


def leftover(form: Mapping[str, str]) -> str | None:
    """Why a form may not leave: it still names a message by a negative number. None when it may."""
    named = [form.get(MESSAGE_ID), form.get(REPLY_TO_MESSAGE_ID), _reply(form).get(MESSAGE_ID)]
    if any(map(_is_negative, [*named, *(_listed(form) or ())])):
        return "it names a message by a negative id, which only a message not sent has"
    return None


def _resolved(
    reference: Reference, resolution: Resolution | None
) -> int | Parentless | InDoubt | TooSoon | None:
    """The message's id, why there is none, or None where none is needed."""
    if resolution is None:
        return Parentless("the message it refers to is not known")
    if resolution.doubt is not None:
        return InDoubt(resolution.doubt)
    match resolution.state:
        case OutboxState.SENT:
            return _sent(reference, resolution)
        case OutboxState.QUEUED | OutboxState.CLAIMED:
            return TooSoon(reference.placeholder)
        case OutboxState.UNCERTAIN | OutboxState.REVIEW:
            raise AssertionError(f"a row that is {resolution.state} is a doubt by itself")
        case (
            OutboxState.DEAD | OutboxState.SUPERSEDED | OutboxState.EXPIRED | OutboxState.CANCELLED
        ):
            return Parentless(f"the message it refers to was not sent: {resolution.state}")
        case _:
            assert_never(resolution.state)


def _is_any_left(
    known: Sequence[tuple[Reference, Resolution | None]], message_ids: Mapping[int, int]
) -> bool:
    """Whether a list of messages still names one."""
    return any(
        reference.has_others or reference.placeholder in message_ids
        for reference, _ in known
        if reference.need is Need.LISTED
    )


def _sent(reference: Reference, resolution: Resolution) -> int | Parentless | None:
    if reference.need is Need.SENT:
        return None
    if not resolution.message_id:
        return Parentless("the message it refers to was sent without an id")
    # A supergroup numbers its messages anew: under the old number stands another one.
    if _is_plain_group(resolution.chat_id) and _is_supergroup(reference.chat_id):
        return Parentless("the message it refers to was left behind when its group moved")
    return resolution.message_id


def _is_plain_group(chat_id: int | None) -> bool:
    return chat_id is not None and _SUPERGROUPS_BELOW < chat_id < 0


def _is_supergroup(chat_id: int | None) -> bool:
    return chat_id is not None and chat_id < _SUPERGROUPS_BELOW


def _chat_of(params: Mapping[str, str]) -> int | None:
    """The chat of the messages that a call names as its own matter."""
    return _number(params.get(_FROM_CHAT, params.get(_CHAT)))


def _all_listed(params: Mapping[str, str]) -> tuple[Reference, ...]:
    """The messages that a call lists, all in one chat."""
    listed = [_placeholder(each) for each in _listed(params) or ()]
    chat = _chat_of(params)
    has_others = None in listed
    return tuple(
        Reference(placeholder, chat, Need.LISTED, has_others)
        for placeholder in listed
        if placeholder is not None
    )


def _replied_to(params: Mapping[str, str]) -> tuple[Reference, ...]:
    """The message that is answered, in the chat written to or in one that the reply names."""
    reply = _reply(params)
    here = _number(params.get(_CHAT))
    there = _number(reply[_CHAT]) if _CHAT in reply else here
    found = [
        (_placeholder(reply.get(MESSAGE_ID)), there),
        (_placeholder(params.get(REPLY_TO_MESSAGE_ID)), here),
    ]
    return tuple(
        Reference(placeholder, chat_id) for placeholder, chat_id in found if placeholder is not None
    )


def _reply(params: Mapping[str, str]) -> dict[str, object]:
    """The reply's parameters, where one of them may be negative; empty for all else."""
    text = params.get(REPLY_PARAMETERS, "")
    found = _read(text) if "-" in text else None
    return found if isinstance(found, dict) else {}


def _listed(params: Mapping[str, str]) -> list[object] | None:
    """The messages that a call lists, where one of them may be negative; None for all else."""
    text = params.get(MESSAGE_IDS, "")
    found = _read(text) if "-" in text else None
    return found if isinstance(found, list) else None


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _id_or_itself(listed: object, message_ids: Mapping[int, int]) -> object:
    placeholder = _placeholder(listed)
    return listed if placeholder is None else message_ids.get(placeholder)


def _known(named: object, message_ids: Mapping[int, int]) -> int | None:
    placeholder = _placeholder(named)
    return None if placeholder is None else message_ids.get(placeholder)


def _placeholder(named: object) -> int | None:
    """A negative number, or the plain digits of one, as a placeholder is written; None else."""
    number = named if isinstance(named, int | str) and not isinstance(named, bool) else ""
    return int(number) if _PLACEHOLDER.fullmatch(str(number)) else None


def _is_negative(named: object) -> bool:
    """Whether Telegram, which also reads text as a number, could take it for a negative one."""
    if isinstance(named, int | float):
        return named < 0
    return _NEGATIVE.fullmatch(str(named)) is not None


def _number(text: object) -> int | None:
    try:
        return int(str(text))
    except ValueError:
        return None
