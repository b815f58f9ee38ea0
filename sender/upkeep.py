"""The sender's chores: what has to be done again and again, whether or not anything is sent.

Each is a few short transactions, so that no webhook waits for one; when it is done, and how often,
is the timetable's. A chore may never decide what is sent: it ends what is over, and rings.
"""

from collections.abc import Sequence

from sender.drain import Drain, DrainState
from sender.sharing import ROLE, SERVES, Sharer, lease_name, standings, to_hand_over
from sender.tidying import Tidying
from storage import heartbeats, outbox, redating, retention
from storage.blobs import Blobs
from storage.clock import Clock
from storage.database import Database, Tx
from storage.errors import StorageError
from storage.heartbeats import RoleState
from storage.lifecycle import BotName
from storage.retention import Kept
from storage.telemetry import event

SWEEPS_MAX = 20
"""Batches of one chore in one go; what is left is done the next time."""


class Upkeep:
    """The chores of one sender process."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        drains: Sequence[Drain],
        *,
        sharer: Sharer,
        kept: Kept,
        blobs: Blobs,
    ) -> None:
        self._db = db
        self._clock = clock
        self._drains = drains
        self._sharer = sharer
        self._kept = kept
        self._tidying = Tidying(db, clock, blobs, kept_ms=kept.blobs_ms)
        self._is_draining = False
        # How far the wall clock is from the one that nobody sets.
        self._apart_ms = clock.now_ms() - clock.boot_ms()

    def ring(self) -> None:
        """Have every drain look at once."""
        for drain in self._drains:
            drain.ring()

    def look_around(self) -> None:
        """Have every drain look, also at waits that others may have persisted."""
        for drain in self._drains:
            drain.ring(reload_cooldowns=True)

    def drain(self) -> None:
        """Say from now on that this process is ending."""
        self._is_draining = True

    async def renew_leases(self) -> None:
        """Go on owning what is owned."""
        for drain in self._drains:
            await drain.renew()

    async def beat(self) -> None:
        """Say that this process is there, and what it does."""
        owning = [drain for drain in self._drains if drain.state.owns]
        state = RoleState.READY if owning else RoleState.STANDBY
        if self._is_draining:
            state = RoleState.DRAINING
        facts: dict[str, int | str] = {
            SERVES: " ".join(sorted(self._sharer.serves)),
            "bots": " ".join(drain.bot for drain in owning),
            "stopped": sum(drain.state is DrainState.STOPPED for drain in owning),
            "in_flight": sum(drain.in_flight for drain in self._drains),
        }
        owner = self._sharer.owner

        apart_ms = self._clock.now_ms() - self._clock.boot_ms()
        seen_ms, self._apart_ms = self._apart_ms - apart_ms, apart_ms

        def redate_and_beat(tx: Tx) -> int:
            set_back_ms = redating.redate(tx, seen_ms=seen_ms)
            heartbeats.beat(tx, owner, ROLE, state, facts)
            return set_back_ms

        set_back_ms = await self._db.write(redate_and_beat, point="sender.beat")
        if set_back_ms:
            event("clock.set_back", by_ms=set_back_ms)
            self.ring()

    async def share_out(self) -> None:
        """Give a bot away when another sender has joined and owns fewer."""
        if len(self._drains) == 1:
            return
        me = self._sharer
        senders = await self._db.read(lambda tx: standings(tx, me))
        given = to_hand_over(me.owner, senders)
        for drain in self._drains:
            if drain.bot == given:
                event("lease.handed_over", name=lease_name(given), owner=me.owner)
                drain.hand_over()

    async def sweep_expired(self) -> None:
        """End the rows whose time is over, so that they are counted and seen, not only skipped."""
        for drain in self._drains:
            if drain.state is DrainState.OWNING:
                await self._sweep_expired(BotName(drain.bot))

    async def _sweep_expired(self, bot: BotName) -> None:
        for _ in range(SWEEPS_MAX):
            ended = await self._db.write(lambda tx: outbox.expire(tx, bot), point="sender.expire")
            if not ended:
                return
            event("outbox.expired", bot=bot, outbox_id=ended[0], count=len(ended))

    async def prune(self) -> None:
        """Forget what ended long ago."""
        began_ms = self._clock.monotonic_ms()
        updates = calls = 0
        for _ in range(SWEEPS_MAX):
            pruned = await self._db.write(
                lambda tx: retention.prune(tx, self._kept, self._clock), point="sender.prune"
            )
            updates += pruned.updates
            calls += pruned.calls
            if not pruned.maybe_more:
                break
        files = await self._tidying.round()
        if updates or calls or files:
            duration_ms = self._clock.monotonic_ms() - began_ms
            event(
                "retention.pruned",
                inbox=updates,
                outbox=calls,
                files=files,
                duration_ms=duration_ms,
            )

    async def checkpoint(self) -> None:
        """Fold the log into the database, so that it never grows without bound."""
        began_ms = self._clock.monotonic_ms()
        try:
            pages = await self._db.checkpoint()
        except StorageError as error:
            # Another process is writing or reading; the next checkpoint does the work of both.
            event("storage.failed", operation="checkpoint", reason=str(error), error=error)
            return
        duration_ms = self._clock.monotonic_ms() - began_ms
        event("storage.checkpointed", pages=pages, duration_ms=duration_ms)
