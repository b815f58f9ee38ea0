"""`ferryman exec`: scripts as people write them, unchanged, run in turns and speak in rows."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.integration.cli.conftest import Typed
from tests.integration.cli.process import environment, run
from tests.integration.cli.site import CONFIGURATION, SECRET, TOKEN, configured
from tests.live.process import LiveProcess, free_port
from tests.simulator.run import RunningHere, simulator_here

BOT_ID = 7_000_000_001
OTHER_TOKEN = "7000000002:AAanother-token-that-nobody-may-see__2"
SCRIPTS = Path(__file__).parent / "scripts"


@pytest.fixture
async def sim() -> AsyncIterator[RunningHere]:
    """A Telegram that knows the bot."""
    async with simulator_here() as running:
        await running.control.add_bot(TOKEN)
        yield running


class Place:
    """An empty folder with nothing but a script's surroundings."""

    def __init__(self, folder: Path, sim: RunningHere) -> None:
        self.folder = folder
        self.port = free_port()
        self.variables = environment(
            FERRYMAN_TELEGRAM__BASE_URL=sim.api_url,
            FERRYMAN_STATE_DIR=str(folder / "state"),
            FERRYMAN_WEB__PORT=str(self.port),
            BOT_TOKEN=TOKEN,
            BOT_API=sim.api_url,
            BOT_FOLDER=str(folder),
        )

    @asynccontextmanager
    async def running(
        self, *words: str, roles: int = 3, variables: dict[str, str] | None = None
    ) -> AsyncIterator[LiveProcess]:
        """`ferryman exec`, from ready to an end in order at Ctrl-C."""
        process = await self._ready(words, roles, variables or {})
        try:
            yield process
            assert await process.stop(signal.SIGINT) == 0, process.tail()
        finally:
            await process.kill()

    async def _ready(
        self, words: Sequence[str], roles: int, variables: Mapping[str, str]
    ) -> LiveProcess:
        process = await LiveProcess.start(
            "exec",
            ["-m", "bot", "exec", *words],
            log=self.folder / "exec.log",
            environment={**self.variables, **variables},
        )

        async def is_ready() -> bool:
            return process.times_said("role.ready") >= roles

        try:
            await process.ready(is_ready)
        except BaseException:
            await process.kill()
            raise
        return process

    @asynccontextmanager
    async def dying(self, *words: str) -> AsyncIterator[LiveProcess]:
        """`ferryman exec`, from ready to SIGKILL."""
        process = await self._ready(words, 3, {})
        try:
            yield process
        finally:
            await process.kill()

    async def script(self, text: str, *options: str) -> "CompletedProcess[str]":
        """Run a script of these lines to its end."""
        path = self.folder / "bot.py"
        path.write_text(text, encoding="utf-8")
        words = [sys.executable, "-m", "bot", "exec", *options, str(path)]
        return await asyncio.to_thread(run, words, **self.variables)


@pytest.fixture
def place(tmp_path: Path, sim: RunningHere) -> Place:
    """Where the scripts run."""
    return Place(tmp_path, sim)


BUILT = """\
import asyncio, os
from telegram.ext import Application
application = Application.builder().token(os.environ["BOT_TOKEN"]).build()
"""


BY_HAND = """\
async def main():
    async with application:
        await application.start()
        await application.updater.start_polling()
asyncio.run(main())
"""


async def test_the_first_bot_that_everybody_writes(
    tmp_path: Path, sim: RunningHere, place: Place
) -> None:
    """No configuration file, and the token is nowhere afterwards."""
    async with place.running(str(SCRIPTS / "echo.py"), "a", "--flag") as process:
        ada = await sim.control.add_user("Ada")
        await sim.control.says(ada.id, "/start", bot=BOT_ID)
        await sim.control.says(ada.id, "over the river", bot=BOT_ID)
        told = await sim.control.wait_messages(BOT_ID, ada.id, 2)
        assert [message.text for message in told] == ["Hello from a --flag", "over the river"]
    assert "the script went on" in process.log.read_text()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in written if TOKEN[11:].encode() in path.read_bytes()] == []
    ledger = await sim.control.ledger()
    assert ledger.client_bugs() == []
    polled = ledger.arrivals("getUpdates", None)[0]
    assert "chat_member" in polled.params["allowed_updates"]


