"""Acting out how long a reply takes: long polls, holds and silences, on any clock."""

import asyncio
from collections.abc import Collection
from types import TracebackType
from typing import Self

from tests.simulator.clock import Clock
from tests.simulator.model import Telegram
from tests.simulator.state import Told
from tests.simulator.wire import Reply, Silence, Waiting

# What may end a long poll, or a silence.
_POLLED = frozenset({"update", "poll", "webhook"})
_RELEASED = frozenset({"released"})


class Ear:
    """Hears that something of the given kinds has happened; use it as a context."""

    def __init__(self, telegram: Telegram, kinds: Collection[str] | None = None) -> None:
        self._telegram = telegram
        self._kinds = kinds
        self._heard = asyncio.Event()

    def __enter__(self) -> Self:
        self._deaf = self._telegram.state.listen(self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deaf()

    def _hear(self, told: Told) -> None:
        if self._kinds is None or told.kind in self._kinds:
            self._heard.set()

    async def hear(self, clock: Clock, within_ms: int | None) -> None:
        """Return when something has happened since the last call, or when the time is up."""
        waits = [asyncio.create_task(_heard(self._heard))]
        if within_ms is not None:
            waits.append(asyncio.create_task(clock.sleep_ms(within_ms)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            self._heard.clear()


async def _heard(event: asyncio.Event) -> None:
    await event.wait()


async def act_out(telegram: Telegram, reply: Reply) -> Reply:
    """Wait as long as the reply takes on its way; what then is to be answered."""
    if reply.waiting is not None:
        reply = await _poll(telegram, reply, reply.waiting)
    if reply.hold_ms > 0:
        await telegram.clock.sleep_ms(reply.hold_ms)
    if reply.silence is not None:
        await _silent(telegram, reply.silence)
    return reply


async def _poll(telegram: Telegram, reply: Reply, waiting: Waiting) -> Reply:
    with Ear(telegram, _POLLED) as ear:
        still: Waiting | None = waiting
        while still is not None:
            left_ms = max(0, still.until_ms - telegram.clock.now_ms())
            await ear.hear(telegram.clock, left_ms)
            reply = still.again()
            still = reply.waiting
    return reply


async def _silent(telegram: Telegram, silence: Silence) -> None:
    with Ear(telegram, _RELEASED) as ear:
        while not silence.released:
            await ear.hear(telegram.clock, None)
