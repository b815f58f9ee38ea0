"""Take from the outbox what may go now, and what a dead sender left in hand.

Functions of one transaction each, so that every check (fence, expiry, parent, gates) holds of the
very rows that are claimed. They may be run twice when the database was busy, so they change nothing
but the database: the gates are only asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sender import floods, paying, settling, sharing
from sender.examining import LOOK_AGAIN_MS, Ended, Examiner, Findings
from sender.guards import Guard
from sender.pacing import NEVER_MS, Gates, PacedCall, Rooms
from sender.paying import Purse
from sender.policy import Fate, Hold, Requeue, RowFacts, Spend, decide_abandoned
from sender.reuse import NOTHING_CARRIED, Carried, slots_of
from sender.sharing import Sharer, lease_name
from storage import claims, cooldowns, files, lanes, leases, outbox, pauses, rates, spending
from storage import floods as flood_records
from storage.claims import AttemptEnd, Claim, Orphan, OutboxItem, RecentCall
from storage.clock import Clock, remaining_ms
from storage.cooldowns import BOT_SCOPE, INFERRED_SCOPE, Cooldown
from storage.database import Tx
from storage.files import Attached
from storage.leases import Lease
from storage.lifecycle import AttemptStage, BotName, OutboxState, Priority
from storage.methods import CallKind, method_facts
from storage.outgoing import TELEGRAM, channel_of

ROUNDS_MAX = 4
"""Looks at the due heads in one transaction, which must stay short: the next follows at once."""

UNPAYABLE_MS = 60_000
"""How long a paid row waits before the budget is asked again."""

STRAY_MS = 1_000
"""A call that left a process just before it died may arrive so long after its death was noticed."""

HEADS_OF_A_LOOK = 32
"""Heads that are looked at in one go where no room bounds them: for a canary, or to be ended."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the claim goes by: how much room there is, who is cooling, and the gates to ask.

    `cooling` and `now_ms` are on the boot clock. `slots` is how many calls more may be under way at
    once; answers to queries have some to themselves. `not_canaries` are the chats that may not find
    out whether an inferred wait is needed; None when none may. `is_telegram_out`: Telegram can't be
    reached, so that only other channels' rows may go.
    """

    bot: BotName
    lease: Lease
    slots: int
    answer_slots: int
    rooms: Rooms
    cooling: Mapping[str, int]
    now_ms: int
    gates: Gates
    reload_cooldowns: bool
    is_telegram_out: bool = False
    not_canaries: frozenset[str] | None = None
    pays: bool = False
    budget_tenths: int = 0

    @property
    def has_room(self) -> bool:
        """Whether anything at all could go."""
        is_open = any(self.rooms.free(priority) > 0 for priority in Priority)
        return self.answer_slots > 0 and is_open


@dataclass(frozen=True, slots=True)
class Taken:
    """A claimed row, its files, and Telegram's ids for the placeholders it refers to."""

    claim: Claim
    paced: PacedCall
    message_ids: Mapping[int, int]
    carried: Carried = NOTHING_CARRIED


@dataclass(frozen=True, slots=True)
class _Found:
    """A head that every gate lets through now."""

    item: OutboxItem
    paced: PacedCall
    message_ids: Mapping[int, int]


@dataclass(slots=True)
class Picked:
    """What a look at the outbox has brought."""

    taken: list[Taken] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    cooldowns: Sequence[Cooldown] = ()
    next_due_ms: int | None = None
    look_again: bool = False
    unpayable: str = ""
    """Why paid rows wait, when they do."""


@dataclass(frozen=True, slots=True)
class Heir:
    """Who wants to own a bot, and how the rows of a dead owner are judged."""

    bot: BotName
    sharer: Sharer
    attempts_max: int
    jitter: float
    recent_ms: int
    """How far back calls may count against a limit: what is older is forgotten."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a new owner of a bot finds: its lease, waits in force, calls of the last minute.

    `flooded` are the chats whose floods an inferred wait may have come from; `learned` is the bulk
    rate that floods have taught. `as_of_ms` (UTC): ages of calls are counted up to then, as nobody
    knows how far the wall clock has been set forward since.
    """

    lease: Lease
    cooldowns: Sequence[Cooldown]
    recent: Sequence[RecentCall]
    rescued: int
    uncertain: int
    as_of_ms: int
    flooded: frozenset[str] = frozenset()
    learned: float | None = None


def kind_of(method: str, lane: str) -> CallKind:
    """What a call does; one that this version does not know is paced like a message."""
    facts = method_facts(method) if channel_of(lane) == TELEGRAM else None
    return CallKind.SEND if facts is None else facts.kind


