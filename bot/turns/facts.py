"""What an update tells of its chat: which message it is about, and that the chat was heard of.

Recorded in the turn's transaction, whatever the handlers do. That a chat can't be written to any
more was written when the update was stored (storage/arrival.py); the turn clears up after it.
"""

from dataclasses import dataclass

from telegram import Message, Update

from storage import chats, outbox
from storage.database import Tx
from storage.lifecycle import BotName
from storage.outgoing import Source, chat_lane
from storage.telemetry import event


@dataclass(frozen=True, slots=True)
class ChatFact:
    """One chat was heard of. `membership`: the update tells whether the bot is still in it."""

    chat_id: int
    kind: str
    membership: bool = False


def fact_of(update: Update) -> ChatFact | None:
    """What this update tells of its chat, if that is one of the bot's own.

    The chats of a business account are its owner's, and in the chat of a guest message the bot is
    no member: whom it may write to by itself they don't tell.
    """
    chat = update.effective_chat
    if chat is None or _is_of_others(update):
        return None
    return ChatFact(chat.id, chat.type, update.my_chat_member is not None)


def source_of(update: Update) -> Source | None:
    """The message that this update is about, if it is about one.

    Who presses a button is answered for the press, whatever becomes of the message under which it
    was. A guest message is of a chat that the bot is not in, and that nobody tells of any more.
    """
    message = (
        update.message
        or update.edited_message
        or update.channel_post
        or update.edited_channel_post
        or update.business_message
        or update.edited_business_message
    )
    if message is None or message.message_id <= 0:
        return None
    lane = chat_lane(message.chat.id, message.business_connection_id)
    return Source(lane, message.message_id)


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
    """What recording a fact has changed.

    An unreachable chat is `revived`; or it is still `gone`, for this reason, and so many calls that
    waited for it are `cancelled`.
    """

    revived: bool = False
    gone: str | None = None
    cancelled: int = 0


def record(tx: Tx, bot: BotName, fact: ChatFact, *, heard_at_ms: int) -> ChatChange:
    """Remember it; what still waits for a chat that is gone is cancelled.

    `heard_at_ms` is when the update came in (UTC): a chat that was lost later stays lost.
    """
    chats.seen(tx, bot, fact.chat_id, kind=fact.kind)
    if not fact.membership:
        revived = chats.revive(tx, bot, fact.chat_id, heard_at_ms=heard_at_ms)
        return ChatChange(revived=revived)
    known = chats.show(tx, bot, fact.chat_id)
    if known is None or known.unreachable_reason is None:
        return ChatChange()
    reason = known.unreachable_reason
    cancelled = outbox.cancel_lane(tx, bot, chat_lane(fact.chat_id), reason=reason)
    return ChatChange(gone=reason, cancelled=len(cancelled))


def tell(bot: BotName, fact: ChatFact, change: ChatChange) -> None:
    """Log what has changed, once it is committed."""
    if change.revived:
        event("chat.revived", bot=bot, chat_id=fact.chat_id)
    if change.gone is not None:
        event(
            "chat.unreachable",
            bot=bot,
            chat_id=fact.chat_id,
            reason=change.gone,
            cancelled=change.cancelled,
        )
