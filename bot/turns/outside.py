"""What is said outside any turn: by jobs, by tasks that outlived their turn, by the bot itself.

Each call and each effect is a transaction of its own, under the worker's lease. It is never
repeated by us, as nothing here is run twice: its key is the worker's epoch and a number. What a
turn wants committed before its end goes this way too, under the keys that the turn has given it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from bot.turns.turn import Effect
from storage import ends, leases, message_ids, outbox
from storage.database import Database, Tx
from storage.ends import Named
from storage.errors import LeaseLost
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.message_ids import Resolution
from storage.methods import message_count
from storage.outgoing import Outgoing
from storage.telemetry import event


class Outside:
    """The voice of one bot outside its turns."""

    inbox_id: None = None
    """What is said here is due to no update."""

    def __init__(self, db: Database, bot: BotName, *, ring: Callable[[], None]) -> None:
        """`ring` tells the sender that there may be work."""
        self._db = db
        self._bot = bot
        self._ring = ring
        self._lease: Lease | None = None
        self._said = 0

    def own(self, lease: Lease) -> None:
        """Speak under this lease from now on."""
        self._lease = lease
        self._said = 0

    def next_key(self, *, once: bool = False) -> str:  # noqa: ARG002  # a turn's signature
        """Name the next call: these words of this worker.

        Raises LeaseLost while this process does not own the bot.
        """
        self._said += 1
        return f"late:{self._held().epoch}:{self._said}"

    def next_placeholder(self, items: int = 1) -> None:
        """None: it is made from the row's number."""

    async def say(self, outgoing: Outgoing) -> int | None:
        """Leave the call in a transaction of its own; give the placeholder of its first message.

        Raises LeaseLost, KeyTaken, or StorageError with nothing left.
        """
        return await self.say_together((outgoing,))

    async def say_together(self, rows: Sequence[Outgoing]) -> int | None:
        """Leave calls in one transaction, each following the one before.

        Gives the placeholder of the last one's first message. Raises LeaseLost, KeyTaken, or
        StorageError with nothing left.
        """
        left = await self._db.write(
            partial(self._leave_together, self._held(), rows), point="worker.say"
        )
        self._ring()
        return left.placeholder

    async def leave(self, rows: Sequence[Outgoing], effects: Sequence[Effect] = ()) -> None:
        """Commit calls that a turn has named, with these effects, before the turn itself.

        Raises LeaseLost, KeyTaken, or StorageError with nothing left.
        """
        left = await self._db.write(
            partial(self._leave_all, self._held(), rows, effects), point="worker.flush"
        )
        self._ring()
        tell_left(self._bot, rows, left)

    async def write(self, effect: Effect) -> None:
        """Carry the effect out in a transaction of its own.

        Raises LeaseLost, or StorageError with nothing written.
        """
        await self._db.write(partial(self._carry_out, self._held(), effect), point="worker.write")

    async def resolve(self, placeholder: int) -> Resolution | None:
        """What became of the message behind a placeholder; None when nothing is known of it."""
        return await self._db.read(
            partial(message_ids.resolve, bot=self._bot, placeholder=placeholder)
        )

    async def flush(self) -> None:
        """Nothing to do: what is said here is committed at once."""

    async def named(self, outgoing: Outgoing) -> Sequence[Named]:
        """The rows that have this call's key already, the one that is the very call first."""
        return await self._db.read(partial(ends.named, bot=self._bot, outgoing=outgoing))

    def _leave_together(self, lease: Lease, rows: Sequence[Outgoing], tx: Tx) -> outbox.Enqueued:
        leases.require(tx, lease)
        left = self._leave(tx, rows[0])
        for row in rows[1:]:
            left = self._leave(tx, replace(row, follows=left.placeholder))
        return left

    def _leave(self, tx: Tx, outgoing: Outgoing) -> outbox.Enqueued:
        if message_count(outgoing.method, outgoing.params) and not outgoing.awaited:
            return outbox.enqueue_free(tx, self._bot, outgoing)
        return outbox.enqueue(tx, self._bot, outgoing)

    def _leave_all(
        self, lease: Lease, rows: Sequence[Outgoing], effects: Sequence[Effect], tx: Tx
    ) -> Sequence[outbox.Enqueued]:
        leases.require(tx, lease)
        for effect in effects:
            effect(tx, self._bot)
        return [outbox.enqueue(tx, self._bot, row) for row in rows]

    def _carry_out(self, lease: Lease, effect: Effect, tx: Tx) -> None:
        leases.require(tx, lease)
        effect(tx, self._bot)

    def _held(self) -> Lease:
        if self._lease is None:
            raise LeaseLost(f"this process does not own bots.{self._bot} yet")
        return self._lease


def tell_left(bot: BotName, rows: Sequence[Outgoing], left: Sequence[outbox.Enqueued]) -> None:
    """Log what is remarkable about rows that a turn has left, once they are committed."""
    for row, enqueued in zip(rows, left, strict=True):
        if enqueued.changed and enqueued.fresh:
            event(
                "keys.digest_changed",
                bot=bot,
                key=row.key,
                method=row.method,
                outbox_id=enqueued.id,
            )
        if enqueued.superseded:
            event(
                "outbox.superseded",
                bot=bot,
                by_outbox_id=enqueued.id,
                count=len(enqueued.superseded),
            )