def paced(item: OutboxItem) -> PacedCall:
    """The row as the gates see it."""
    kind = kind_of(item.method, item.lane)
    return PacedCall(item.lane, item.chat_id, kind, item.priority, item.items)


def facts_of(item: OutboxItem, *, attempts_max: int, bare_floods: int = 0) -> RowFacts:
    """The row as the policy sees it; `attempts_max` is the configured one."""
    # What is known of Telegram's methods says nothing about another channel's.
    is_telegrams = item.channel == TELEGRAM
    facts = method_facts(item.method) if is_telegrams else None
    return RowFacts(
        idempotent=facts is not None and facts.idempotent,
        on_uncertain=item.on_uncertain,
        attempts=item.attempts,
        attempts_max=attempts_max if item.attempts_max is None else item.attempts_max,
        expires_at_ms=item.expires_at_ms,
        # A gift has one attempt too, but nobody may take it for one that was not given.
        is_ephemeral=facts is not None and facts.kind is CallKind.ACTION,
        bare_floods=bare_floods,
        has_breaker=is_telegrams,
    )


def pick(tx: Tx, look: Look, clock: Clock, guard: Guard | None = None) -> Picked:
    """Claim the heads that every gate lets through now, and end those whose reason is gone.

    Raises LeaseLost when another sender owns the bot.
    """
    leases.require(tx, look.lease)
    picked = Picked()
    cooling = look.cooling
    if look.reload_cooldowns:
        cooldowns.redate(tx, look.bot, clock)
        picked.cooldowns = cooldowns.of_bot(tx, look.bot)
        cooling = merged(cooling, picked.cooldowns, clock)
    not_telegrams = look.is_telegram_out or cooling.get(BOT_SCOPE, 0) > look.now_ms
    outbox.join_scheduled(tx, look.bot)
    paused = pauses.among(tx, look.bot, [pauses.BOT_SCOPE, pauses.BULK_SCOPE])
    ends = [pause.until_ms for pause in paused.values()]
    if pauses.BOT_SCOPE in paused:
        picked.next_due_ms = min((at_ms for at_ms in ends if at_ms is not None), default=None)
        return picked
    examiner = Examiner(tx, look.bot, clock, guard)
    picked.findings = examiner.findings
    picker = _Picker(tx, look, cooling, picked, examiner, not_telegrams=not_telegrams)
    picker.fill_all(with_bulk=pauses.BULK_SCOPE not in paused)
    picked.taken = _with_files(tx, look.bot, picked.taken)
    if not not_telegrams:
        moments = [outbox.next_due_ms(tx, look.bot), picker.opens_wall_ms, *ends]
        picked.next_due_ms = min((at_ms for at_ms in moments if at_ms is not None), default=None)
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


def _with_files(tx: Tx, bot: BotName, taken: list[Taken]) -> list[Taken]:
    """The claimed rows with their files, and what Telegram calls those."""
    if not taken:
        return taken
    attached = files.of_rows(tx, [each.claim.item.id for each in taken])
    if not attached:
        return taken
    return [
        replace(each, carried=_carried(tx, bot, each.claim.item, found))
        if (found := attached.get(each.claim.item.id)) is not None
        else each
        for each in taken
    ]


def _carried(tx: Tx, bot: BotName, item: OutboxItem, attached: Attached) -> Carried:
    is_telegrams = item.channel == TELEGRAM
    slots = slots_of(item.method, item.params, attached.parts) if is_telegrams else ()
    # What was refused once goes by upload, whatever was learned meanwhile.
    keys = () if attached.is_outdated else [slot.key for slot in slots]
    return Carried(attached.parts, slots, files.known(tx, bot, keys))


