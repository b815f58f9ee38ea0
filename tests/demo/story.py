"""The demo's story: how the stage is set, and the acts in their order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from storage.clock import SystemClock
from tests.demo import acts
from tests.demo.proof import proof
from tests.demo.stage import Stage
from tests.demo.timeline import Timeline
from tests.live.house import Plan, house, made_up_bot
from tests.simulator.run import Running, simulator_process

ACTS = (
    acts.crossing,
    acts.buttons,
    acts.flood,
    acts.redelivery,
    acts.killed_before,
    acts.killed_after,
    proof,
)


@asynccontextmanager
async def set_stage(folder: Path, told: Timeline) -> AsyncIterator[tuple[Stage, Running]]:
    """Start the simulator and the three roles with fresh state in `folder`, and set the webhook."""
    bot = made_up_bot()
    async with simulator_process() as sim:
        plan = Plan(folder, sim.api_url, bots=(bot,), log_level="DEBUG")
        async with house(plan) as built:
            await sim.control.add_bot(bot.token, username="ferryman_demo_bot", first_name="Ferry")
            told.tell("telegram", "a strict simulator, with Telegram's limits and faults")
            await built.start()
            for role, process in built.running.items():
                told.tell(role, f"ready, process {process.pid}")
            code, printed = await built.command("webhook", "set")
            told.quote(printed)
            told.check("the webhook is set", holds=code == 0)
            yield Stage(built, sim.control, bot, told, SystemClock()), sim


async def play(stage: Stage) -> None:
    """All acts, one after the other."""
    for act in ACTS:
        await act(stage)
