"""Packages that others have built on python-telegram-bot, installed as published, run unchanged.

Each script is written as its package's README shows and knows nothing of Ferryman; a user plays it
under `ferryman exec`, in an environment of its own with the releases that servers run.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.books import read_books
from tests.live.house import script_environment
from tests.live.process import LiveProcess, free_port, until
from tests.simulator.control import Control, MessageView
from tests.simulator.limits import OFF
from tests.simulator.run import ROOT, simulator_here

BOT = 7_000_000_001
TOKEN = f"{BOT}:AAmade-up-token-for-packages-of-others"
PYTHON = ROOT / ".venv-thirdparty" / "bin" / "python"
SCRIPTS = Path(__file__).parent / "scripts"
ROLES = 3
# A start alone takes seconds where many processes want the processor.
PATIENCE_S = 30.0

pytestmark = [pytest.mark.prove, pytest.mark.timeout(240)]


@dataclass(slots=True)
class Seat:
    """A person's chat with the bot."""

    control: Control
    ada: int
    seen: int = 0

    async def says(self, text: str, count: int = 1) -> list[str]:
        """Write to the bot; the texts of its next `count` messages."""
        await self.control.says(self.ada, text, bot=BOT)
        return await self.hears(count)

    async def hears(self, count: int = 1) -> list[str]:
        """The texts of the bot's next `count` messages."""
        told = await self.control.wait_messages(
            BOT, self.ada, self.seen + count, timeout_s=PATIENCE_S
        )
        new, self.seen = told[self.seen :], len(told)
        return [message.text for message in new]

    async def presses(self, label: str) -> str:
        """Press a button under the bot's newest keyboard; what the press is told."""
        told = await self.control.wait_answered(await self.touches(label), timeout_s=PATIENCE_S)
        return str(told["text"] or "")

    async def touches(self, label: str) -> str:
        """Press it, and wait for nothing; the id of the query."""
        message = (await self.with_buttons())[-1]
        (data,) = [each.data for row in message.buttons for each in row if each.text == label]
        assert data is not None
        return await self.control.presses(self.ada, message.message_id, data, bot=BOT)

    async def edited(self, text: str) -> None:
        """Wait until the newest keyboard stands under that text, after as many edits as it took."""
        count = 1
        while (await self.with_buttons())[-1].text != text:
            await self.control.wait_arrivals("editMessageText", count, timeout_s=PATIENCE_S)
            count += 1

    async def with_buttons(self) -> list[MessageView]:
        """The messages that stand in the chat and have a keyboard."""
        told = await self.control.conversation(BOT, self.ada)
        return [each for each in told if each.buttons and not each.deleted]


class Place:
    """Where a script runs, as often as it is started."""

    def __init__(self, folder: Path, script: str, api_url: str) -> None:
        if not PYTHON.exists():
            pytest.skip("the packages are not installed; type: make .venv-thirdparty/ready")
        self.log = folder / "exec.log"
        self._database = folder / "state" / "ferryman.db"
        self._script = SCRIPTS / script
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self._variables = {
            **kept,
            "PYTHONPATH": str(ROOT),
            "FERRYMAN_TELEGRAM__BASE_URL": api_url,
            "FERRYMAN_STATE_DIR": str(folder / "state"),
            # A person who reads as fast as the script writes.
            "FERRYMAN_LIMITS__CHAT_PER_SECOND": "1000",
            "FERRYMAN_LIMITS__CHAT_BURST": "100",
            "FERRYMAN_WEB__PORT": str(free_port()),
            **script_environment(TOKEN, api_url, folder),
        }

    async def started(self) -> LiveProcess:
        """`ferryman exec`, ready."""
        process = await LiveProcess.start(
            "exec",
            ["-m", "bot", "exec", str(self._script)],
            log=self.log,
            environment=self._variables,
            python=str(PYTHON),
        )

        async def is_ready() -> bool:
            return process.times_said("role.ready") >= ROLES

        try:
            await process.ready(is_ready)
        except BaseException:
            await process.kill()
            raise
        return process

    async def rests(self) -> None:
        """Wait until nothing is under way: what a kill would leave in doubt is not asked here."""

        async def is_at_rest() -> bool:
            return (await asyncio.to_thread(read_books, self._database)).at_rest

        await until(is_at_rest, within_ms=round(PATIENCE_S * 1_000), what="all is said")

    def complaints(self) -> list[str]:
        """What went wrong, by the log."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        words = ('"level":"error"', '"level":"warning"', "Traceback")
        return [line for line in lines if any(word in line for word in words)]


@asynccontextmanager
async def played(folder: Path, script: str) -> AsyncIterator[tuple[Place, Seat]]:
    """A script's place and a user, and no complaint from either side at the end."""
    async with simulator_here(limits=OFF) as sim:
        await sim.control.add_bot(TOKEN)
        place = Place(folder, script, sim.api_url)
        yield place, Seat(sim.control, (await sim.control.add_user("Ada")).id)
        assert (await sim.control.ledger()).client_bugs() == []
    assert place.complaints() == []


