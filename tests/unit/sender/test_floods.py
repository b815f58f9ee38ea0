"""How much of a bot a flood stops, by each of the published policies."""

from dataclasses import replace

import pytest

from sender.floods import (
    FloodBook,
    FloodScope,
    ScopedWait,
    cooling_until_ms,
    edits_scope,
    scopes_of,
)
from sender.pacing import PacedCall
from sender.policy import Wait, WaitCause
from sender.verdict import FloodHint
from storage.lifecycle import Priority
from storage.methods import CallKind

POLICIES: tuple[FloodScope, ...] = ("adaptive", "bot", "chat")


def to(lane: str, kind: CallKind = CallKind.SEND) -> PacedCall:
    return PacedCall(lane, 1, kind, Priority.INTERACTIVE)


ANSWER = to("q:81", CallKind.ANSWER)


def flood(wait_ms: int, hint: FloodHint = FloodHint.CHAT) -> Wait:
    return Wait(wait_ms, hint, WaitCause.FLOOD)


def waits(book: FloodBook, wait: Wait, lane: str, now_ms: int) -> dict[str, int]:
    return {each.scope: each.wait_ms for each in book.judge(wait, to(lane), now_ms).waits}


def book(policy: FloodScope) -> FloodBook:
    return FloodBook(policy)


def test_chat_stops_the_chat_alone() -> None:
    assert waits(book("chat"), flood(60_000), "c:1", 0) == {"c:1": 60_000}


def test_bot_stops_everything_for_the_whole_wait() -> None:
    assert waits(book("bot"), flood(60_000), "c:1", 0) == {"c:1": 60_000, "bot": 60_000}
    edit = flood(60_000, FloodHint.EDITS)
    assert waits(book("bot"), edit, "c:1", 0) == {"edits:c:1": 60_000, "bot": 60_000}


def test_adaptive_gives_the_bot_a_breath() -> None:
    long = waits(book("adaptive"), flood(60_000), "c:1", 0)
    assert long == {"c:1": 60_000, "bot:inferred": 5_000}
    short = waits(book("adaptive"), flood(2_000), "c:1", 0)
    assert short == {"c:1": 2_000, "bot:inferred": 2_000}


def test_adaptive_takes_a_second_chats_flood_for_the_whole_bots() -> None:
    adaptive = book("adaptive")
    assert not adaptive.judge(flood(60_000), to("c:1"), 0).is_bot_wide
    judged = adaptive.judge(flood(3_000), to("c:2"), 9_999)
    assert {each.scope: each.wait_ms for each in judged.waits} == {
        "c:2": 3_000,
        "bot:inferred": 50_001,
    }
    assert judged.is_bot_wide
    assert judged.involved == {"c:1", "c:2"}


def test_adaptive_forgets_a_flood_after_ten_seconds() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(60_000), to("c:1"), 0)
    assert waits(adaptive, flood(3_000), "c:2", 10_000)["bot:inferred"] == 3_000


@pytest.mark.parametrize(
    "waits_ms",
    [(1_000_000, 1_000_000, 1_000_000), (1_000_000, 980_000, 960_000)],
    ids=["the same wait", "the same end"],
)
def test_adaptive_takes_three_chats_that_wait_alike_for_the_whole_bot(
    waits_ms: tuple[int, int, int],
) -> None:
    """A bot with little to say meets its limit one chat at a time, and each prolongs it for all."""
    adaptive = book("adaptive")
    judged = [
        adaptive.judge(flood(wait_ms), to(f"c:{number}"), number * 20_000)
        for number, wait_ms in enumerate(waits_ms)
    ]
    assert [each.is_bot_wide for each in judged] == [False, False, True]
    assert judged[-1].involved == {"c:0", "c:1", "c:2"}
    assert judged[-1].adaptive_ms == waits_ms[-1]


def test_adaptive_leaves_chats_alone_that_wait_each_for_its_own_end() -> None:
    """Slow groups: many wait at once, and none for the same reason."""
    adaptive = book("adaptive")
    for number, wait_ms in enumerate((300_000, 250_000, 35_000, 120_000)):
        judged = adaptive.judge(flood(wait_ms), to(f"c:{number}"), number * 20_000)
        assert not judged.is_bot_wide


def test_adaptive_does_not_take_the_same_chat_twice_for_the_bot() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(60_000), to("c:1"), 0)
    assert waits(adaptive, flood(60_000), "c:1", 1_000)["bot:inferred"] == 5_000


def test_adaptive_gives_no_breath_for_an_edit() -> None:
    edit = flood(60_000, FloodHint.EDITS)
    assert waits(book("adaptive"), edit, "c:1", 0) == {"edits:c:1": 60_000}


