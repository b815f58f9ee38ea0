"""Make an application out of whatever its author configured that runs in turns and speaks in rows.

While a script or a module of handlers is loaded, `ApplicationBuilder.build` is replaced: one public
method. What the author set on the builder is kept as far as it can mean the same here; what has no
meaning here is told, one event each. The library offers no way to read a builder, so this module
alone looks at its private attributes, and checks at the start that they are there.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from telegram import Bot
from telegram.ext import (
    Application,
    ApplicationBuilder,
    BasePersistence,
    ContextTypes,
    Defaults,
    ExtBot,
    SimpleUpdateProcessor,
)

from bot.turns.adopted import (
    AdoptedApplication,
    AdoptedJobQueue,
    Berth,
    HandedOver,
    Seat,
    is_extended,
    with_turns,
    with_wishes,
)
from bot.turns.alias import alias_of
from bot.turns.application import builder
from bot.turns.capture import PassThrough
from bot.turns.persistence import TurnPersistence
from storage.errors import NotAdopted, UnsupportedLibrary
from storage.telemetry import event

Builder = ApplicationBuilder[Any, Any, Any, Any, Any, Any]
HandOver = Callable[[HandedOver], None]

_BUILD: Final = ApplicationBuilder.build
_TELEGRAM: Final = "https://api.telegram.org"
_SENDER: Final = "the sender calls Telegram, with connections and time-outs of its own"
_UPDATES: Final = "updates come through Ferryman's inbox: see [web], or `--polling`"
_ADDRESS: Final = "the Bot API's address is telegram.base_url of the configuration"
_IGNORED: Final[Mapping[str, str]] = {
    "base_file_url": _ADDRESS,
    "request": _SENDER,
    "connection_pool_size": _SENDER,
    "connect_timeout": _SENDER,
    "read_timeout": _SENDER,
    "write_timeout": _SENDER,
    "media_write_timeout": _SENDER,
    "pool_timeout": _SENDER,
    "http_version": _SENDER,
    "socket_options": _SENDER,
    "proxy": "the sender goes to telegram.base_url itself, and through no proxy",
    "get_updates_request": _UPDATES,
    "get_updates_connection_pool_size": _UPDATES,
    "get_updates_connect_timeout": _UPDATES,
    "get_updates_read_timeout": _UPDATES,
    "get_updates_write_timeout": _UPDATES,
    "get_updates_pool_timeout": _UPDATES,
    "get_updates_http_version": _UPDATES,
    "get_updates_socket_options": _UPDATES,
    "get_updates_proxy": _UPDATES,
    "updater": _UPDATES,
    "rate_limiter": "pace is the sender's: see [limits]",
    "job_queue": "a queue of the author's is replaced by Ferryman's, whose jobs speak in rows",
}
_KEPT: Final = (
    "token",
    "bot",
    "base_url",
    "defaults",
    "arbitrary_callback_data",
    "private_key",
    "private_key_password",
    "local_mode",
    "context_types",
    "persistence",
    "application_class",
    "application_kwargs",
    "update_queue",
    "update_processor",
    "post_init",
    "post_stop",
    "post_shutdown",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What an author said of the bot: its token and the Bot API's address; None for neither."""

    token: str | None
    base_url: str | None


Assign = Callable[[Asked], Berth]
"""Finds the bot for an application, or raises NotAdopted."""


class _Author:
    """A builder as its author left it."""

    def __init__(self, built: Builder) -> None:
        self._built = built
        # The library marks what was never set with a class that it keeps to itself.
        self._unset = type(ApplicationBuilder()._token)  # noqa: SLF001  # no public one

    def get(self, name: str) -> Any:  # noqa: ANN401  # whatever the author set
        """What was set, or None."""
        found = getattr(self._built, f"_{name}")
        return None if isinstance(found, self._unset) else found

    def is_none(self, name: str) -> bool:
        """Whether it was set to None, which means to be without."""
        return getattr(self._built, f"_{name}") is None

    @property
    def bot(self) -> Bot | None:
        """A bot that was made beforehand."""
        updater = self.get("updater")
        bot: Bot | None = self.get("bot") if updater is None else updater.bot
        return bot

    @property
    def asked(self) -> Asked:
        """What was said of the bot."""
        if self.bot is not None:
            return Asked(self.bot.token, _address(self.bot.base_url, self.bot.token))
        token: str | None = self.get("token")
        return Asked(token, _address(self.get("base_url"), token))


@contextmanager
def adopting(assign: Assign, hand_over: HandOver | None = None) -> Iterator[None]:
    """Adopt every application that is built meanwhile.

    `hand_over` is called by its `run_polling` and `run_webhook`, and returns when they shall.
    Raises UnsupportedLibrary when the library's builder is another than this was written for.
    """
    _require_known_builder()

    def build(author: Builder) -> AdoptedApplication:
        return _adopt(_Author(author), assign, hand_over)

    before: Any = ApplicationBuilder.build
    replaced: Any = build
    ApplicationBuilder.build = replaced  # type: ignore[method-assign]  # as the module says
    try:
        yield
    finally:
        ApplicationBuilder.build = before  # type: ignore[method-assign]  # as the module says


