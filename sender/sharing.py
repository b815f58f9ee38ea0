"""Decide how many bots are spread over several sender processes: to each about as many.

Who owns a bot is a lease's business; this only says whether a process that could take a free bot
should, and which of its own it should give away when another has joined. The deciders are pure;
what they go by is read in the transaction that takes the lease, so that no two processes see it
differently. A bot that only one living process serves is always that one's. More senders never make
a bot faster: it has one owner, who inherits the last minute's calls.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage import heartbeats, leases
from storage.database import Tx
from storage.heartbeats import RoleState
from storage.lifecycle import BotName

ROLE = "sender"
SERVES = "serves"
"""The fact in a sender's heartbeat that names the bots it could own, with spaces between."""

_LEASES = f"{ROLE}:"
_WILLING = frozenset({RoleState.READY, RoleState.STANDBY})


@dataclass(frozen=True, slots=True)
class Standing:
    """What one living sender could own, and what it owns."""

    serves: frozenset[BotName]
    owns: frozenset[BotName]


Standings = Mapping[str, Standing]


@dataclass(frozen=True, slots=True)
class Sharer:
    """A process that shares bots with others. `is_dead` tells of a name whether it has ended."""

    owner: str
    serves: frozenset[BotName]
    is_dead: Callable[[str], bool]


def lease_name(bot: BotName) -> str:
    """Name the lease on a bot's sending."""
    return f"{_LEASES}{bot}"


def standings(tx: Tx, me: Sharer) -> Standings:
    """The living senders and what they own, this process among them."""
    serves = {me.owner: me.serves}
    for beat in heartbeats.everyone(tx):
        is_heard = tx.now_ms() - beat.beat_at_ms < heartbeats.SILENT_AFTER_MS
        if beat.role != ROLE or beat.owner == me.owner or not is_heard:
            continue
        if beat.state in _WILLING and not me.is_dead(beat.owner):
            names = str(beat.facts.get(SERVES, "")).split()
            serves[beat.owner] = frozenset(map(BotName, names))
    owns: dict[str, set[BotName]] = {owner: set() for owner in serves}
    for name, owner in leases.owners(tx, _LEASES).items():
        if owner in owns:
            owns[owner].add(BotName(name.removeprefix(_LEASES)))
    return {owner: Standing(found, frozenset(owns[owner])) for owner, found in serves.items()}


def share(senders: Standings) -> int:
    """How many bots one sender should own at most, while others have fewer."""
    bots = {bot for standing in senders.values() for bot in standing.serves}
    return -(-len(bots) // len(senders))


def may_take(bot: BotName, me: str, senders: Standings) -> bool:
    """Whether a free bot is for this process: it has room, or nobody else has."""
    if len(senders[me].owns) < share(senders):
        return True
    return not _takers(bot, me, senders)


def to_hand_over(me: str, senders: Standings) -> BotName | None:
    """The bot to give away, one at a time, when this process has more than its share."""
    mine = senders[me].owns
    if len(mine) <= share(senders):
        return None
    wanted = (bot for bot in sorted(mine, reverse=True) if _takers(bot, me, senders))
    return next(wanted, None)


def _takers(bot: BotName, me: str, senders: Standings) -> bool:
    """Whether any other sender has room for this bot."""
    most = share(senders)
    return any(
        bot in standing.serves and len(standing.owns) < most
        for owner, standing in senders.items()
        if owner != me
    )
