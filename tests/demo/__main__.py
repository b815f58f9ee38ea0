"""`make demo`: the main job against a simulated Telegram, played before your eyes on loopback.

Starts the simulator and Ferryman's three roles as real processes with fresh state, plays the story,
Starts the simulator and the three roles as real processes with fresh state, plays the story,
every check of the story held.
"""

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from storage.clock import SystemClock
from tests.demo.stage import Stage
from tests.demo.story import play, set_stage
from tests.demo.timeline import Timeline
from tests.simulator.run import Running


async def _serve(stage: Stage, sim: Running) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    for line in (
        "",
        f"Chat with the bot yourself:   {sim.page_url}",
        f"See how the house stands:     {stage.house.url}/",
        f"Logs, state, configuration:   {stage.house.plan.folder}",
        "Ctrl-C ends everything.",
    ):
        stage.told.plain(line)
    await stopped.wait()


async def _demo(*, once: bool) -> int:
    told = Timeline(SystemClock())
    told.plain("Ferryman's demo: no token, no account, nothing leaves this machine.")
    folder = Path(tempfile.mkdtemp(prefix="ferryman-demo-"))
    async with set_stage(folder, told) as (stage, sim):
        await play(stage)
        if not once and not told.failed:
            await _serve(stage, sim)
        await stage.house.stop()
    told.plain("")
    if told.failed:
        told.plain(f"FAILED: {'; '.join(told.failed)}. Logs are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    told.plain("Every check held.")
    return 0


def main() -> int:
    """Play the demo; its exit code."""
    parser = argparse.ArgumentParser(prog="make demo", description="Ferryman against a simulator.")
    parser.add_argument("--once", action="store_true", help="end after the story")
    with contextlib.suppress(KeyboardInterrupt):
        return asyncio.run(_demo(once=parser.parse_args().once))
    return 130


if __name__ == "__main__":
    sys.exit(main())
