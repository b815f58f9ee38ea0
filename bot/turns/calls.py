"""What becomes of a Bot API call that a handler makes: a row, and the answer it gets at once.

Pure: no clock, no network, no database. The row says what python-telegram-bot would have sent; the
answer says what Telegram would have answered, as far as that can be known before it is asked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, assert_never

from bot.turns.turn import Json
from bot.turns.wishes import Send
from storage.lifecycle import OnUncertain, Priority
from storage.methods import METHODS, CallKind, MethodFacts, items_of, says_something
from storage.outgoing import Fallback, Outgoing, Source, chat_lane, coalesce_key, query_lane

CAPTURED: Final[Mapping[str, MethodFacts]] = MappingProxyType(
    {
        method: METHODS[method]
        for method in (
            "sendMessage",
            "editMessageText",
            "editMessageReplyMarkup",
            "deleteMessage",
            "sendChatAction",
            "sendMessageDraft",
            "answerCallbackQuery",
            "answerInlineQuery",
            "answerShippingQuery",
            "answerPreCheckoutQuery",
            "answerChatJoinRequestQuery",
        )
    }
)
"""What a handler may leave as a row: the deferrable methods whose answer `answer_of` makes up."""

# Supergroups and channels have ids below this, plain groups above (Bot API, dialog ids).
_SUPERGROUPS_BELOW: Final = -1_000_000_000_000
_NO_WISH: Final = Send()


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for calls that wish nothing else.

    `late_as_message`: what a pressed button's answer says is said in the chat when it is too late
    for an answer.
    """

    reply_ttl_ms: int
    bulk_ttl_ms: int
    on_uncertain: OnUncertain
    late_as_message: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One deferrable call as it was made. `params` are the form fields, in order."""

    method: str
    params: Mapping[str, str]
    wish: Send = _NO_WISH

    @property
    def facts(self) -> MethodFacts:
        """What is known of its method."""
        return CAPTURED[self.method]


@dataclass(frozen=True, slots=True)
class Occasion:
    """When a call was made, and what for. Times are UTC milliseconds.

    `heard_at_ms`: when its cause came in. `source`: the message that the update is about. `update`:
    the update as Telegram sent it, or None.
    """

    now_ms: int
    heard_at_ms: int
    source: Source | None = None
    update: Json | None = None


def row_of(
    call: Call, rules: Rules, occasion: Occasion, *, key: str, placeholder: int | None
) -> Outgoing:
    """The row that this call becomes."""
    facts = call.facts
    wish = call.wish
    lane = _lane(call)
    source = _source(call, occasion, lane)
    return Outgoing(
        method=call.method,
        params=call.params,
        lane=lane,
        key=key,
        chat_id=_number(call.params.get("chat_id")),
        priority=Priority(wish.urgency),
        on_uncertain=_on_uncertain(call, rules),
        expires_at_ms=_expires_at_ms(call, rules, occasion),
        supersede_key=_supersede_key(call, lane),
        placeholder=placeholder if facts.returns_message else None,
        attempts_max=1 if facts.kind is CallKind.ACTION else None,
        items=items_of(call.method, call.params),
        coalesce_key=coalesce_key(call.method, call.params, lane),
        source=source,
        cancel_on_edit=wish.cancel_on_edit and source is not None,
        generation=_generation(call),
        caused_at_ms=occasion.heard_at_ms,
        fallback=_fallback(call, rules, occasion),
    )


def _lane(call: Call) -> str:
    if call.facts.query is not None:
        return query_lane(call.params.get(call.facts.query, ""))
    chat = call.params.get("chat_id")
    if chat is None:
        return f"i:{call.params.get('inline_message_id', '')}"
    return chat_lane(chat, call.params.get("business_connection_id"))


def _supersede_key(call: Call, lane: str) -> str | None:
    """Named within its chat: progress in one chat says nothing about another's."""
    if call.wish.supersede is not None:
        return f"{lane}/{call.wish.supersede}"
    draft = call.params.get("draft_id")
    # Of a draft only the latest state is worth showing.
    return None if draft is None else f"{lane}|draft:{draft}"


def _source(call: Call, occasion: Occasion, lane: str) -> Source | None:
    """The message that this call answers: what goes to another chat is no answer to it."""
    source = occasion.source
    if source is None or source.lane != lane or not says_something(call.method):
        return None
    return source


def _generation(call: Call) -> str | None:
    if call.wish.generation is not None:
        return str(call.wish.generation)
    return call.params.get("draft_id")


def _on_uncertain(call: Call, rules: Rules) -> OnUncertain:
    if call.wish.on_uncertain is not None:
        return OnUncertain(call.wish.on_uncertain)
    if call.facts.kind is CallKind.ACTION:
        return OnUncertain.DROP
    return OnUncertain.RESEND if call.facts.idempotent else rules.on_uncertain


def _expires_at_ms(call: Call, rules: Rules, occasion: Occasion) -> int | None:
    wished_ms = call.wish.expires_in_ms
    wished_at_ms = None if wished_ms is None else occasion.now_ms + wished_ms
    if call.facts.kind is CallKind.ANSWER:
        # Telegram waits no longer, whatever is wished.
        ends_at_ms = occasion.heard_at_ms + _window_ms(call)
        return ends_at_ms if wished_at_ms is None else min(ends_at_ms, wished_at_ms)
    if wished_at_ms is not None:
        return wished_at_ms
    ttl_ms = _ttl_ms(call, rules)
    if ttl_ms is None:
        return None
    # A reply grows old with its question, however late a worker came to it.
    is_reply = call.facts.kind is not CallKind.ACTION and call.wish.urgency != "bulk"
    return (occasion.heard_at_ms if is_reply else occasion.now_ms) + ttl_ms


