"""sendMessage, the edits and the deletes.

Error texts: telegram.md §3.5. The order of checks follows the server: text and markup before the
chat, the length of what is left of the text last.
"""

from tests.simulator.access import Place, place_to_read, place_to_write
from tests.simulator.chats import Message, Standing
from tests.simulator.entities import Formatted
from tests.simulator.forms import bug
from tests.simulator.keyboards import Keyboard, read_markup
from tests.simulator.leaving import Draft, leave, told
from tests.simulator.media import KINDS, media_in
from tests.simulator.message_parts import (
    caption_in,
    check_text,
    fields_in,
    message_id_in,
    reply_in,
    text_in,
)
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, Refused, bad_request

DELETE_WITHIN_S = 48 * 3_600
IDS_MAX = 100

_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


def send_message(call: Call) -> Result:
    """Put a text into a chat."""
    args = call.args
    content = text_in(args)
    keyboard = read_markup(args.mapping("reply_markup"), inline_only=False)
    place = place_to_write(call.state, call.bot, args)
    reply = reply_in(args, place)
    check_text(content)
    draft = Draft(content, keyboard=keyboard, reply=reply, shows=fields_in(args))
    return told(call, leave(call, place, draft))


def edit_message_text(call: Call) -> Result:
    """Change the text of a message; a keyboard that is not sent again is gone."""
    if not call.args.text("text"):
        raise bug("message text is empty")
    content = text_in(call.args)
    keyboard = read_markup(call.args.mapping("reply_markup"), inline_only=True)
    if call.args.text("inline_message_id"):
        return _edit_inline(call, content.text, keyboard)
    place, message = _to_edit(call)
    if message.is_caption or not message.content.text:
        raise bad_request("there is no text in the message to edit")
    check_text(content)
    return _edit(call, place, message, content, keyboard)


def edit_message_reply_markup(call: Call) -> Result:
    """Change the keyboard of a message, or take it away."""
    keyboard = read_markup(call.args.mapping("reply_markup"), inline_only=True)
    if call.args.text("inline_message_id"):
        return _edit_inline(call, None, keyboard)
    place, message = _to_edit(call)
    return _edit(call, place, message, message.content, keyboard)


def edit_message_caption(call: Call) -> Result:
    """Change the words under a photo or the like; left out, they are taken away."""
    content = caption_in(call.args)
    keyboard = read_markup(call.args.mapping("reply_markup"), inline_only=True)
    if call.args.text("inline_message_id"):
        return _edit_inline(call, content.text, keyboard)
    place, message = _to_edit(call)
    if not message.is_caption:
        raise bad_request("there is no caption in the message to edit")
    return _edit(call, place, message, content, keyboard)


def edit_message_media(call: Call) -> Result:
    """Put another photo or the like in the place of one; its caption comes along."""
    media = media_in(call.args.mapping("media"), call)
    keyboard = read_markup(call.args.mapping("reply_markup"), inline_only=True)
    if call.args.text("inline_message_id"):
        return _edit_inline(call, media.said, keyboard)
    place, message = _to_edit(call)
    shown = {name: value for name, value in message.extra.items() if name not in KINDS}
    return _edit(call, place, message, media.caption, keyboard, {**shown, **media.shows})


def delete_message(call: Call) -> Result:
    """Take a message out of a chat."""
    message_id = message_id_in(call.args)
    place = place_to_write(call.state, call.bot, call.args)
    message = place.conversation.find(message_id)
    if message is None:
        raise bad_request("message to delete not found")
    _delete(call, place, message)
    return Result(message_id=message_id)


def delete_messages(call: Call) -> Result:
    """Take several messages out of a chat; those that are gone are passed over."""
    asked = ids_in(call)
    place = place_to_write(call.state, call.bot, call.args)
    found = [message for each in asked if (message := place.conversation.find(each)) is not None]
    for message in found:
        _delete(call, place, message)
    return Result()


def ids_in(call: Call) -> list[int]:
    """The messages that a call of many is about."""
    asked = call.args.items("message_ids") or []
    ids = [each for each in asked if isinstance(each, int) and not isinstance(each, bool)]
    if len(ids) != len(asked) or not ids:
        raise bug("message identifiers are not specified")
    if len(ids) > IDS_MAX:
        raise bug("too many message identifiers specified")
    return ids


def _delete(call: Call, place: Place, message: Message) -> None:
    state, bot = call.state, call.bot
    if state.now_s() - message.date_s > DELETE_WITHIN_S:
        raise bad_request("message can't be deleted for everyone")
    if message.bot_id != bot.id and place.chat is not None:
        standing = place.chat.standing(bot.id)
        if standing not in (Standing.ADMINISTRATOR, Standing.CREATOR):
            raise bad_request("message can't be deleted")
    message.deleted = True
    state.show("deleted", bot.id, place.chat_id, message)


def _to_edit(call: Call) -> tuple[Place, Message]:
    message_id = message_id_in(call.args)
    # An edit in a group that has moved just fails: it is not told where to (telegram.md §3.4, 25).
    place = place_to_read(call.state, call.bot, call.args)
    message = place.conversation.find(message_id)
    if message is None or (place.chat is not None and place.chat.migrated_to is not None):
        raise bad_request("message to edit not found")
    place_to_write(call.state, call.bot, call.args)
    if message.bot_id != call.bot.id:
        raise bad_request("message can't be edited")
    return place, message


def _edit(
    call: Call,
    place: Place,
    message: Message,
    content: Formatted,
    keyboard: Keyboard,
    shows: JsonObject | None = None,
) -> Result:
    extra = message.extra if shows is None else shows
    if (message.content, message.keyboard, message.extra) == (content, keyboard, extra):
        raise bad_request(_NOT_MODIFIED)
    message.content, message.keyboard, message.extra = content, keyboard, extra
    message.is_caption = message.is_caption or shows is not None
    message.edit_date_s = call.state.now_s()
    call.state.show("edited", call.bot.id, place.chat_id, message)
    return Result(message.to_json(), message_id=message.message_id)


def _edit_inline(call: Call, text: str | None, keyboard: Keyboard) -> Result:
    """A message sent through the bot into a chat it does not see."""
    known = call.state.inline_messages
    key = (call.bot.id, call.args.text("inline_message_id"))
    if key not in known:
        raise Refused(400, "MESSAGE_ID_INVALID")
    changed = (known[key][0] if text is None else text, keyboard)
    if known[key] == changed:
        raise bad_request(_NOT_MODIFIED)
    known[key] = changed
    return Result()
