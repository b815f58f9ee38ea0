"""Bring claimed rows from the database to calls that are under way.

Stamps them in one transaction and looks at the gates before and after it, since a wait may have
been ordered while a commit was written. What may not go is handed back: it has not left, so it
costs nothing. Nothing is started that was not stamped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sender.calls import Call, Unsayable, render
from sender.claiming import Taken
from sender.delivery import Tools
from sender.memory import BotMemory
from sender.policy import Bury, Requeue, Spend
from sender.settling import Settling, settle
from storage import leases, outbox
from storage.database import Tx
from storage.leases import Lease
from storage.lifecycle import AttemptStage
from storage.outbox import AttemptEnd
from storage.telemetry import event


@dataclass(frozen=True, slots=True)
class Ready:
    """A claimed row and its call."""

    taken: Taken
    call: Call


@dataclass(frozen=True, slots=True)
class Way:
    """What a dispatch asks of its drain."""

    reason_to_keep: Callable[[], str]
    """Why nothing at all may go now; empty when it may."""

    start: Callable[[Ready], None]
    """Start a stamped row's call."""


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
            self._memory.gates.began(taken.paced)
        self._tools.failpoints.reach("sender.claimed")
        ready, unsayable = self._render(claimed)
        going, back = self._look_once_more(ready)
        kept = [*unsayable, *back]
        await self._settle_unsent(kept)
        if not going:
            return len(kept)

        def stamp(tx: Tx) -> None:
            leases.require(tx, lease)
            outbox.stamp(tx, [each.taken.claim for each in going])

        await self._tools.write("stamp", stamp)
        self._tools.failpoints.reach("sender.stamped")
        going, late = self._look_once_more(going)
        for each in going:
            self._way.start(each)
        await self._settle_unsent(late)
        return len(kept) + len(late)

    def _render(self, claimed: Sequence[Taken]) -> tuple[Sequence[Ready], Sequence[Settling]]:
        """Make the calls; a row that can't be said is buried."""
        ready = []
        unsayable = []
        for taken in claimed:
            item = taken.claim.item
            call = render(item.method, item.params, taken.message_ids)
            if isinstance(call, Call):
                ready.append(Ready(taken, call))
            else:
                unsayable.append(self._buried(taken, call))
        return ready, unsayable

    def _look_once_more(self, ready: Sequence[Ready]) -> tuple[Sequence[Ready], Sequence[Settling]]:
        """Tell apart what may still go, and how the rest is handed back."""
        going = []
        back = []
        for each in ready:
            wait_ms = self._memory.cooling_ms(each.taken.paced)
            if wait_ms > 0:
                back.append(self._handed_back(each.taken, wait_ms, "cooling"))
            elif reason := self._way.reason_to_keep():
                back.append(self._handed_back(each.taken, 0, reason))
            else:
                going.append(each)
        return going, back

    def _handed_back(self, taken: Taken, wait_ms: int, reason: str) -> Settling:
        item = taken.claim.item
        event("outbox.handed_back", bot=item.bot, outbox_id=item.id, reason=reason)
        self._memory.gates.withdrew(taken.paced)
        due_ms = self._tools.clock.now_ms() + wait_ms
        end = AttemptEnd(AttemptStage.HANDED_BACK, None)
        return Settling(taken.claim, end, Requeue(due_ms, Spend.NOTHING, reason))

    def _buried(self, taken: Taken, found: Unsayable) -> Settling:
        item, reason = taken.claim.item, found.reason
        event("outbox.dead", bot=item.bot, outbox_id=item.id, method=item.method, reason=reason)
        self._memory.gates.withdrew(taken.paced)
        end = AttemptEnd(AttemptStage.HANDED_BACK, None, description=reason)
        return Settling(taken.claim, end, Bury(reason))

    async def _settle_unsent(self, settlings: Sequence[Settling]) -> None:
        def settle_all(tx: Tx) -> None:
            for settling in settlings:
                settle(tx, settling)

        if settlings:
            await self._tools.write("hand back", settle_all)