def test_one_channels_floods_say_nothing_about_another() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(60_000), to("c:1"), 0)
    found = waits(adaptive, flood(3_000), "x:pager:2", 1_000)
    assert found == {"x:pager:2": 3_000, "bot@pager:inferred": 3_000}


def test_a_flood_met_before_a_restart_still_counts() -> None:
    adaptive = book("adaptive")
    adaptive.remember("c:1", at_ms=0, until_ms=60_000)
    assert waits(adaptive, flood(3_000), "c:2", 5_000)["bot:inferred"] == 55_000


def test_the_reason_says_what_was_inferred() -> None:
    [certain, inferred] = book("adaptive").judge(flood(9_000), to("c:1"), 0).waits
    assert certain == ScopedWait("c:1", 9_000, "flood of the chat")
    assert inferred == ScopedWait("bot:inferred", 5_000, "a breath after a flood", inferred=True)


def test_what_a_policy_orders_is_not_inferred() -> None:
    [_, whole] = book("bot").judge(flood(9_000), to("c:1"), 0).waits
    assert whole == ScopedWait("bot", 9_000, "every flood stops the bot")


@pytest.mark.parametrize("policy", POLICIES)
def test_what_every_policy_would_have_done_is_told_whichever_is_chosen(policy: FloodScope) -> None:
    chosen = book(policy)
    first = chosen.judge(flood(60_000), to("c:1"), 0)
    assert (first.chosen, first.chat_ms, first.adaptive_ms, first.bot_ms) == (
        policy,
        0,
        5_000,
        60_000,
    )
    second = chosen.judge(flood(3_000), to("c:2"), 1_000)
    assert (second.chat_ms, second.adaptive_ms, second.bot_ms) == (0, 59_000, 3_000)
    edit = chosen.judge(flood(7_000, FloodHint.EDITS), to("c:3"), 2_000)
    assert (edit.chat_ms, edit.adaptive_ms, edit.bot_ms) == (0, 0, 7_000)


def test_another_policy_may_be_followed_from_now_on() -> None:
    changed = book("chat")
    changed.judge(flood(60_000), to("c:1"), 0)
    changed.change("adaptive")
    assert waits(changed, flood(3_000), "c:2", 1_000)["bot:inferred"] == 59_000


def test_an_answers_flood_holds_the_answers_and_no_chat() -> None:
    [certain, breath] = book("adaptive").judge(flood(30_000), ANSWER, 0).waits
    assert (certain.scope, certain.wait_ms) == ("answers", 30_000)
    assert (breath.scope, breath.wait_ms) == ("bot:inferred", 5_000)


def test_floods_of_two_answers_are_no_floods_of_two_chats() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(30_000), ANSWER, 0)
    other = replace(ANSWER, lane="q:82")
    assert not adaptive.judge(flood(30_000), other, 1_000).is_bot_wide


def test_the_canarys_flood_is_one_of_the_whole_bot() -> None:
    canary = replace(to("c:9"), is_canary=True)
    judged = book("adaptive").judge(flood(40_000), canary, 0)
    assert [(each.scope, each.wait_ms) for each in judged.waits] == [
        ("c:9", 40_000),
        ("bot:inferred", 40_000),
    ]
    assert judged.is_bot_wide


def test_an_edit_keeps_the_waits_of_its_chat_and_of_its_kind() -> None:
    cooling = {"edits:c:1": 5, "c:1": 3}
    edit = to("c:1", CallKind.EDIT)
    assert scopes_of(edit) == ("bot", "bot:inferred", "c:1", edits_scope("c:1"))
    assert cooling_until_ms(cooling, edit) == 5
    assert cooling_until_ms(cooling, to("c:1")) == 3
    assert cooling_until_ms(cooling, to("c:2")) == 0


def test_an_answer_keeps_what_was_said_of_the_bot_and_nothing_that_was_inferred() -> None:
    assert cooling_until_ms({"bot:inferred": 9, "c:1": 8}, ANSWER) == 0
    assert cooling_until_ms({"bot": 9}, ANSWER) == 9
    assert cooling_until_ms({"answers": 7}, ANSWER) == 7
    assert cooling_until_ms({"answers": 7}, to("c:1")) == 0


def test_the_canary_keeps_every_wait_but_the_inferred_one() -> None:
    canary = replace(to("c:1"), is_canary=True)
    assert cooling_until_ms({"bot:inferred": 9}, canary) == 0
    assert cooling_until_ms({"bot:inferred": 9, "c:1": 3}, canary) == 3
    assert cooling_until_ms({"bot": 5}, canary) == 5
