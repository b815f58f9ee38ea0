"""Between claim and call: the gates looked at once more, and what may not go handed back."""

from dataclasses import dataclass, field, replace

import pytest

from sender.claiming import Taken
from sender.contracts import BOT_API
from sender.delivery import Channel, Tools
from sender.dispatch import Dispatch, Ready, Way
from sender.memory import BotMemory, Pace
from sender.policy import Wait, WaitCause
from sender.transport import Address, TransportOptions, open_transport
from sender.verdict import FloodHint
from storage import cancelling, pauses
from storage.blobs import Blobs
from storage.errors import LeaseLost
from storage.failpoint import Failpoints
from storage.leases import Lease
from storage.lifecycle import OutboxId, OutboxState
from storage.outgoing import TELEGRAM
from tests.integration.sender.house import BOT, TOKEN, FairDice, House
from tests.integration.sender.test_ownership import FAST, claim_as_another, own
from tests.integration.storage.calls import call

NOWHERE = Channel(BOT_API, Address("http://nowhere.invalid", TOKEN))


@dataclass
class Quay:
    """A claimed row, and what becomes of it."""

    house: House
    lease: Lease
    taken: list[Taken]
    row: OutboxId
    started: list[Ready] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    channels: dict[str, Channel] = field(default_factory=lambda: {TELEGRAM: NOWHERE})

    async def send_out(self, memory: BotMemory) -> int:
        options = TransportOptions(read_timeout_s=30, connections_max=1)
        async with open_transport(options, self.house.clock) as transport:
            blobs = Blobs(self.house.folder / "blobs")
            tools = Tools(
                self.house.db, self.house.clock, FairDice(), transport, Failpoints(), blobs
            )
            way = Way(
                lambda _: self.reasons.pop(0) if self.reasons else "",
                self.started.append,
                self.channels,
            )
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
    wait = Wait(7_000, FloodHint.CHAT, WaitCause.FLOOD)
    memory.flooded(wait, quay.taken[0].paced, "sendMessage")
    assert await quay.send_out(memory) == 1
    assert not quay.started
    assert await quay.stages() == (OutboxState.QUEUED, 0, ["handed_back"])
    assert (await quay.house.row(quay.row)).due_ms == quay.house.clock.now_ms() + 7_000


async def test_a_wait_that_was_only_inferred_since_the_claim_puts_off_no_lane(quay: Quay) -> None:
    """It may be lifted long before it ends."""
    memory = BotMemory(Pace(FAST, "adaptive", 8), quay.house.clock)
    wait = Wait(600_000, FloodHint.CHAT, WaitCause.FLOOD)
    for chat in (1, 2):
        elsewhere = replace(quay.taken[0].paced, lane=f"c:{chat}", chat_id=chat)
        memory.flooded(wait, elsewhere, "sendMessage")
    assert await quay.send_out(memory) == 1
    assert not quay.started
    assert (await quay.house.row(quay.row)).due_ms == quay.house.clock.now_ms()


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


async def test_a_row_of_a_channel_that_is_not_configured_is_buried(
    quay: Quay, memory: BotMemory
) -> None:
    quay.channels.clear()
    assert await quay.send_out(memory) == 1
    assert not quay.started
    row = await quay.house.row(quay.row)
    assert (row.state, row.reason) == (OutboxState.DEAD, "the channel telegram is not configured")


async def test_a_row_that_was_cancelled_since_its_claim_never_leaves(
    quay: Quay, memory: BotMemory
) -> None:
    house = quay.house
    [answer] = await house.db.write(
        lambda tx: cancelling.by_ids(tx, BOT, [quay.row], reason="asked")
    )
    assert answer.told is cancelling.Told.CANCELLED
    assert await quay.send_out(memory) == 1
    assert not quay.started
    assert await quay.stages() == (OutboxState.CANCELLED, 0, ["handed_back"])


@pytest.mark.parametrize(
    ("scope", "state"),
    [
        (pauses.BOT_SCOPE, OutboxState.QUEUED),
        ("c:7", OutboxState.QUEUED),
        (pauses.BULK_SCOPE, OutboxState.CLAIMED),
    ],
)
async def test_a_pause_since_the_claim_keeps_what_it_names(
    quay: Quay, memory: BotMemory, scope: str, state: OutboxState
) -> None:
    await quay.house.db.write(
        lambda tx: pauses.pause(tx, BOT, scope, reason="r", by_whom="ada", until_ms=None)
    )
    await quay.send_out(memory)
    assert (await quay.stages())[0] is state
    assert bool(quay.started) is (state is OutboxState.CLAIMED)
