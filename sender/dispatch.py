"""Bring claimed rows from the database to calls that are under way.

Stamps them in one transaction and looks at the gates before and after it, since a wait may have
been ordered while a commit was written. What may not go is handed back: it has not left, so it
costs nothing. Nothing is started that was not stamped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sender.calls import Call, Unsayable, render
from sender.claiming import Taken
from sender.delivery import Channel, Tools
from sender.memory import BotMemory
from sender.multipart import Enclosed, Stored
from sender.policy import Bury, Requeue, Spend
from sender.reuse import lightened
from sender.settling import Settled, Settling, settle
from sender.telling import tell_withdrawn
from storage import claims, leases, pauses
from storage.claims import AttemptEnd
from storage.database import Tx
from storage.leases import Lease
from storage.lifecycle import AttemptStage, OutboxId
from storage.outgoing import FilePart
from storage.telemetry import event


@dataclass(frozen=True, slots=True)
class Ready:
    """A claimed row and its call."""

    taken: Taken
    call: Call


@dataclass(frozen=True, slots=True)
class Way:
    """What a dispatch asks of its drain."""

    reason_to_keep: Callable[[Taken], str]
    """Why a row may not go now, whatever its chat; empty when it may."""

    start: Callable[[Ready], None]
    """Start a stamped row's call."""

    channels: Mapping[str, Channel]
    """Where the calls of each channel go."""


class Dispatch:
    """The way of one bot's rows from claim to call."""

    def __init__(self, tools: Tools, memory: BotMemory, way: Way) -> None:
        self._tools = tools
        self._memory = memory
        self._way = way

    async def send_out(self, lease: Lease, claimed: Sequence[Taken]) -> int:
        """Stamp what was claimed and start its calls; how many rows were kept instead.

        Raises LeaseLost when another sender owns the bot; nothing of what it refused has left.
        """
        for taken in claimed:
            self._memory.began(taken.paced)
        self._tools.failpoints.reach("sender.claimed")
        ready, unsayable = self._render(claimed)
        going, back = self._look_once_more(ready)
        kept = [*unsayable, *back]
        await self._settle_unsent(kept)
        if not going:
            return len(kept)

        stamped = await self._tools.write("stamp", lambda tx: _stamp(tx, lease, going))
        self._tools.failpoints.reach("sender.stamped")
        stopped = [
            self._handed_back(each.taken, 0, "paused or cancelled")
            for each in going
            if each.taken.claim.item.id not in stamped
        ]
        going, late = self._look_once_more(
            [each for each in going if each.taken.claim.item.id in stamped]
        )
        for each in going:
            self._way.start(each)
        await self._settle_unsent([*stopped, *late])
        return len(kept) + len(stopped) + len(late)

    def _render(self, claimed: Sequence[Taken]) -> tuple[Sequence[Ready], Sequence[Settling]]:
        """Make the calls; a row that can't be said is buried."""
        ready = []
        unsayable = []
        for taken in claimed:
            call = self._call_of(taken)
            if isinstance(call, Call):
                ready.append(Ready(taken, call))
            else:
                unsayable.append(self._buried(taken, call))
        return ready, unsayable

    def _call_of(self, taken: Taken) -> Call | Unsayable:
        item = taken.claim.item
        channel = self._way.channels.get(item.channel)
        if channel is None:
            return Unsayable(f"the channel {item.channel} is not configured")
        encoding = channel.contract.encoding
        if not taken.carried.parts:
            return render(item.method, item.params, taken.message_ids, encoding)
        light = lightened(item.params, taken.carried)
        enclosed = [self._enclosed(part) for part in light.parts]
        lost = [
            part.filename for part, found in zip(light.parts, enclosed, strict=True) if not found
        ]
        if lost:
            return Unsayable(
                f"the content of {len(lost)} of its files is not to be had on this machine"
            )
        there = [each for each in enclosed if each is not None]
        return render(item.method, light.params, taken.message_ids, encoding, there)

    def _enclosed(self, part: FilePart) -> Enclosed | None:
        blobs = self._tools.blobs
        size_bytes = blobs.size_bytes(part.sha256)
        if size_bytes is None:
            return None
        return Enclosed(part, Stored(blobs.path(part.sha256), size_bytes))

    def _look_once_more(self, ready: Sequence[Ready]) -> tuple[Sequence[Ready], Sequence[Settling]]:
        """Tell apart what may still go, and how the rest is handed back."""
        going = []
        back = []
        for each in ready:
            paced = each.taken.paced
            if self._memory.cooling_ms(paced) > 0:
                back.append(
                    self._handed_back(each.taken, self._memory.certain_ms(paced), "cooling")
                )
            elif reason := self._way.reason_to_keep(each.taken):
                back.append(self._handed_back(each.taken, 0, reason))
            else:
                going.append(each)
        return going, back

    def _handed_back(self, taken: Taken, wait_ms: int, reason: str) -> Settling:
        item = taken.claim.item
        event("outbox.handed_back", bot=item.bot, outbox_id=item.id, reason=reason)
        self._memory.withdrew(taken.paced)
        due_ms = self._tools.clock.now_ms() + wait_ms
        end = AttemptEnd(AttemptStage.HANDED_BACK, None)
        return Settling(taken.claim, end, Requeue(due_ms, Spend.NOTHING, reason))

    def _buried(self, taken: Taken, found: Unsayable) -> Settling:
        item, reason = taken.claim.item, found.reason
        event("outbox.dead", bot=item.bot, outbox_id=item.id, method=item.method, reason=reason)
        self._memory.withdrew(taken.paced)
        end = AttemptEnd(AttemptStage.HANDED_BACK, None, description=reason)
        return Settling(taken.claim, end, Bury(reason))

    async def _settle_unsent(self, settlings: Sequence[Settling]) -> None:
        """Give rows back; one that somebody has asked to cancel ends by that."""

        def settle_all(tx: Tx) -> Sequence[Settled]:
            return [settle(tx, settling) for settling in settlings]

        if not settlings:
            return
        settled = await self._tools.write("hand back", settle_all)
        self._tools.let_hear(settling.claim.item for settling in settlings)
        for settling, found in zip(settlings, settled, strict=True):
            if found.withdrawn is not None:
                tell_withdrawn(settling.claim.item, found.withdrawn)


def _stamp(tx: Tx, lease: Lease, going: Sequence[Ready]) -> frozenset[OutboxId]:
    """Stamp what nobody has paused or asked to cancel since it was claimed; the rows stamped.

    Raises LeaseLost when another sender owns the bot.
    """
    leases.require(tx, lease)
    rows = [each.taken.claim for each in going]
    scopes = [pauses.BOT_SCOPE, pauses.BULK_SCOPE, *(claim.item.lane for claim in rows)]
    paused = pauses.among(tx, rows[0].item.bot, scopes)
    return claims.stamp(
        tx,
        [row for row in rows if not pauses.holding(paused, row.item.lane, row.item.priority)],
    )