async def test_a_framework_with_a_dispatcher_and_tasks_of_its_own(tmp_path: Path) -> None:
    async with played(tmp_path, "shop.py") as (place, seat):
        process = await place.started()
        try:
            await _browse(seat)
            await _order(seat)
            await place.rests()
        finally:
            await process.kill()

        # Nobody is there: the user presses a button and asks on.
        await seat.touches("b")
        await seat.control.says(seat.ada, "/add 2 3", bot=BOT)
        process = await place.started()
        try:
            assert await seat.hears() == ["5"]
            await seat.edited("Shelf b, row 2")
            assert await seat.says("/add 3 4") == ["7"]
            assert await process.stop(signal.SIGINT) == 0, process.tail()
        finally:
            await process.kill()

        ledger = await seat.control.ledger()
        menus = [each.params["commands"] for each in ledger.arrivals("setMyCommands", None)]
        assert ['"order"' in each for each in menus] == [True, True], "at each start"
        uploads = [each.params["document"] for each in ledger.arrivals("sendDocument", None)]
        assert uploads[0] == "(13 bytes)"
        assert uploads[1].startswith("sim-document-"), "the same bytes go up once"


async def _browse(seat: Seat) -> None:
    """Screens that replace each other, arguments, errors, the framework's own help."""
    assert await seat.says("/start") == ["Welcome!"]
    await seat.presses("b")
    await seat.edited("Shelf b, row 2")
    await seat.presses("Back")
    await seat.edited("Welcome!")
    for _ in range(2):
        await seat.presses("Prices")
        assert await seat.hears() == ["As of today"]
        await seat.presses("Back")
        assert await seat.hears() == ["Welcome!"]
    await seat.control.wait_arrivals("deleteMessage", 4, timeout_s=PATIENCE_S)
    assert await seat.says("/again") == ["Welcome!"]
    assert await seat.says("/keys") == ["Here it is"]
    assert await seat.says("Shop") == ["Welcome!"]
    (usage,) = await seat.says("/add x")
    assert usage.endswith("Usage: /add <a> <b>")
    assert await seat.says("/closed") == ["Not today"]
    (commands,) = await seat.says("/help")
    assert "/keys — A keyboard that stays" in commands


async def _order(seat: Seat) -> None:
    """A conversation to its end, one that ends it, and one that is given up."""
    assert await seat.says("/order") == ["What would you like?"]
    assert await seat.says("tea") == ["How many?"]
    assert await seat.says("two", 2) == ["Ordered: two x tea", "On its way: two x tea"]
    assert await seat.says("/order") == ["What would you like?"]
    assert sorted(await seat.says("/survey", 2)) == ["How was it?", "Order dropped: cancelled"]
    assert await seat.says("good") == ["Noted: good"]
    assert await seat.says("/order", 2) == ["What would you like?", "Order dropped: timeout"]


async def test_menus_with_a_poll_and_buttons_that_hold_objects(tmp_path: Path) -> None:
    async with played(tmp_path, "menus.py") as (place, seat):
        process = await place.started()
        try:
            await _wander(seat)
            await _choose(seat)
            assert await process.stop(signal.SIGINT) == 0, process.tail()
        finally:
            await process.kill()


async def _wander(seat: Seat) -> None:
    """The tree of menus."""
    assert await seat.says("/start") == ["Hello, world!"]
    assert await seat.says("Third menu") == ["Third message"]
    assert await seat.says("Back") == ["Hello, world!"]
    assert await seat.says("Second menu") == ["⚠️ Second message, pressed 0"]
    for times in (1, 2):
        assert await seat.presses("Action") == f"This is notification {times}"
        await seat.edited(f"⚠️ Second message, pressed {times}")


async def _choose(seat: Seat) -> None:
    """What an inline button may bring: a message, a picture, a poll whose message is needed."""
    assert await seat.presses("Content") == "Message sent!"
    assert await seat.hears() == ["Some content"]
    assert await seat.presses("Picture") == "Picture sent!"
    await seat.hears()
    (photo,) = (await seat.control.ledger()).arrivals("sendPhoto", None)
    assert photo.params["photo"].endswith("bytes)")
    assert await seat.presses("Poll") == "Select an answer..."
    await seat.hears()
    (poll,) = (await seat.control.ledger()).arrivals("sendPoll", None)
    assert await seat.says("something else") == ["You typed something else"]
    vote = {
        "poll_id": "1",
        "user": {"id": seat.ada, "is_bot": False, "first_name": "Ada"},
        "option_ids": [1],
        "option_persistent_ids": ["right"],
    }
    await seat.control.inject(BOT, {"update_id": 1, "poll_answer": vote})
    assert await seat.hears() == ["Right it is"]
    (deleted,) = await seat.control.wait_arrivals("deleteMessage", 1, timeout_s=PATIENCE_S)
    assert deleted.params["message_id"] == str(poll.message_id)