async def test_what_its_author_derived_works_as_it_did(sim: RunningHere, place: Place) -> None:
    """Context, chat data, bot and application are of the author's classes; the hooks are called."""
    async with place.running(str(SCRIPTS / "contexts.py")) as process:
        ada = await sim.control.add_user("Ada")
        for _ in range(2):
            await sim.control.says(ada.id, "/click", bot=BOT_ID)
        told = await sim.control.wait_messages(BOT_ID, ada.id, 2)
        assert [message.text for message in told] == ["CLICK 1, TOMORROW", "CLICK 2, TOMORROW"]
        await sim.control.says(ada.id, "/stop", bot=BOT_ID)
        assert await process.ended() == 0
    lines = process.log.read_text().splitlines()
    told_by_script = [line for line in lines if not line.startswith("{")]
    assert told_by_script == ["post_init", "post_stop", "post_shutdown", "the end"]
    assert process.times_said("adoption.ignored") == 2, "concurrent_updates, drop_pending_updates"


@pytest.mark.parametrize("holds_objects", [False, True])
async def test_a_conversation_with_persistence_buttons_and_a_timer(
    sim: RunningHere, place: Place, *, holds_objects: bool
) -> None:
    if holds_objects:
        pytest.importorskip("cachetools", reason="python-telegram-bot[callback-data] needs it")
    variables = {"BOT_OBJECTS": "1"} if holds_objects else {}
    async with place.running(str(SCRIPTS / "order.py"), variables=variables):
        ada = await sim.control.add_user("Ada")
        await sim.control.says(ada.id, "/order", bot=BOT_ID)
        (asked,) = await sim.control.wait_messages(BOT_ID, ada.id, 1)
        data = asked.buttons[0][1].data
        assert data is not None
        query = await sim.control.presses(ada.id, asked.message_id, data, bot=BOT_ID)
        await sim.control.wait_answered(query)
        await sim.control.wait_arrivals("editMessageText", 1)
        await sim.control.says(ada.id, "Bob", bot=BOT_ID)
        told = await sim.control.wait_messages(BOT_ID, ada.id, 3)
    assert [message.text for message in told] == [
        "2 l. For whom?",
        "2 l for Bob",
        "It is ready",
    ]


async def test_a_killed_script_goes_on_where_it_was(sim: RunningHere, place: Place) -> None:
    """The library's own persistence would have lost the conversation: it writes once a minute."""
    order = str(SCRIPTS / "order.py")
    ada = await sim.control.add_user("Ada")
    async with place.dying(order):
        await sim.control.says(ada.id, "/order", bot=BOT_ID)
        (asked,) = await sim.control.wait_messages(BOT_ID, ada.id, 1)
        await sim.control.presses(ada.id, asked.message_id, "1", bot=BOT_ID)
        await sim.control.wait_arrivals("editMessageText", 1)
    await sim.control.says(ada.id, "Bob", bot=BOT_ID)
    async with place.running(order):
        told = await sim.control.wait_messages(BOT_ID, ada.id, 2)
    assert [message.text for message in told][:2] == ["1 l. For whom?", "1 l for Bob"]


async def test_beside_the_other_roles_with_the_usual_configuration(
    tmp_path: Path, sim: RunningHere, place: Place
) -> None:
    """With --worker nothing is polled and nothing is sent by the script's process."""
    site = configured(tmp_path, CONFIGURATION + '[bots.second]\ntoken_file = "second.token"\n')
    (tmp_path / "second.token").write_text(OTHER_TOKEN)
    words = ("--config", str(site.config), "--worker", str(SCRIPTS / "order.py"))
    async with place.running(*words, roles=1) as process:
        status = await asyncio.to_thread(
            run,
            [sys.executable, "-m", "bot", "status", "--config", str(site.config)],
            **place.variables,
        )
        assert "worker  ready" in status.stdout
        assert "Not running" in status.stdout
    assert process.times_said("role.ready") == 1
    assert (await sim.control.ledger()).arrivals("getUpdates", None) == []


