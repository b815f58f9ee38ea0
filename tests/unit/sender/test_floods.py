"""How much of a bot a flood stops, by each of the published policies."""

from sender.floods import (
    FloodBook,
    FloodScope,
    ScopedWait,
    cooling_until_ms,
    edits_scope,
    scopes_of,
)
from sender.policy import Wait, WaitCause
from sender.verdict import FloodHint
from storage.outgoing import CallKind


def flood(wait_ms: int, hint: FloodHint = FloodHint.CHAT) -> Wait:
    return Wait(wait_ms, hint, WaitCause.FLOOD)


def waits(book: FloodBook, wait: Wait, lane: str, now_ms: int) -> dict[str, int]:
    return {each.scope: each.wait_ms for each in book.judge(wait, lane, now_ms)}


def book(policy: FloodScope) -> FloodBook:
    return FloodBook(policy)


def test_chat_stops_the_chat_alone() -> None:
    assert waits(book("chat"), flood(60_000), "c:1", 0) == {"c:1": 60_000}


def test_bot_stops_everything_for_the_whole_wait() -> None:
    assert waits(book("bot"), flood(60_000), "c:1", 0) == {"c:1": 60_000, "bot": 60_000}
    edit = flood(60_000, FloodHint.EDITS)
    assert waits(book("bot"), edit, "c:1", 0) == {"edits:c:1": 60_000, "bot": 60_000}


def test_adaptive_gives_the_bot_a_breath() -> None:
    assert waits(book("adaptive"), flood(60_000), "c:1", 0) == {"c:1": 60_000, "bot": 5_000}
    assert waits(book("adaptive"), flood(2_000), "c:1", 0) == {"c:1": 2_000, "bot": 2_000}


def test_adaptive_takes_a_second_chats_flood_for_the_whole_bots() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(60_000), "c:1", 0)
    assert waits(adaptive, flood(3_000), "c:2", 9_999) == {"c:2": 3_000, "bot": 50_001}


def test_adaptive_forgets_a_flood_after_ten_seconds() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(60_000), "c:1", 0)
    assert waits(adaptive, flood(3_000), "c:2", 10_000)["bot"] == 3_000


def test_adaptive_does_not_take_the_same_chat_twice_for_the_bot() -> None:
    adaptive = book("adaptive")
    adaptive.judge(flood(60_000), "c:1", 0)
    assert waits(adaptive, flood(60_000), "c:1", 1_000)["bot"] == 5_000


def test_adaptive_gives_no_breath_for_an_edit() -> None:
    edit = flood(60_000, FloodHint.EDITS)
    assert waits(book("adaptive"), edit, "c:1", 0) == {"edits:c:1": 60_000}


def test_a_flood_met_before_a_restart_still_counts() -> None:
    adaptive = book("adaptive")
    adaptive.remember("c:1", at_ms=0, until_ms=60_000)
    assert waits(adaptive, flood(3_000), "c:2", 5_000)["bot"] == 55_000


def test_the_reason_says_what_was_inferred() -> None:
    [certain, inferred] = book("adaptive").judge(flood(9_000), "c:1", 0)
    assert certain == ScopedWait("c:1", 9_000, "flood of the chat")
    assert inferred == ScopedWait("bot", 5_000, "a breath after a flood")


def test_an_edit_keeps_the_waits_of_its_chat_and_of_its_kind() -> None:
    cooling = {"edits:c:1": 5, "c:1": 3}
    assert scopes_of("c:1", CallKind.EDIT) == ("bot", "c:1", edits_scope("c:1"))
    assert cooling_until_ms(cooling, "c:1", CallKind.EDIT) == 5
    assert cooling_until_ms(cooling, "c:1", CallKind.SEND) == 3
    assert cooling_until_ms(cooling, "c:2", CallKind.SEND) == 0
