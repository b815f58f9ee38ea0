"""Say whether this process lives, and whether it can keep what it is given.

Ready means that a real commit has just reached the disk, not that a flag is set. That Telegram or
the sender is in trouble makes nobody unready: a receiver taken out of service for it would lose the
very updates that wait for better times.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bot.web.backpressure import DISK_LOW, BackPressure
from storage import heartbeats
from storage.clock import Clock
from storage.database import Database, Tx
from storage.errors import StorageError
from storage.heartbeats import RoleState
from storage.migrate import migrations

ROLE: Final = "web"
COMMIT_MS_MAX: Final = 1_000
"""A commit that takes longer is no sign of health."""

PROOF_MS_MAX: Final = 5_000
"""How long a commit proves that commits work, so that a prober can't keep the disk busy."""

_NO_STORE: Final = {"cache-control": "no-store"}


class Health:
    """The process's heartbeat, which is also the proof that the database takes commits."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        backpressure: BackPressure,
        *,
        owner: str,
        facts: Callable[[], Mapping[str, int | str]],
    ) -> None:
        self._database = database
        self._clock = clock
        self._backpressure = backpressure
        self._owner = owner
        self._facts = facts
        self._schema = len(migrations())
        self._state = RoleState.STARTING
        self._fault: str | None = "starting"
        self._looked_at_ms = -PROOF_MS_MAX
        self._looking = asyncio.Lock()

    def enter(self, state: RoleState) -> None:
        """The process as a whole does something else from now on."""
        self._state = state

    async def prove(self) -> None:
        """Commit for the first time; nothing may be promised before.

        Raises StorageError when the database takes no commit.
        """
        self._keep(await self._database.write(self._commit, point="web.beat"))

    async def beat(self) -> None:
        """Commit the heartbeat, at most within a second, and keep what came of it."""
        try:
            async with asyncio.timeout(COMMIT_MS_MAX / 1000):
                self._keep(await self._database.write(self._commit, point="web.beat"))
        except TimeoutError:
            self._fault = f"no commit within {COMMIT_MS_MAX} ms"
        except StorageError as error:
            self._fault = f"no commit: {type(error).__name__}"
        self._looked_at_ms = self._clock.monotonic_ms()

    async def leave(self) -> None:
        """Say that this process has ended in good order."""
        await self._database.write(partial(heartbeats.leave, owner=self._owner), point="web.leave")

    async def faults(self) -> list[str]:
        """Why nothing should be sent here at present; nothing when all is well."""
        async with self._looking:
            if self._clock.monotonic_ms() - self._looked_at_ms >= PROOF_MS_MAX:
                await self.beat()
        faults = [] if self._fault is None else [self._fault]
        if self._state is not RoleState.READY:
            faults.append(self._state.value)
        if self._backpressure.is_disk_low:
            faults.append(DISK_LOW)
        return faults

    async def livez(self, _: Request) -> Response:
        """200: the loop answers, and that is all it says."""
        return PlainTextResponse("ok\n", headers=_NO_STORE)

    async def readyz(self, _: Request) -> Response:
        """200 when updates can be kept, 503 with the reasons when they can't."""
        faults = await self.faults()
        answer = {"ready": not faults, "reasons": faults}
        return JSONResponse(answer, status_code=503 if faults else 200, headers=_NO_STORE)

    def _keep(self, schema: int) -> None:
        is_known = schema == self._schema
        self._fault = None if is_known else f"schema {schema}, this version knows {self._schema}"
        self._looked_at_ms = self._clock.monotonic_ms()

    def _commit(self, tx: Tx) -> int:
        heartbeats.beat(tx, self._owner, ROLE, self._state, self._facts())
        schema = tx.row("reports.schema", {})
        return 0 if schema is None else int(schema["number"])
