"""python-telegram-bot's application, told apart by turns.

The library handles an update and returns, while tasks of it may still run and what its handlers
raised has been swallowed. Here its public `create_task` and `process_error` tell the turn, so that
the worker knows when an update is really finished, and how. What handlers remember is laid out for
each turn by `bot/turns/memory.py`, `bot_data` by `bot/turns/bot_data.py`, what buttons stand for by
`bot/turns/keyboards.py`; for that, and to give the memory of it back, this class alone reaches into
the library's own attributes, and checks at the start that they are still there.
"""

import asyncio
import contextlib
from collections.abc import Collection, MutableMapping
from functools import partial
from typing import Any, Final

from telegram import Update
from telegram.ext import (
    Application,
    ApplicationBuilder,
    BasePersistence,
    CallbackContext,
    ContextTypes,
    ConversationHandler,
    ExtBot,
    Job,
    JobQueue,
)
from telegram.request import BaseRequest

from bot.turns import importing
from bot.turns.bot_data import BotData
from bot.turns.capture import PassThrough
from bot.turns.groups import AnyHandler, Group, leave_group
from bot.turns.keyboards import KeyboardCache
from bot.turns.memory import Memory
from bot.turns.persistence import TurnPersistence
from bot.turns.reminders import Reminding
from bot.turns.reports import DeliveryHooks
from bot.turns.scopes import (
    AnyConversation,
    ConversationKey,
    Scopes,
    chat_scope,
    passing_conversations,
    persistent_conversations,
    scopes_of,
    scopes_of_job,
    update_of,
    user_scope,
)
from bot.turns.turn import Beyond, Effect, Json, Phase, enter, open_turn
from bot.turns.wishes import Send, flush, raw_update
from storage import turn_state
from storage.database import Tx
from storage.errors import UnsupportedCall
from storage.lifecycle import BotName

Data = dict[Any, Any]
_INSIDES: Final = ("_user_data", "_chat_data", "_conversation_handler_conversations")
_NO_STATE: Final = object()
_INSIDES_OF_BOT: Final = ("_callback_data_cache",)


class TurnContext(Reminding, CallbackContext[ExtBot[Send], Data, Data, Data]):
    """The library's context, with what only a turn knows."""

    @property
    def raw_update(self) -> Json | None:
        """The update as Telegram sent it, with what the library does not know yet."""
        return raw_update()

    async def flush(self) -> None:
        """Commit what was said so far, so that it goes out while the handler goes on.

        It is not taken back if the handler fails then (bot/turns/wishes.py, `flush`).
        """
        await flush()


class TurnJobQueue(JobQueue[TurnContext]):
    """The library's jobs, each speaking for itself.

    A timer keeps the context of whoever armed it last, so a job may run in any turn's; here it
    leaves that first. A job that comes late is run late rather than dropped. One that was armed in
    a turn is taken away when the turn is given up: it may be run again, and would arm it twice.
    """

    @property
    def scheduler_configuration(self) -> dict[str, Any]:
        """The library's, without its grace of one second."""
        configuration = dict(super().scheduler_configuration)
        return configuration | {"job_defaults": {"misfire_grace_time": None, "coalesce": True}}

    def run_once(self, *args: Any, **options: Any) -> Job[TurnContext]:  # noqa: ANN401  # the library's own
        """Arm a job, as the library does."""
        return _armed(super().run_once(*args, **options))

    def run_repeating(self, *args: Any, **options: Any) -> Job[TurnContext]:  # noqa: ANN401  # the library's own
        """Arm a job, as the library does."""
        return _armed(super().run_repeating(*args, **options))

    def run_monthly(self, *args: Any, **options: Any) -> Job[TurnContext]:  # noqa: ANN401  # the library's own
        """Arm a job, as the library does."""
        return _armed(super().run_monthly(*args, **options))

    def run_daily(self, *args: Any, **options: Any) -> Job[TurnContext]:  # noqa: ANN401  # the library's own
        """Arm a job, as the library does."""
        return _armed(super().run_daily(*args, **options))

    def run_custom(self, *args: Any, **options: Any) -> Job[TurnContext]:  # noqa: ANN401  # the library's own
        """Arm a job, as the library does."""
        return _armed(super().run_custom(*args, **options))

    @staticmethod
    async def job_callback(job_queue: JobQueue[Any], job: Job[Any]) -> None:
        """Run one job outside any turn, with its own memories."""
        application = job_queue.application
        assert isinstance(application, TurnApplication)
        enter(application.outside)
        leave_group()
        scopes = scopes_of_job(job, application.conversations)
        async with application.memory.borrowed(application, scopes, application.outside):
            await job.run(application)


def _armed(job: Job[TurnContext]) -> Job[TurnContext]:
    """Have a job taken away with the turn that has armed it.

    Not a conversation's timer: the conversation has it in hand, and takes it away itself.
    """
    turn = open_turn()
    if turn is not None and update_of(job) is None:
        turn.undo.append(partial(_disarm, job))
    return job


def _disarm(job: Job[TurnContext]) -> None:
    # Gone already: the scheduler says so with a KeyError of its own.
    with contextlib.suppress(KeyError):
        job.schedule_removal()


