"""What the owner of a bot remembers, and takes up from the owner before."""

from sender.claiming import Inherited
from sender.memory import BotMemory, Pace
from sender.pacing import PacedCall, Rates
from sender.policy import Wait, WaitCause
from sender.verdict import FloodHint
from storage.clock import deadline_in
from storage.cooldowns import Cooldown
from storage.leases import Lease
from storage.lifecycle import BotName, Priority
from storage.outbox import RecentCall
from storage.outgoing import CallKind
from tests.simulator.clock import VirtualClock

RATES = Rates(1.0, 1, 20, 30, 25)
SEND = PacedCall("c:7", 7, CallKind.SEND, Priority.INTERACTIVE)
OTHER = PacedCall("c:8", 8, CallKind.SEND, Priority.INTERACTIVE)
LEASE = Lease("sender:main", 2)


def memory_of(clock: VirtualClock) -> BotMemory:
    return BotMemory(Pace(RATES, "adaptive", 8), clock)


def flood(wait_ms: int, cause: WaitCause = WaitCause.FLOOD) -> Wait:
    return Wait(wait_ms, FloodHint.CHAT, cause)


def inherited(clock: VirtualClock, *recent: RecentCall, cooling_ms: int = 0) -> Inherited:
    cooldowns = []
    if cooling_ms:
        deadline = deadline_in(cooling_ms, clock)
        cooldowns.append(Cooldown("c:7", deadline, clock.now_ms(), "a flood"))
    return Inherited(LEASE, cooldowns, recent, rescued=0, uncertain=0)


def recent(ended_at_ms: int | None) -> RecentCall:
    return RecentCall("c:7", 7, "sendMessage", 1, Priority.INTERACTIVE, 0, ended_at_ms)


def test_a_wait_holds_from_the_moment_it_was_ordered() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    [chat, bot] = memory.flooded(flood(60_000), "c:7")
    assert (chat.scope, chat.deadline) == ("c:7", deadline_in(60_000, clock))
    assert (bot.scope, bot.deadline) == ("bot", deadline_in(5_000, clock))
    assert memory.cooling_ms(SEND) == 60_000
    assert memory.cooling_ms(OTHER) == 5_000
    clock.advance_ms(5_000)
    assert memory.cooling_ms(OTHER) == 0
    assert memory.cooling_ms(SEND) == 55_000


def test_a_shorter_wait_does_not_shorten_a_longer_one() -> None:
    memory = memory_of(VirtualClock())
    memory.flooded(flood(60_000), "c:7")
    memory.flooded(flood(1_000), "c:7")
    assert memory.cooling_ms(SEND) == 60_000


def test_what_the_last_owner_left_is_taken_up() -> None:
    clock = VirtualClock()
    clock.advance_ms(100_000)
    memory = memory_of(clock)
    memory.inherit(inherited(clock, recent(clock.now_ms() - 400), cooling_ms=3_000))
    assert memory.cooling_ms(SEND) == 3_000
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() - 400 + 1_001
    assert memory.flooded(flood(2_000), "c:8")[1].reason == "floods of two chats"


def test_a_call_that_never_ended_counts_as_just_made() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    memory.inherit(inherited(clock, recent(None)))
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() + 1_001


def test_a_clock_set_back_makes_no_call_lie_in_the_future() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    memory.inherit(inherited(clock, recent(clock.now_ms() + 3_600_000)))
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() + 1_001


def test_floods_without_a_wait_are_counted_until_something_gets_through() -> None:
    memory = memory_of(VirtualClock())
    for _ in range(2):
        memory.flooded(flood(5_000, WaitCause.BARE_FLOOD), "c:7")
    assert memory.bare_floods("c:7") == 2
    memory.got_through("c:7")
    assert memory.bare_floods("c:7") == 0


def test_a_moved_chats_wait_follows_it() -> None:
    memory = memory_of(VirtualClock())
    memory.flooded(flood(60_000), "c:7")
    memory.moved("c:7", -1007)
    moved = PacedCall("c:-1007", -1007, CallKind.SEND, Priority.INTERACTIVE)
    assert memory.cooling_ms(moved) == 60_000


def test_a_look_offers_no_more_room_than_there_are_slots() -> None:
    memory = memory_of(VirtualClock())
    look = memory.look(BotName("main"), LEASE, in_flight=5, reload_cooldowns=False)
    assert look.room == {Priority.INTERACTIVE: 3, Priority.BULK: 3, Priority.PAID: 3}


def test_the_bot_opens_when_the_first_of_its_windows_does() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    assert memory.bot_opens_at() is None
    for chat in range(30):
        made = PacedCall(f"c:{chat}", chat, CallKind.SEND, Priority.INTERACTIVE)
        memory.gates.began(made)
        memory.gates.ended(made, clock.boot_ms())
    assert memory.bot_opens_at() == clock.boot_ms() + 1_001
