"""An application as its author built it, made to run in turns.

It is built once and may serve a bot several times: whenever the bot is taken over, its `Seat` is
given a way to Telegram, and taken back when the bot is lost. Until then nothing of it may reach
Telegram: what is called too early is told so. It never fetches or receives updates itself:
`run_polling` and `run_webhook` hand it over to whoever adopted it.
"""

import inspect
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeGuard

from telegram.error import TelegramError
from telegram.ext import Application, BasePersistence, CallbackContext, ContextTypes, ExtBot
from telegram.request import BaseRequest, RequestData

from bot.turns.application import TurnApplication, TurnContext, TurnJobQueue
from storage.errors import NotAdopted
from storage.lifecycle import BotName
from storage.settings import Token

Call = Literal["run_polling", "run_webhook"]

_USE_RUN: Final = (
    "let the script call application.run_polling() or run_webhook(), which hand the application "
    "over; what has to be done before, such as calls of the bot, belongs into post_init"
)


@dataclass(frozen=True, slots=True)
class Berth:
    """Where an application comes to lie: its bot, the bot's token, the Bot API's address."""

    bot: BotName
    token: Token
    base_url: str


@dataclass(frozen=True, slots=True)
class HandedOver:
    """An application that its script wants to run, with what it said of that.

    `kinds`: the kinds of updates it wants; none named means Telegram's default.
    `unheeded`: the other arguments that are not as by default.
    """

    application: "AdoptedApplication"
    call: Call
    kinds: Sequence[str]
    unheeded: Sequence[str]


class TooEarly(NotAdopted, TelegramError):
    """The bot was called while it does not run.

    It is the library's error too, as that would make a network's failure, to be tried again, of
    any other.
    """


class Seat(BaseRequest):
    """Stands where the library's HTTP client stands; it leads nowhere until it is taken."""

    def __init__(self) -> None:
        self._way: BaseRequest | None = None

    def take(self, way: BaseRequest) -> None:
        """Lead calls this way, while the bot is owned."""
        self._way = way

    def leave(self) -> None:
        """The bot is owned no more."""
        self._way = None

    @property
    def is_taken(self) -> bool:
        """Whether calls lead anywhere."""
        return self._way is not None

    @property
    def read_timeout(self) -> float | None:
        """How long a read waits for its answer, in seconds."""
        return None if self._way is None else self._way.read_timeout

    async def initialize(self) -> None:
        """Open the way."""
        await self._taken("initialize()").initialize()

    async def shutdown(self) -> None:
        """Close the way, if there is one."""
        if self._way is not None:
            await self._way.shutdown()

    async def do_request(  # type: ignore[override]  # time-outs are passed on as they come
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        **timeouts: Any,  # noqa: ANN401  # and may be the library's own default marks
    ) -> tuple[int, bytes]:
        """Answer one call of the library. Raises TooEarly while the bot is not owned."""
        called = "a download" if method == "GET" else url.rsplit("/", 1)[-1]
        way = self._taken(called)
        return await way.do_request(url, method, request_data, **timeouts)

    def _taken(self, called: str) -> BaseRequest:
        if self._way is None:
            raise TooEarly(f"{called} was called while the bot does not run: {_USE_RUN}")
        return self._way


class NoUpdater:
    """Stands where the library's updater stands, as none is needed; false, as None would be."""

    running: Final = False

    def __bool__(self) -> bool:
        """The library asks so whether there is an updater."""
        return False

    async def start_polling(self, *_: object, **__: object) -> NoReturn:
        """Raise NotAdopted."""
        raise NotAdopted(f"updater.start_polling() is not for here: {_USE_RUN}")

    async def start_webhook(self, *_: object, **__: object) -> NoReturn:
        """Raise NotAdopted."""
        raise NotAdopted(f"updater.start_webhook() is not for here: {_USE_RUN}")

    async def initialize(self) -> None:
        """Nothing to prepare."""

    async def shutdown(self) -> None:
        """Nothing to give back."""

    async def stop(self) -> None:
        """Nothing runs."""