class TurnApplication(
    DeliveryHooks, Application[ExtBot[Send], TurnContext, Data, Data, Data, JobQueue[TurnContext]]
):
    """The application whose updates are turns. It is told its surroundings by `equip`."""

    memory: Memory
    outside: Beyond
    conversations: list[AnyConversation]
    passing: list[AnyConversation]
    own_persistence: "BasePersistence[Any, Any, Any] | None" = None
    """The author's persistence, whose contents are taken over once."""

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401  # the library's builder
        self.shared = BotData(lambda: self.bot, parts["context_types"].bot_data)
        super().__init__(**parts)
        missing = [name for name in _INSIDES if not hasattr(self, name)]
        missing += [name for name in _INSIDES_OF_BOT if not hasattr(self.bot, name)]
        if "_conversations" not in ConversationHandler.__slots__:
            missing.append("_conversations of a ConversationHandler")
        if missing:
            raise RuntimeError(
                f"this python-telegram-bot has no {', '.join(missing)}: it is another than "
                "bot/turns/application.py was written for"
            )
        self.conversations = []
        self.passing = []
        self._wishes: dict[int, Send] = {}
        self.keyboards: KeyboardCache | None = None
        if self.bot.callback_data_cache is not None:
            self.keyboards = KeyboardCache(self.bot, self.bot.callback_data_cache.maxsize)
            self.bot._callback_data_cache = self.keyboards  # noqa: SLF001  # the library has no other way in

    def equip(self, memory: Memory, outside: Beyond) -> None:
        """Tell the application where its memories are and where its late words go.

        A persistence that its author gave it is put aside for ours.
        """
        if self.persistence is not memory.persistence:
            self.own_persistence = self.persistence
            self.persistence = memory.persistence
        memory.persistence.set_bot(self.bot)
        self.memory = memory
        self.outside = outside
        self.shared.equip(memory.db, memory.bot, outside)
        if self.keyboards is not None:
            self.keyboards.equip(memory.db, memory.bot, outside, self._write_soon)

    async def initialize(self) -> None:
        """Prepare the library, and read what outlives the process.

        Raises what pickle raises when something that is kept can't be read any more.
        """
        if self.own_persistence is not None:
            await importing.import_from(self.own_persistence, self._recipient())
        await self.shared.load()
        if self.keyboards is not None:
            await self.keyboards.load_salt()
        await super().initialize()
        self.conversations = persistent_conversations(self.handlers)
        self.passing = passing_conversations(self.handlers)

    async def start(self) -> None:
        """Start the library's own tasks, once what was put into `bot_data` so far is stored."""
        await self.shared.start()
        await super().start()

    async def stop(self) -> None:
        """Stop them, and store what they have left there."""
        await super().stop()
        await self.shared.stop()

    @property
    def bot_data(self) -> Any:  # noqa: ANN401  # of the class that the handlers' author has chosen
        """What the bot's handlers remember together: the running turn's own view of it."""
        return self.shared.here()

    @bot_data.setter
    def bot_data(self, value: Any) -> None:  # noqa: ANN401  # of the class that the handlers' author has chosen
        self.shared.replace(value)

    def new_user_value(self) -> object:
        """What lies here for a user at first."""
        return self.context_types.user_data()

    def new_chat_value(self) -> object:
        """What lies here for a chat at first."""
        return self.context_types.chat_data()

    def add_handler(self, handler: AnyHandler, group: int = 0) -> None:
        """Register a handler; what it says is said under the wish of its group."""
        if group not in self.handlers:
            self.handlers[group] = Group(group, self._wishes)
            self.handlers = dict(sorted(self.handlers.items()))
        super().add_handler(handler, group)

    def send_defaults(self, group: int, wish: Send) -> None:
        """Have all that the handlers of a group say be delivered so, unless a call wishes more.

        Raises ValueError for a wish that can be meant for a single call only.
        """
        if wish.key is not None:
            raise ValueError("a key names one call: it can't be every call's of a group")
        self._wishes[group] = wish

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
        return scopes_of(update, self.conversations, self.passing)

    def drop_user_data(self, user_id: int) -> None:
        """Forget a user, in the turn's transaction."""
        self._user_data.pop(user_id, None)
        self.memory.drop(user_scope(user_id))
        self._forget(user_scope(user_id))

    def drop_chat_data(self, chat_id: int) -> None:
        """Forget a chat, in the turn's transaction."""
        self._chat_data.pop(chat_id, None)
        self.memory.drop(chat_scope(chat_id))
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

    def passing_state(self, number: int, key: ConversationKey) -> object:
        """The state of a conversation that is in memory only."""
        return self._states(number).get(key, _NO_STATE)

    def place_passing(self, number: int, key: ConversationKey, state: object) -> None:
        """Put such a conversation back into the state that it had."""
        if state is _NO_STATE:
            self._states(number).pop(key, None)
        else:
            self._states(number)[key] = state

    def _states(self, number: int) -> MutableMapping[Any, object]:
        found: MutableMapping[Any, object] = self.passing[number]._conversations  # noqa: SLF001  # the library has no other way in
        return found

    def _forget(self, scope: str) -> None:
        def forget(tx: Tx, bot: BotName) -> None:
            turn_state.save(tx, bot, {scope: None})

        turn = open_turn()
        if turn is not None:
            turn.effects.append(forget)
        else:
            self._write_soon(forget)

    def _write_soon(self, effect: Effect) -> None:
        task = self.create_task(self.outside.write(effect))
        assert not task.done()

    def _recipient(self) -> importing.Recipient:
        return importing.Recipient(
            db=self.memory.db,
            name=self.memory.bot,
            outside=self.outside,
            bot=self.bot,
            bot_data=self.context_types.bot_data,
            conversations=[
                found.name for found in persistent_conversations(self.handlers) if found.name
            ],
        )

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
