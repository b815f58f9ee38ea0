"""What the control interface and the chat page are shown of the world, as JSON. Pure."""

from tests.simulator.chats import Chat, Message, User
from tests.simulator.limits import Scope
from tests.simulator.methods_updates import webhook_info
from tests.simulator.model import Telegram
from tests.simulator.state import CALLBACK_WINDOW_MS, Bot, State
from tests.simulator.wire import JsonObject


def bot_view(bot: Bot) -> JsonObject:
    """A bot."""
    return {
        "id": bot.id,
        "token": bot.token,
        "username": bot.username,
        "first_name": bot.first_name,
    }


def user_view(user: User) -> JsonObject:
    """A person."""
    return {
        "id": user.id,
        "first_name": user.first_name,
        "username": user.username,
        "deactivated": user.deactivated,
    }


def chat_view(chat: Chat) -> JsonObject:
    """A group, supergroup or channel."""
    return {
        "id": chat.id,
        "type": str(chat.type),
        "title": chat.title,
        "members": sorted(chat.standings),
    }


def message_view(state: State, message: Message) -> JsonObject:
    """A message as it stands; `delivered` is about the bots that are told of it."""
    sender = message.sender or {}
    quoted = message.reply_to
    return {
        "message_id": message.message_id,
        "from_id": sender.get("id"),
        "from_bot": message.bot_id is not None,
        "from_name": sender.get("first_name", ""),
        "text": message.content.text,
        "entities": [entity.to_json() for entity in message.content.entities],
        "date_s": message.date_s,
        "edit_date_s": message.edit_date_s,
        "deleted": message.deleted,
        "reply_to": None if quoted is None else quoted.message_id,
        "buttons": [list(row) for row in message.keyboard],
        "delivered": not any(
            state.bots[bot_id].deliverer.holds(update_id)
            for bot_id, update_id in message.update_ids
        ),
        "extra": message.extra,
    }


def conversation_view(telegram: Telegram, bot: Bot, chat_id: int) -> JsonObject:
    """A whole chat, with what hinders it at the moment."""
    state, now_ms = telegram.state, telegram.clock.now_ms()
    floods = [telegram.limiter.running(Scope(bot.id, each), now_ms) for each in (chat_id, None)]
    chat = state.chats.get(chat_id)
    return {
        "now_ms": now_ms,
        "messages": [message_view(state, each) for each in state.conversation(bot.id, chat_id)],
        "flood_until_ms": max((each.until_ms for each in floods if each), default=None),
        "blocked": chat_id in bot.blocked_by,
        "standing": None if chat is None else str(chat.standing(bot.id) or "none"),
        "waiting": [
            {
                "message_id": each.message_id,
                "user_id": each.user_id,
                "data": each.data,
                "until_ms": each.pressed_at_ms + CALLBACK_WINDOW_MS,
            }
            for each in state.queries.values()
            if each.bot_id == bot.id and each.chat_id == chat_id and each.waits(now_ms)
        ],
        "webhook": webhook_info(state, bot),
    }
