"""`ferryman run | web | worker | sender`: prepare the ground, then run one role or all three.

Each command imports only the role it runs: a web process that has loaded python-telegram-bot or the
transport would be larger, slower to start, and nearer to a token than the internet's door may be.
"""

import asyncio
import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bot.cli.ground import config_of, put_plainly
from bot.cli.migrate import bring_forward
from bot.cli.output import say_failure, version
from bot.cli.parser import EXIT_FAILED, Commands
from bot.cli.together import Failure, Role, run_until_signal
from bot.settings import WebSettings, WorkerSettings, load_web, load_worker
from storage import telemetry
from storage.clock import SystemClock
from storage.database import is_sound, library_version
from storage.errors import ConfigurationError, Fault, FerrymanError, StorageError
from storage.lifecycle import BotName
from storage.settings import ServiceEnvironment, Settings, Where
from storage.telemetry import event

if TYPE_CHECKING:
    from bot.turns.loading import Ready
    from sender.settings import SenderSettings

T = TypeVar("T")


def add(commands: Commands) -> None:
    """Add the four commands."""
    run = commands.add("run", _run, purpose="Run web, worker and sender in one process.")
    run.add_argument(
        "--polling",
        action="store_true",
        help="fetch updates from Telegram instead of receiving them: for machines it can't reach",
    )
    commands.add("web", _web, purpose="Run the door from the internet: webhook and status page.")
    commands.add("worker", _worker, purpose="Run the handlers, a turn for each update.")
    commands.add("sender", _sender, purpose="Run the sender, which tells Telegram what was said.")


def _web(given: Namespace) -> int:
    settings = load_web(config_of(given))
    _begin("web", settings.settings, settings.service, settings.secret_values())
    return _code(_serve(settings.settings, {"web": _web_role(settings)}))


def _worker(given: Namespace) -> int:
    return _code(serve_worker(config_of(given)))


def _sender(given: Namespace) -> int:
    from sender.settings import load_sender

    settings = load_sender(config_of(given))
    _begin("sender", settings.settings, settings.service, settings.secret_values())
    asked = asyncio.Event()
    role = _sender_role(settings, config_of(given), asked)
    return _code(_serve(settings.settings, {"sender": role}, on_hangup=asked.set))


def _run(given: Namespace) -> int:
    return _code(serve_all(config_of(given), is_polling=given.polling))


@dataclass(frozen=True, slots=True)
class Script:
    """What a script has handed over: one bot's application, and where it is to run.

    `kinds`: the kinds of updates that it wants; none named means Telegram's default.
    """

    bot: BotName
    application: "Ready"
    kinds: Sequence[str]
    loop: asyncio.AbstractEventLoop


def serve_worker(config: Where | None, script: Script | None = None) -> Sequence[Failure]:
    """Run the worker; with a script, only for its bot. What went wrong has been told."""
    settings = _for_script(load_worker(config), script)
    _begin("worker", settings.settings, settings.service, settings.secret_values())
    return _serve(settings.settings, {"worker": _worker_role(settings, script)}, script=script)


def serve_all(
    config: Where | None, *, is_polling: bool, script: Script | None = None
) -> Sequence[Failure]:
    """Run all roles in this process; with a script, handlers and polling only for its bot.

    What went wrong has been told. Raises ConfigurationError with the faults of all.
    """
    from sender.settings import load_sender

    faults: dict[Fault, None] = {}
    web = _loaded(faults, lambda: load_web(config, webhook="unused" if is_polling else "served"))
    worker = _loaded(faults, lambda: _for_script(load_worker(config), script))
    sender = _loaded(faults, lambda: load_sender(config))
    if web is None or worker is None or sender is None:
        raise ConfigurationError(list(faults))
    # One process has one word with its service manager: web says it, whose loop is all's.
    unheard = replace(web.service, notify_socket="", watchdog_usec=0)
    worker, sender = replace(worker, service=unheard), replace(sender, service=unheard)
    secrets = [*web.secret_values(), *worker.secret_values(), *sender.secret_values()]
    _begin("run", web.settings, web.service, secrets)
    asked = asyncio.Event()
    roles = {
        "web": _web_role(web),
        "worker": _worker_role(worker, script),
        "sender": _sender_role(sender, config, asked),
    }
    if is_polling:
        roles["poller"] = _poller_role(worker, () if script is None else script.kinds)
    return _serve(web.settings, roles, on_hangup=asked.set, script=script)


def _for_script(worker: WorkerSettings, script: Script | None) -> WorkerSettings:
    """A script brings the handlers of one bot; those of others are not its business."""
    if script is None:
        return worker
    return replace(worker, tokens={script.bot: worker.tokens[script.bot]})


def _loaded(faults: dict[Fault, None], load: Callable[[], T]) -> T | None:
    """What a role is given, or None and its faults: three roles have most of theirs in common."""
    try:
        return load()
    except ConfigurationError as error:
        faults.update(dict.fromkeys(error.faults))
        return None


def _begin(role: str, settings: Settings, service: ServiceEnvironment, secrets: list[str]) -> None:
    """Open the log, which knows what it must not show, and bring the database forward."""
    telemetry.setup(role, settings.log_level, secrets=secrets, no_color=service.no_color)
    event("role.starting", version=version(), pid=os.getpid())
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    applied = bring_forward(settings)
    if not is_sound(library_version()):
        event("storage.affected_sqlite", sqlite=".".join(map(str, library_version())))
    for step in applied:
        took_ms = clock.monotonic_ms() - began_ms
        event("storage.migrated", version=step.number, name=step.name, duration_ms=took_ms)


def _serve(
    settings: Settings,
    roles: Mapping[str, Role],
    on_hangup: Callable[[], None] | None = None,
    script: Script | None = None,
) -> Sequence[Failure]:
    loop = None if script is None else script.loop
    failures = run_until_signal(roles, SystemClock(), on_hangup, loop)
    for failure in failures:
        _tell(settings, failure)
    return failures


def _code(failures: Sequence[Failure]) -> int:
    return EXIT_FAILED if failures else 0


def _tell(settings: Settings, failure: Failure) -> None:
    """An error of ours by its message; any other by its type and place, in the log."""
    error = failure.error
    if isinstance(error, StorageError):
        error = put_plainly(settings, error)
    if isinstance(error, FerrymanError):
        say_failure(error)
    else:
        event("role.failed", reason=f"{failure.role} ended by accident", error=error)


def _web_role(settings: WebSettings) -> Role:
    from bot.web.app import run_web

    return lambda stop: run_web(settings, clock=SystemClock(), stop=stop)


def _worker_role(settings: WorkerSettings, script: Script | None = None) -> Role:
    from bot.turns.app import run_worker

    ready = {} if script is None else {script.bot: script.application}
    return lambda stop: run_worker(settings, clock=SystemClock(), stop=stop, handed_over=ready)


def _poller_role(settings: WorkerSettings, kinds: Sequence[str]) -> Role:
    from bot.turns.polling import run_polling

    return lambda stop: run_polling(settings, clock=SystemClock(), stop=stop, kinds=kinds)


def _sender_role(settings: "SenderSettings", config: Where | None, asked: asyncio.Event) -> Role:
    """The sender; it reads the configuration again when `asked` is set, for the limits in it."""
    from sender.app import run_sender
    from sender.rereading import Rereading
    from sender.settings import load_sender

    rereading = Rereading(asked, lambda: load_sender(config), say_failure)
    return lambda stop: run_sender(settings, clock=SystemClock(), stop=stop, rereading=rereading)
