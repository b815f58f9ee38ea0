"""Leases: one owner at a time for a bot in a role, with an epoch that fences the owner before.

An owner that ended without a word is known by its dead doorbell, so that a restart need not wait;
one that only hangs keeps its lease until it runs out. A lease is no lock on Telegram: the epoch is
checked in each transaction, and a row is stamped in a transaction before it is called.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage.clock import BootMoment
from storage.database import Tx
from storage.errors import LeaseLost

LEASE_MS = 10_000
RENEW_EVERY_MS = 3_000


@dataclass(frozen=True, slots=True)
class Lease:
    """What this process holds: the lease's name and the epoch under which it writes."""

    name: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lease, and until when: wall time (UTC), and the same moment counted from boot."""

    owner: str | None
    epoch: int
    lease_until_ms: int
    until: BootMoment

    def has_run_out(self, now_ms: int, boot: BootMoment) -> bool:
        """Whether the lease is over at this moment, told by wall time and counted from boot.

        Within one boot the wall clock is not asked: set ahead, it would take a bot from an owner
        that lives and has a call under way.
        """
        if self.until.boot_id == boot.boot_id:
            return self.until.boot_ms <= boot.boot_ms
        return self.lease_until_ms <= now_ms


def current(tx: Tx, name: str) -> Owner | None:
    """The lease as it stands, or None when nobody ever held it."""
    row = tx.row("leases.current", {"name": name})
    if row is None:
        return None
    until = BootMoment(row["boot_id"], int(row["until_boot_ms"]))
    return Owner(row["owner"], int(row["epoch"]), int(row["lease_until_ms"]), until)


def owners(tx: Tx, prefix: str) -> Mapping[str, str]:
    """Who holds, or held when it fell silent, each lease whose name begins so."""
    rows = tx.rows("leases.owners", {"from": prefix, "below": prefix + "\U0010ffff"})
    return {row["name"]: row["owner"] for row in rows}


def is_free(tx: Tx, name: str, owner: str, *, is_dead: Callable[[str], bool]) -> bool:
    """Whether `owner` may take the lease: it is free, run out, or its owner is dead.

    `is_dead` tells of an owner's name whether its process has ended (storage.doorbell).
    """
    held = current(tx, name)
    return (
        held is None
        or held.owner is None
        or held.owner == owner
        or held.has_run_out(tx.now_ms(), tx.boot)
        or is_dead(held.owner)
    )


def take(tx: Tx, name: str, owner: str, *, is_dead: Callable[[str], bool]) -> Lease | None:
    """Take the lease if it `is_free` for `owner`, under the next epoch; None when it is held."""
    if not is_free(tx, name, owner, is_dead=is_dead):
        return None
    row = tx.row("leases.take", {"name": name, "owner": owner, **_until(tx)})
    assert row is not None, "taking a lease returns its epoch"
    return Lease(name, int(row["epoch"]))


def renew(tx: Tx, lease: Lease) -> None:
    """Hold the lease for another `LEASE_MS`.

    Raises LeaseLost when another owner has taken it.
    """
    if tx.run("leases.renew", {"name": lease.name, "epoch": lease.epoch, **_until(tx)}) != 1:
        raise LeaseLost(f"lease {lease.name} has another owner")


def require(tx: Tx, lease: Lease) -> None:
    """Refuse to go on in this transaction when the lease has another owner.

    Raises LeaseLost, which undoes the transaction.
    """
    if tx.row("leases.held", {"name": lease.name, "epoch": lease.epoch}) is None:
        raise LeaseLost(f"lease {lease.name} has another owner")


def release(tx: Tx, lease: Lease) -> None:
    """Give the lease up; a no-op when it is no longer ours."""
    tx.run("leases.release", {"name": lease.name, "epoch": lease.epoch})


def _until(tx: Tx) -> dict[str, str | int]:
    return {
        "lease_until_ms": tx.now_ms() + LEASE_MS,
        "boot_id": tx.boot.boot_id,
        "until_boot_ms": tx.boot.boot_ms + LEASE_MS,
    }
