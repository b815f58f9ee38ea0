"""People, bots, chats and messages, as Telegram keeps them and as it shows them to a bot."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tests.simulator.entities import Formatted
from tests.simulator.keyboards import Keyboard
from tests.simulator.wire import JsonObject


class ChatType(StrEnum):
    """Telegram's own words."""

    PRIVATE = "private"
    GROUP = "group"
    SUPERGROUP = "supergroup"
    CHANNEL = "channel"


class Standing(StrEnum):
    """What a member is in a chat."""

    CREATOR = "creator"
    ADMINISTRATOR = "administrator"
    MEMBER = "member"
    LEFT = "left"
    KICKED = "kicked"


@dataclass(slots=True, eq=False)
class User:
    """A person."""

    id: int
    first_name: str
    username: str | None = None
    language_code: str | None = None
    deactivated: bool = False

    def to_json(self) -> JsonObject:
        """Telegram's `User`."""
        shown: JsonObject = {"id": self.id, "is_bot": False, "first_name": self.first_name}
        if self.username:
            shown["username"] = self.username
        if self.language_code:
            shown["language_code"] = self.language_code
        return shown

    def as_chat(self) -> JsonObject:
        """The private chat with this person, as a bot sees it."""
        shown: JsonObject = {"id": self.id, "first_name": self.first_name}
        if self.username:
            shown["username"] = self.username
        return {**shown, "type": "private"}


@dataclass(slots=True, eq=False)
class Chat:
    """A group, supergroup or channel; private chats need no more than their `User`."""

    id: int
    type: ChatType
    title: str
    username: str | None = None
    standings: dict[int, Standing] = field(default_factory=dict)
    migrated_to: int | None = None
    deleted: bool = False
    is_forum: bool = False
    # Members who are no administrators wait so long between their messages.
    slow_s: int = 0

    def to_json(self) -> JsonObject:
        """Telegram's `Chat`."""
        shown: JsonObject = {"id": self.id, "title": self.title}
        if self.username:
            shown["username"] = self.username
        shown["type"] = str(self.type)
        if self.is_forum:
            shown["is_forum"] = True
        return shown

    @property
    def is_group(self) -> bool:
        """Say whether the limit for groups holds here."""
        return self.type is not ChatType.PRIVATE

    def standing(self, member_id: int) -> Standing | None:
        """What a user or bot is here; None for one who never was."""
        return self.standings.get(member_id)


@dataclass(slots=True, eq=False)
class Message:
    """A message as it stands."""

    message_id: int
    date_s: int
    chat: JsonObject
    sender: JsonObject | None
    content: Formatted = field(default_factory=lambda: Formatted(""))
    # The content stands under a photo or the like.
    is_caption: bool = False
    keyboard: Keyboard = ()
    reply_to: "Message | None" = None
    edit_date_s: int | None = None
    deleted: bool = False
    pinned: bool = False
    # By bot.
    reactions: dict[int, tuple[str, ...]] = field(default_factory=dict)
    # The bot that sent it, if one did.
    bot_id: int | None = None
    # The updates that tell bots of it, as (bot, update).
    update_ids: tuple[tuple[int, int], ...] = ()
    # Service fields and whatever else belongs to it.
    extra: JsonObject = field(default_factory=dict)

    def to_json(self, *, with_reply: bool = True) -> JsonObject:
        """Telegram's `Message`; a quoted message is shown without its own quote."""
        shown: JsonObject = {"message_id": self.message_id}
        if self.sender is not None:
            shown["from"] = self.sender
        shown |= {"chat": self.chat, "date": self.date_s}
        if self.edit_date_s is not None:
            shown["edit_date"] = self.edit_date_s
        if with_reply and self.reply_to is not None:
            shown["reply_to_message"] = self.reply_to.to_json(with_reply=False)
        if self.content.text:
            shown["caption" if self.is_caption else "text"] = self.content.text
        if self.content.entities:
            name = "caption_entities" if self.is_caption else "entities"
            shown[name] = [entity.to_json() for entity in self.content.entities]
        if self.keyboard:
            shown["reply_markup"] = {"inline_keyboard": [list(row) for row in self.keyboard]}
        return shown | self.extra


@dataclass(slots=True, eq=False)
class Conversation:
    """The messages of one chat; in private each bot has a conversation of its own."""

    messages: dict[int, Message] = field(default_factory=dict)
    highest_id: int = 0

    def find(self, message_id: int) -> Message | None:
        """A message that still is there."""
        message = self.messages.get(message_id)
        return None if message is None or message.deleted else message

    def keep(self, message: Message) -> Message:
        """Add a message."""
        self.messages[message.message_id] = message
        self.highest_id = max(self.highest_id, message.message_id)
        return message

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages.values())
