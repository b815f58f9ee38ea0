"""`ferryman webhook` before a simulated Telegram: compared, set once, nothing dropped unasked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from tests.integration.cli.conftest import Printed, Typed
from tests.integration.cli.site import CONFIGURATION, TOKEN, Site
from tests.live.process import until
from tests.simulator.run import RunningHere, simulator_here

URL = "https://bot.example.org/telegram/main"
BOT_ID = 7_000_000_001


@dataclass(frozen=True, slots=True)
class At:
    """A site before its own Telegram, and a way to type commands there."""

    sim: RunningHere
    type: Callable[[str], Awaitable[Printed]]

    async def again(self, line: str) -> Printed:
        """Type until it is done: Telegram sets a webhook once a second."""
        printed: list[Printed] = []

        async def is_done() -> bool:
            printed.append(await self.type(line))
            return printed[-1].code == 0

        await until(is_done, within_ms=10_000, what=line)
        return printed[-1]

    async def one_waits(self) -> None:
        """Somebody writes, and the update waits at Telegram."""
        ada = await self.sim.control.add_user("Ada")
        await self.sim.control.says(ada.id, "hello", bot=BOT_ID)


@pytest.fixture
async def at(site: Site, ferryman: Typed) -> AsyncIterator[At]:
    """A bot that Telegram knows, with a public address and no webhook yet."""
    async with simulator_here() as sim:
        await sim.control.add_bot(TOKEN)
        web = '[web]\npublic_url = "https://bot.example.org"\n'
        telegram = f'[telegram]\nbase_url = "{sim.api_url}"\n'
        site.config.write_text(CONFIGURATION + web + telegram, encoding="utf-8")
        yield At(sim, lambda line: asyncio.to_thread(ferryman, line))


async def test_a_webhook_is_set_once(at: At) -> None:
    first = await at.type("webhook set")
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("main: set (no webhook is set; the secret is another one")
    assert f"Telegram posts to {URL}" in first.out
    again = await at.type("webhook set")
    assert again.out.startswith(f"main: nothing to do, Telegram posts to {URL}; 0 updates")


async def test_a_new_secret_is_told_to_telegram(at: At, site: Site) -> None:
    await at.type("webhook set")
    (site.folder / "main.secret").write_text("another-secret\nplanted-older\n", encoding="ascii")
    told = (await at.again("webhook set")).out
    assert told.startswith("main: set (the secret is another one")
    assert "another-secret" not in told
    assert (await at.type("webhook set")).out.startswith("main: nothing to do")


async def test_info_tells_our_queue_from_telegrams(at: At) -> None:
    await at.one_waits()
    told = (await at.type("webhook info")).out
    assert "1 update waiting at Telegram to be delivered to us (not our queue)" in told
    assert f"wanted       {URL}" in told
    assert "differs      no webhook is set" in told
    (bot,) = (await at.type("webhook info --json")).document()["bots"]
    assert bot["updates_waiting_at_telegram"] == 1
    assert bot["wanted_url"] == URL


async def test_info_of_what_is_as_wanted(at: At) -> None:
    await at.type("webhook set")
    told = (await at.type("webhook info main")).out
    assert f"posts to     {URL}" in told
    assert "differs      in nothing" in told


async def test_what_waits_is_dropped_only_when_asked(at: At) -> None:
    await at.one_waits()
    kept = (await at.type("webhook delete")).out
    assert kept == (
        "main: nothing to do, no webhook is set; "
        "1 update waiting at Telegram to be delivered to us (not our queue)\n"
    )
    dropped = await at.type("webhook delete --drop-pending")
    assert dropped.out == "main: deleted; 1 update that waited at Telegram dropped\n"
    assert "0 updates waiting" in (await at.type("webhook info")).out


async def test_a_deleted_webhook_is_set_anew(at: At) -> None:
    await at.type("webhook set")
    assert (await at.type("webhook delete")).out.startswith("main: deleted; 0 updates waiting")
    assert (await at.again("webhook set")).out.startswith("main: set (no webhook is set")


async def test_without_a_public_address_nothing_can_be_set(at: At, site: Site) -> None:
    text = site.config.read_text(encoding="utf-8")
    site.config.write_text(text.replace("public_url", "# public_url"), encoding="utf-8")
    (site.folder / "main.secret").unlink()
    refused = await at.type("webhook set")
    assert refused.code == 1
    assert "web.public_url: expected the address that Telegram is to post to" in refused.err
    assert "bots.main.secret_file" in refused.err
    looked = await at.type("webhook info")
    assert looked.code == 0
    assert "wanted" not in looked.out


async def test_a_token_that_telegram_does_not_know_is_told(at: At, site: Site) -> None:
    other = "7000000009:AAplanted-token-that-nobody-may-see_9"
    (site.folder / "main.token").write_text(other, encoding="ascii")
    for line in ("webhook set", "webhook delete"):
        refused = await at.type(line)
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("main: getWebhookInfo: 401")
    looked = await at.type("webhook info")
    assert looked.code == 1
    assert "not known  getWebhookInfo: 401" in looked.out


async def test_a_telegram_that_is_not_there_is_told(at: At, site: Site) -> None:
    await at.sim.control.goes_down()
    refused = await at.type("webhook set")
    assert refused.code == 1
    assert refused.err.startswith("main: getWebhookInfo: unconnected")


async def test_an_unknown_bot_is_misuse(at: At) -> None:
    refused = await at.type("webhook set mian")
    assert (refused.code, refused.err) == (
        2,
        "ferryman: unknown bot 'mian'; did you mean main?\n",
    )
