"""One real process of ours: started, watched until it is ready, signalled, and never left behind.

The process's log goes to a file, so that a test may read all of it after any end.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from storage.clock import Clock, SystemClock

READY_WITHIN_MS = 20_000
STOPPED_WITHIN_S = 25
LOOK_AGAIN_MS = 10


class NotReady(Exception):
    """A process ended, or took too long, before it was ready; the end of its log is in the text."""


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def until(
    condition: Callable[[], Awaitable[bool]],
    *,
    within_ms: int,
    what: str,
    clock: Clock | None = None,
) -> None:
    """Look again and again until the condition holds.

    Raises TimeoutError, which says what was waited for.
    """
    time = clock or SystemClock()
    deadline_ms = time.monotonic_ms() + within_ms
    while not await condition():
        if time.monotonic_ms() > deadline_ms:
            raise TimeoutError(f"not within {within_ms} ms: {what}")
        await time.sleep_ms(LOOK_AGAIN_MS)


class LiveProcess:
    """A child process with its log."""

    def __init__(self, name: str, process: Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process
        self._log_begins = 0

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> Self:
        """Start a Python program (`-m bot web`), its output appended to `log`."""
        with log.open("ab") as written:
            log_begins = written.tell()
            process = await asyncio.create_subprocess_exec(
                python,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                env={**os.environ, **(environment or {})},
            )
        started = cls(name, process, log)
        started._log_begins = log_begins
        return started

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs, negative for the signal that ended it."""
        return self._process.returncode

    async def ready(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the condition holds.

        Raises NotReady with the end of the log when the process ends first or takes too long.
        """

        async def ready_or_gone() -> bool:
            return self.returncode is not None or await condition()

        try:
            await until(ready_or_gone, within_ms=READY_WITHIN_MS, what=f"{self.name} ready")
        except TimeoutError as error:
            raise NotReady(f"{error}\n{self.tail()}") from error
        if self.returncode is not None:
            raise NotReady(f"{self.name} ended with {self.returncode}\n{self.tail()}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if the process still runs."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def ended(self, *, within_s: float = STOPPED_WITHIN_S) -> int:
        """Wait for the process's end; its return code."""
        async with asyncio.timeout(within_s):
            return await self._process.wait()

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.send(signal.SIGKILL)
        await self._process.wait()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end in good order; killed when it does not. The return code."""
        self.send(number)
        try:
            return await self.ended()
        except TimeoutError:
            await self.kill()
            raise

    def times_said(self, event: str) -> int:
        """How often this very process has logged an event of that name."""
        with self.log.open("rb") as log:
            log.seek(self._log_begins)
            return log.read().count(f'"event":"{event}"'.encode())

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
