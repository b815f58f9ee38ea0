"""Cancel, answered, pause and resume: done at once, told exactly, and misuse is answered kindly."""

import pytest

from storage import claims, outbox, pauses, reports
from storage.database import Tx
from storage.doorbell import Doorbell
from storage.lifecycle import OutboxId, OutboxState, Priority
from storage.outgoing import Outgoing, chat_lane
from storage.pauses import BOT_SCOPE, BULK_SCOPE
from tests.integration.cli.conftest import Typed
from tests.integration.cli.site import BOT, Rows, Site


def _leave(site: Site, key: str, chat_id: int = 5, lane: str | None = None) -> OutboxId:
    row = Outgoing(
        method="sendMessage",
        params={"chat_id": str(chat_id), "text": "x"},
        lane=lane or chat_lane(chat_id),
        key=key,
        chat_id=chat_id,
    )
    return site.write(lambda tx: outbox.enqueue(tx, BOT, row).id)


def _claim(site: Site, row: OutboxId, *, is_stamped: bool = True) -> None:
    def claim(tx: Tx) -> None:
        heads = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9)
        [taken] = claims.claim(tx, [head for head in heads if head.id == row], 1)
        if is_stamped:
            claims.stamp(tx, [taken])

    site.write(claim)


def _state(site: Site, row: OutboxId) -> tuple[OutboxState, str | None]:
    found = site.write(lambda tx: reports.show(tx, row))
    assert found is not None
    return found.state, found.reason


def test_a_call_is_cancelled_by_its_number_with_a_reason(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    printed = ferryman(f"cancel c{rows.queued} --bot main --reason withdrawn")
    assert (printed.code, printed.out) == (0, f"c{rows.queued} is cancelled\n")
    assert _state(site, rows.queued) == (OutboxState.CANCELLED, "withdrawn")


def test_every_call_named_is_answered_for(ferryman: Typed, rows: Rows, site: Site) -> None:
    under_way = _leave(site, "a")
    _claim(site, under_way)
    names = f"c{rows.queued} c{under_way} c{rows.uncertain} c{rows.sent} c4711"
    printed = ferryman(f"cancel {names}")
    assert printed.code == 1
    assert printed.out == f"c{rows.queued} is cancelled\n"
    assert printed.err.splitlines() == [
        f"c{under_way} is under way: too late; if it fails, it is not tried again",
        f"c{rows.uncertain} waits for a decision already: ferryman review resolve",
        f"c{rows.sent} has ended already",
        "this bot has no call c4711",
    ]


def test_a_program_gets_the_same_answer(ferryman: Typed, rows: Rows, site: Site) -> None:
    printed = ferryman(f"cancel c{rows.queued} c{rows.sent} --json")
    assert printed.code == 1
    assert printed.document() == {
        "cancelled": [rows.queued],
        "too_late": [],
        "held": [],
        "ended": [rows.sent],
        "unknown": [],
    }


def test_a_call_in_hand_that_has_not_left_is_cancelled(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    row = _leave(site, "a")
    _claim(site, row, is_stamped=False)
    assert ferryman(f"cancel c{row}").out == f"c{row} is cancelled\n"


def test_what_one_cause_has_left_is_cancelled(ferryman: Typed, rows: Rows, site: Site) -> None:
    row = _leave(site, "order-12")
    assert ferryman("cancel --key order-12").out == f"c{row} is cancelled\n"
    assert ferryman("cancel --key order-13").err == "nothing has that key\n"


def test_a_producers_key_names_what_the_producer_has_left(ferryman: Typed, rows: Rows) -> None:
    ferryman("send --bot main --chat 5 --text x --key backup-9")
    [found] = [row for row in ferryman("queue --json").document()["rows"] if row["chat_id"] == 5]
    dry = ferryman("cancel --key backup-9 --dry-run --json").document()
    assert dry == {"waiting": 1, "in_hand": 0}
    assert ferryman("cancel --key backup-9").out == f"c{found['id']} is cancelled\n"


def test_a_dry_run_counts_and_changes_nothing(ferryman: Typed, rows: Rows, site: Site) -> None:
    row, other = _leave(site, "a"), _leave(site, "b")
    _claim(site, row)
    told = ferryman("cancel --chat 5 --dry-run").out.splitlines()
    assert told[0] == "1 call would be cancelled"
    assert told[1].startswith("1 call in a sender's hand")
    assert ferryman("cancel --chat 5 --dry-run --json").document() == {"waiting": 1, "in_hand": 1}
    named = ferryman(f"cancel c{row} c{other} c{rows.sent} --dry-run --json").document()
    assert named == {"waiting": 1, "in_hand": 1}
    assert _state(site, other)[0] is OutboxState.QUEUED


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("--chat 5", 2),
        ("--chat 5 --business biz", 1),
        ("--class bulk", 1),
        ("--method sendMessage", 4),
        ("--method sendPhoto", 0),
        ("--older-than 1d", 0),
        ("--older-than 0s", 4),
        ("--lane-prefix b:", 1),
        ("--generation 9", 0),
        ("--all", 4),
    ],
)
def test_what_is_described_is_cancelled(
    ferryman: Typed, rows: Rows, site: Site, words: str, count: int
) -> None:
    for key in ("a", "b"):
        _leave(site, key)
    _leave(site, "c", lane=chat_lane(5, "biz"))
    assert ferryman(f"cancel {words} --dry-run --json").document()["waiting"] == count
    printed = ferryman(f"cancel {words}")
    calls = "1 call" if count == 1 else f"{count} calls"
    assert (printed.code, printed.out) == (0, f"{calls} cancelled\n")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "c1 --key k",
        "c1 --chat 5",
        "--key k --all",
        "--chat five",
        "--older-than soon",
        "--class slow",
        "--chat 5 --lane-prefix c:",
        "c1 --bot mian",
    ],
)
def test_what_is_not_clear_is_misuse_and_cancels_nothing(
    ferryman: Typed, rows: Rows, site: Site, words: str
) -> None:
    assert ferryman(f"cancel {words}").code == 2
    assert _state(site, rows.queued)[0] is OutboxState.QUEUED


