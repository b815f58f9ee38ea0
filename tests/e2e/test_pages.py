"""The pages in a real browser, on a desktop and on a phone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.live.house import House, Plan, house, made_up_bot
from tests.simulator.run import Running, simulator_process

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


@asynccontextmanager
async def _browser_page(chromium: str, size: dict[str, int]) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            yield await browser.new_page(
                viewport={"width": size["width"], "height": size["height"]}
            )
        finally:
            await browser.close()


@asynccontextmanager
async def _open_house(folder: Path) -> AsyncIterator[tuple[House, Running]]:
    bot = made_up_bot()
    async with simulator_process() as sim, house(Plan(folder, sim.api_url, (bot,))) as built:
        await sim.control.add_bot(bot.token, username="ferryman_test_bot", first_name="Ferry")
        await sim.control.add_user("Ada")
        await built.start()
        assert (await built.command("webhook", "set"))[0] == 0
        yield built, sim


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_newcomer_types_a_message_and_sees_the_answer(
    tmp_path: Path, chromium: str, size: dict[str, int]
) -> None:
    async with _open_house(tmp_path) as (_, sim), _browser_page(chromium, size) as page:
        await page.goto(sim.page_url)
        box = page.get_by_role("textbox", name="Message")
        await box.fill("How wide is the river?")
        await box.press("Enter")
        answer = page.locator("[data-from=bot]").last
        await expect(answer).to_contain_text("How wide is the river?", timeout=15_000)
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], "nothing hangs over the edge"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_the_status_page_shows_the_house_without_anybodys_words(
    tmp_path: Path, chromium: str, size: dict[str, int]
) -> None:
    async with _open_house(tmp_path) as (built, sim), _browser_page(chromium, size) as page:
        ada = await sim.control.add_user("Ada")
        bot = built.plan.bots[0]
        await sim.control.says(ada.id, "a private matter", bot=bot.id)
        await sim.control.wait_messages(bot.id, ada.id, 1)
        reason = "the text has a mistake " + "x" * 200
        assert (await built.command("pause", "--bulk", "--reason", reason))[0] == 0
        await page.goto(built.url)
        body = page.locator("body")
        for words in ("main", "web", "worker", "sender", "Paused", "the text has a mistake"):
            await expect(body).to_contain_text(words)
        assert "private matter" not in await page.content()
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], "nothing hangs over the edge"
