"""A script of one file under all roles: reminders outlive it, and refusals come back to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.cli.site import TOKEN
from tests.integration.cli.test_exec import BOT_ID, SCRIPTS, Place
from tests.simulator.run import RunningHere, simulator_here

SCRIPT = str(SCRIPTS / "reminding.py")


@pytest.fixture
async def telegram() -> AsyncIterator[RunningHere]:
    """A Telegram that knows the bot."""
    async with simulator_here() as running:
        await running.control.add_bot(TOKEN)
        yield running


async def test_a_reminder_of_a_script_happens_after_it_was_started_anew(
    tmp_path: Path, telegram: RunningHere
) -> None:
    """Its callback stands in the script itself, which is `__main__` in either process."""
    place = Place(tmp_path, telegram)
    ada = await telegram.control.add_user("Ada")
    async with place.running(SCRIPT):
        await telegram.control.says(ada.id, "/tea", bot=BOT_ID)
        await telegram.control.wait_messages(BOT_ID, ada.id, 1)
    async with place.running(SCRIPT):
        told = await telegram.control.wait_messages(BOT_ID, ada.id, 2)
    assert [message.text for message in told] == ["In a moment", "Green tea is ready"]


async def test_a_refusal_comes_back_to_the_handler_of_errors(
    tmp_path: Path, telegram: RunningHere
) -> None:
    place = Place(tmp_path, telegram)
    ada = await telegram.control.add_user("Ada")
    async with place.running(SCRIPT):
        await telegram.control.says(ada.id, "/lose", bot=BOT_ID)
        (told,) = await telegram.control.wait_messages(BOT_ID, ada.id, 1)
    assert told.text == "BadRequest: Chat not found"
