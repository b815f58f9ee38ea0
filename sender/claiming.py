"""Take from the outbox what may go now, and what a dead sender left in hand.

Functions of one transaction each, so that every check (fence, expiry, parent, gates) holds of the
very rows that are claimed. They may be run twice when the database was busy, so they change nothing
but the database: the gates are only asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sender import calls, floods, settling
from sender.pacing import NEVER_MS, Gates, PacedCall
from sender.policy import Fate, Hold, Requeue, RowFacts, Spend, decide_abandoned
from storage import cooldowns, lanes, leases, outbox
from storage.clock import Clock, remaining_ms
from storage.cooldowns import BOT_SCOPE, Cooldown
from storage.database import Tx
from storage.leases import Lease
from storage.lifecycle import AttemptStage, BotName, OutboxId, OutboxState, Priority
from storage.outbox import AttemptEnd, Claim, Orphan, OutboxItem, RecentCall
from storage.outgoing import METHODS, CallKind

ROUNDS_MAX = 4
"""Looks at the due heads in one transaction, which must stay short: the next follows at once."""

LOOK_AGAIN_MS = 500
"""How long a row waits for what has no known time: a parent in another lane, a call under way."""

RECENT_MS = 60_000
"""The longest window that Telegram counts in: what is older is forgotten."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the claim goes by: how much room there is, who is cooling, and the gates to ask.

    `cooling` and `now_ms` are on the boot clock. `room` is how many rows of a priority may go.
    """

    bot: BotName
    lease: Lease
    room: Mapping[Priority, int]
    cooling: Mapping[str, int]
    now_ms: int
    gates: Gates
    reload_cooldowns: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """A claimed row, with Telegram's ids for the placeholders it refers to."""

    claim: Claim
    paced: PacedCall
    message_ids: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Found:
    """A head that every gate lets through now."""

    item: OutboxItem
    paced: PacedCall
    message_ids: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Ended:
    """A row that was ended instead of claimed."""

    id: OutboxId
    state: OutboxState
    reason: str
    late_ms: int = 0


@dataclass(slots=True)
class Picked:
    """What a look at the outbox has brought."""

    taken: list[Taken] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    cooldowns: Sequence[Cooldown] = ()
    next_due_ms: int | None = None
    look_again: bool = False


