"""The transactions of a whole crossing, without the processes: a load for disks that fail.

Three databases on one file, as web, worker and sender have them, carry updates from the webhook to
the answered call through the product's own functions. What was acknowledged is noted with the
disk's time: that, and no more, must be there after any failure. May hold nothing back: an error is
noted and the step is tried again later, as each role would.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from storage import claims, inbox, leases, outbox, turn_state
from storage.carriers import CarrierFactory, ThreadCarrier
from storage.claims import AttemptEnd, Claim
from storage.clock import Clock
from storage.database import Connector, Database, Tx, opened
from storage.errors import StorageError
from storage.inbox import InboxItem, Received
from storage.leases import Lease
from storage.lifecycle import AttemptStage, BotName, Priority
from storage.migrate import migrate
from storage.outgoing import Outgoing, chat_lane

T = TypeVar("T")
BOT: Final = BotName("main")
CHATS: Final = 5
ROWS_PER_TURN: Final = 2
_ROUNDS_MAX: Final = 400
_AT_ONCE: Final = 8
_CHECKPOINT_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Stored:
    """Telegram was answered with 200."""

    update_id: int


@dataclass(frozen=True, slots=True)
class Turned:
    """A turn has committed."""

    update_id: int


@dataclass(frozen=True, slots=True)
class Stamped:
    """A call may have left."""

    outbox_id: int


@dataclass(frozen=True, slots=True)
class Sent:
    """Telegram's yes is recorded."""

    outbox_id: int
    message_id: int


Fact = Stored | Turned | Stamped | Sent


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What somebody may rely on since `at`, a moment of the disk's time."""

    at: int
    fact: Fact


