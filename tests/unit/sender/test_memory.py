"""What the owner of a bot remembers, and takes up from the owner before."""

from dataclasses import replace

from sender.claiming import STRAY_MS, Inherited
from sender.lessons import Lessons
from sender.memory import ANSWER_SLOTS, BotMemory, Pace
from sender.pacing import PacedCall, Rates
from sender.policy import Wait, WaitCause
from sender.verdict import FloodHint
from storage.claims import RecentCall
from storage.clock import deadline_in
from storage.cooldowns import Cooldown
from storage.leases import Lease
from storage.lifecycle import BotName, Priority
from storage.methods import CallKind
from tests.simulator.clock import VirtualClock

RATES = Rates(1.0, 1, 20, 30, 25)
SEND = PacedCall("c:7", 7, CallKind.SEND, Priority.INTERACTIVE)
OTHER = PacedCall("c:8", 8, CallKind.SEND, Priority.INTERACTIVE)
ANSWER = PacedCall("q:81", None, CallKind.ANSWER, Priority.INTERACTIVE)
BULK = PacedCall("c:9", 9, CallKind.SEND, Priority.BULK)
PAID = PacedCall("c:10", 10, CallKind.SEND, Priority.PAID)
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
    return Inherited(LEASE, cooldowns, recent, rescued=0, uncertain=0, as_of_ms=clock.now_ms())


def recent(ended_at_ms: int | None) -> RecentCall:
    return RecentCall("c:7", 7, "sendMessage", 1, Priority.INTERACTIVE, 0, ended_at_ms)


def flooded(memory: BotMemory, wait: Wait, call: PacedCall = SEND) -> Lessons:
    return memory.flooded(wait, call, "sendMessage")


def test_a_wait_holds_from_the_moment_it_was_ordered() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    [chat, bot] = flooded(memory, flood(60_000)).waits
    assert (chat.scope, chat.deadline, chat.inferred) == ("c:7", deadline_in(60_000, clock), False)
    assert (bot.scope, bot.deadline) == ("bot:inferred", deadline_in(5_000, clock))
    assert bot.inferred
    assert memory.cooling_ms(SEND) == 60_000
    assert memory.cooling_ms(OTHER) == 5_000
    assert memory.cooling_ms(ANSWER) == 0
    clock.advance_ms(5_000)
    assert memory.cooling_ms(OTHER) == 0
    assert memory.cooling_ms(SEND) == 55_000


def test_a_shorter_wait_does_not_shorten_a_longer_one() -> None:
    memory = memory_of(VirtualClock())
    flooded(memory, flood(60_000))
    flooded(memory, flood(1_000))
    assert memory.cooling_ms(SEND) == 60_000


def test_what_the_last_owner_left_is_taken_up() -> None:
    clock = VirtualClock()
    clock.advance_ms(100_000)
    memory = memory_of(clock)
    memory.inherit(inherited(clock, recent(clock.now_ms() - 400), cooling_ms=3_000))
    assert memory.cooling_ms(SEND) == 3_000
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() - 400 + 1_001
    assert flooded(memory, flood(2_000), OTHER).waits[1].reason == "floods of 2 chats"


def test_a_call_that_never_ended_counts_as_just_made() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    memory.inherit(inherited(clock, recent(None)))
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() + 1_001


def test_a_call_of_a_dead_sender_may_still_be_on_its_way() -> None:
    clock = VirtualClock()
    clock.advance_ms(100_000)
    memory = memory_of(clock)
    stray = replace(recent(clock.now_ms()), is_abandoned=True)
    memory.inherit(inherited(clock, stray))
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() + STRAY_MS + 1_001


def test_a_clock_set_forward_makes_no_call_older() -> None:
    clock = VirtualClock()
    clock.advance_ms(100_000)
    found = inherited(clock, recent(clock.now_ms() - 400))
    clock.step_wall_ms(3_600_000)
    memory = memory_of(clock)
    memory.inherit(found)
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() - 400 + 1_001


def test_a_clock_set_back_makes_no_call_lie_in_the_future() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    memory.inherit(inherited(clock, recent(clock.now_ms() + 3_600_000)))
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() + 1_001


def test_floods_without_a_wait_are_counted_until_something_gets_through() -> None:
    memory = memory_of(VirtualClock())
    for _ in range(2):
        flooded(memory, flood(5_000, WaitCause.BARE_FLOOD))
    assert memory.bare_floods("c:7") == 2
    memory.got_through(SEND)
    assert memory.bare_floods("c:7") == 0


def test_a_moved_chats_wait_follows_it() -> None:
    memory = memory_of(VirtualClock())
    flooded(memory, flood(60_000))
    memory.moved("c:7", -1007)
    moved = PacedCall("c:-1007", -1007, CallKind.SEND, Priority.INTERACTIVE)
    assert memory.cooling_ms(moved) == 60_000


