"""python-telegram-bot's application, told apart by turns.

The library handles an update and returns, while tasks of it may still run and what its handlers
raised has been swallowed. Here its public `create_task` and `process_error` tell the turn, so that
the worker knows when an update is really finished, and how. What handlers remember is laid out for
each turn by `bot/turns/memory.py`; for that, and to give the memory of it back, this class alone
reaches into the library's dictionaries, and checks at the start that they are still there.
"""

import asyncio
from collections.abc import Collection
from typing import Any, Final

from telegram import Update
from telegram.ext import (
    Application,
    ApplicationBuilder,
    CallbackContext,
    ContextTypes,
    ExtBot,
    Job,
    JobQueue,
)
from telegram.request import BaseRequest

from bot.turns.capture import PassThrough
from bot.turns.memory import Memory
from bot.turns.persistence import TurnPersistence
from bot.turns.scopes import (
    AnyConversation,
    ConversationKey,
    Scopes,
    chat_scope,
    persistent_conversations,
    scopes_of,
    scopes_of_job,
    user_scope,
)
from bot.turns.turn import Json, Phase, Voice, enter, open_turn
from bot.turns.wishes import Send, raw_update
from storage import turn_state
from storage.database import Tx
from storage.errors import UnsupportedCall
from storage.lifecycle import BotName

Data = dict[Any, Any]
_INSIDES: Final = ("_user_data", "_chat_data", "_conversation_handler_conversations")


class TurnContext(CallbackContext[ExtBot[Send], Data, Data, Data]):
    """The library's context, with what only a turn knows."""

    @property
    def raw_update(self) -> Json | None:
        """The update as Telegram sent it, with what the library does not know yet."""
        return raw_update()


class TurnJobQueue(JobQueue[TurnContext]):
    """The library's jobs, each speaking for itself.

    A timer keeps the context of whoever armed it last, so a job may run in any turn's; here it
    leaves that first. A job that comes late is run late rather than dropped.
    """

    @property
    def scheduler_configuration(self) -> dict[str, Any]:
        """The library's, without its grace of one second."""
        configuration = dict(super().scheduler_configuration)
        return configuration | {"job_defaults": {"misfire_grace_time": None, "coalesce": True}}

    @staticmethod
    async def job_callback(job_queue: JobQueue[Any], job: Job[Any]) -> None:
        """Run one job outside any turn, with its own memories."""
        application = job_queue.application
        assert isinstance(application, TurnApplication)
        enter(application.outside)
        scopes = scopes_of_job(job, application.conversations)
        async with application.memory.borrowed(application, scopes, application.outside):
            await job.run(application)