class _Picker:
    """One look, while its transaction runs."""

    def __init__(
        self,
        tx: Tx,
        look: Look,
        cooling: Mapping[str, int],
        picked: Picked,
        examiner: Examiner,
        *,
        not_telegrams: bool,
    ) -> None:
        self._examiner = examiner
        self._priorities: tuple[Priority, ...] = (Priority.INTERACTIVE, Priority.BULK)
        self._not_telegrams = not_telegrams
        self._tx = tx
        self._look = look
        self._cooling = cooling
        self._picked = picked
        # Copied, since a transaction may be run twice.
        self._rooms = look.rooms.copy()
        self._is_blocked = False
        self._opens_ms = NEVER_MS
        self._purse: Purse | None = None

    @property
    def opens_wall_ms(self) -> int | None:
        """When there is room for an album that found too little, as wall time."""
        if self._opens_ms == NEVER_MS:
            return None
        return self._tx.now_ms() + self._opens_ms - self._look.now_ms

    def fill_all(self, *, with_bulk: bool) -> None:
        """Claim what may go: answers to queries overtake everything, then by priority."""
        if not with_bulk:
            self._priorities = (Priority.INTERACTIVE,)
        if not self._not_telegrams:
            self._fill_answers()
            if self._cooling.get(INFERRED_SCOPE, 0) > self._look.now_ms:
                self._send_canary()
                self._not_telegrams = True
        for priority in self._priorities:
            self._fill(priority)
        if with_bulk and not self._not_telegrams:
            self._fill_paid()

    def _fill_answers(self) -> None:
        for _ in range(ROUNDS_MAX):
            slots = self._look.answer_slots - len(self._picked.taken)
            room = min(slots, self._rooms.free(Priority.INTERACTIVE))
            heads = claims.answer_heads(self._tx, self._look.bot, limit=room) if room > 0 else ()
            if not heads:
                return
            self._claim(self._fitting(heads))
        self._picked.look_again = True

    def _fill(self, priority: Priority) -> None:
        """Claim due heads of one priority until there is no room or no head left."""
        for _ in range(ROUNDS_MAX):
            room = self._room(priority)
            # An album waits for room at the head: what it needs may be taken by nothing behind it.
            if room <= 0 or self._is_blocked or self._picked.unpayable:
                return
            heads = claims.heads(
                self._tx,
                self._look.bot,
                priority,
                limit=room,
                not_telegrams=self._not_telegrams,
            )
            if not heads:
                return
            self._claim(self._fitting(heads))
        self._picked.look_again |= self._room(priority) > 0

    def _fill_paid(self) -> None:
        """Claim paid rows as far as the budget reaches, or end them where nothing is paid for."""
        self._is_blocked = False
        if self._look.pays:
            spent = spending.spent(self._tx, self._look.bot)
            in_hand = spending.in_hand(self._tx, self._look.bot)
            self._purse = Purse(self._look.budget_tenths, spent, in_hand)
            self._fill(Priority.PAID)
            return
        for item in claims.heads(self._tx, self._look.bot, Priority.PAID, limit=HEADS_OF_A_LOOK):
            self._examiner.end(Ended(item, OutboxState.DEAD, paying.OFF_REASON))
            self._picked.look_again = True

    def _send_canary(self) -> None:
        """Claim one message to a chat that had no part in what was inferred."""
        involved = self._look.not_canaries
        if involved is None:
            return
        for priority in self._priorities:
            if self._room(priority) <= 0:
                continue
            heads = claims.heads(self._tx, self._look.bot, priority, limit=HEADS_OF_A_LOOK)
            self._examiner.prepare(heads)
            for item in heads:
                call = replace(paced(item), is_canary=True)
                is_plain = call.kind is CallKind.SEND and call.items == 1
                if not is_plain or item.channel != TELEGRAM or item.lane in involved:
                    continue
                found = self._look_at(item, call)
                if found is not None:
                    self._rooms.take(priority, 1)
                    self._claim([found])
                    return

    def _room(self, priority: Priority) -> int:
        """How many single messages of this priority may go."""
        slots = self._look.slots - len(self._picked.taken)
        return min(slots, self._rooms.free(priority))

    def _fitting(self, heads: Sequence[OutboxItem]) -> Sequence[_Found]:
        """Of these heads, those that may go, as long as there is room for each."""
        fitting = []
        self._examiner.prepare(heads)
        for item in heads:
            found = self._look_at(item, paced(item))
            if found is None or not self._is_payable(item):
                continue
            opens_ms = self._rooms.opens_at(item.priority, item.items)
            if opens_ms > self._look.now_ms:
                self._is_blocked = True
                self._opens_ms = min(self._opens_ms, opens_ms)
                break
            self._rooms.take(item.priority, item.items)
            fitting.append(found)
            if self._purse is not None:
                self._purse = self._purse.less(item.items)
        return fitting

    def _is_payable(self, item: OutboxItem) -> bool:
        """Whether the budget holds this row; else it is put off, and says so."""
        if self._purse is None or self._purse.holds(item.items):
            return True
        self._picked.unpayable = self._purse.reason()
        due_ms = self._tx.now_ms() + UNPAYABLE_MS
        claims.put_off(self._tx, item, due_ms=due_ms, reason=self._picked.unpayable)
        return False

    def _claim(self, found: Sequence[_Found]) -> None:
        """Claim what may go."""
        if not found:
            return
        epoch = self._look.lease.epoch
        taken = claims.claim(self._tx, [each.item for each in found], epoch)
        self._picked.taken += [
            Taken(claim, each.paced, each.message_ids)
            for claim, each in zip(taken, found, strict=True)
        ]

    def _look_at(self, item: OutboxItem, call: PacedCall) -> _Found | None:
        """Tell whether this head may go; else it is ended, put off or steps out of its lane."""
        sayable = self._examiner.examine(item)
        if sayable is None:
            return None
        wait_ms = max(sayable.wait_ms, self._wait_ms(call))
        if wait_ms > 0:
            claims.defer(self._tx, item, due_ms=self._tx.now_ms() + wait_ms)
            return None
        return _Found(item, call, sayable.message_ids) if self._examiner.is_let_go(item) else None

    def _wait_ms(self, call: PacedCall) -> int:
        now_ms = self._look.now_ms
        at_ms = self._look.gates.chat_at(call, now_ms)
        if at_ms == NEVER_MS:
            return LOOK_AGAIN_MS
        cooling_ms = floods.cooling_until_ms(self._cooling, call)
        return max(at_ms, cooling_ms) - now_ms


