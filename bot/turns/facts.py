"""What an update tells of its chat: that it was heard of, can be reached, or no longer can.

Recorded in the turn's transaction, whatever the handlers do.
"""

from dataclasses import dataclass
from typing import Final

from telegram import ChatMember, Message, Update

from storage import chats, outbox
from storage.database import Tx
from storage.lifecycle import BotName
from storage.outgoing import chat_lane
from storage.telemetry import event

_GONE: Final = frozenset({ChatMember.BANNED, ChatMember.LEFT})


@dataclass(frozen=True, slots=True)
class ChatFact:
    """One chat was heard of. `gone`: why the bot can't write to it any more, or None."""

    chat_id: int
    kind: str
    gone: str | None


def fact_of(update: Update) -> ChatFact | None:
    """What this update tells of its chat, if that is one of the bot's own.

    The chats of a business account are its owner's, and in the chat of a guest message the bot is
    no member: whom it may write to by itself they don't tell.
    """
    chat = update.effective_chat
    if chat is None or _is_of_others(update):
        return None
    gone = None
    if update.my_chat_member is not None:
        status = update.my_chat_member.new_chat_member.status
        if status in _GONE:
            private = chat.type == chat.PRIVATE
            gone = (
                "the user blocked the bot" if private else f"the bot is out of the chat ({status})"
            )
    return ChatFact(chat.id, chat.type, gone)


def _is_of_others(update: Update) -> bool:
    others = (
        update.business_message,
        update.edited_business_message,
        update.deleted_business_messages,
        update.guest_message,
    )
    if any(content is not None for content in others):
        return True
    pressed = None if update.callback_query is None else update.callback_query.message
    return isinstance(pressed, Message) and pressed.business_connection_id is not None


@dataclass(frozen=True, slots=True)
class ChatChange:
    """What recording a fact has changed: an unreachable chat revived, waiting calls cancelled."""

    revived: bool
    cancelled: int


def record(tx: Tx, bot: BotName, fact: ChatFact) -> ChatChange:
    """Remember it; what still waits for a chat that is gone is cancelled."""
    chats.seen(tx, bot, fact.chat_id, kind=fact.kind)
    if fact.gone is None:
        return ChatChange(chats.revive(tx, bot, fact.chat_id), cancelled=0)
    chats.mark_unreachable(tx, bot, fact.chat_id, reason=fact.gone)
    cancelled = outbox.cancel_lane(tx, bot, chat_lane(fact.chat_id), reason=fact.gone)
    return ChatChange(revived=False, cancelled=len(cancelled))


def tell(bot: BotName, fact: ChatFact, change: ChatChange) -> None:
    """Log what has changed, once it is committed."""
    if change.revived:
        event("chat.revived", bot=bot, chat_id=fact.chat_id)
    if fact.gone is not None:
        event(
            "chat.unreachable",
            bot=bot,
            chat_id=fact.chat_id,
            reason=fact.gone,
            cancelled=change.cancelled,
        )
