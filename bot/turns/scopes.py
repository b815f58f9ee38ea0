"""Which memories an update touches: its user's, its chats', and its place in conversations.

Pure. A turn may read and write only these; its lanes make sure that no other turn has them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from telegram import Update
from telegram.ext import BaseHandler, ConversationHandler, Job

ConversationKey = tuple[int | str, ...]
AnyConversation = ConversationHandler[Any]


@dataclass(frozen=True, slots=True)
class Place:
    """One conversation of one (chat, user, message), by python-telegram-bot's key."""

    conversation: str
    key: ConversationKey

    @property
    def name(self) -> str:
        """Its name in the database."""
        return f"conversation:{self.conversation}:{json.dumps(self.key, separators=(',', ':'))}"


@dataclass(frozen=True, slots=True)
class Scopes:
    """What one turn, one job or one late task may remember.

    `passing` are its places in conversations that are in memory only: the number of each among
    those, and its key.
    """

    users: tuple[int, ...] = ()
    chats: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()
    passing: tuple[tuple[int, ConversationKey], ...] = ()

    def names(self) -> list[str]:
        """Their names in the database."""
        return [
            *map(user_scope, self.users),
            *map(chat_scope, self.chats),
            *(place.name for place in self.places),
        ]


def user_scope(user_id: int) -> str:
    """The name of a user's memory."""
    return f"user:{user_id}"


def chat_scope(chat_id: int) -> str:
    """The name of a chat's memory."""
    return f"chat:{chat_id}"


def scopes_of(
    update: Update,
    conversations: Iterable[AnyConversation],
    passing: Iterable[AnyConversation] = (),
) -> Scopes:
    """The memories of an update; `passing` are the conversations that are in memory only.

    When a group becomes a supergroup both chats are meant, as handlers move the memory over.
    """
    user = update.effective_user
    chat = update.effective_chat
    message = update.message
    chats = [] if chat is None else [chat.id]
    if message is not None:
        chats += [
            moved
            for moved in (message.migrate_to_chat_id, message.migrate_from_chat_id)
            if moved is not None
        ]
    places = [
        Place(conversation.name, key)
        for conversation in conversations
        if conversation.name and (key := key_of(conversation, update)) is not None
    ]
    keys = [
        (number, key)
        for number, conversation in enumerate(passing)
        if (key := key_of(conversation, update)) is not None
    ]
    return Scopes(() if user is None else (user.id,), tuple(chats), tuple(places), tuple(keys))


def scopes_of_job(job: Job[Any], conversations: Iterable[AnyConversation]) -> Scopes:
    """The memories of a job: those it names, or those of the conversation that it times out."""
    update = update_of(job)
    if update is not None:
        return scopes_of(update, conversations)
    return Scopes(
        () if job.user_id is None else (job.user_id,),
        () if job.chat_id is None else (job.chat_id,),
    )


def update_of(job: Job[Any]) -> Update | None:
    """The update that a job carries, as the library's own timer of a conversation does."""
    update = getattr(job.data, "update", None)
    return update if isinstance(update, Update) else None


def key_of(conversation: AnyConversation, update: Update) -> ConversationKey | None:
    """The key under which a conversation keeps this update's state; None where it has none."""
    key: list[int | str] = []
    if conversation.per_chat:
        if update.effective_chat is None:
            return None
        key.append(update.effective_chat.id)
    if conversation.per_user:
        if update.effective_user is None:
            return None
        key.append(update.effective_user.id)
    if conversation.per_message:
        query = update.callback_query
        if query is None:
            return None
        if query.inline_message_id:
            key.append(query.inline_message_id)
        elif query.message is not None:
            key.append(query.message.message_id)
        else:
            return None
    return tuple(key)


def persistent_conversations(
    handlers: Mapping[int, Sequence[BaseHandler[Any, Any, Any]]],
) -> list[AnyConversation]:
    """The conversations, nested ones too, whose states are to outlive the process."""
    return [found for found in _all_conversations(handlers) if found.persistent and found.name]


def passing_conversations(
    handlers: Mapping[int, Sequence[BaseHandler[Any, Any, Any]]],
) -> list[AnyConversation]:
    """Those, nested ones too, whose states are in memory only."""
    return [
        found for found in _all_conversations(handlers) if not (found.persistent and found.name)
    ]


def _all_conversations(
    handlers: Mapping[int, Sequence[BaseHandler[Any, Any, Any]]],
) -> Iterator[AnyConversation]:
    for handler in chain.from_iterable(handlers.values()):
        yield from _conversations(handler)


def _conversations(handler: BaseHandler[Any, Any, Any]) -> Iterator[AnyConversation]:
    if not isinstance(handler, ConversationHandler):
        return
    yield handler
    inner = chain(handler.entry_points, handler.fallbacks, *handler.states.values())
    for child in inner:
        yield from _conversations(child)
