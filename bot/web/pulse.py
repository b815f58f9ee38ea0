"""What the door does each second beside answering: it looks, it counts up, it says that it lives.

One loop, so that a stuck event loop falls silent towards the service manager and in the heartbeats.
A database that can't be written to just now does not stop it: the process is alive, and says in its
readiness what is wrong.
"""

from bot.web.backpressure import BackPressure
from bot.web.health import Health
from bot.web.meter import Meter
from storage.clock import Clock
from storage.heartbeats import BEAT_EVERY_MS
from storage.notify import Notifier

LOOK_EVERY_MS = 1_000


class Pulse:
    """The periodic part of the web role."""

    def __init__(
        self,
        backpressure: BackPressure,
        health: Health,
        meter: Meter,
        *,
        clock: Clock,
        notifier: Notifier,
    ) -> None:
        self._backpressure = backpressure
        self._health = health
        self._meter = meter
        self._clock = clock
        self._notifier = notifier
        self._beat_due_ms = clock.monotonic_ms() + BEAT_EVERY_MS

    async def run(self) -> None:
        """Go round each second until cancelled."""
        while True:
            await self._clock.sleep_ms(LOOK_EVERY_MS)
            await self.go_round()

    async def go_round(self) -> None:
        """Look at what the door's answers depend on, tell what was counted, give a life sign."""
        await self._backpressure.look()
        self._meter.report()
        if self._clock.monotonic_ms() >= self._beat_due_ms:
            await self._health.beat()
            self._beat_due_ms = self._clock.monotonic_ms() + BEAT_EVERY_MS
        self._notifier.progress()
