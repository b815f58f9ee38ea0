"""May this bot act in this chat? Finding the chat, and Telegram's words when the answer is no."""

from dataclasses import dataclass

from tests.simulator.chats import Chat, ChatType, Conversation, Standing, User
from tests.simulator.forms import Args
from tests.simulator.state import Bot, State
from tests.simulator.wire import JsonObject, Refused, bad_request, forbidden


@dataclass(frozen=True, slots=True)
class Place:
    """A chat as one bot reaches it."""

    chat_id: int
    shown: JsonObject
    conversation: Conversation
    # None in private chats and behind a business connection.
    chat: Chat | None

    @property
    def is_group(self) -> bool:
        """Say whether it is more than a private chat."""
        return self.chat is not None


def chat_id_in(state: State, args: Args) -> int | None:
    """The numeric id of the chat that a call names; None when nobody knows that name."""
    written = args.text("chat_id")
    if not written.startswith("@"):
        return args.integer("chat_id") if args.has("chat_id") else None
    name = written.removeprefix("@").lower()
    return next(
        (chat.id for chat in state.chats.values() if (chat.username or "").lower() == name), None
    )


def place_to_read(state: State, bot: Bot, args: Args) -> Place:
    """The chat that a call names, whether or not the bot may write there."""
    if not args.text("chat_id"):
        raise bad_request("chat_id is empty")
    chat_id = chat_id_in(state, args)
    connection = args.text("business_connection_id")
    if connection and (bot.id, connection) not in state.business:
        raise bad_request("business connection not found")
    if chat_id is None:
        raise bad_request("chat not found")
    chat = None if connection else state.chats.get(chat_id)
    if chat is not None and _knows(bot, chat):
        return Place(chat_id, chat.to_json(), state.conversation(bot.id, chat_id), chat)
    user = state.users.get(chat_id)
    if user is None or not (connection or _has_met(state, bot, user)):
        raise bad_request("chat not found")
    conversation = state.conversation(bot.id, chat_id, connection)
    return Place(chat_id, user.as_chat(), conversation, None)


def place_to_write(state: State, bot: Bot, args: Args) -> Place:
    """The chat that a call names; raises Refused when the bot may not write there."""
    place = place_to_read(state, bot, args)
    if args.text("business_connection_id"):
        return place
    if place.chat is None:
        _check_private(bot, state.users[place.chat_id])
    else:
        _check_group(bot, place.chat)
    if args.has("message_thread_id") and not (place.chat is not None and place.chat.is_forum):
        raise bad_request("message thread not found")
    return place


def _knows(bot: Bot, chat: Chat) -> bool:
    return chat.standing(bot.id) is not None


def _has_met(state: State, bot: Bot, user: User) -> bool:
    """A bot knows who has written to it, and the members of its groups."""
    return user.id in bot.met or any(
        _knows(bot, chat) and chat.standing(user.id) is not None for chat in state.chats.values()
    )


def _check_private(bot: Bot, user: User) -> None:
    if user.deactivated:
        raise forbidden("user is deactivated")
    if user.id in bot.blocked_by:
        raise Refused(403, "bot was blocked by the user", inner="USER_IS_BLOCKED")
    if user.id not in bot.met:
        raise forbidden("bot can't initiate conversation with a user")


def _check_group(bot: Bot, chat: Chat) -> None:
    if chat.migrated_to is not None:
        raise Refused(
            400,
            "group chat was upgraded to a supergroup chat",
            parameters={"migrate_to_chat_id": chat.migrated_to},
        )
    if chat.deleted:
        raise forbidden("the group chat was deleted")
    match chat.standing(bot.id):
        case Standing.KICKED:
            raise forbidden(f"bot was kicked from the {chat.type} chat")
        case Standing.LEFT | None:
            raise forbidden(f"bot is not a member of the {chat.type} chat")
        case Standing.MEMBER if chat.type is ChatType.CHANNEL:
            raise bad_request("need administrator rights in the channel chat")
        case Standing.CREATOR | Standing.ADMINISTRATOR | Standing.MEMBER:
            return