async def test_by_webhook_which_is_set_for_the_kinds_that_the_script_wants(
    sim: RunningHere, place: Place
) -> None:
    script = place.folder / "bot.py"
    script.write_text(f"{BUILT}application.run_webhook(allowed_updates=['message'], port=1)\n")
    variables = {
        "FERRYMAN_BOTS__MAIN__SECRET": SECRET,
        "FERRYMAN_WEB__PUBLIC_URL": f"http://127.0.0.1:{place.port}",
    }
    async with place.running(str(script), variables=variables):
        webhook = await sim.control.webhook(BOT_ID)
        assert webhook["url"] == f"http://127.0.0.1:{place.port}/telegram/main"
        assert webhook["allowed_updates"] == ["message"]


async def test_a_webhook_without_what_it_needs_is_explained(place: Place) -> None:
    done = await place.script(f"{BUILT}application.run_webhook()\n")
    assert done.returncode == 1
    assert "web.public_url" in done.stderr
    assert "bots.main.secret" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "has not run its application"),
        ("asyncio.run(application.bot.get_me())", "getMe was called while the bot does not run"),
        (
            BY_HAND,
            "run_polling()",
        ),
        ("asyncio.run(application.updater.start_polling())", "updater.start_polling() is not for"),
        (
            "async def main():\n    application.run_polling()\nasyncio.run(main())",
            "from a coroutine",
        ),
    ],
)
async def test_what_a_script_does_too_early_or_never_is_explained(
    lines: str, told: str, place: Place
) -> None:
    done = await place.script(f"{BUILT}{lines}\n")
    assert done.returncode == 1
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_only_the_script_has_to_be_named(ferryman: Typed) -> None:
    printed = ferryman("exec")
    assert printed.code == 2
    assert "required: SCRIPT.py;" in printed.err


async def test_a_token_of_another_bot_is_refused(place: Place) -> None:
    configured(place.folder)
    text = BUILT.replace('os.environ["BOT_TOKEN"]', repr(OTHER_TOKEN))
    done = await place.script(text, "--config", str(place.folder / "ferryman.toml"))
    assert done.returncode == 1
    assert "expected the token of bots.main, which is bot 7000000001" in done.stderr
    assert "found that of bot 7000000002" in done.stderr
    assert OTHER_TOKEN[11:] not in done.stderr


async def test_what_is_no_token_is_refused(place: Place) -> None:
    done = await place.script(BUILT.replace('os.environ["BOT_TOKEN"]', '"TOKEN"'))
    assert done.returncode == 1
    assert "bots.main.token: expected a bot's token" in done.stderr


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("raise ValueError('their own words')\n", "ValueError: their own words"),
    ],
)
async def test_a_failure_of_the_script_is_shown_from_its_own_first_line_on(
    lines: str, told: str, place: Place
) -> None:
    done = await place.script(lines)
    assert done.returncode == 1
    assert told in done.stderr
    assert "bot.py" in done.stderr
    assert "runpy" not in done.stderr


async def test_what_post_init_raises_comes_out_of_run_polling(place: Place) -> None:
    done = await place.script(
        f"{BUILT}async def broken(_):\n    raise ValueError('no database')\n"
        "application.post_init = broken\n"
        "try:\n    application.run_polling()\nfinally:\n    print('tidied up')\n"
    )
    assert done.returncode == 1
    assert "tidied up" in done.stdout
    assert "ValueError: no database" in done.stderr


async def test_the_exit_code_is_the_scripts_own(place: Place) -> None:
    done = await place.script("import sys\nsys.exit(7)\n")
    assert done.returncode == 7
