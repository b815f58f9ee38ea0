"""Pins and reactions: marks on messages that are there.

Doing it twice changes nothing more (telegram.md §4.5).
"""

from tests.simulator.access import Place, place_to_read, place_to_write
from tests.simulator.chats import ChatType, Message, Standing
from tests.simulator.forms import bug
from tests.simulator.message_parts import message_id_in
from tests.simulator.methods import Call, Result
from tests.simulator.wire import bad_request

REACTIONS_MAX = 1


def pin_chat_message(call: Call) -> Result:
    """Pin a message."""
    place, message = _marked(call, "pin")
    _require_rights(call, place)
    message.pinned = True
    call.state.show("edited", call.bot.id, place.chat_id, message)
    return Result(message_id=message.message_id)


def unpin_chat_message(call: Call) -> Result:
    """Take a pin off: that of the message named, or the newest."""
    place = place_to_write(call.state, call.bot, call.args)
    _require_rights(call, place)
    pinned = [each for each in place.conversation if each.pinned and not each.deleted]
    if call.args.has("message_id"):
        asked = message_id_in(call.args)
        if place.conversation.find(asked) is None:
            raise bad_request("message to unpin not found")
        pinned = [each for each in pinned if each.message_id == asked]
    for each in pinned[-1:]:
        each.pinned = False
    return Result()


def unpin_all_chat_messages(call: Call) -> Result:
    """Take all pins off."""
    place = place_to_write(call.state, call.bot, call.args)
    _require_rights(call, place)
    for each in place.conversation:
        each.pinned = False
    return Result()


def set_message_reaction(call: Call) -> Result:
    """React to a message; no reaction takes the one before away."""
    place, message = _marked(call, "react")
    given = call.args.items("reaction") or []
    if len(given) > REACTIONS_MAX:
        raise bad_request("REACTIONS_TOO_MANY")
    shown = [each for each in given if isinstance(each, dict) and each.get("type") == "emoji"]
    if len(shown) != len(given):
        raise bug("can't parse ReactionType: expected an Object with type and emoji")
    message.reactions[call.bot.id] = tuple(str(each.get("emoji")) for each in shown)
    call.state.show("edited", call.bot.id, place.chat_id, message)
    return Result(message_id=message.message_id)


def _marked(call: Call, deed: str) -> tuple[Place, Message]:
    message_id = message_id_in(call.args)
    place = place_to_read(call.state, call.bot, call.args)
    message = place.conversation.find(message_id)
    if message is None:
        raise bad_request(f"message to {deed} not found")
    place_to_write(call.state, call.bot, call.args)
    return place, message


def _require_rights(call: Call, place: Place) -> None:
    if place.chat is None or place.chat.type is ChatType.GROUP:
        return
    if place.chat.standing(call.bot.id) not in (Standing.ADMINISTRATOR, Standing.CREATOR):
        raise bad_request("not enough rights to manage pinned messages in the chat")