class AdoptedJobQueue(TurnJobQueue):
    """Jobs that are still there when the bot is taken over again.

    The library's scheduler forgets its jobs when it is shut down; those that a script registered
    once, before it ran, would be lost.
    """

    async def stop(self, wait: bool = True) -> None:  # noqa: FBT001, FBT002  # the library's own
        """Stop, and keep what is due later for the next start."""
        kept = self.scheduler.get_jobs() if self.scheduler.running else []
        await super().stop(wait=wait)
        for job in kept:
            self.scheduler.add_job(
                job.func,
                job.trigger,
                args=job.args,
                kwargs=job.kwargs,
                id=job.id,
                name=job.name,
                max_instances=job.max_instances,
                misfire_grace_time=job.misfire_grace_time,
                coalesce=job.coalesce,
                next_run_time=job.next_run_time,
            )


class AdoptedApplication(TurnApplication):
    """A `TurnApplication` that its author built and wants to run."""

    berth: Berth
    seat: Seat
    _hand_over: Callable[[HandedOver], None] | None

    def settle(
        self,
        berth: Berth,
        seat: Seat,
        own_persistence: "BasePersistence[Any, Any, Any] | None",
        hand_over: Callable[[HandedOver], None] | None,
    ) -> None:
        """Tell the application whose it is, and whom to tell when it shall run."""
        self.berth = berth
        self.seat = seat
        self.own_persistence = own_persistence
        self._hand_over = hand_over
        stand_in: Any = NoUpdater()
        self.updater = stand_in

    async def initialize(self) -> None:
        """Prepare the library. Raises NotAdopted while the bot is not owned."""
        if not self.seat.is_taken:
            raise NotAdopted(f"application.initialize() is not for here: {_USE_RUN}")
        await super().initialize()

    def run_polling(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  # the library's own
        """Hand the application over; return when it has been asked to stop, and has."""
        self._run("run_polling", args, options)

    def run_webhook(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  # the library's own
        """Hand the application over; return when it has been asked to stop, and has."""
        self._run("run_webhook", args, options)

    def stop_running(self) -> None:
        """Have `run_polling` or `run_webhook` return, as SIGTERM would."""
        if self.seat.is_taken:
            os.kill(os.getpid(), signal.SIGTERM)

    def _run(self, call: Call, args: Sequence[object], options: Mapping[str, object]) -> None:
        if self._hand_over is None:
            raise NotAdopted(
                f"{call}() was called in a factory of handlers: it returns its application, and "
                "does not run it; a script that runs it is for `ferryman exec`"
            )
        signature = inspect.signature(getattr(Application, call))
        given = signature.bind(self, *args, **options).arguments
        defaults = signature.parameters
        changed = {name: value for name, value in given.items() if value != defaults[name].default}
        changed.pop("self")
        kinds = changed.pop("allowed_updates", None) or ()
        self._hand_over(HandedOver(self, call, tuple(map(str, kinds)), tuple(changed)))


def with_turns(author: type[Application[Any, Any, Any, Any, Any, Any]]) -> type[AdoptedApplication]:
    """The author's class of application, made to run in turns."""
    if issubclass(AdoptedApplication, author):
        return AdoptedApplication
    return type(author.__name__, (AdoptedApplication, author), {})


def with_wishes(author: ContextTypes[Any, Any, Any, Any]) -> ContextTypes[Any, Any, Any, Any]:
    """The author's types, whose contexts also have what `TurnContext` has.

    A name that both have is the author's: their handlers were written for it.
    """
    context = author.context
    if not issubclass(context, TurnContext):
        bases = (TurnContext,) if context is CallbackContext else (context, TurnContext)
        context = bases[0] if len(bases) == 1 else type(context.__name__, bases, {})
    return ContextTypes(
        context=context,
        bot_data=author.bot_data,
        chat_data=author.chat_data,
        user_data=author.user_data,
    )


def is_extended(bot: object) -> TypeGuard[ExtBot[Any]]:
    """Whether a bot is of a class of its author's own, made from the library's."""
    return isinstance(bot, ExtBot) and type(bot) is not ExtBot
