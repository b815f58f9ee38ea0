"""What the parameters of a message say: its text or caption, what it answers, how it is kept. Pure.

Error texts: telegram.md §2.5, §3.5. The length of a text is looked at last, as the server does.
"""

from dataclasses import dataclass

from tests.simulator.access import Place
from tests.simulator.chats import Message
from tests.simulator.entities import Entity, Formatted, Unparsable, utf16_length, with_found
from tests.simulator.forms import Args, bug
from tests.simulator.html_text import parse_html
from tests.simulator.markdown_text import parse_markdown
from tests.simulator.wire import JsonObject, bad_request

TEXT_MAX = 4_096
CAPTION_MAX = 1_024
RAW_TEXT_BYTES_MAX = 32_768

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


@dataclass(frozen=True, slots=True)
class Reply:
    """What a message answers, and which words of it."""

    message: Message | None = None
    quote: JsonObject | None = None


def text_in(args: Args) -> Formatted:
    """The text of a message; raises Refused when there is none."""
    text = args.text("text")
    if not text:
        raise bad_request("message text is empty")
    return formatted(text, args.text("parse_mode"), args.items("entities") or [])


def caption_in(args: Args) -> Formatted:
    """The caption under a message, empty when it has none."""
    entities = args.items("caption_entities") or []
    content = formatted(args.text("caption"), args.text("parse_mode"), entities)
    check_caption(content)
    return content


def formatted(text: str, parse_mode: str, entities: list[object]) -> Formatted:
    """A text with its entities, as Telegram reads it."""
    if len(text.encode()) > RAW_TEXT_BYTES_MAX:
        raise bad_request("text is too long")
    try:
        match parse_mode.lower():
            case "":
                content = Formatted(text, _entities(entities, text))
            case "html":
                content = parse_html(text)
            case "markdownv2":
                content = parse_markdown(text)
            case _:
                raise bad_request("unsupported parse_mode")
    except Unparsable as trouble:
        raise bad_request(f"can't parse entities: {trouble}") from None
    return with_found(content.trimmed())


def check_text(content: Formatted) -> None:
    """Raise Refused for a text that can't be a message."""
    if not content.text:
        raise bad_request("text must be non-empty")
    if len(content.text) > TEXT_MAX:
        raise bad_request("message is too long")


def check_caption(content: Formatted) -> None:
    """Raise Refused for a caption that is too long."""
    if len(content.text) > CAPTION_MAX:
        raise bad_request("message caption is too long")


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


def reply_in(args: Args, place: Place) -> Reply:
    """What a message answers; raises Refused when that is gone and it may not go without."""
    asked = args.mapping("reply_parameters")
    if asked is None:
        return Reply()
    if unknown := set(asked) - _REPLY_FIELDS:
        raise bug(f"unknown field {min(unknown)} of reply_parameters")
    message_id = asked.get("message_id")
    if not isinstance(message_id, int) or isinstance(message_id, bool) or message_id <= 0:
        raise bug("message identifier is not specified")
    message = place.conversation.find(message_id)
    if message is None:
        if asked.get("allow_sending_without_reply") is True:
            return Reply()
        raise bad_request("message to be replied not found")
    quote = asked.get("quote")
    if quote is None:
        return Reply(message)
    if not isinstance(quote, str) or quote not in message.content.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    position = utf16_length(message.content.text.partition(quote)[0])
    return Reply(message, {"text": quote, "position": position, "is_manual": True})


def fields_in(args: Args) -> JsonObject:
    """What else of the parameters shows in the message."""
    fields: JsonObject = {}
    if args.flag("protect_content"):
        fields["has_protected_content"] = True
    if connection := args.text("business_connection_id"):
        fields["business_connection_id"] = connection
    return fields


def message_id_in(args: Args) -> int:
    """The message that a call is about."""
    message_id = args.integer("message_id")
    if message_id <= 0:
        raise bug("message identifier is not specified")
    return message_id