def test_an_answer_of_a_person_ends_what_waits_in_the_chat(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    under_way, waits = _leave(site, "a"), _leave(site, "b")
    other = _leave(site, "c", lane=chat_lane(5, "biz"))
    _claim(site, under_way)
    printed = ferryman("answered 5 --bot main")
    assert printed.out.splitlines() == [
        "1 call cancelled",
        f"1 call under way: too late for c{under_way}",
    ]
    assert _state(site, waits) == (OutboxState.CANCELLED, "a person has answered")
    document = ferryman("answered 5 --business biz --json").document()
    assert document == {"cancelled": [other], "too_late": []}


def test_a_pause_is_shown_with_its_reason_until_it_is_resumed(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    printed = ferryman("pause --bot main --bulk --for 2h --reason loud")
    assert printed.code == 0
    assert printed.out.startswith("bulk of main is paused until ")
    [pause] = site.write(lambda tx: pauses.of_bot(tx, BOT))
    assert (pause.scope, pause.reason) == (BULK_SCOPE, "loud")
    status = ferryman("status").out
    assert "PAUSED" in status
    assert "loud" in status
    assert ferryman("status --json").document()["bots"][0]["pauses"][0]["reason"] == "loud"
    assert "paused: loud" in ferryman("queue").out
    assert ferryman("resume --bulk").out == "bulk of main goes on\n"
    assert "PAUSED" not in ferryman("status").out


@pytest.mark.parametrize(
    ("words", "scope", "told"),
    [
        ("", BOT_SCOPE, "everything of main"),
        ("--chat 7", "c:7", "chat 7 of main"),
        ("--chat 7 --business biz", "b:biz:7", "chat 7 of main"),
    ],
)
def test_a_pause_without_an_end_lasts_until_it_is_resumed(
    ferryman: Typed, rows: Rows, site: Site, words: str, scope: str, told: str
) -> None:
    printed = ferryman(f"pause {words} --reason r --json")
    assert printed.document() == {
        "bot": "main",
        "scope": scope,
        "until_ms": None,
        "reason": "r",
    }
    assert ferryman(f"resume {words}").out == f"{told} goes on\n"
    again = ferryman(f"resume {words}")
    assert (again.code, again.out) == (1, f"{told} was not paused\n")


@pytest.mark.parametrize(
    "line", ["pause --bulk --chat 7 --reason r", "pause --bulk", "pause --for long --reason r"]
)
def test_a_pause_that_is_not_clear_is_misuse(ferryman: Typed, rows: Rows, line: str) -> None:
    assert ferryman(line).code == 2


@pytest.mark.parametrize(
    "line", ["cancel c{queued}", "answered 5", "pause --bulk --reason r", "resume --bulk"]
)
def test_the_sender_is_rung(line: str, ferryman: Typed, rows: Rows, site: Site) -> None:
    bell = Doorbell(site.state, "sender")
    try:
        ferryman(line.format(queued=rows.queued))
        assert bell._socket.recv(1) == b"!"
    finally:
        bell.close()
