"""An application as its author built it becomes one of ours: what is kept, refused and told."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from telegram import Bot
from telegram.ext import (
    Application,
    ApplicationBuilder,
    CallbackContext,
    ContextTypes,
    Defaults,
    ExtBot,
    JobQueue,
    Updater,
)
from telegram.request import HTTPXRequest

from bot.turns import adoption
from bot.turns.adopted import AdoptedApplication, Berth, HandedOver, Seat
from bot.turns.adoption import Asked, adopting
from bot.turns.application import TurnContext, TurnJobQueue
from storage.errors import NotAdopted, UnsupportedLibrary
from storage.lifecycle import BotName
from storage.settings import Token
from storage.telemetry import LOGGER_NAME

SECRET = "AAplanted-token-that-nobody-may-see_1"
TOKEN = f"7000000001:{SECRET}"
BERTH = Berth(BotName("main"), Token(TOKEN), "http://127.0.0.1:1")
Builder = ApplicationBuilder[Any, Any, Any, Any, Any, Any]


class Told(logging.Handler):
    """Keeps the fields of every event."""

    def __init__(self) -> None:
        super().__init__()
        self.ignored: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, str] = record.__dict__["fields"]
        self.ignored.append(fields["setting"])


@pytest.fixture
def told() -> Iterator[Told]:
    """What was told to be ignored."""
    handler = Told()
    logger = logging.getLogger(LOGGER_NAME)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def built(builder: Builder, seen: list[HandedOver] | None = None) -> AdoptedApplication:
    with adopting(lambda _: BERTH, None if seen is None else seen.append):
        application: Any = builder.build()
    assert isinstance(application, AdoptedApplication)
    return application


def simple() -> Builder:
    return Application.builder().token(TOKEN)


def test_the_builder_is_given_back_afterwards() -> None:
    before = ApplicationBuilder.build
    with adopting(lambda _: BERTH):
        assert ApplicationBuilder.build is not before
    assert ApplicationBuilder.build is before
    assert not isinstance(simple().build(), AdoptedApplication)


def test_the_token_is_nowhere_in_what_was_built() -> None:
    application = built(simple())
    assert application.bot.token == "TOKEN-OF-7000000001"
    assert application.bot.base_url == "http://127.0.0.1:1/botTOKEN-OF-7000000001"
    assert SECRET not in repr(application) + repr(vars(application))


@pytest.mark.parametrize("token", ["7000000002:" + SECRET, "TOKEN", "x:y"])
def test_the_token_of_another_bot_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(NotAdopted, match=r"expected the token of bots\.main") as refused:
        built(Application.builder().token(token))
    assert SECRET not in str(refused.value)


def test_what_an_author_says_of_the_bot_is_asked_for() -> None:
    asked: list[Asked] = []

    def assign(given: Asked) -> Berth:
        asked.append(given)
        return BERTH

    with adopting(assign):
        simple().base_url("http://127.0.0.1:2/bot").build()
        Application.builder().bot(ExtBot(TOKEN, base_url="http://127.0.0.1:3/bot")).build()
        Application.builder().build()
    assert asked == [
        Asked(TOKEN, "http://127.0.0.1:2"),
        Asked(TOKEN, "http://127.0.0.1:3"),
        Asked(None, None),
    ]


def test_what_means_the_same_here_is_kept() -> None:
    async def hook(_: object) -> None: ...

    defaults = Defaults(parse_mode="HTML")
    application = built(
        simple().defaults(defaults).post_init(hook).post_stop(hook).post_shutdown(hook)
    )
    assert application.bot.defaults == defaults
    assert (application.post_init, application.post_stop, application.post_shutdown) == (hook,) * 3
    assert isinstance(application.job_queue, TurnJobQueue)


def test_a_bot_without_a_job_queue_stays_without() -> None:
    assert built(simple().job_queue(None))._job_queue is None


def test_a_plain_bot_becomes_one_that_can_wish() -> None:
    assert type(built(Application.builder().bot(Bot(TOKEN))).bot) is ExtBot


def test_a_bot_of_an_authors_class_is_the_same_object_without_its_token() -> None:
    class OwnBot(ExtBot[Any]):
        pass

    bot = OwnBot(TOKEN, defaults=Defaults(parse_mode="HTML"))
    application = built(Application.builder().updater(Updater(bot, asyncio.Queue())))
    assert application.bot is bot
    assert bot.token == "TOKEN-OF-7000000001"
    assert bot.defaults == Defaults(parse_mode="HTML")
    assert bot.request is application.seat
    assert not application.updater


def test_a_bot_that_is_not_the_extended_one_is_refused() -> None:
    class OwnBot(Bot):
        pass

    with pytest.raises(NotAdopted, match=r"derive it from telegram\.ext\.ExtBot"):
        built(Application.builder().bot(OwnBot(TOKEN)))


def test_a_local_servers_files_by_path_are_refused() -> None:
    with pytest.raises(NotAdopted, match="local_mode"):
        built(simple().local_mode(local_mode=True))
    built(simple().local_mode(local_mode=False))


class Context(CallbackContext[Any, Any, Any, Any]):
    """A context with a name that ours has too."""

    @property
    def raw_update(self) -> Any:  # noqa: ANN401  # whatever the author likes
        return "the author's"


def test_an_authors_context_wins_where_both_have_a_name() -> None:
    application = built(simple().context_types(ContextTypes(context=Context, user_data=list)))
    kind: Any = application.context_types.context
    assert issubclass(kind, Context)
    assert issubclass(kind, TurnContext)
    assert kind(application).raw_update == "the author's"
    user_data: type[object] = application.context_types.user_data
    assert user_data is list


def test_without_a_context_of_ones_own_there_is_ours() -> None:
    assert built(simple()).context_types.context is TurnContext


def test_each_setting_without_a_meaning_here_is_told_once(told: Told) -> None:
    built(simple().concurrent_updates(8).request(HTTPXRequest()).job_queue(JobQueue()))
    built(simple().read_timeout(5).proxy("http://127.0.0.1:9").get_updates_read_timeout(5))
    built(simple().base_url("http://127.0.0.1:2/bot").concurrent_updates(1))
    assert told.ignored == [
        "request",
        "job_queue",
        "concurrent_updates",
        "read_timeout",
        "proxy",
        "get_updates_read_timeout",
        "base_url",
    ]


def test_what_is_as_by_default_is_not_told(told: Told) -> None:
    built(simple())
    assert told.ignored == []


def test_a_builder_that_is_not_known_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adoption, "_KEPT", (*adoption._KEPT, "passport"))
    with (
        pytest.raises(UnsupportedLibrary, match="ApplicationBuilder has no _passport"),
        adopting(lambda _: BERTH),
    ):
        pass


def test_what_a_run_is_given_is_handed_over() -> None:
    seen: list[HandedOver] = []
    application = built(simple(), seen)
    application.run_polling()
    application.run_polling(0.0, allowed_updates=["message"], drop_pending_updates=True)
    application.run_webhook("0.0.0.0", 8443, secret_token="x")
    assert [(run.call, run.kinds, run.unheeded) for run in seen] == [
        ("run_polling", (), ()),
        ("run_polling", ("message",), ("drop_pending_updates",)),
        ("run_webhook", (), ("listen", "port", "secret_token")),
    ]
    with pytest.raises(TypeError, match="pool_interval"):
        application.run_polling(pool_interval=1)


def test_a_factory_does_not_run_its_application() -> None:
    with pytest.raises(NotAdopted, match="ferryman exec"):
        built(simple()).run_polling()


async def test_nothing_leads_to_telegram_until_the_bot_is_owned() -> None:
    application = built(simple())
    for call in (application.bot.get_me(), application.initialize()):
        with pytest.raises(NotAdopted, match="post_init"):
            await call
    assert application.updater is not None
    updater: Any = application.updater
    for start in (updater.start_polling, updater.start_webhook):
        with pytest.raises(NotAdopted, match=r"run_polling\(\)"):
            await start()


async def test_a_seat_leads_where_it_was_taken_to() -> None:
    class Way(Seat):
        async def do_request(self, url: str, *_: object, **__: object) -> tuple[int, bytes]:
            return 200, json.dumps({"ok": True, "result": url.rsplit("/", 1)[-1]}).encode()

    seat = Seat()
    seat.take(Way())
    answer: object = await seat.post("http://127.0.0.1:1/botX/getMe")
    assert answer == "getMe"
    seat.leave()
    with pytest.raises(NotAdopted):
        await seat.post("http://127.0.0.1:1/botX/getMe")
