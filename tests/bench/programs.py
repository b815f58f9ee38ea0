"""The benchmark's own programs as processes: the load, the stub, the floor and the peers.

Each is started from the root of the repository, ours with this Python, the peers with theirs.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from storage.clock import SystemClock
from tests.bench.load import LoadPlan, LoadReport
from tests.live.process import LiveProcess, free_port

ROOT = Path(__file__).parents[2]
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
# Everything is bounded; a program that takes this much longer than planned is stuck.
PATIENCE_S = 30.0


class Broken(Exception):
    """The benchmark itself failed, so that a figure can't be had; the text says what happened."""


@dataclass(slots=True)
class Bench:
    """One run of the benchmark. `notes` explain figures below the table."""

    folder: Path
    quick: bool
    notes: list[str] = field(default_factory=list)
    _loads: int = 0
    _programs: int = 0

    def next_load(self) -> int:
        """The number of one more load, each with update ids of its own."""
        self._loads += 1
        return self._loads

    def log(self, name: str) -> Path:
        """A fresh log file."""
        self._programs += 1
        return self.folder / f"{self._programs:03}-{name}.log"

    def place(self, name: str) -> Path:
        """A fresh folder, for one house."""
        self._programs += 1
        place = self.folder / f"{self._programs:03}-{name}"
        place.mkdir()
        return place


async def is_open(port: int) -> bool:
    """Whether somebody listens on a port of loopback."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


@asynccontextmanager
async def serving(
    bench: Bench, module: str, *words: str, peer: bool = False
) -> AsyncIterator[tuple[LiveProcess, int]]:
    """Run a server of this package, given its port first; its process and port."""
    port = free_port()
    process = await _start(bench, module, [str(port), *words], peer=peer)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(process.kill)
        await process.ready(lambda: is_open(port))
        yield process, port


async def result_of(
    bench: Bench, module: str, words: Sequence[str], *, within_s: float, peer: bool = False
) -> Any:  # noqa: ANN401 - a program's JSON, typed by who asked for it
    """Run a program of this package to its end and read the JSON it printed last."""
    process = await _start(bench, module, words, peer=peer)
    try:
        code = await process.ended(within_s=within_s)
    except TimeoutError:
        await process.kill()
        raise Broken(f"{module} took longer than {within_s:.0f} s\n{process.tail()}") from None
    if code != 0:
        raise Broken(f"{module} ended with {code}\n{process.tail()}")
    return json.loads(process.tail(1))


async def load(bench: Bench, plan: LoadPlan) -> LoadReport:
    """Run one load; every update has to be answered with 200."""
    words = [json.dumps(asdict(plan))]
    within_s = plan.seconds + PATIENCE_S
    report = LoadReport(**await result_of(bench, "load", words, within_s=within_s))
    if report.refused:
        raise Broken(f"not all of {plan.path} on {plan.port} was answered: {report.refused}")
    return report


async def count_of(port: int) -> int:
    """How many calls a stub has answered so far."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /count HTTP/1.1\r\nHost: stub\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    told = json.loads(await reader.readuntil(b"}"))
    writer.close()
    return int(told["calls"])


async def pause(seconds: float) -> None:
    """Let a house come to rest, or let time pass that is measured elsewhere."""
    await SystemClock().sleep_ms(int(seconds * 1000))


async def _start(bench: Bench, module: str, words: Sequence[str], *, peer: bool) -> LiveProcess:
    command = ["-m", f"tests.bench.{module}", *words]
    if peer and not PEERS_PYTHON.exists():
        raise Broken("the peers are not installed; type: make .venv-peers/ready")
    log = bench.log(module)
    if peer:
        return await LiveProcess.start(module, command, log=log, python=str(PEERS_PYTHON))
    return await LiveProcess.start(module, command, log=log)
