"""Make the world fit an update that came from outside.

A collected update speaks of chats, people and messages that the simulator never saw. They are made
known before it is delivered, so that the bot can answer them as it could at Telegram. Malformed
parts are skipped: such an update is delivered as it is.
"""

from typing import TypeGuard

from tests.simulator.chats import Chat, ChatType, Conversation, Message, Standing, User
from tests.simulator.entities import Entity, Formatted
from tests.simulator.keyboards import Keyboard
from tests.simulator.state import (
    CHECKOUT_WINDOW_MS,
    INLINE_WINDOW_MS,
    Bot,
    Query,
    State,
)
from tests.simulator.wire import JsonObject

_MESSAGES = frozenset(
    {
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "business_message",
        "edited_business_message",
    }
)
_WINDOWS_MS = {
    "inline_query": INLINE_WINDOW_MS,
    "pre_checkout_query": CHECKOUT_WINDOW_MS,
    "shipping_query": CHECKOUT_WINDOW_MS,
}
_OWN_FIELDS = frozenset(
    {"message_id", "date", "edit_date", "chat", "from", "text", "entities", "reply_markup"}
)


def introduce(state: State, bot: Bot, kind: str, payload: JsonObject) -> None:
    """Make known whoever and whatever an update speaks of."""
    for name in ("from", "user", "user_chat"):
        meet_user(state, _inner(payload, name))
    if kind in ("business_connection", "business_message", "edited_business_message"):
        connection = payload.get("business_connection_id", payload.get("id"))
        if isinstance(connection, str):
            state.business.add((bot.id, connection))
    meet_chat(state, bot, _inner(payload, "chat"), private=kind != "business_message")
    if kind in _MESSAGES:
        keep_message(state, bot, payload)
    elif kind == "callback_query":
        _press(state, bot, payload)
    elif kind in _WINDOWS_MS:
        _ask(state, bot, kind, payload)
    elif kind == "my_chat_member":
        _stand(state, bot, payload)


def meet_user(state: State, shown: JsonObject) -> None:
    """Make a person known."""
    user_id, name = shown.get("id"), shown.get("first_name")
    if not _is_id(user_id) or not isinstance(name, str) or shown.get("is_bot") is True:
        return
    username = shown.get("username")
    language = shown.get("language_code")
    state.users.setdefault(
        user_id,
        User(
            id=user_id,
            first_name=name,
            username=username if isinstance(username, str) else None,
            language_code=language if isinstance(language, str) else None,
        ),
    )


def meet_chat(state: State, bot: Bot, shown: JsonObject, *, private: bool = True) -> None:
    """Make a chat known in which the bot is; `private` False: only its person is known."""
    chat_id, kind = shown.get("id"), shown.get("type")
    if not _is_id(chat_id):
        return
    if kind == "private":
        meet_user(state, {"first_name": "?", **shown})
        if private:
            bot.met.add(chat_id)
    elif kind in tuple(ChatType):
        chat_type = ChatType(str(kind))
        chat = Chat(chat_id, chat_type, str(shown.get("title", "")))
        if isinstance(shown.get("username"), str):
            chat.username = str(shown["username"])
        chat.is_forum = shown.get("is_forum") is True
        is_channel = chat_type is ChatType.CHANNEL
        standing = Standing.ADMINISTRATOR if is_channel else Standing.MEMBER
        state.chats.setdefault(chat_id, chat).standings.setdefault(bot.id, standing)


