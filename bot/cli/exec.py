"""`ferryman exec SCRIPT.py [ARGS]`: run a python-telegram-bot script as it is, in turns and rows.

The script runs as Python would run it. Each application that it builds is adopted
(`bot/turns/adoption.py`), and when it calls `run_polling` or `run_webhook` the roles run inside
that call, until a signal ends them; then the script goes on. A script needs no configuration: where
there is none its bot is `main`, with the script's own token, which is kept in memory only.
"""

import argparse
import asyncio
import runpy
import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from bot.cli import roles, webhook
from bot.cli.ground import config_of, one_bot
from bot.cli.output import say_outcomes
from bot.cli.parser import EXIT_FAILED, Commands
from bot.cli.together import SIGNALS, Failure, loop_factory
from bot.settings import WorkerSettings, load_worker
from storage import telemetry
from storage.errors import FerrymanError, NotAdopted, Usage
from storage.lifecycle import BotName
from storage.settings import NoFile, Secret, Token, Where, has_config_variable
from storage.telemetry import event, redact

if TYPE_CHECKING:
    from bot.turns.adopted import Berth, HandedOver
    from bot.turns.adoption import Asked

_FILE: Final = Path("ferryman.toml")
_UNHEEDED: Final = "the roles take their settings from Ferryman's configuration"
_NOTES: Final = """\
The configuration is the usual one, or else ferryman.toml in this directory. Without any, the
script gives the bot's token, updates are polled, and the state is kept in ./state; each key may be
given as FERRYMAN_SECTION__KEY, such as FERRYMAN_TELEGRAM__BASE_URL.
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "exec", _exec, purpose="Run a python-telegram-bot script, unchanged.", notes=_NOTES
    )
    parser.add_argument("--bot", metavar="NAME", help="the bot it is, if its token does not tell")
    parser.add_argument(
        "--worker",
        action="store_true",
        help="run only the worker in it: web and sender are processes of their own",
    )
    parser.add_argument("script", metavar="SCRIPT.py", type=Path, help="the script")
    arguments = parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="what the script is given"
    )
    # Else argparse says that they are required, which they are not.
    arguments.required = False


def _exec(given: Namespace) -> int:
    from bot.turns.adoption import adopting

    script: Path = given.script
    if not script.is_file():
        raise Usage(f"expected a script, found no file {script}")
    host = _Host(given)
    asyncio.set_event_loop((loop_factory() or asyncio.new_event_loop)())
    sys.path.insert(0, str(script.resolve().parent))
    sys.argv = [str(script), *given.arguments]
    try:
        with adopting(host.assign, host.run):
            runpy.run_path(str(script), run_name="__main__")
    except FerrymanError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever the author's script raises is theirs to see
        _show(error, script)
        return EXIT_FAILED
    if host.has_run:
        return 0
    raise NotAdopted(
        f"{script} has ended, and has not run its application: expected it to call "
        "application.run_polling() or application.run_webhook()"
    )


class _Host:
    """Finds the bot for each application of a script, and runs the one that is handed over."""

    def __init__(self, given: Namespace) -> None:
        self.has_run = False
        self._wanted: str | None = given.bot
        self._is_worker: bool = given.worker
        self._config: Path | None = config_of(given)
        if self._config is None and not has_config_variable() and _FILE.is_file():
            self._config = _FILE
        self._configured: WorkerSettings | None = None
        if self._config is not None or has_config_variable():
            self._configured = load_worker(self._config)
        self._log(self._configured)

    def assign(self, asked: "Asked") -> "Berth":
        """The bot that an application is for."""
        from bot.turns.adopted import Berth

        if self._configured is not None:
            bot = self._bot_of(asked.token, self._configured)
            base_url = self._configured.settings.telegram.base_url
            return Berth(bot, self._configured.tokens[bot], base_url)
        if not asked.token:
            raise NotAdopted(
                "expected the script to give its bot's token: ApplicationBuilder.token"
            )
        settings = load_worker(NoFile(Path.cwd(), Secret(asked.token), asked.base_url or ""))
        self._log(settings)
        bot = one_bot(settings.settings, self._wanted)
        return Berth(bot, settings.tokens[bot], settings.settings.telegram.base_url)

    def run(self, given: "HandedOver") -> None:
        """Run the roles until a signal ends them.

        Raises what the author's own code raised, and SystemExit when anything else went wrong.
        """
        loop = _loop_of_script()
        berth = given.application.berth
        self.has_run = True
        for name in given.unheeded:
            event(
                "adoption.ignored",
                bot=berth.bot,
                setting=f"{given.call}({name}=)",
                reason=_UNHEEDED,
            )
        before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGHUP)}
        try:
            failures = self._serve(given, berth, loop)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        _raise(failures)

    def _serve(
        self, given: "HandedOver", berth: "Berth", loop: asyncio.AbstractEventLoop
    ) -> "list[Failure]":
        from bot.turns.loading import Ready

        config = self._where(berth)
        script = roles.Script(berth.bot, Ready(given.application), given.kinds, loop)
        if self._is_worker:
            return [*roles.serve_worker(config, script)]
        is_polling = given.call == "run_polling"
        if not is_polling:
            say_outcomes(webhook.set_for(config, berth.bot, given.kinds))
        return [*roles.serve_all(config, is_polling=is_polling, script=script)]

    def _where(self, berth: "Berth") -> Where | None:
        if self._configured is not None:
            return self._config
        return NoFile(Path.cwd(), berth.token, berth.base_url)

    def _bot_of(self, token: str | None, configured: WorkerSettings) -> BotName:
        """The bot that is named, or whose token the script has, or the only one."""
        from bot.turns.adoption import bot_id_of

        tokens: Mapping[BotName, Token] = configured.tokens
        found = [bot for bot in tokens if tokens[bot].bot_id == bot_id_of(token)]
        if self._wanted is None and found:
            return found[0]
        return one_bot(configured.settings, self._wanted)

    def _log(self, settings: WorkerSettings | None) -> None:
        level = "INFO" if settings is None else settings.settings.log_level
        secrets = [] if settings is None else settings.secret_values()
        telemetry.setup("exec", level, secrets=secrets)


def _loop_of_script() -> asyncio.AbstractEventLoop:
    """The loop that the script may have used already: what it opened there belongs to it."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    if running is not None:
        raise NotAdopted(
            "run_polling() or run_webhook() was called from a coroutine: call it from a plain "
            "function, outside asyncio.run()"
        )
    try:
        loop = asyncio.get_event_loop()
    except RuntimeError:
        # asyncio.run() leaves none behind.
        loop = None
    if loop is None or loop.is_closed():
        return (loop_factory() or asyncio.new_event_loop)()
    return loop


def _raise(failures: "list[Failure]") -> None:
    """Let the script know as the library would: by what its own code raised, else by its end."""
    for failure in failures:
        if not isinstance(failure.error, FerrymanError):
            raise failure.error
    if failures:
        raise SystemExit(EXIT_FAILED)


def _show(error: Exception, script: Path) -> None:
    """Print a script's failure as Python would, from its own first line on, without secrets."""
    told = traceback.format_exception(type(error), error, _from(error.__traceback__, script))
    print(redact("".join(told)), file=sys.stderr, end="")


def _from(trace: TracebackType | None, script: Path) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename != str(script):
        trace = trace.tb_next
    return trace