@dataclass(frozen=True, slots=True)
class Heir:
    """Who wants to own a bot, and how the rows of a dead owner are judged."""

    bot: BotName
    owner: str
    is_dead: Callable[[str], bool]
    attempts_max: int
    jitter: float


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a new owner of a bot finds: its lease, waits in force, calls of the last minute."""

    lease: Lease
    cooldowns: Sequence[Cooldown]
    recent: Sequence[RecentCall]
    rescued: int
    uncertain: int


def kind_of(method: str) -> CallKind:
    """What a call does; one that this version does not know is paced like a message."""
    facts = METHODS.get(method)
    return CallKind.SEND if facts is None else facts.kind


def paced(item: OutboxItem) -> PacedCall:
    """The row as the gates see it."""
    return PacedCall(item.lane, item.chat_id, kind_of(item.method), item.priority)


def facts_of(item: OutboxItem, *, attempts_max: int, bare_floods: int = 0) -> RowFacts:
    """The row as the policy sees it; `attempts_max` is the configured one."""
    facts = METHODS.get(item.method)
    return RowFacts(
        idempotent=facts is not None and facts.idempotent,
        on_uncertain=item.on_uncertain,
        attempts=item.attempts,
        attempts_max=attempts_max if item.attempts_max is None else item.attempts_max,
        expires_at_ms=item.expires_at_ms,
        is_ephemeral=item.attempts_max == 1,
        bare_floods=bare_floods,
    )


def pick(tx: Tx, look: Look, clock: Clock) -> Picked:
    """Claim the heads that every gate lets through now, and end those whose reason is gone.

    Raises LeaseLost when another sender owns the bot.
    """
    leases.require(tx, look.lease)
    picked = Picked()
    cooling = look.cooling
    if look.reload_cooldowns:
        picked.cooldowns = cooldowns.of_bot(tx, look.bot)
        cooling = merged(cooling, picked.cooldowns, clock)
    if cooling.get(BOT_SCOPE, 0) > look.now_ms:
        return picked
    outbox.join_scheduled(tx, look.bot)
    picker = _Picker(tx, look, cooling, picked)
    for priority in (Priority.INTERACTIVE, Priority.BULK):
        picker.fill(priority)
    picked.next_due_ms = outbox.next_due_ms(tx, look.bot)
    return picked


def merged(
    cooling: Mapping[str, int], persisted: Sequence[Cooldown], clock: Clock
) -> Mapping[str, int]:
    """Lay persisted waits over those in memory: the longer one of each scope holds."""
    now_ms = clock.boot_ms()
    found = {scope: until_ms for scope, until_ms in cooling.items() if until_ms > now_ms}
    for each in persisted:
        until_ms = now_ms + remaining_ms(each.deadline, clock)
        if until_ms > max(now_ms, found.get(each.scope, 0)):
            found[each.scope] = until_ms
    return found


class _Picker:
    """One look, while its transaction runs."""

    def __init__(self, tx: Tx, look: Look, cooling: Mapping[str, int], picked: Picked) -> None:
        self._tx = tx
        self._look = look
        self._cooling = cooling
        self._picked = picked

    def fill(self, priority: Priority) -> None:
        """Claim due heads of one priority until there is no room or no head left."""
        free = self._look.room[Priority.INTERACTIVE] - len(self._picked.taken)
        room = min(free, self._look.room[priority])
        for _ in range(ROUNDS_MAX):
            if room <= 0:
                return
            heads = outbox.heads(self._tx, self._look.bot, priority, limit=room)
            if not heads:
                return
            room -= self._claim([found for item in heads if (found := self._look_at(item))])
        self._picked.look_again = room > 0

    def _claim(self, found: Sequence[_Found]) -> int:
        """Claim what may go; its number."""
        if found:
            epoch = self._look.lease.epoch
            claims = outbox.claim(self._tx, [each.item for each in found], epoch)
            self._picked.taken += [
                Taken(claim, each.paced, each.message_ids)
                for claim, each in zip(claims, found, strict=True)
            ]
        return len(found)

    def _look_at(self, item: OutboxItem) -> _Found | None:
        """Tell whether this head may go; else it is ended or put off."""
        now_ms = self._tx.now_ms()
        if item.expires_at_ms is not None and item.expires_at_ms <= now_ms:
            late_ms = now_ms - item.expires_at_ms
            self._end(item, OutboxState.EXPIRED, "its time was over", late_ms)
            return None
        call = paced(item)
        wait_ms = self._wait_ms(call)
        if wait_ms > 0:
            outbox.defer(self._tx, item, due_ms=now_ms + wait_ms)
            return None
        known = {
            placeholder: outbox.resolve(self._tx, self._look.bot, placeholder)
            for placeholder in calls.references(item.params)
        }
        message_ids = calls.resolve(known)
        match message_ids:
            case calls.TooSoon():
                outbox.defer(self._tx, item, due_ms=now_ms + LOOK_AGAIN_MS)
                return None
            case calls.Parentless():
                self._end(item, OutboxState.CANCELLED, message_ids.reason)
                return None
            case _:
                return _Found(item, call, message_ids)

    def _wait_ms(self, call: PacedCall) -> int:
        now_ms = self._look.now_ms
        at_ms = self._look.gates.chat_at(call, now_ms)
        if at_ms == NEVER_MS:
            return LOOK_AGAIN_MS
        cooling_ms = floods.cooling_until_ms(self._cooling, call.lane, call.kind)
        return max(at_ms, cooling_ms) - now_ms

    def _end(self, item: OutboxItem, state: OutboxState, reason: str, late_ms: int = 0) -> None:
        if outbox.end_queued(self._tx, item, state, reason=reason):
            self._picked.ended.append(Ended(item.id, state, reason, late_ms))


def take_over(tx: Tx, heir: Heir) -> Inherited | None:
    """Take the lease of a bot and put in order what its last owner left; None when it is held.

    What was claimed and not stamped has not left: it goes back to its lane. What was stamped may
    have left: its outcome is uncertain.
    """
    name = lease_name(heir.bot)
    lease = leases.take(tx, name, heir.owner, is_dead=heir.is_dead)
    if lease is None:
        return None
    lanes.rebuild(tx, heir.bot)
    uncertain = 0
    orphans = outbox.orphans(tx, heir.bot, lease.epoch)
    for orphan in orphans:
        fate = _fate_of(orphan, heir, tx.now_ms())
        uncertain += isinstance(fate, Hold)
        settling.settle(tx, _settlement_of(orphan, fate))
    return Inherited(
        lease=lease,
        cooldowns=cooldowns.of_bot(tx, heir.bot),
        recent=outbox.recent_calls(tx, heir.bot, since_ms=tx.now_ms() - RECENT_MS),
        rescued=len(orphans),
        uncertain=uncertain,
    )


def lease_name(bot: BotName) -> str:
    """Name the lease on a bot's sending."""
    return f"sender:{bot}"


def _fate_of(orphan: Orphan, heir: Heir, now_ms: int) -> Fate:
    if not orphan.stamped:
        return Requeue(now_ms, Spend.NOTHING, "its sender ended before the call left")
    row = facts_of(orphan.claim.item, attempts_max=heir.attempts_max)
    return decide_abandoned(row, now_ms=now_ms, jitter=heir.jitter)


def _settlement_of(orphan: Orphan, fate: Fate) -> settling.Settling:
    if orphan.stamped:
        end = AttemptEnd(AttemptStage.ABANDONED, "uncertain")
    else:
        end = AttemptEnd(AttemptStage.HANDED_BACK, None)
    return settling.Settling(orphan.claim, end, fate)
