"""`ferryman run`: the whole crossing in one process and one loop, by webhook and by polling."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.cli.process import command, environment, run
from tests.integration.cli.site import CONFIGURATION, PLANTED, TOKEN, WORDS, Site, configured
from tests.live.process import LiveProcess, free_port
from tests.simulator.run import RunningHere, simulator_here

BOT_ID = 7_000_000_001


@pytest.fixture
async def sim() -> AsyncIterator[RunningHere]:
    """A Telegram that knows the bot."""
    async with simulator_here() as running:
        await running.control.add_bot(TOKEN)
        yield running


def _site(folder: Path, sim: RunningHere, port: int) -> Site:
    web = f'[web]\nport = {port}\npublic_url = "http://127.0.0.1:{port}"\n'
    telegram = f'[telegram]\nbase_url = "{sim.api_url}"\n'
    return configured(folder, CONFIGURATION.replace("[bots.main]", f"{web}{telegram}[bots.main]"))


@asynccontextmanager
async def _running(site: Site, *words: str) -> AsyncIterator[LiveProcess]:
    """`ferryman run`, from ready to an end in order."""
    log = site.folder / "run.log"
    process = await LiveProcess.start(
        "run", command(site, "run", *words)[1:], log=log, environment=environment()
    )

    async def is_ready() -> bool:
        return log.read_text(encoding="utf-8").count('"event":"role.ready"') == 3

    try:
        await process.ready(is_ready)
        yield process
        assert await process.stop() == 0, process.tail()
    finally:
        await process.kill()


async def _asks_and_is_answered(sim: RunningHere) -> None:
    ada = await sim.control.add_user("Ada")
    await sim.control.says(ada.id, "/start", bot=BOT_ID)
    await sim.control.says(ada.id, WORDS, bot=BOT_ID)
    first, _ = await sim.control.wait_messages(BOT_ID, ada.id, 2)
    assert first.text
    assert (await sim.control.ledger()).client_bugs() == []


async def test_by_webhook(tmp_path: Path, sim: RunningHere) -> None:
    site = _site(tmp_path, sim, free_port())
    async with _running(site):
        done = await asyncio.to_thread(run, command(site, "webhook", "set"))
        assert done.returncode == 0, done.stderr
        await _asks_and_is_answered(sim)
        status = await asyncio.to_thread(run, command(site, "status"))
        assert "web     ready" in status.stdout
        assert "Not running" not in status.stdout
    log = (site.folder / "run.log").read_text(encoding="utf-8") + status.stdout
    assert [each for each in PLANTED if each in log] == []


async def test_by_polling(tmp_path: Path, sim: RunningHere) -> None:
    site = _site(tmp_path, sim, free_port())
    async with _running(site, "--polling"):
        await _asks_and_is_answered(sim)


async def test_polling_refuses_while_a_webhook_is_set(tmp_path: Path, sim: RunningHere) -> None:
    """Taking it away is not ours to decide."""
    site = _site(tmp_path, sim, free_port())
    done = await asyncio.to_thread(run, command(site, "webhook", "set"))
    assert done.returncode == 0, done.stderr
    refused = await asyncio.to_thread(run, command(site, "run", "--polling"))
    assert refused.returncode == 1
    assert "`ferryman webhook delete`" in refused.stderr
    assert "Traceback" not in refused.stderr