class TurnApplication(
    Application[ExtBot[Send], TurnContext, Data, Data, Data, JobQueue[TurnContext]]
):
    """The application whose updates are turns. It is told its surroundings by `equip`."""

    memory: Memory
    outside: Voice
    conversations: list[AnyConversation]

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401  # the library's builder
        super().__init__(**parts)
        missing = [name for name in _INSIDES if not hasattr(self, name)]
        if missing:
            raise RuntimeError(
                f"this python-telegram-bot has no {', '.join(missing)}: it is another than "
                "bot/turns/application.py was written for"
            )
        self.conversations = []

    def equip(self, memory: Memory, outside: Voice) -> None:
        """Tell the application where its memories are and where its late words go."""
        self.memory = memory
        self.outside = outside

    async def initialize(self) -> None:
        """Prepare the library, and look up which conversations outlive the process."""
        await super().initialize()
        self.conversations = persistent_conversations(self.handlers)

    def create_task(
        self,
        coroutine: Any,  # noqa: ANN401  # the library's own
        update: object | None = None,
        *,
        name: str | None = None,
    ) -> "asyncio.Task[Any]":
        """Start a task; the turn that it belongs to waits for it a moment."""
        task = super().create_task(coroutine, update=update, name=name)
        turn = open_turn()
        if turn is not None:
            turn.tasks.add(task)
        return task

    async def process_error(
        self,
        update: object | None,
        error: Exception,
        job: "Job[TurnContext] | None" = None,
        coroutine: Any = None,  # noqa: ANN401  # the library's own
    ) -> bool:
        """Note a handler's error in its turn, and stop it there: nothing of it will be kept.

        The error handlers are run in a turn of their own, or at once where there is no turn.
        """
        turn = open_turn()
        if turn is not None and turn.phase is Phase.HANDLERS:
            turn.errors.append(error)
            return True
        return await super().process_error(update, error, job=job, coroutine=coroutine)

    def add_error_handler(self, callback: Any, block: Any = True) -> None:  # noqa: ANN401, ARG002, FBT002  # the library's own
        """Register an error handler. It is waited for in any case: its words belong to its turn."""
        super().add_error_handler(callback, block=True)

    def scopes_of(self, update: Update) -> Scopes:
        """The memories of an update."""
        return scopes_of(update, self.conversations)

    def drop_user_data(self, user_id: int) -> None:
        """Forget a user, in the turn's transaction."""
        self._user_data.pop(user_id, None)
        self._forget(user_scope(user_id))

    def drop_chat_data(self, chat_id: int) -> None:
        """Forget a chat, in the turn's transaction."""
        self._chat_data.pop(chat_id, None)
        self._forget(chat_scope(chat_id))

    def mark_data_for_update_persistence(
        self,
        chat_ids: int | Collection[int] | None = None,
        user_ids: int | Collection[int] | None = None,
    ) -> None:
        """Nothing to do for the turn's own chat and user: they are written in any case.

        Raises UnsupportedCall for others, of whose memory only what was just put in is here.
        """
        wanted = [*map(chat_scope, _all(chat_ids)), *map(user_scope, _all(user_ids))]
        absent = [name for name in wanted if not self.memory.has(name)]
        if absent:
            raise UnsupportedCall(
                f"the data of {', '.join(absent)} can't be changed from here: a turn remembers "
                "only its own chat and user"
            )

    def user_value(self, user_id: int) -> object | None:
        """What lies here for a user, without making it."""
        return self.user_data.get(user_id)

    def chat_value(self, chat_id: int) -> object | None:
        """What lies here for a chat, without making it."""
        return self.chat_data.get(chat_id)

    def place_user(self, user_id: int, value: Any) -> None:  # noqa: ANN401  # the handlers' own
        """Lay a user's memory out, or clear it away."""
        if value is None:
            self._user_data.pop(user_id, None)
        else:
            self._user_data[user_id] = value

    def place_chat(self, chat_id: int, value: Any) -> None:  # noqa: ANN401  # the handlers' own
        """Lay a chat's memory out, or clear it away."""
        if value is None:
            self._chat_data.pop(chat_id, None)
        else:
            self._chat_data[chat_id] = value

    def place_conversation(self, name: str, key: ConversationKey, state: object | None) -> None:
        """Put a conversation into a state without counting it as a change."""
        states = self._conversation_handler_conversations[name]
        if state is None:
            states.data.pop(key, None)
        else:
            states.update_no_track({key: state})

    def _forget(self, scope: str) -> None:
        def forget(tx: Tx, bot: BotName) -> None:
            turn_state.save(tx, bot, {scope: None})

        turn = open_turn()
        if turn is not None:
            turn.effects.append(forget)
        else:
            task = self.create_task(self.outside.write(forget))
            assert not task.done()

    def _mark_for_persistence_update(
        self, *, update: object | None = None, job: "Job[Any] | None" = None
    ) -> None:
        """Keep no list of everybody who ever wrote: turns know what is theirs."""


def builder(
    request: BaseRequest, persistence: TurnPersistence, *, alias: str, base_url: str
) -> ApplicationBuilder[Any, Any, Any, Any, Any, Any]:
    """A builder whose application speaks through `request` and knows no token.

    `base_url` is the Bot API's address, `alias` stands for the token in it.
    """
    return (
        Application.builder()
        .application_class(TurnApplication)
        .token(alias)
        .base_url(f"{base_url}/bot")
        .base_file_url(f"{base_url}/file/bot")
        .request(request)
        .get_updates_request(request)
        .rate_limiter(PassThrough())
        .job_queue(TurnJobQueue())
        .persistence(persistence)
        .context_types(ContextTypes(context=TurnContext))
        .updater(None)
    )


def _all(ids: int | Collection[int] | None) -> Collection[int]:
    if ids is None:
        return ()
    return (ids,) if isinstance(ids, int) else ids
