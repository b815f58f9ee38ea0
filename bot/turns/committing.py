"""The one transaction in which a turn ends.

Lease, what was said, what was remembered, what the update tells of its chat, and the update's own
end: all of it or nothing. It is tried until the database takes it, since the handlers have run and
must not run again for a full disk's sake.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar, assert_never

from bot.turns import facts
from bot.turns.facts import ChatChange, ChatFact
from bot.turns.outside import tell_left
from bot.turns.turn import Effect, Phase
from storage import inbox, leases, outbox, turn_state
from storage.clock import Clock
from storage.database import Database, Tx
from storage.errors import DiskFull, ReadOnly, StorageBusy, StorageError
from storage.inbox import InboxItem
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.outgoing import Outgoing
from storage.telemetry import event

T = TypeVar("T")

RETRY_MS_MIN: Final = 50
RETRY_MS_MAX: Final = 5_000
# Someone frees the disk, or lets go of the file; a damaged one stays damaged.
_PASSING: Final = (StorageBusy, DiskFull, ReadOnly)
TRIES_MAX: Final = 10
_NO_CHANGE: Final = ChatChange()


@dataclass(frozen=True, slots=True)
class Done:
    """The update was handled."""


@dataclass(frozen=True, slots=True)
class Buried:
    """The update is given up: why, and where it happened."""

    reason: str
    trace: str | None


Ending = Done | Buried


@dataclass(frozen=True, slots=True)
class Harvest:
    """What one turn leaves: calls, effects, memories by scope, and how its update ends."""

    ending: Ending
    phase: Phase = Phase.HANDLERS
    rows: Sequence[Outgoing] = ()
    effects: Sequence[Effect] = ()
    changes: Mapping[str, bytes | None] = field(default_factory=dict)
    fact: ChatFact | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """What the transaction did."""

    rows: Sequence[outbox.Enqueued]
    chat: ChatChange


async def commit(
    db: Database, clock: Clock, lease: Lease, item: InboxItem, harvest: Harvest
) -> Committed:
    """End a turn. Raises LeaseLost, with nothing kept, when another worker owns the bot."""
    committed = await insist(db, clock, partial(_commit, lease, item, harvest), point="worker.turn")
    _tell(item, harvest, committed)
    return committed


async def insist(db: Database, clock: Clock, work: Callable[[Tx], T], *, point: str) -> T:
    """Write, however long the disk is full or the file busy.

    Raises what `work` raises, and StorageError for what does not pass.
    """
    wait_ms = RETRY_MS_MIN
    tries = 0
    while True:
        try:
            return await db.write(work, point=point)
        except StorageError as error:
            event("storage.failed", operation="turn", error=error)
            tries += 1
            if tries >= TRIES_MAX and not isinstance(error, _PASSING):
                raise
            await clock.sleep_ms(wait_ms)
            wait_ms = min(wait_ms * 2, RETRY_MS_MAX)


def leave(tx: Tx, lease: Lease, bot: BotName, harvest: Harvest) -> Sequence[outbox.Enqueued]:
    """Write what a turn said, wished and remembered, whatever it was run for.

    Raises LeaseLost when another worker owns the bot.
    """
    leases.require(tx, lease)
    rows = [outbox.enqueue(tx, bot, row) for row in harvest.rows]
    for effect in harvest.effects:
        effect(tx, bot)
    turn_state.save(tx, bot, harvest.changes)
    return rows


def _commit(lease: Lease, item: InboxItem, harvest: Harvest, tx: Tx) -> Committed:
    rows = leave(tx, lease, item.bot, harvest)
    chat = _NO_CHANGE
    if harvest.fact is not None:
        heard_at_ms = item.received_at_ms
        chat = facts.record(tx, item.bot, harvest.fact, heard_at_ms=heard_at_ms)
    match harvest.ending:
        case Done():
            inbox.finish(tx, item.id, lease.epoch)
        case Buried(reason, trace):
            inbox.bury(tx, item.id, lease.epoch, reason=reason, trace=trace)
        case _:
            assert_never(harvest.ending)
    return Committed(rows, chat)


def _tell(item: InboxItem, harvest: Harvest, committed: Committed) -> None:
    tell_left(item.bot, harvest.rows, committed.rows)
    if harvest.fact is not None:
        facts.tell(item.bot, harvest.fact, committed.chat)
    match harvest.ending:
        case Done():
            event("inbox.done", bot=item.bot, inbox_id=item.id, rows=len(harvest.rows))
        case Buried(reason, _):
            event(
                "inbox.buried",
                bot=item.bot,
                inbox_id=item.id,
                update_id=item.update_id,
                kind=item.kind,
                reason=reason,
                claims=item.claims,
            )
        case _:
            assert_never(harvest.ending)
