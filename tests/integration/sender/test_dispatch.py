"""Between claim and call: the gates looked at once more, and what may not go handed back."""

from dataclasses import dataclass, field

import pytest

from sender.claiming import Taken
from sender.delivery import Tools
from sender.dispatch import Dispatch, Ready, Way
from sender.memory import BotMemory, Pace
from sender.policy import Wait, WaitCause
from sender.transport import TransportOptions, open_transport
from sender.verdict import FloodHint
from storage.errors import LeaseLost
from storage.failpoint import Failpoints
from storage.leases import Lease
from storage.lifecycle import OutboxId, OutboxState
from tests.integration.sender.house import FairDice, House
from tests.integration.sender.test_ownership import FAST, claim_as_another, own
from tests.integration.storage.calls import call


@dataclass
class Quay:
    """A claimed row, and what becomes of it."""

    house: House
    lease: Lease
    taken: list[Taken]
    row: OutboxId
    started: list[Ready] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    async def send_out(self, memory: BotMemory) -> int:
        options = TransportOptions(read_timeout_s=30, connections_max=1)
        async with open_transport(options, self.house.clock) as transport:
            tools = Tools(self.house.db, self.house.clock, FairDice(), transport, Failpoints())
            way = Way(lambda: self.reasons.pop(0) if self.reasons else "", self.started.append)
            return await Dispatch(tools, memory, way).send_out(self.lease, self.taken)

    async def stages(self) -> tuple[OutboxState, int, list[str]]:
        found = await self.house.row(self.row)
        return found.state, found.attempts, [attempt.stage for attempt in found.history]


@pytest.fixture
async def quay(house: House) -> Quay:
    """A row that was just claimed."""
    [row] = await house.says(call("a"))
    lease, taken = await claim_as_another(house)
    return Quay(house, lease, taken, row)


@pytest.fixture
def memory(house: House) -> BotMemory:
    """An owner's memory without any wait."""
    return BotMemory(Pace(FAST, "chat", 8), house.clock)


async def test_a_row_that_may_go_is_stamped_and_started(quay: Quay, memory: BotMemory) -> None:
    assert await quay.send_out(memory) == 0
    assert [ready.taken for ready in quay.started] == quay.taken
    assert await quay.stages() == (OutboxState.CLAIMED, 0, ["stamped"])


async def test_a_wait_ordered_since_the_claim_keeps_the_row(quay: Quay, memory: BotMemory) -> None:
    memory.flooded(Wait(7_000, FloodHint.CHAT, WaitCause.FLOOD), "c:7")
    assert await quay.send_out(memory) == 1
    assert not quay.started
    assert await quay.stages() == (OutboxState.QUEUED, 0, ["handed_back"])
    assert (await quay.house.row(quay.row)).due_ms == quay.house.clock.now_ms() + 7_000


@pytest.mark.parametrize("reasons", [["stopping"], ["", "outage"]])
async def test_a_reason_that_comes_up_before_or_after_the_stamp_keeps_it(
    quay: Quay, memory: BotMemory, reasons: list[str]
) -> None:
    quay.reasons = reasons
    assert await quay.send_out(memory) == 1
    assert not quay.started
    assert await quay.stages() == (OutboxState.QUEUED, 0, ["handed_back"])


async def test_nothing_leaves_once_another_sender_owns_the_bot(
    quay: Quay, memory: BotMemory
) -> None:
    await quay.house.db.write(lambda tx: own(tx, "a third"))
    with pytest.raises(LeaseLost):
        await quay.send_out(memory)
    assert not quay.started
    assert await quay.stages() == (OutboxState.QUEUED, 0, ["handed_back"])