def require_same_bot(token: str | None, berth: Berth) -> None:
    """Let pass the token of this very bot, its alias, or none.

    Raises NotAdopted for any other; only its numeric id, which is no secret, is shown.
    """
    if token in (None, "", alias_of(berth.token)):
        return
    bot_id = bot_id_of(token)
    if bot_id != berth.token.bot_id:
        found = "one that is no bot's" if bot_id is None else f"that of bot {bot_id}"
        raise NotAdopted(
            f"ApplicationBuilder.token: expected the token of bots.{berth.bot}, which is bot "
            f"{berth.token.bot_id}, found {found}"
        )


def bot_id_of(token: str | None) -> int | None:
    """The numeric id in a token; None where there is none."""
    head, colon, _ = (token or "").partition(":")
    return int(head) if colon and head.isascii() and head.isdecimal() else None


def _adopt(author: _Author, assign: Assign, hand_over: HandOver | None) -> AdoptedApplication:
    if author.get("local_mode"):
        raise NotAdopted(
            "ApplicationBuilder.local_mode is not supported: files go to and from the Bot API "
            "over HTTP, with a local server too; take it away"
        )
    asked = author.asked
    berth = assign(asked)
    require_same_bot(asked.token, berth)
    seat = Seat()
    fresh = _fresh(author, seat, berth)
    _carry_over(author, fresh)
    application = _BUILD(fresh)
    assert isinstance(application, AdoptedApplication)
    persistence: BasePersistence[Any, Any, Any] | None = author.get("persistence")
    application.settle(berth, seat, persistence, hand_over)
    _tell_ignored(author, asked, berth)
    return application


def _fresh(author: _Author, seat: Seat, berth: Berth) -> Builder:
    """A builder with a bot that speaks through the seat, knows no token, and has their manner."""
    alias = alias_of(berth.token)
    defaults, remembers = _manner_of(author)
    bot = author.bot
    if is_extended(bot):
        # A bot of the author's own class: made anew, it keeps its methods and loses its token.
        ExtBot.__init__(
            bot,
            token=alias,
            base_url=f"{berth.base_url}/bot",
            base_file_url=f"{berth.base_url}/file/bot",
            request=seat,
            get_updates_request=seat,
            defaults=defaults,
            arbitrary_callback_data=remembers or False,
            rate_limiter=PassThrough(),
        )
        return ApplicationBuilder().bot(bot).persistence(TurnPersistence()).updater(None)
    fresh = builder(seat, TurnPersistence(), alias=alias, base_url=berth.base_url)
    if (key := author.get("private_key")) is not None:
        fresh.private_key(key, author.get("private_key_password"))
    if defaults is not None:
        fresh.defaults(defaults)
    if remembers is not None:
        fresh.arbitrary_callback_data(remembers)
    return fresh


def _carry_over(author: _Author, fresh: Builder) -> None:
    """Set on our builder what the author set on theirs, beside the bot."""
    kind = author.get("application_class") or Application
    fresh.application_class(with_turns(kind), author.get("application_kwargs"))
    fresh.context_types(with_wishes(author.get("context_types") or ContextTypes()))
    fresh.job_queue(None if author.is_none("job_queue") else AdoptedJobQueue())
    fresh.post_init(author.get("post_init"))
    fresh.post_stop(author.get("post_stop"))
    fresh.post_shutdown(author.get("post_shutdown"))
    if (queue := author.get("update_queue")) is not None:
        fresh.update_queue(queue)


def _manner_of(author: _Author) -> tuple[Defaults | None, bool | int | None]:
    """The author's defaults, and whether buttons may hold any object (how many keyboards)."""
    bot = author.bot
    if bot is None:
        return author.get("defaults"), author.get("arbitrary_callback_data")
    if not isinstance(bot, ExtBot):
        if type(bot) is not Bot:
            raise NotAdopted(
                f"ApplicationBuilder.bot: {type(bot).__name__} is derived from telegram.Bot; "
                "derive it from telegram.ext.ExtBot"
            )
        return None, None
    if bot.private_key is not None:
        raise NotAdopted("ApplicationBuilder.bot: give the private key to the builder instead")
    cache = bot.callback_data_cache
    return bot.defaults, None if cache is None else cache.maxsize


def _tell_ignored(author: _Author, asked: Asked, berth: Berth) -> None:
    ignored = {name: why for name, why in _IGNORED.items() if author.get(name) is not None}
    if asked.base_url not in (None, berth.base_url):
        ignored["base_url"] = _ADDRESS
    processor = author.get("update_processor")
    if type(processor) is not SimpleUpdateProcessor or processor.max_concurrent_updates != 1:
        ignored["concurrent_updates"] = (
            "updates of one chat or user are handled one after the other, others at the same time, "
            "up to worker.lanes_max"
        )
    for name, why in ignored.items():
        event("adoption.ignored", bot=berth.bot, setting=name, reason=why)


def _address(base_url: object, token: str | None) -> str | None:
    """The Bot API's address in the library's `base_url`, which ends in /bot and maybe the token."""
    if not isinstance(base_url, str):
        return None
    address = base_url.removesuffix(token or "").removesuffix("{token}").removesuffix("/bot")
    return None if address == _TELEGRAM else address


def _require_known_builder() -> None:
    fresh = ApplicationBuilder()
    names = (*_IGNORED, *_KEPT)
    missing = [f"_{name}" for name in names if not hasattr(fresh, f"_{name}")]
    if missing:
        raise UnsupportedLibrary(
            f"this python-telegram-bot's ApplicationBuilder has no {', '.join(missing)}: it is "
            "another than bot/turns/adoption.py was written for"
        )
