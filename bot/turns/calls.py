"""What becomes of a Bot API call that a handler makes: a row.

Pure: no clock, no network, no database. The row says what python-telegram-bot would have sent; what
the caller is told at once is in `bot/turns/answers.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from bot.turns.classes import CallClass, class_of, is_awaited
from bot.turns.turn import Json
from bot.turns.wishes import Send
from storage.lifecycle import InboxId, OnUncertain, Priority
from storage.methods import (
    CallKind,
    MethodFacts,
    Returns,
    items_of,
    message_count,
    method_facts,
    says_something,
)
from storage.outgoing import (
    SETTINGS_LANE,
    Fallback,
    FilePart,
    Outgoing,
    Source,
    Tell,
    chat_lane,
    coalesce_key,
    query_lane,
)

# Of a method newer than our table: paced like a message, and not repeated by itself.
_UNKNOWN: Final = MethodFacts(CallKind.SEND, idempotent=False, returns=Returns.OTHER)
_NO_WISH: Final = Send()


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for calls that wish nothing else.

    `cancel_on_edit`: when the message that is answered is edited meanwhile, the answer is not said.
    `late_as_message`: what a pressed button's answer says is said in the chat when it is too late
    for an answer.
    """

    reply_ttl_ms: int
    bulk_ttl_ms: int
    on_uncertain: OnUncertain
    late_as_message: bool = False
    cancel_on_edit: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was made. `params` are the form fields, in order; `files` go with them."""

    method: str
    params: Mapping[str, str]
    wish: Send = _NO_WISH
    files: tuple[FilePart, ...] = ()

    @property
    def facts(self) -> MethodFacts:
        """What is known of its method."""
        return method_facts(self.method) or _UNKNOWN

    @property
    def is_once(self) -> bool:
        """Whether it may never be made twice, whatever is wished."""
        return class_of(self.method) is CallClass.NEVER_REPEATED

    @property
    def is_awaited(self) -> bool:
        """Whether its caller waits for Telegram's own answer."""
        return self.wish.wait or is_awaited(self.method)

    @property
    def is_ephemeral(self) -> bool:
        """Whether it shows for seconds only, and is tried once."""
        return class_of(self.method) is CallClass.EPHEMERAL

    @property
    def placeholders(self) -> int:
        """How many messages its caller is told of before they exist."""
        return 0 if self.is_awaited else message_count(self.method, self.params)


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
    inbox_id: InboxId | None = None
    tell: Tell = Tell.NOTHING


@dataclass(frozen=True, slots=True)
class Name:
    """What a call is called: by its cause, and the first of its messages before it exists.

    `follows`: the placeholder of a message without which the call is not made.
    """

    key: str
    placeholder: int | None = None
    follows: int | None = None


def row_of(call: Call, rules: Rules, occasion: Occasion, name: Name) -> Outgoing:
    """The row that this call becomes."""
    wish = call.wish
    lane = _lane(call)
    source = _source(call, occasion, lane)
    return Outgoing(
        method=call.method,
        params=call.params,
        lane=lane,
        key=name.key if wish.key is None else f"key:{wish.key}",
        chat_id=_number(call.params.get("chat_id")),
        priority=Priority(wish.urgency),
        on_uncertain=_on_uncertain(call, rules),
        expires_at_ms=_expires_at_ms(call, rules, occasion),
        not_before_ms=wish.not_before_ms(occasion.now_ms) or 0,
        supersede_key=_supersede_key(call, lane),
        placeholder=name.placeholder if call.placeholders else None,
        attempts_max=1 if call.is_ephemeral or call.is_once else None,
        items=items_of(call.method, call.params),
        coalesce_key=coalesce_key(call.method, call.params, lane),
        source=source,
        cancel_on_edit=_is_cancelled_on_edit(call, rules) and source is not None,
        generation=_generation(call),
        caused_at_ms=occasion.heard_at_ms,
        fallback=_fallback(call, rules, occasion),
        files=call.files,
        inbox_id=occasion.inbox_id,
        follows=name.follows,
        awaited=call.is_awaited,
        # Who waits for the answer is told by it.
        tell=Tell.NOTHING if call.is_awaited else occasion.tell,
        exclusive=wish.key is not None or call.is_once,
    )


def _lane(call: Call) -> str:
    if call.facts.query is not None:
        return query_lane(call.params.get(call.facts.query, ""))
    chat = call.params.get("chat_id")
    if chat is not None:
        return chat_lane(chat, call.params.get("business_connection_id"))
    inline = call.params.get("inline_message_id")
    return SETTINGS_LANE if inline is None else f"i:{inline}"


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


def _is_cancelled_on_edit(call: Call, rules: Rules) -> bool:
    wished = call.wish.cancel_on_edit
    return rules.cancel_on_edit if wished is None else wished


def _on_uncertain(call: Call, rules: Rules) -> OnUncertain:
    if call.is_once:
        return OnUncertain.HOLD
    if call.is_ephemeral:
        return OnUncertain.DROP
    if call.wish.on_uncertain is not None:
        return OnUncertain(call.wish.on_uncertain)
    return OnUncertain.RESEND if call.facts.idempotent else rules.on_uncertain


def _expires_at_ms(call: Call, rules: Rules, occasion: Occasion) -> int | None:
    wished_ms = call.wish.expires_in_ms
    from_ms = call.wish.not_before_ms(occasion.now_ms) or 0
    wished_at_ms = None if wished_ms is None else max(occasion.now_ms, from_ms) + wished_ms
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
    return max(occasion.heard_at_ms if is_reply else occasion.now_ms, from_ms) + ttl_ms


def _ttl_ms(call: Call, rules: Rules) -> int | None:
    """How long a call is worth making, from the moment it was meant."""
    kind = call.facts.kind
    match kind:
        case CallKind.SEND | CallKind.EDIT | CallKind.MARK:
            return rules.bulk_ttl_ms if call.wish.urgency == "bulk" else rules.reply_ttl_ms
        case CallKind.DELETE | CallKind.MANAGE:
            # Not to be seen now is not to be seen later either; a setting holds until changed. But
            # what somebody waits for is worth nothing when he is gone.
            return rules.reply_ttl_ms if call.is_awaited else None
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


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
