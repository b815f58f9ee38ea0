"""What is said outside any turn: by jobs, by tasks that outlived their turn, by the bot itself.

Each call and each effect is a transaction of its own, under the worker's lease. It is never
repeated by us, as nothing here is run twice: its key is the worker's epoch and a number.
"""

from collections.abc import Callable
from functools import partial

from bot.turns.turn import Effect
from storage import leases, outbox
from storage.database import Database, Tx
from storage.errors import LeaseLost
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.methods import METHODS
from storage.outgoing import Outgoing


class Outside:
    """The voice of one bot outside its turns."""

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

    def next_key(self) -> str:
        """Name the next call: these words of this worker.

        Raises LeaseLost while this process does not own the bot.
        """
        self._said += 1
        return f"late:{self._held().epoch}:{self._said}"

    def next_placeholder(self) -> None:
        """None: it is made from the row's number."""

    async def say(self, outgoing: Outgoing) -> int | None:
        """Leave the call in a transaction of its own; give the placeholder of its message.

        Raises LeaseLost, or StorageError with nothing left.
        """
        left = await self._db.write(
            partial(self._leave, self._held(), outgoing), point="worker.say"
        )
        self._ring()
        return left.placeholder

    async def write(self, effect: Effect) -> None:
        """Carry the effect out in a transaction of its own.

        Raises LeaseLost, or StorageError with nothing written.
        """
        await self._db.write(partial(self._carry_out, self._held(), effect), point="worker.write")

    def _leave(self, lease: Lease, outgoing: Outgoing, tx: Tx) -> outbox.Enqueued:
        leases.require(tx, lease)
        if METHODS[outgoing.method].returns_message:
            return outbox.enqueue_free(tx, self._bot, outgoing)
        return outbox.enqueue(tx, self._bot, outgoing)

    def _carry_out(self, lease: Lease, effect: Effect, tx: Tx) -> None:
        leases.require(tx, lease)
        effect(tx, self._bot)

    def _held(self) -> Lease:
        if self._lease is None:
            raise LeaseLost(f"this process does not own bots.{self._bot} yet")
        return self._lease
