"""Own a bot's turns: take its lease, keep it, know when it is lost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from storage import leases
from storage.clock import Clock
from storage.database import Database, Tx
from storage.errors import LeaseLost, StorageError
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.telemetry import event

STANDBY_MS: Final = 1_000


def lease_name(bot: BotName) -> str:
    """The name of the lease on a bot's turns."""
    return f"worker:{bot}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who wants to own a bot: by the doorbell's name, and how it knows that another has died.

    `on_standby` is called in each round in which somebody else still owns it.
    """

    owner: str
    is_dead: Callable[[str], bool]
    on_standby: Callable[[], Awaitable[None]]


async def take(db: Database, clock: Clock, bot: BotName, candidate: Candidate) -> Lease:
    """Become the owner of a bot's turns, standing by as long as somebody else is."""
    name = lease_name(bot)
    try_taking = partial(leases.take, name=name, owner=candidate.owner, is_dead=candidate.is_dead)
    told = False
    while (lease := await db.write(try_taking, point="worker.take")) is None:
        if not told:
            event("lease.waiting", bot=bot, name=name)
            told = True
        await candidate.on_standby()
        await clock.sleep_ms(STANDBY_MS)
    event("lease.taken", bot=bot, name=name, owner=candidate.owner, epoch=lease.epoch)
    return lease


async def keep(db: Database, clock: Clock, bot: BotName, lease: Lease) -> None:
    """Renew the lease for as long as it is ours. Raises LeaseLost when it no longer is.

    A database that fails for a while does not end the ownership: the epoch is checked wherever it
    matters, so the worst is that somebody else takes over.
    """
    while True:
        await clock.sleep_ms(leases.RENEW_EVERY_MS)
        try:
            await db.write(partial(_renew, lease), point="worker.renew")
        except StorageError as error:
            event("storage.failed", bot=bot, operation="renewing the lease", error=error)
        except LeaseLost:
            event("lease.lost", bot=bot, name=lease.name, epoch=lease.epoch)
            raise


async def give_back(db: Database, bot: BotName, lease: Lease) -> None:
    """Let the next owner begin at once."""
    await db.write(partial(_release, lease), point="worker.release")
    event("lease.released", bot=bot, name=lease.name, epoch=lease.epoch)


def _renew(lease: Lease, tx: Tx) -> None:
    leases.renew(tx, lease)


def _release(lease: Lease, tx: Tx) -> None:
    leases.release(tx, lease)