@dataclass(slots=True)
class Record:
    """What a crossing has promised, and what went wrong on the way."""

    disk_time: Callable[[], int]
    facts: list[Acknowledged] = field(default_factory=list)
    errors: list[StorageError] = field(default_factory=list)

    def note(self, fact: Fact) -> None:
        """Somebody relies on this from now on."""
        self.facts.append(Acknowledged(self.disk_time(), fact))

    def until(self, at: int) -> list[Fact]:
        """What had been promised by a moment of the disk's time."""
        return [each.fact for each in self.facts if each.at <= at]


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a crossing takes place."""

    path: Path
    clock: Clock
    connector: Connector
    carrier: CarrierFactory = ThreadCarrier


def body_of(update_id: int) -> bytes:
    """The bytes of an update, some of them long enough for pages of their own."""
    return f'{{"update_id": {update_id}}}'.encode() + b" " * (update_id % 7 * 900)


def chat_of(update_id: int) -> int:
    """The chat that an update is from."""
    return 100 + update_id % CHATS


class Crossing:
    """Web, worker and sender at work on one file."""

    def __init__(self, databases: tuple[Database, Database, Database], record: Record) -> None:
        self._web, self._worker, self._sender = databases
        self._record = record
        self._turns: list[InboxItem] = []
        self._claimed: list[Claim] = []
        self._called: list[Claim] = []
        self._leases: list[Lease] = []

    async def run(self, updates: int, dice: random.Random) -> bool:
        """Carry updates 1 to `updates` across; False when it does not come to an end."""
        waiting = list(range(1, updates + 1))
        for _ in range(_ROUNDS_MAX):
            if not await self._has_leases():
                continue
            now, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
            stored, handled, sent, _ = await asyncio.gather(
                self._receive(now),
                self._handle(self._leases[0]),
                self._send(self._leases[1]),
                self._checkpoint(dice),
            )
            waiting += [] if stored else now
            if not (waiting or handled or sent):
                return True
        return False

    async def _write(self, database: Database, work: Callable[[Tx], T]) -> T | None:
        """Write; None, with the error noted, when the disk did not let us."""
        try:
            return await database.write(work)
        except StorageError as error:
            self._record.errors.append(error)
            return None

    async def _has_leases(self) -> bool:
        roles = ((self._worker, "worker"), (self._sender, "sender"))
        for database, role in roles[len(self._leases) :]:
            lease = await self._write(database, partial(_take_lease, role=role))
            if lease is None:
                return False
            self._leases.append(lease)
        return True

    async def _receive(self, updates: Sequence[int]) -> bool:
        """Store what came together, as the webhook does; False when it has to come again."""
        received = [_received(update_id) for update_id in updates]
        kept = await self._write(self._web, partial(inbox.receive_all, updates=received))
        for update_id in updates if kept is not None else ():
            self._record.note(Stored(update_id))
        return kept is not None

    async def _handle(self, lease: Lease) -> bool:
        """Take what waits and commit a turn for each; False when nothing was there."""
        if not self._turns:
            taken = await self._write(self._worker, lambda tx: _take_turns(tx, lease))
            if taken is None:
                return True
            self._turns = taken
        turns, self._turns = self._turns, []
        committed = await asyncio.gather(*(self._commit(lease, item) for item in turns))
        self._turns = [item for item, done in zip(turns, committed, strict=True) if not done]
        return bool(turns)

    async def _commit(self, lease: Lease, item: InboxItem) -> bool:
        done = await self._write(self._worker, lambda tx: _turn(tx, lease, item))
        if done is not None:
            self._record.note(Turned(item.update_id))
        return done is not None

    async def _send(self, lease: Lease) -> bool:
        """Claim, stamp, and only then call; record the answers. False when nothing was there."""
        if not self._claimed and not self._called:
            taken = await self._write(self._sender, lambda tx: _claim(tx, lease))
            if taken is None:
                return True
            self._claimed = taken
        had_work = bool(self._claimed or self._called)
        if self._claimed:
            await self._stamp(self._claimed)
        called, self._called = self._called, []
        answered = await asyncio.gather(*(self._answered(claim) for claim in called))
        self._called = [claim for claim, done in zip(called, answered, strict=True) if not done]
        return had_work

    async def _stamp(self, claims: list[Claim]) -> None:
        if await self._write(self._sender, lambda tx: _stamp(tx, claims)) is None:
            return
        for claim in claims:
            self._record.note(Stamped(claim.item.id))
        self._claimed, self._called = [], claims

    async def _answered(self, claim: Claim) -> bool:
        done = await self._write(self._sender, lambda tx: _settle(tx, claim))
        if done is not None:
            self._record.note(Sent(claim.item.id, message_id_of(claim.item.id)))
        return done is not None

    async def _checkpoint(self, dice: random.Random) -> None:
        if dice.random() < _CHECKPOINT_SHARE:
            try:
                await self._sender.checkpoint()
            except StorageError as error:
                self._record.errors.append(error)


def message_id_of(outbox_id: int) -> int:
    """The message that a call became."""
    return 9000 + outbox_id


def rows_of(inbox_id: int, update_id: int) -> list[Outgoing]:
    """What the turn of an update says."""
    chat = chat_of(update_id)
    return [
        Outgoing(
            method="sendMessage",
            params={"chat_id": str(chat), "text": f"{update_id}/{index}"},
            lane=chat_lane(chat),
            key=f"turn:{inbox_id}:0:{index}",
            chat_id=chat,
        )
        for index in range(ROWS_PER_TURN)
    ]


def _received(update_id: int) -> Received:
    lane = chat_lane(chat_of(update_id))
    return Received(BOT, update_id, "message", lane, None, body_of(update_id))


def _take_lease(tx: Tx, role: str) -> Lease | None:
    return leases.take(tx, role, role, is_dead=lambda _: False)


def _take_turns(tx: Tx, lease: Lease) -> list[InboxItem]:
    leases.renew(tx, lease)
    pending = inbox.pending(tx, BOT, after_id=0, limit=_AT_ONCE)
    return list(inbox.claim(tx, [each.id for each in pending], lease.epoch))


def _turn(tx: Tx, lease: Lease, item: InboxItem) -> bool:
    leases.require(tx, lease)
    for row in rows_of(item.id, item.update_id):
        outbox.enqueue(tx, BOT, row)
    scope = f"chat:{chat_of(item.update_id)}"
    turns = int(turn_state.load(tx, BOT, [scope]).get(scope, b"0"))
    turn_state.save(tx, BOT, {scope: str(turns + 1).encode()})
    inbox.finish(tx, item.id, lease.epoch)
    return True


def _claim(tx: Tx, lease: Lease) -> list[Claim]:
    leases.require(tx, lease)
    found = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=_AT_ONCE)
    return list(claims.claim(tx, found, lease.epoch))


def _stamp(tx: Tx, taken: list[Claim]) -> bool:
    claims.stamp(tx, taken)
    return True


def _settle(tx: Tx, claim: Claim) -> bool:
    claims.close_attempts(tx, [(claim, AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=1))])
    claims.mark_sent(tx, [claims.Accepted(claim, message_id_of(claim.item.id))])
    return True


@contextlib.asynccontextmanager
async def crossing(ground: Ground, record: Record) -> AsyncIterator[Crossing]:
    """The three roles' databases on a file that the product has set up."""
    migrate(ground.path, ground.clock, connector=ground.connector)
    async with contextlib.AsyncExitStack() as stack:
        web, worker, sender = [
            await stack.enter_async_context(
                opened(
                    ground.path, ground.clock, carrier=ground.carrier, connector=ground.connector
                )
            )
            for _ in range(3)
        ]
        yield Crossing((web, worker, sender), record)