def test_a_moved_chats_wait_shortens_none_that_its_new_id_has() -> None:
    memory = memory_of(VirtualClock())
    moved = PacedCall("c:-1007", -1007, CallKind.SEND, Priority.INTERACTIVE)
    flooded(memory, flood(600_000), moved)
    flooded(memory, flood(1_000))
    memory.moved("c:7", -1007)
    assert memory.certain_ms(moved) == 600_000


def test_a_look_offers_no_more_room_than_there_are_slots() -> None:
    memory = memory_of(VirtualClock())
    look = memory.look(BotName("main"), LEASE, in_flight=5, reload_cooldowns=False)
    assert (look.slots, look.answer_slots) == (3, 3 + ANSWER_SLOTS)
    full = memory.look(BotName("main"), LEASE, in_flight=9, reload_cooldowns=False)
    assert (full.slots, full.answer_slots) == (0, ANSWER_SLOTS - 1)
    assert full.has_room, "for an answer to a query"
    over = memory.look(BotName("main"), LEASE, in_flight=8 + ANSWER_SLOTS, reload_cooldowns=False)
    assert not over.has_room


def test_the_bot_opens_when_the_first_of_its_windows_does() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    assert memory.bot_opens_at(clock.boot_ms()) is None
    for chat in range(30):
        made = PacedCall(f"c:{chat}", chat, CallKind.SEND, Priority.INTERACTIVE)
        memory.gates.began(made)
        memory.gates.ended(made, clock.boot_ms())
    assert memory.bot_opens_at(clock.boot_ms()) == clock.boot_ms() + 1_001


def test_what_has_opened_since_the_last_look_is_told_as_nobody_has_looked() -> None:
    """A claim is a commit long; a window that opens meanwhile would else wait for the next tick."""
    clock = VirtualClock()
    memory = memory_of(clock)
    for chat in range(30):
        made = PacedCall(f"c:{chat}", chat, CallKind.SEND, Priority.INTERACTIVE)
        memory.gates.began(made)
        memory.gates.ended(made, clock.boot_ms())
    opens_ms = clock.boot_ms() + 1_001
    clock.advance_ms(1_000)
    looked_ms = clock.boot_ms()
    clock.advance_ms(5)
    assert memory.bot_opens_at(looked_ms) == opens_ms
    assert memory.bot_opens_at(clock.boot_ms()) is None, "a look made now finds it open"


def test_an_album_of_the_last_minute_counts_with_its_size_after_a_restart() -> None:
    clock = VirtualClock()
    clock.advance_ms(100_000)
    memory = memory_of(clock)
    album = RecentCall("c:7", 7, "sendMediaGroup", 5, Priority.INTERACTIVE, 0, clock.now_ms())
    memory.inherit(inherited(clock, album))
    assert memory.gates.chat_at(SEND, clock.boot_ms()) == clock.boot_ms() + 5_001


def canaries(memory: BotMemory) -> frozenset[str] | None:
    look = memory.look(BotName("main"), LEASE, in_flight=0, reload_cooldowns=False)
    return look.not_canaries


def inferring(clock: VirtualClock, wait_ms: int = 600_000) -> BotMemory:
    memory = memory_of(clock)
    flooded(memory, flood(wait_ms))
    flooded(memory, flood(wait_ms), OTHER)
    return memory


CANARY = PacedCall("c:9", 9, CallKind.SEND, Priority.INTERACTIVE, is_canary=True)


def test_a_canary_may_go_when_an_inferred_wait_has_stood_for_a_minute() -> None:
    clock = VirtualClock()
    memory = inferring(clock)
    clock.advance_ms(59_999)
    assert canaries(memory) is None
    assert memory.bot_opens_at(clock.boot_ms()) == clock.boot_ms() + 1
    clock.advance_ms(1)
    assert canaries(memory) == frozenset({"c:7", "c:8"})
    memory.began(CANARY)
    assert canaries(memory) is None, "one at a time"


def test_what_a_canary_shows_to_be_needless_is_lifted_and_what_was_said_stays() -> None:
    clock = VirtualClock()
    memory = inferring(clock)
    clock.advance_ms(60_000)
    memory.began(CANARY)
    memory.ended(CANARY)
    assert memory.got_through(CANARY).lifted == ("bot:inferred",)
    assert memory.cooling_ms(BULK) == 0
    assert memory.cooling_ms(SEND) == 540_000
    assert canaries(memory) is None


def test_what_was_lifted_does_not_come_back_before_that_is_written_down() -> None:
    clock = VirtualClock()
    memory = inferring(clock)
    kept = Cooldown("bot:inferred", deadline_in(600_000, clock), clock.now_ms(), "", inferred=True)
    clock.advance_ms(60_000)
    memory.began(CANARY)
    memory.ended(CANARY)
    memory.got_through(CANARY)
    memory.learn([kept])
    assert memory.cooling_ms(BULK) == 0
    clock.advance_ms(1)
    breath = Cooldown("bot:inferred", deadline_in(5_000, clock), clock.now_ms(), "", inferred=True)
    memory.learn([breath])
    assert memory.cooling_ms(BULK) == 5_000


