"""Start a simulator: in this event loop, or as a process of its own.

    async with simulator_process() as sim:     # a real process: sim.api_url, sim.control
    async with simulator_here() as sim:        # in this loop; sim.server.telegram is the model

The page for people is at `sim.page_url`. A process ends with the context, at the latest when its
parent does: it watches its standard input.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.simulator.control import Control
from tests.simulator.limits import TELEGRAM, LimitRules
from tests.simulator.server import Server

ROOT = Path(__file__).parents[2]
START_S = 20.0
STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """Addresses of a running simulator and a client of its control port."""

    api_url: str
    control_url: str
    page_url: str
    control: Control
    pid: int


@dataclass(frozen=True, slots=True)
class RunningHere:
    """The same, with the server itself at hand."""

    api_url: str
    control_url: str
    page_url: str
    control: Control
    server: Server


@asynccontextmanager
async def simulator_here(
    *, limits: LimitRules = TELEGRAM, seed: int = 0
) -> AsyncIterator[RunningHere]:
    """Serve in this event loop until the context ends."""
    async with (
        Server(limits=limits, seed=seed) as server,
        Control(server.control_url) as control,
    ):
        yield RunningHere(server.api_url, server.control_url, server.page_url, control, server)


@asynccontextmanager
async def simulator_process(
    *,
    limits: str = "telegram",
    port: int = 0,
    control_port: int = 0,
    control_token: str = "",
) -> AsyncIterator[Running]:
    """Serve in a process until the context ends; raises TimeoutError when it does not start."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.simulator", "--until-stdin-closes"),
        *("--limits", limits, "--port", str(port), "--control-port", str(control_port)),
        *(("--control-token", control_token) if control_token else ()),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = await process.stdout.readline()
        if not line:
            raise RuntimeError("the simulator did not start; its words are on standard error")
        at = json.loads(line)
        async with Control(at["control_url"], token=control_token) as control:
            yield Running(at["api_url"], at["control_url"], at["page_url"], control, process.pid)
    finally:
        process.stdin.close()
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