def take_over(tx: Tx, heir: Heir) -> Inherited | None:
    """Take the lease of a bot and put in order what its last owner left.

    None when it is held, or free and left to another sender that has fewer bots.

    What was claimed and not stamped has not left: it goes back to its lane. What was stamped may
    have left: its outcome is uncertain.
    """
    name = lease_name(heir.bot)
    me = heir.sharer
    if not leases.is_free(tx, name, me.owner, is_dead=me.is_dead):
        return None
    if not sharing.may_take(heir.bot, me.owner, sharing.standings(tx, me)):
        return None
    as_of_ms = _as_of_ms(leases.current(tx, name), tx.now_ms())
    lease = leases.take(tx, name, me.owner, is_dead=me.is_dead)
    assert lease is not None, "it was free in this transaction"
    lanes.rebuild(tx, heir.bot)
    uncertain = 0
    orphans = claims.orphans(tx, heir.bot, lease.epoch)
    for orphan in orphans:
        fate = _fate_of(orphan, heir, tx.now_ms())
        uncertain += isinstance(fate, Hold)
        settling.settle(tx, _settlement_of(orphan, fate, tx.now_ms()))
    waits = cooldowns.of_bot(tx, heir.bot)
    learned = rates.learned(tx, heir.bot)
    return Inherited(
        lease=lease,
        cooldowns=waits,
        recent=claims.recent_calls(tx, heir.bot, since_ms=as_of_ms - heir.recent_ms),
        rescued=len(orphans),
        uncertain=uncertain,
        as_of_ms=as_of_ms,
        flooded=_flooded(tx, heir.bot, waits),
        learned=None if learned is None else learned.bulk_per_second,
    )


def _as_of_ms(held: leases.Owner | None, now_ms: int) -> int:
    """Up to when the last owner has vouched for the wall clock: when it held the lease anew.

    One that gave the lease back did so in order, and is believed to have done so just now.
    """
    if held is None or held.owner is None:
        return now_ms
    return min(now_ms, held.lease_until_ms - leases.LEASE_MS)


def _flooded(tx: Tx, bot: BotName, waits: Sequence[Cooldown]) -> frozenset[str]:
    """The chats from whose floods a wait that is still remembered may have been inferred."""
    since_ms = min((wait.set_at_ms for wait in waits if wait.inferred), default=None)
    if since_ms is None:
        return frozenset()
    return flood_records.lanes_since(tx, bot, since_ms=since_ms - floods.SECOND_FLOOD_MS)


def _fate_of(orphan: Orphan, heir: Heir, now_ms: int) -> Fate:
    if not orphan.stamped:
        return Requeue(now_ms, Spend.NOTHING, "its sender ended before the call left")
    row = facts_of(orphan.claim.item, attempts_max=heir.attempts_max)
    return decide_abandoned(row, now_ms=now_ms, jitter=heir.jitter)


def _settlement_of(orphan: Orphan, fate: Fate, now_ms: int) -> settling.Settling:
    if not orphan.stamped:
        return settling.Settling(orphan.claim, AttemptEnd(AttemptStage.HANDED_BACK, None), fate)
    end = AttemptEnd(AttemptStage.ABANDONED, "uncertain")
    # What comes next in its lane must not overtake it.
    return settling.Settling(orphan.claim, end, fate, lane_due_ms=now_ms + STRAY_MS)
