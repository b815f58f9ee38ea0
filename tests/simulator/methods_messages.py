"""sendMessage, editMessageText, editMessageReplyMarkup, deleteMessage.

Error texts: telegram.md §3.5. The order of checks follows the server: text and markup before the
chat, the length of what is left of the text last.
"""

from dataclasses import dataclass

from tests.simulator.access import Place, place_to_read, place_to_write
from tests.simulator.chats import Message, Standing
from tests.simulator.entities import Entity, Formatted, Unparsable, utf16_length, with_found
from tests.simulator.forms import Args, bug
from tests.simulator.html_text import parse_html
from tests.simulator.keyboards import Keyboard, read_markup
from tests.simulator.ledger import Accepted
from tests.simulator.markdown_text import parse_markdown
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, Refused, bad_request

TEXT_MAX = 4_096
RAW_TEXT_BYTES_MAX = 32_768
DELETE_WITHIN_S = 48 * 3_600

_REPLY_FIELDS = frozenset(
    {
        "message_id",
        "chat_id",
        "ephemeral_message_id",
        "allow_sending_without_reply",
        "quote",
        "quote_parse_mode",
        "quote_entities",
        "quote_position",
        "checklist_task_id",
        "poll_option_id",
    }
)
_NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


@dataclass(frozen=True, slots=True)
class _Reply:
    message: Message | None = None
    quote: JsonObject | None = None


def send_message(call: Call) -> Result:
    """Put a text into a chat."""
    state, bot, args = call.state, call.bot, call.args
    content = _content(args)
    keyboard = read_markup(args.mapping("reply_markup"), inline_only=False)
    place = place_to_write(state, bot, args)
    reply = _reply(args, place)
    _check_length(content)
    extra: JsonObject = {}
    if reply.quote is not None:
        extra["quote"] = reply.quote
    if args.flag("protect_content"):
        extra["has_protected_content"] = True
    if connection := args.text("business_connection_id"):
        extra["business_connection_id"] = connection
    message = place.conversation.keep(
        Message(
            message_id=state.next_message_id(None if place.is_group else bot, place.conversation),
            date_s=state.now_s(),
            chat=place.shown,
            sender=bot.to_json(),
            content=content,
            keyboard=keyboard,
            reply_to=reply.message,
            bot_id=bot.id,
            extra=extra,
        )
    )
    state.ledger.append(
        Accepted(
            at_ms=state.clock.now_ms(),
            bot_id=bot.id,
            chat_id=place.chat_id,
            message_id=message.message_id,
            text=content.text,
        )
    )
    state.show("message", bot.id, place.chat_id, message)
    return Result(message.to_json(), message_id=message.message_id)


def edit_message_text(call: Call) -> Result:
    """Change the text of a message; a keyboard that is not sent again is gone."""
    if not call.args.text("text"):
        raise bug("message text is empty")
    content = _content(call.args)
    keyboard = read_markup(call.args.mapping("reply_markup"), inline_only=True)
    if call.args.text("inline_message_id"):
        return _edit_inline(call, content.text, keyboard)
    place, message = _to_edit(call)
    if not message.content.text:
        raise bad_request("there is no text in the message to edit")
    _check_length(content)
    return _edit(call, place, message, content, keyboard)


def edit_message_reply_markup(call: Call) -> Result:
    """Change the keyboard of a message, or take it away."""
    keyboard = read_markup(call.args.mapping("reply_markup"), inline_only=True)
    if call.args.text("inline_message_id"):
        return _edit_inline(call, None, keyboard)
    place, message = _to_edit(call)
    return _edit(call, place, message, message.content, keyboard)


def delete_message(call: Call) -> Result:
    """Take a message out of a chat."""
    state, bot, args = call.state, call.bot, call.args
    message_id = _message_id(args)
    place = place_to_write(state, bot, args)
    message = place.conversation.find(message_id)
    if message is None:
        raise bad_request("message to delete not found")
    if state.now_s() - message.date_s > DELETE_WITHIN_S:
        raise bad_request("message can't be deleted for everyone")
    if message.bot_id != bot.id and place.chat is not None:
        standing = place.chat.standing(bot.id)
        if standing not in (Standing.ADMINISTRATOR, Standing.CREATOR):
            raise bad_request("message can't be deleted")
    message.deleted = True
    state.show("deleted", bot.id, place.chat_id, message)
    return Result(message_id=message_id)


def _content(args: Args) -> Formatted:
    text = args.text("text")
    if not text:
        raise bad_request("message text is empty")
    if len(text.encode()) > RAW_TEXT_BYTES_MAX:
        raise bad_request("text is too long")
    try:
        match args.text("parse_mode").lower():
            case "":
                content = Formatted(text, _entities(args.items("entities") or [], text))
            case "html":
                content = parse_html(text)
            case "markdownv2":
                content = parse_markdown(text)
            case _:
                raise bad_request("unsupported parse_mode")
    except Unparsable as trouble:
        raise bad_request(f"can't parse entities: {trouble}") from None
    return with_found(content.trimmed())


def _check_length(content: Formatted) -> None:
    if not content.text:
        raise bad_request("text must be non-empty")
    if len(content.text) > TEXT_MAX:
        raise bad_request("message is too long")


def _entities(given: list[object], text: str) -> tuple[Entity, ...]:
    length = utf16_length(text)
    kept = []
    for each in given:
        if not isinstance(each, dict):
            raise bug("can't parse MessageEntity: expected an Object")
        rest = dict(each)
        kind, start, size = (rest.pop(name, None) for name in ("type", "offset", "length"))
        if not (isinstance(kind, str) and isinstance(start, int) and isinstance(size, int)):
            raise bug("can't parse MessageEntity: type, offset and length are required")
        # Telegram drops what lies outside the text without a word.
        if start >= 0 and size > 0 and start + size <= length:
            kept.append(Entity(kind, start, size, tuple(rest.items())))
    return tuple(kept)


def _reply(args: Args, place: Place) -> _Reply:
    asked = args.mapping("reply_parameters")
    if asked is None:
        return _Reply()
    if unknown := set(asked) - _REPLY_FIELDS:
        raise bug(f"unknown field {min(unknown)} of reply_parameters")
    message_id = asked.get("message_id")
    if not isinstance(message_id, int) or isinstance(message_id, bool) or message_id <= 0:
        raise bug("message identifier is not specified")
    message = place.conversation.find(message_id)
    if message is None:
        if asked.get("allow_sending_without_reply") is True:
            return _Reply()
        raise bad_request("message to be replied not found")
    quote = asked.get("quote")
    if quote is None:
        return _Reply(message)
    if not isinstance(quote, str) or quote not in message.content.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    position = utf16_length(message.content.text.partition(quote)[0])
    return _Reply(message, {"text": quote, "position": position, "is_manual": True})


def _message_id(args: Args) -> int:
    message_id = args.integer("message_id")
    if message_id <= 0:
        raise bug("message identifier is not specified")
    return message_id


def _to_edit(call: Call) -> tuple[Place, Message]:
    message_id = _message_id(call.args)
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
    call: Call, place: Place, message: Message, content: Formatted, keyboard: Keyboard
) -> Result:
    if (message.content, message.keyboard) == (content, keyboard):
        raise bad_request(_NOT_MODIFIED)
    message.content, message.keyboard = content, keyboard
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
