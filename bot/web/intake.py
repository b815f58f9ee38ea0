"""Gather what arrives together, so that one transaction and one sync of the disk serve it all.

Under load it is the sync, and the way to the database's thread and back, that cost; forty updates
in one go cost little more than one. So a batch is kept open, until there are enough, as long as the
turns of the loop bring more. That takes microseconds: nobody waits for a timer, and an update that
comes alone goes alone.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from storage import arrival, inbox
from storage.clock import Clock
from storage.database import Database
from storage.errors import StorageError
from storage.failpoint import Failpoints
from storage.inbox import Received, Reception
from storage.lifecycle import BotName, InboxId
from storage.tidings import TELLING

BATCH_MAX: Final = 256
# What a commit costs, it costs these few already; more would wait while the disk is idle.
ENOUGH: Final = 32
# One quiet turn is chance: those who were just answered are about to write again.
QUIET_TURNS: Final = 3
# A stream that never ebbs must not keep the first one waiting.
TURNS_MAX: Final = 16


class _Waiting(NamedTuple):
    update: Received
    told: "asyncio.Future[Reception]"


class Intake:
    """Puts updates into the inbox, many at a time."""

    def __init__(
        self, database: Database, clock: Clock, failpoints: Failpoints | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._failpoints = failpoints or Failpoints()
        self._waiting: list[_Waiting] = []
        self._keeper: asyncio.Task[None] | None = None

    def keep(self, update: Received) -> "asyncio.Future[Reception]":
        """Store one update; once the future has its result the update is on disk.

        The future raises StorageError when the update could not be kept.
        """
        self._failpoints.reach("web.received")
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Reception] = loop.create_future()
        self._waiting.append(_Waiting(update, told))
        if self._keeper is None:
            self._keeper = loop.create_task(self._keep_all(), name="web-intake")
        return told

    async def keep_aside(self, bot: BotName, body: bytes, reason: str) -> InboxId:
        """Store raw bytes that are no update; when this returns they are on disk.

        Raises StorageError when they could not be kept.
        """
        receipt = await self._database.write(
            partial(inbox.quarantine, bot=bot, body=body, reason=reason), point="web.keep_aside"
        )
        return receipt.id

    async def _keep_all(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                await self._keep(batch)
        finally:
            self._keeper = None

    async def _gather(self) -> None:
        """Let the loop turn until there are enough, or its turns bring nothing more."""
        quiet = 0
        for _ in range(TURNS_MAX):
            seen = len(self._waiting)
            if seen >= ENOUGH or quiet == QUIET_TURNS:
                return
            await self._clock.sleep_ms(0)
            quiet = quiet + 1 if len(self._waiting) == seen else 0

    async def _keep(self, batch: list[_Waiting]) -> None:
        updates = [waiting.update for waiting in batch]
        try:
            receptions = await self._receive_all(updates)
        except Exception as error:  # noqa: BLE001 - handed to those who wait
            await self._apart(batch, error)
            return
        self._failpoints.reach("web.committed")
        for waiting, reception in zip(batch, receptions, strict=True):
            if not waiting.told.done():
                waiting.told.set_result(reception)

    async def _receive_all(self, updates: list[Received]) -> Sequence[Reception]:
        """Store them in one statement; only what came before, or not whole, is looked at apart.

        So are the few that may tell the sender something, with all that came with them.
        """
        if any(each.kind in TELLING for each in updates):
            arrived = await self._database.write(
                partial(arrival.receive_all, updates=updates), point="web.receive"
            )
            arrival.tell(arrived)
            return arrived.receptions
        packed = inbox.pack(updates, self._clock.now_ms())
        stored = await self._database.run("inbox.receive_all", packed, point="web.receive")
        if stored == len(updates):
            return [Reception.STORED] * stored
        tell_apart = partial(inbox.tell_apart, updates=updates, stored=stored)
        return await self._database.write(tell_apart, point="web.tell_apart")

    async def _apart(self, batch: list[_Waiting], error: Exception) -> None:
        """Find out whose fault it was, unless the database as a whole takes nothing."""
        is_everybodys = isinstance(error, StorageError) and type(error) is not StorageError
        if len(batch) > 1 and not is_everybodys:
            for waiting in batch:
                await self._keep([waiting])
            return
        for waiting in batch:
            if not waiting.told.done():
                waiting.told.set_exception(error)
