"""Every real payload that we have crosses the house: acknowledged, then handled or explained."""

from functools import partial
from pathlib import Path

import pytest

from storage import inbox, reports
from storage.clock import SystemClock
from storage.lifecycle import BotName, InboxState
from tests.live.corpus import corpus
from tests.live.house import House, Plan, house, made_up_bot
from tests.live.process import until
from tests.simulator.run import simulator_process

BOT = BotName("main")


async def _all_ended(built: House, count: int) -> bool:
    found = await built.read(partial(reports.updates, bot=BOT))
    ended = {InboxState.DONE, InboxState.DEAD}
    return len(found) == count and all(update.state in ended for update in found)


@pytest.mark.timeout(120)
async def test_every_update_is_acknowledged_and_ends_handled_or_explained(tmp_path: Path) -> None:
    """Unknown kinds are handled without an error; what PTB can't parse is a dead letter."""
    entries = list(corpus(SystemClock().now_ms() // 1000))
    bot = made_up_bot()
    async with simulator_process() as sim, house(Plan(tmp_path, sim.api_url, (bot,))) as built:
        await sim.control.add_bot(bot.token)
        await sim.control.limits("off")
        await built.start()
        assert (await built.command("webhook", "set"))[0] == 0
        unreadable = {}
        for entry in entries:
            update_id = await sim.control.inject(bot.id, entry.update)
            if not entry.is_readable:
                unreadable[update_id] = entry.name
        await sim.control.wait_idle(bot.id, timeout_s=30)
        await until(partial(_all_ended, built, len(entries)), within_ms=30_000, what="all ended")
        ended = await built.read(partial(reports.updates, bot=BOT))
        dead = {update.update_id for update in ended if update.state is InboxState.DEAD}
        assert dead == set(unreadable), "only what python-telegram-bot can't parse is buried"
        letters = await built.read(partial(inbox.dead_list, limit=100))
        assert all(letter.reason for letter in letters)
        ends = (await sim.control.ledger()).ends(bot.id)
        assert set(ends.values()) == {"acknowledged"}
        assert len(ends) == len(entries)
