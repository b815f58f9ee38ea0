"""What the caller of a deferred call is told at once: what Telegram would answer.

Pure. It is made up of what the call itself says and of what the update tells, and of nothing else:
of an attachment, which only Telegram knows, nothing is invented. The ids of messages that are still
to be made are placeholders.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from bot.turns.calls import Call, Occasion
from bot.turns.turn import Json
from storage.markup.entities import MarkupError
from storage.markup.reading import read
from storage.methods import Returns, items_of

# Supergroups and channels have ids below this, plain groups above (Bot API, dialog ids).
_SUPERGROUPS_BELOW: Final = -1_000_000_000_000
# What a parameter says and the Message then says too, under this name.
_ECHOED: Final = {
    "business_connection_id": "business_connection_id",
    "message_effect_id": "effect_id",
}
_ECHOED_FLAGS: Final = {
    "protect_content": "has_protected_content",
    "show_caption_above_media": "show_caption_above_media",
    "allow_paid_broadcast": "is_paid_post",
}
# What is sent is all there is of it: the Message shows the same.
_CONTENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "location": ("latitude", "longitude", "horizontal_accuracy", "live_period", "heading"),
    "contact": ("phone_number", "first_name", "last_name", "vcard"),
}
_CONTENT_OF: Final = {
    "sendLocation": "location",
    "editMessageLiveLocation": "location",
    "sendContact": "contact",
}
_VENUE: Final = ("title", "address", "foursquare_id", "foursquare_type", "google_place_id")
_TEXT: Final = ("text", "entities", "entities")
_CAPTION: Final = ("caption", "caption_entities", "caption_entities")


def answer_of(call: Call, me: Json, occasion: Occasion, *, placeholder: int | None) -> object:
    """The `result` that the caller gets.

    `me` is the bot's own user, who speaks; `placeholder` the id of the first message that is made.
    """
    returns = call.facts.returns
    match returns:
        case Returns.MESSAGE:
            return _message(call, me, occasion, message_id=_made(call, placeholder))
        case Returns.MESSAGE_ID:
            return {"message_id": _made(call, placeholder)}
        case Returns.MESSAGES:
            return [*_album(call, me, occasion, first=_made(call, placeholder))]
        case Returns.MESSAGE_IDS:
            first, count = _made(call, placeholder), items_of(call.method, call.params)
            return [{"message_id": first - place} for place in range(count)]
        case Returns.EDITED:
            return _edited(call, me, occasion)
        case Returns.TRUE:
            return True
        case Returns.OTHER:
            raise AssertionError(f"nobody can make up an answer to {call.method}")
        case _:
            assert_never(returns)


def _made(call: Call, placeholder: int | None) -> int:
    assert placeholder is not None, call.method
    return placeholder


def _edited(call: Call, me: Json, occasion: Occasion) -> object:
    """The message as it reads now; True for one that is known by its inline id only."""
    message_id = _number(call.params.get("message_id"))
    if message_id is None or "chat_id" not in call.params:
        return True
    before = _shown(occasion.update, _number(call.params["chat_id"]), message_id) or {}
    # Without reply_markup there is no keyboard after an edit (Bot API, editMessageText).
    kept = {name: value for name, value in before.items() if name != "reply_markup"}
    if "text" in call.params:
        kept.pop("entities", None)
    if "caption" in call.params:
        kept.pop("caption_entities", None)
    message = _message(call, me, occasion, message_id=message_id)
    return {**message, **kept, **_said(call.params), "edit_date": occasion.now_ms // 1000}


def _message(call: Call, me: Json, occasion: Occasion, *, message_id: int) -> dict[str, Any]:
    """A Message that leads what is said next to the same chat, topic and connection."""
    params = call.params
    chat = _chat(params["chat_id"], occasion.update)
    message: dict[str, Any] = {
        "message_id": message_id,
        "date": occasion.now_ms // 1000,
        "chat": chat,
        **({"sender_chat": chat} if chat["type"] == "channel" else {"from": me}),
        **{shown: params[name] for name, shown in _ECHOED.items() if name in params},
        **{shown: True for name, shown in _ECHOED_FLAGS.items() if params.get(name) == "true"},
        **_said(params),
        **_content(call),
    }
    if (thread_id := _number(params.get("message_thread_id"))) is not None:
        message["message_thread_id"] = thread_id
        message["is_topic_message"] = True
    if (topic_id := _number(params.get("direct_messages_topic_id"))) is not None:
        message["direct_messages_topic"] = {"topic_id": topic_id}
    return message


def _said(params: Mapping[str, str]) -> dict[str, Any]:
    """Text or caption as they will be read, and the buttons."""
    said: dict[str, Any] = {}
    mode = params.get("parse_mode", "")
    for name, given, shown in (_TEXT, _CAPTION):
        if name in params:
            entities = _read(params.get(given))
            said |= _words(name, params[name], shown, mode=mode, entities=entities)
    if "inline_keyboard" in params.get("reply_markup", ""):
        said["reply_markup"] = _read(params["reply_markup"])
    return said


def _words(name: str, text: str, shown: str, *, mode: str, entities: object) -> dict[str, Any]:
    """A text and its entities; where nobody can read its markup, as it was given."""
    if not mode:
        return {name: text, **({shown: entities} if entities else {})}
    try:
        formatted = read(text, mode)
    except MarkupError:
        return {name: text}
    found = [entity.to_json() for entity in formatted.entities]
    return {name: formatted.text, **({shown: found} if found else {})}


def _content(call: Call) -> dict[str, Any]:
    if call.method == "sendVenue":
        place = {name: call.params[name] for name in _VENUE if name in call.params}
        return {"venue": {"location": _fields("location", call.params), **place}}
    content = _CONTENT_OF.get(call.method)
    return {} if content is None else {content: _fields(content, call.params)}


def _fields(content: str, params: Mapping[str, str]) -> dict[str, Any]:
    found = {name: params[name] for name in _CONTENTS[content] if name in params}
    if content == "contact":
        return dict(found)
    return {name: _read(text) for name, text in found.items()}


def _album(call: Call, me: Json, occasion: Occasion, *, first: int) -> Iterator[dict[str, Any]]:
    """One Message for each item, each with its own caption."""
    items = _read(call.params["media"])
    for place, item in enumerate(items if isinstance(items, list) and items else [None]):
        message = _message(call, me, occasion, message_id=first - place)
        if isinstance(item, dict) and isinstance(item.get("caption"), str):
            mode = item.get("parse_mode", "")
            name, given, shown = _CAPTION
            entities = item.get(given)
            message |= _words(name, item["caption"], shown, mode=mode, entities=entities)
        yield message


def _chat(text: str, update: Json | None) -> Json:
    chat_id = _number(text)
    if chat_id is None:
        # Its number is not known here. Under its name it can be written to all the same, so that
        # what is done with this message reaches the right chat.
        return {"id": text, "type": "channel", "username": text.removeprefix("@")}
    for message in _messages_in(update):
        chat = message.get("chat")
        if isinstance(chat, dict) and chat.get("id") == chat_id and "type" in chat:
            return chat
    if chat_id > 0:
        return {"id": chat_id, "type": "private"}
    return {
        "id": chat_id,
        "type": "supergroup" if chat_id < _SUPERGROUPS_BELOW else "group",
        "title": "",
    }


def _shown(update: Json | None, chat_id: int | None, message_id: int) -> Json | None:
    """A message as the update tells of it: the one under which a button was pressed."""
    for message in _messages_in(update):
        chat = message.get("chat")
        is_there = isinstance(chat, dict) and chat.get("id") == chat_id
        # A message that is too old to be shown has the date 0 (Bot API, InaccessibleMessage).
        if is_there and message.get("message_id") == message_id and message.get("date"):
            return message
    return None


def _messages_in(update: Json | None) -> Iterator[Json]:
    """What in an update may be a message, or tells of a chat as a message does."""
    for content in () if update is None else update.values():
        if isinstance(content, dict):
            yield content
            if isinstance(message := content.get("message"), dict):
                yield message


def _read(text: str | None) -> Any:  # noqa: ANN401  # whatever JSON holds
    """What a parameter's JSON says; None for one that holds none, as a handler can write any."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