def keep_message(state: State, bot: Bot, payload: JsonObject) -> None:
    """Put a message into its chat, so that it can be quoted, edited and deleted."""
    chat, message_id, date_s = (
        _inner(payload, "chat"),
        payload.get("message_id"),
        payload.get("date"),
    )
    if not _is_id(chat.get("id")) or not _is_id(message_id) or not _is_id(date_s):
        return
    chat_id = chat["id"]
    assert isinstance(chat_id, int)
    sender = _inner(payload, "from")
    edit_date = payload.get("edit_date")
    connection = payload.get("business_connection_id")
    conversation: Conversation = state.conversation(
        bot.id, chat_id, connection if isinstance(connection, str) else ""
    )
    is_own = sender.get("id") == bot.id or sender.get("is_bot") is True
    message = conversation.keep(
        Message(
            message_id=message_id,
            date_s=date_s,
            chat=chat,
            sender=sender or None,
            content=_content(payload),
            keyboard=_keyboard(_inner(payload, "reply_markup")),
            edit_date_s=edit_date if isinstance(edit_date, int) else None,
            bot_id=bot.id if is_own else None,
            extra={name: value for name, value in payload.items() if name not in _OWN_FIELDS},
        )
    )
    state.show("message", bot.id, chat_id, message)


def _press(state: State, bot: Bot, payload: JsonObject) -> None:
    message, query_id = _inner(payload, "message"), payload.get("id")
    meet_chat(state, bot, _inner(message, "chat"))
    user_id = _inner(payload, "from").get("id")
    inline_id = payload.get("inline_message_id")
    if isinstance(inline_id, str):
        state.inline_messages.setdefault((bot.id, inline_id), ("", ()))
    if not isinstance(query_id, str) or not isinstance(user_id, int):
        return
    chat_id, message_id = _inner(message, "chat").get("id"), message.get("message_id")
    if isinstance(chat_id, int) and isinstance(message_id, int):
        if message_id not in state.conversation(bot.id, chat_id).messages:
            # Only a bot's own messages carry buttons that tell it something.
            keep_message(state, bot, {**message, "from": message.get("from", bot.to_json())})
    else:
        chat_id = message_id = None
    state.queries[query_id] = Query(
        query_id, bot.id, user_id, chat_id, message_id, state.clock.now_ms()
    )


def _ask(state: State, bot: Bot, kind: str, payload: JsonObject) -> None:
    """A question that is no button press waits for its answer, too."""
    query_id, user_id = payload.get("id"), _inner(payload, "from").get("id")
    if isinstance(query_id, str) and _is_id(user_id):
        state.queries[query_id] = Query(
            query_id,
            bot.id,
            user_id,
            None,
            None,
            state.clock.now_ms(),
            kind=kind,
            window_ms=_WINDOWS_MS[kind],
        )


def _stand(state: State, bot: Bot, payload: JsonObject) -> None:
    status = _inner(payload, "new_chat_member").get("status")
    chat = _inner(payload, "chat")
    chat_id = chat.get("id")
    if not isinstance(chat_id, int) or status not in tuple(Standing):
        return
    if chat.get("type") == "private":
        if status == Standing.KICKED:
            bot.blocked_by.add(chat_id)
        else:
            bot.blocked_by.discard(chat_id)
    elif chat_id in state.chats:
        state.chats[chat_id].standings[bot.id] = Standing(str(status))


def _content(payload: JsonObject) -> Formatted:
    text, given = payload.get("text"), payload.get("entities")
    if not isinstance(text, str):
        return Formatted("")
    entities = []
    for each in given if isinstance(given, list) else []:
        if isinstance(each, dict) and all(_is_id(each.get(name)) for name in ("offset", "length")):
            rest = {name: value for name, value in each.items() if name not in _PLACED}
            entities.append(
                Entity(str(each.get("type")), each["offset"], each["length"], tuple(rest.items()))
            )
    return Formatted(text, tuple(entities))


_PLACED = frozenset({"type", "offset", "length"})


def _keyboard(markup: JsonObject) -> Keyboard:
    rows = markup.get("inline_keyboard")
    if not isinstance(rows, list):
        return ()
    return tuple(
        tuple(button for button in row if isinstance(button, dict))
        for row in rows
        if isinstance(row, list)
    )


def _inner(payload: JsonObject, name: str) -> JsonObject:
    inner = payload.get(name)
    return inner if isinstance(inner, dict) else {}


def _is_id(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