def test_a_canary_that_meets_a_flood_lengthens_the_wait_and_no_other_goes() -> None:
    clock = VirtualClock()
    memory = inferring(clock, 100_000)
    clock.advance_ms(60_000)
    memory.began(CANARY)
    memory.ended(CANARY)
    flooded(memory, flood(90_000), CANARY)
    assert memory.cooling_ms(BULK) == 90_000
    clock.advance_ms(89_999)
    assert canaries(memory) is None
    assert memory.cooling_ms(BULK) == 1


def test_a_canarys_short_flood_does_not_shorten_the_wait() -> None:
    clock = VirtualClock()
    memory = inferring(clock)
    clock.advance_ms(60_000)
    memory.began(CANARY)
    memory.ended(CANARY)
    flooded(memory, flood(1_000), CANARY)
    assert memory.cooling_ms(PacedCall("c:11", 11, CallKind.SEND, Priority.BULK)) == 540_000


def test_a_breath_is_never_put_to_the_test() -> None:
    clock = VirtualClock()
    clock.advance_ms(10_000_000)
    memory = memory_of(clock)
    flooded(memory, flood(60_000))
    clock.advance_ms(1_000)
    assert memory.cooling_ms(OTHER) == 4_000
    assert canaries(memory) is None


def test_a_new_owner_lets_an_inferred_wait_stand_for_a_minute_anew() -> None:
    clock = VirtualClock()
    clock.advance_ms(500_000)
    wait = Cooldown(
        "bot:inferred", deadline_in(600_000, clock), 0, "floods of 2 chats", inferred=True
    )
    found = Inherited(LEASE, [wait], (), 0, 0, clock.now_ms(), flooded=frozenset({"c:7", "c:8"}))
    memory = memory_of(clock)
    memory.inherit(found)
    assert canaries(memory) is None
    clock.advance_ms(60_000)
    assert canaries(memory) == frozenset({"c:7", "c:8"})


def test_a_flood_of_a_bulk_call_slows_bulk_down_and_a_quiet_minute_speeds_it_up() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    rate = flooded(memory, flood(1_000), BULK).rate
    assert rate is not None
    assert (rate.bulk_per_second, rate.is_lowered, rate.has_risen) == (20, True, False)
    assert memory.gates.rates.bulk_per_second == 20
    assert memory.got_through(BULK).rate is None
    clock.advance_ms(60_000)
    assert memory.got_through(SEND).rate is None, "bulk alone shows that bulk may be faster"
    risen = memory.got_through(BULK).rate
    assert risen is not None
    assert (risen.bulk_per_second, risen.has_risen) == (21, True)


def test_a_flood_of_one_reply_does_not_slow_bulk_down_but_one_of_the_whole_bot_does() -> None:
    memory = memory_of(VirtualClock())
    assert flooded(memory, flood(1_000)).rate is None
    rate = flooded(memory, flood(1_000), OTHER).rate
    assert rate is not None
    assert rate.reason == "a flood of the whole bot"


def test_a_learned_rate_is_taken_up_by_the_next_owner() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    memory.inherit(Inherited(LEASE, (), (), 0, 0, clock.now_ms(), learned=12.8))
    assert memory.gates.rates.bulk_per_second == 12.8


def test_other_limits_hold_at_once_and_what_was_learned_stays() -> None:
    clock = VirtualClock()
    memory = memory_of(clock)
    flooded(memory, flood(1_000), BULK)
    memory.retune(Pace(Rates(1.0, 1, 20, 40, 30), "bot", 8, 5))
    rates = memory.gates.rates
    assert (rates.bot_per_second, rates.bulk_per_second) == (40, 20)
    assert flooded(memory, flood(9_000)).waits[1].scope == "bot"
    look = memory.look(BotName("main"), LEASE, in_flight=0, reload_cooldowns=False)
    assert look.budget_tenths == 50


def test_a_flood_is_recorded_with_what_each_policy_makes_of_it() -> None:
    record = flooded(memory_of(VirtualClock()), flood(60_000), BULK).flood
    assert record is not None
    assert (record.lane, record.method, record.priority) == ("c:9", "sendMessage", "bulk")
    assert (record.adaptive_ms, record.bot_ms, record.chat_ms) == (5_000, 60_000, 0)


def test_a_pause_of_our_own_is_no_flood() -> None:
    lessons = flooded(memory_of(VirtualClock()), flood(1_000, WaitCause.THROTTLED), BULK)
    assert (lessons.flood, lessons.rate) == (None, None)


def test_paid_refusals_of_a_second_throw_doubt_on_the_balance() -> None:
    memory = memory_of(VirtualClock())
    told = [flooded(memory, flood(1_000), PAID).doubts_balance for _ in range(3)]
    assert told == [False, False, True]


def test_that_the_budget_is_spent_is_news_once() -> None:
    memory = memory_of(VirtualClock())
    assert memory.is_news("paid budget is spent")
    assert not memory.is_news("paid budget is spent")
    assert not memory.is_news("")
    memory.got_through(PAID)
    assert memory.is_news("paid budget is spent")
