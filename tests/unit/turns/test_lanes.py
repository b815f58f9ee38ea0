"""Which updates may start: the oldest of each of their lanes, and nobody beside them."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from bot.turns.lanes import Lanes, lanes_of
from storage.inbox import PendingUpdate
from storage.lifecycle import InboxId


def waiting(
    number: int, chat: str | None = None, user: str | None = None, not_before_ms: int = 0
) -> PendingUpdate:
    return PendingUpdate(InboxId(number), chat, user, not_before_ms)


def filled(*updates: PendingUpdate) -> Lanes:
    lanes = Lanes()
    lanes.add(updates)
    return lanes


def start(lanes: Lanes, now_ms: int = 0, slots: int = 99) -> list[int]:
    return list(lanes.start(now_ms=now_ms, slots=slots))


def test_updates_of_one_chat_go_one_after_the_other() -> None:
    lanes = filled(waiting(1, "c:1", "u:1"), waiting(2, "c:1", "u:2"))
    assert start(lanes) == [1]
    assert start(lanes) == []
    lanes.finish(InboxId(1))
    assert start(lanes) == [2]


def test_updates_of_one_user_go_one_after_the_other_in_different_chats() -> None:
    lanes = filled(waiting(1, "c:1", "u:1"), waiting(2, "c:2", "u:1"))
    assert start(lanes) == [1]
    lanes.finish(InboxId(1))
    assert start(lanes) == [2]


def test_an_update_waits_for_an_older_one_that_waits_itself() -> None:
    """2 waits for 1's chat, so 3, of 2's user, waits too: else it would overtake 2."""
    lanes = filled(waiting(1, "c:1", "u:1"), waiting(2, "c:1", "u:2"), waiting(3, "c:3", "u:2"))
    assert start(lanes) == [1]
    lanes.finish(InboxId(1))
    assert start(lanes) == [2]
    lanes.finish(InboxId(2))
    assert start(lanes) == [3]


def test_different_chats_and_users_go_side_by_side_up_to_the_slots() -> None:
    lanes = filled(*(waiting(n, f"c:{n}", f"u:{n}") for n in range(1, 6)))
    assert start(lanes, slots=3) == [1, 2, 3]
    assert lanes.running == 3
    assert lanes.waiting == 2
    assert start(lanes, slots=9) == [4, 5]


def test_an_update_without_lanes_waits_for_nobody() -> None:
    lanes = filled(waiting(1, "c:1"), waiting(2), waiting(3))
    assert start(lanes) == [1, 2, 3]


def test_an_update_put_back_holds_its_lanes_until_its_time() -> None:
    """What came after it must not overtake it."""
    lanes = filled(waiting(1, "c:1"), waiting(2, "c:1"), waiting(3, "c:3"))
    assert start(lanes) == [1, 3]
    lanes.put_back(InboxId(1), not_before_ms=1000)
    assert start(lanes, now_ms=999) == []
    assert start(lanes, now_ms=1000) == [1]
    lanes.finish(InboxId(1))
    assert start(lanes, now_ms=1000) == [2]


def test_an_update_that_is_known_is_not_added_again() -> None:
    lanes = filled(waiting(1, "c:1"))
    assert start(lanes) == [1]
    assert lanes.add([waiting(1, "c:1"), waiting(2, "c:1")]) == 1
    assert start(lanes) == []


def test_a_business_chat_shares_its_lane_with_the_bots_own_chat_of_that_number() -> None:
    """Handlers remember both under the same number."""
    assert lanes_of(waiting(1, "b:conn:77", "u:1")) == lanes_of(waiting(2, "c:77", "u:1"))


UPDATES = st.lists(
    st.tuples(st.sampled_from([None, "c:1", "c:2", "c:3"]), st.sampled_from([None, "u:1", "u:2"])),
    max_size=12,
)


def may_start(pending: Iterable[PendingUpdate], running: Iterable[PendingUpdate]) -> list[InboxId]:
    """The rule as a sentence: no lane of it has one running or an older one waiting."""
    taken = {lane for update in running for lane in lanes_of(update)}
    chosen = []
    for update in pending:
        own = set(lanes_of(update))
        if not own & taken:
            chosen.append(update.id)
        taken |= own
    return chosen


@given(UPDATES, st.data())
def test_lanes_follow_the_rule_in_whatever_order_turns_end(
    content: list[tuple[str | None, str | None]], data: st.DataObject
) -> None:
    updates = {
        InboxId(number): waiting(number, chat, user)
        for number, (chat, user) in enumerate(content, start=1)
    }
    lanes = filled(*updates.values())
    running: set[InboxId] = set()
    left = dict(updates)
    while left:
        pending = [update for number, update in left.items() if number not in running]
        expected = may_start(pending, [updates[number] for number in running])
        assert start(lanes) == expected
        running |= set(expected)
        ended = data.draw(st.sampled_from(sorted(running)))
        lanes.finish(ended)
        running.discard(ended)
        del left[ended]
    assert len(lanes) == 0
