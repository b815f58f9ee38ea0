"""The chat page in a real browser: what a person sees of what a bot does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from playwright.async_api import Page, async_playwright, expect

from tests.simulator.control import Control
from tests.simulator.faults import Flood
from tests.simulator.limits import OFF
from tests.simulator.run import simulator_here

TOKEN = "123456:simulated-secret"
BOT = 123456
KEYBOARD = {"inline_keyboard": [[{"text": "Cross", "callback_data": "cross"}]]}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(60)]


@dataclass(frozen=True, slots=True)
class Seat:
    """A page before which Ada sits, and a bot in our hands."""

    page: Page
    sim: Control
    ada: int
    http: httpx.AsyncClient
    complaints: list[str]

    async def bot(self, method: str, **words: object) -> httpx.Response:
        return await self.http.post(f"/bot{TOKEN}/{method}", json=words)


@pytest.fixture
async def seat(chromium: str) -> AsyncIterator[Seat]:
    async with (
        simulator_here(limits=OFF) as running,
        httpx.AsyncClient(base_url=running.api_url, trust_env=False) as http,
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=chromium, args=FLAGS) as browser,
    ):
        await running.control.add_bot(TOKEN, username="ferry_bot", first_name="Ferry")
        page = await browser.new_page(viewport={"width": 390, "height": 844})
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(running.page_url)
        await page.get_by_label("First name").fill("Ada")
        await page.get_by_role("button", name="Go on").click()
        await page.get_by_role("button", name="Start").click()
        (made, *_) = await _people(running.control)
        yield Seat(page, running.control, made, http, complaints)


async def _people(sim: Control) -> list[int]:
    return [each["id"] for each in (await sim._ask("people"))["users"]]


async def test_a_button_spins_until_it_is_answered_and_its_message_changes(seat: Seat) -> None:
    page = seat.page
    asked = await seat.bot("sendMessage", chat_id=seat.ada, text="Ready?", reply_markup=KEYBOARD)
    button = page.get_by_role("button", name="Cross")
    await button.click()
    await expect(button).to_have_attribute("aria-busy", "true")

    (query,) = [
        each["callback_query"]["id"]
        for each in (await seat.bot("getUpdates")).json()["result"]
        if "callback_query" in each
    ]
    await seat.bot("answerCallbackQuery", callback_query_id=query, text="All aboard")
    await expect(page.get_by_text("All aboard")).to_be_visible()
    await expect(button).to_have_attribute("aria-busy", "false")

    message_id = asked.json()["result"]["message_id"]
    await seat.bot("editMessageText", chat_id=seat.ada, message_id=message_id, text="Gone")
    last = page.locator("[data-from=bot]").last
    await expect(last).to_contain_text("Gone")
    await expect(last).to_contain_text("edited")
    await seat.bot("deleteMessage", chat_id=seat.ada, message_id=message_id)
    await expect(last).to_have_text("deleted message")
    assert seat.complaints == []


async def test_a_flood_and_a_silent_bot_are_told_to_whoever_waits(seat: Seat) -> None:
    page = seat.page
    await seat.bot("sendChatAction", chat_id=seat.ada, action="typing")
    await expect(page.get_by_text("Ferry is typing")).to_be_visible()
    await seat.sim.arm(Flood(60), method="sendMessage")
    await seat.bot("sendMessage", chat_id=seat.ada, text="x")
    await expect(page.get_by_text("Telegram is holding this chat for")).to_be_visible()
    await page.get_by_role("button", name="Block").click()
    await expect(page.get_by_text("You have blocked Ferry")).to_be_visible()


async def test_texts_are_shown_and_never_run(seat: Seat) -> None:
    page = seat.page
    evil = "<img src=x onerror=alert(1)> & <b>not bold</b>"
    await seat.bot("sendMessage", chat_id=seat.ada, text=evil)
    last = page.locator("[data-from=bot]").last
    await expect(last).to_contain_text(evil)

    formatted = (
        '<b>bold</b> <a href="javascript:alert(1)">bait</a> <a href="https://x.org">fish</a>'
    )
    await seat.bot("sendMessage", chat_id=seat.ada, text=formatted, parse_mode="HTML")
    await expect(last.locator("strong")).to_have_text("bold")
    await expect(last.locator("a")).to_have_text(["fish"])
    await expect(last.locator("a")).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    assert seat.complaints == []
