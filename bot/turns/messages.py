"""Which message a handler means that was given an id before the message was sent.

Such an id is a placeholder, a negative number. The calls that name one need no help: the sender
puts Telegram's own id there. What a handler compares, stores elsewhere or reads by, does. Nothing
here may wait for a message to be sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from telegram import MaybeInaccessibleMessage
from telegram.error import BadRequest
from telegram.request import RequestData

from bot.turns.turn import voice
from storage.message_ids import Resolution

_MESSAGE_ID: Final = "message_id"

Named = int | MaybeInaccessibleMessage
"""A message, or its id as a handler knows it."""


@dataclass(frozen=True, slots=True)
class ReadData:
    """What a read asks, as far as the library's HTTP client looks into a `RequestData`."""

    json_parameters: Mapping[str, str]
    parameters: Mapping[str, object]
    multipart_data: None = None
    contains_files: bool = field(default=False, init=False)


async def real_id(message_id: int) -> int | None:
    """Telegram's id of a message; None while it is not sent, and when it never will be.

    An id of Telegram's comes back as it is. Raises RuntimeError where no bot's code runs.
    """
    if message_id >= 0:
        return message_id
    found = await _resolution(message_id)
    return None if found is None else found.message_id


async def same_message(one: Named, other: Named) -> bool:
    """Tell whether both name one message: as it was given, stored, or comes with an update.

    Of a bare id the chat is known only where it is a placeholder; where the chat of either is not
    known, it does not count. A message that is not sent is the same as itself only. Raises
    RuntimeError where no bot's code runs.
    """
    if _id_of(one) == _id_of(other) < 0:
        return True
    (one_id, one_chat), (other_id, other_chat) = await _place(one), await _place(other)
    if one_id is None or one_id != other_id:
        return False
    return one_chat is None or other_chat is None or one_chat == other_chat


async def for_reading(data: RequestData) -> RequestData | ReadData:
    """What a read asks, with Telegram's id of the message that it names.

    Raises BadRequest when that message is not sent, as Telegram would: it can't be read about.
    """
    named = data.json_parameters.get(_MESSAGE_ID, "")
    if not named.startswith("-"):
        return data
    message_id = await real_id(int(named)) if named[1:].isdecimal() else None
    if message_id is None:
        raise BadRequest(f"Message to read about not found: {named} was not sent, or not yet")
    return ReadData(
        data.json_parameters | {_MESSAGE_ID: str(message_id)},
        data.parameters | {_MESSAGE_ID: message_id},
    )


def _id_of(named: Named) -> int:
    return named if isinstance(named, int) else named.message_id


async def _place(named: Named) -> tuple[int | None, Any]:
    """Telegram's id of a message and its chat, each as far as it is known.

    The chat of a message that was sent counts before the one that the handler was told: a group may
    have moved in between. A channel that is known by its name only is not known.
    """
    message_id = _id_of(named)
    chat = None if isinstance(named, int) else named.chat.id
    chat = chat if isinstance(chat, int) else None
    if message_id >= 0:
        return message_id, chat
    found = await _resolution(message_id)
    if found is None:
        return None, chat
    return found.message_id, chat if found.chat_id is None else found.chat_id


async def _resolution(placeholder: int) -> Resolution | None:
    speaker = voice()
    if speaker is None:
        raise RuntimeError("there is no turn here: call this from a handler, a job or a task")
    return await speaker.resolve(placeholder)