def _ttl_ms(call: Call, rules: Rules) -> int | None:
    """How long a call is worth making, from the moment it was meant."""
    kind = call.facts.kind
    match kind:
        case CallKind.SEND | CallKind.EDIT | CallKind.MARK:
            return rules.bulk_ttl_ms if call.wish.urgency == "bulk" else rules.reply_ttl_ms
        case CallKind.DELETE | CallKind.MANAGE:
            # Not to be seen now is not to be seen later either; a setting holds until changed.
            return None
        case CallKind.ANSWER | CallKind.ACTION:
            return _window_ms(call)
        case _:
            assert_never(kind)


def _window_ms(call: Call) -> int:
    window_ms = call.facts.window_ms
    assert window_ms is not None, f"{call.method} has no window"
    return window_ms


def _fallback(call: Call, rules: Rules, occasion: Occasion) -> Fallback | None:
    """What to say in the chat when this answer to a pressed button comes too late.

    Only the one who pressed sees the answer. So in a group, where all would see the message, it
    takes a wish for this very call.
    """
    text = call.params.get("text")
    wished = call.wish.late_as_message
    if call.method != "answerCallbackQuery" or not text:
        return None
    if wished is False or (wished is None and not rules.late_as_message):
        return None
    place = _place_of_press(call.params.get("callback_query_id"), occasion.update)
    if place is None or (wished is None and place.kind != "private"):
        return None
    return Fallback(
        method="sendMessage",
        params={**place.params, "text": text},
        lane=chat_lane(place.chat_id, place.params.get("business_connection_id")),
        chat_id=place.chat_id,
        ttl_ms=rules.reply_ttl_ms,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a button was pressed: the chat, its kind, and the form fields that lead there."""

    chat_id: int
    kind: str
    params: Mapping[str, str]


def _place_of_press(query_id: str | None, update: Json | None) -> _Place | None:
    """The place of this very press, unless it was under a message of nowhere (an inline one)."""
    press = None if update is None else update.get("callback_query")
    if not isinstance(press, dict) or press.get("id") != query_id:
        return None
    message = press.get("message")
    chat = message.get("chat") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(chat, dict):
        return None
    params = {"chat_id": str(chat["id"])}
    if "business_connection_id" in message:
        params["business_connection_id"] = str(message["business_connection_id"])
    if message.get("is_topic_message"):
        params["message_thread_id"] = str(message["message_thread_id"])
    if "direct_messages_topic" in message:
        params["direct_messages_topic_id"] = str(message["direct_messages_topic"]["topic_id"])
    return _Place(int(chat["id"]), str(chat["type"]), params)


def answer_of(call: Call, me: Json, occasion: Occasion, *, placeholder: int | None) -> object:
    """The `result` that the caller gets: a Message with what is known of it, or True.

    `me` is the bot's own user, who speaks.
    """
    kind = call.facts.kind
    match kind:
        case CallKind.SEND:
            assert placeholder is not None, call.method
            return _message(call.params, me, occasion, message_id=placeholder)
        case CallKind.EDIT:
            message_id = _number(call.params.get("message_id"))
            if message_id is None or "chat_id" not in call.params:
                return True
            message = _message(call.params, me, occasion, message_id=message_id)
            return {**message, "edit_date": occasion.now_ms // 1000}
        case CallKind.DELETE | CallKind.ANSWER | CallKind.ACTION | CallKind.MARK | CallKind.MANAGE:
            return True
        case _:
            assert_never(kind)


def _message(
    params: Mapping[str, str], me: Json, occasion: Occasion, *, message_id: int
) -> dict[str, Any]:
    """A Message that leads what is said next to the same chat, topic and connection."""
    message: dict[str, Any] = {
        "message_id": message_id,
        "date": occasion.now_ms // 1000,
        "chat": _chat(params["chat_id"], occasion.update),
        "from": me,
    }
    for name in ("text", "business_connection_id"):
        if name in params:
            message[name] = params[name]
    if "entities" in params:
        message["entities"] = json.loads(params["entities"])
    if "inline_keyboard" in params.get("reply_markup", ""):
        message["reply_markup"] = json.loads(params["reply_markup"])
    if "message_thread_id" in params:
        message["message_thread_id"] = int(params["message_thread_id"])
        message["is_topic_message"] = True
    if "direct_messages_topic_id" in params:
        topic_id = int(params["direct_messages_topic_id"])
        message["direct_messages_topic"] = {"topic_id": topic_id}
    return message


def _chat(text: str, update: Json | None) -> Json:
    chat_id = _number(text)
    if chat_id is None:
        # Its number is not known here. Under its name it can be written to all the same, so that
        # what is done with this message reaches the right chat.
        return {"id": text, "type": "channel", "username": text.removeprefix("@")}
    if update is not None and (told := _chat_in(update, chat_id)) is not None:
        return told
    if chat_id > 0:
        return {"id": chat_id, "type": "private"}
    return {
        "id": chat_id,
        "type": "supergroup" if chat_id < _SUPERGROUPS_BELOW else "group",
        "title": "",
    }


def _chat_in(update: Json, chat_id: int) -> Json | None:
    """The chat as the update tells of it: the library has read that already."""
    for content in update.values():
        if not isinstance(content, dict):
            continue
        for origin in (content, content.get("message")):
            chat = origin.get("chat") if isinstance(origin, dict) else None
            if isinstance(chat, dict) and chat.get("id") == chat_id and "type" in chat:
                return chat
    return None


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
