"""What becomes of a Bot API call that a handler makes: a row, and the answer it gets at once.

Pure: no clock, no network, no database. The row says what python-telegram-bot would have sent; the
answer says what Telegram would have answered, as far as that can be known before it is asked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from bot.turns.turn import Json
from bot.turns.wishes import Send
from storage.lifecycle import OnUncertain, Priority
from storage.outgoing import METHODS, CallKind, MethodFacts, Outgoing, chat_lane, query_lane

# Telegram shows a chat action for 5 s: later it would announce what has long been said.
ACTION_TTL_MS: Final = 5_000
# The client of a pressed button stops waiting after about 15 s, and Telegram refuses the answer.
ANSWER_TTL_MS: Final = 15_000
# Supergroups and channels have ids below this, plain groups above (Bot API, dialog ids).
_SUPERGROUPS_BELOW: Final = -1_000_000_000_000
_NO_WISH: Final = Send()


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for calls that wish nothing else."""

    reply_ttl_ms: int
    bulk_ttl_ms: int
    on_uncertain: OnUncertain


@dataclass(frozen=True, slots=True)
class Call:
    """One deferrable call as it was made. `params` are the form fields, in order."""

    method: str
    params: Mapping[str, str]
    wish: Send = _NO_WISH

    @property
    def facts(self) -> MethodFacts:
        """What is known of its method."""
        return METHODS[self.method]


@dataclass(frozen=True, slots=True)
class Times:
    """When the call was made, and when the update it answers came in. UTC milliseconds."""

    now_ms: int
    heard_at_ms: int


def row_of(
    call: Call, rules: Rules, times: Times, *, key: str, placeholder: int | None
) -> Outgoing:
    """The row that this call becomes."""
    lane = _lane(call)
    supersede = call.wish.supersede
    return Outgoing(
        method=call.method,
        params=call.params,
        lane=lane,
        key=key,
        chat_id=_number(call.params.get("chat_id")),
        priority=Priority(call.wish.urgency),
        on_uncertain=_on_uncertain(call, rules),
        expires_at_ms=_expires_at_ms(call, rules, times),
        # Named within its chat: progress in one chat says nothing about another's.
        supersede_key=None if supersede is None else f"{lane}/{supersede}",
        placeholder=placeholder if call.facts.returns_message else None,
        attempts_max=1 if call.facts.kind is CallKind.ACTION else None,
    )


def _lane(call: Call) -> str:
    if call.facts.kind is CallKind.ANSWER:
        return query_lane(call.params.get("callback_query_id", ""))
    chat = call.params.get("chat_id")
    if chat is None:
        return f"i:{call.params.get('inline_message_id', '')}"
    return chat_lane(chat, call.params.get("business_connection_id"))


def _on_uncertain(call: Call, rules: Rules) -> OnUncertain:
    if call.wish.on_uncertain is not None:
        return OnUncertain(call.wish.on_uncertain)
    if call.facts.kind is CallKind.ACTION:
        return OnUncertain.DROP
    return OnUncertain.RESEND if call.facts.idempotent else rules.on_uncertain


def _expires_at_ms(call: Call, rules: Rules, times: Times) -> int | None:
    wished_ms = call.wish.expires_in_ms
    if wished_ms is not None:
        return times.now_ms + wished_ms
    kind = call.facts.kind
    match kind:
        case CallKind.SEND | CallKind.EDIT:
            is_bulk = call.wish.urgency == "bulk"
            return times.now_ms + (rules.bulk_ttl_ms if is_bulk else rules.reply_ttl_ms)
        case CallKind.DELETE:
            # What should not be seen should not be seen later either.
            return None
        case CallKind.ANSWER:
            return times.heard_at_ms + ANSWER_TTL_MS
        case CallKind.ACTION:
            return times.now_ms + ACTION_TTL_MS
        case _:
            assert_never(kind)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who speaks, and in answer to what: for the answers made up here.

    `me` is the bot's own user, `update` the update as Telegram sent it, or None.
    """

    me: Json
    update: Json | None = None


def answer_of(call: Call, speaker: Speaker, times: Times, *, placeholder: int | None) -> object:
    """The `result` that the caller gets: a Message with what is known of it, or True."""
    kind = call.facts.kind
    match kind:
        case CallKind.SEND:
            assert placeholder is not None, call.method
            return _message(call.params, speaker, times, message_id=placeholder)
        case CallKind.EDIT:
            message_id = _number(call.params.get("message_id"))
            if message_id is None or "chat_id" not in call.params:
                return True
            message = _message(call.params, speaker, times, message_id=message_id)
            return {**message, "edit_date": times.now_ms // 1000}
        case CallKind.DELETE | CallKind.ANSWER | CallKind.ACTION:
            return True
        case _:
            assert_never(kind)


def _message(
    params: Mapping[str, str], speaker: Speaker, times: Times, *, message_id: int
) -> dict[str, Any]:
    """A Message that leads what is said next to the same chat, topic and connection."""
    message: dict[str, Any] = {
        "message_id": message_id,
        "date": times.now_ms // 1000,
        "chat": _chat(params["chat_id"], speaker.update),
        "from": speaker.me,
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
