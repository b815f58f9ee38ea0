"""The evidence about held calls, beside what each decision would do."""

import json

import pytest

from storage import claims, lanes, outbox, reports
from storage.claims import AttemptEnd
from storage.database import Tx
from storage.inbox import Received, receive
from storage.lifecycle import AttemptStage, OutboxId, OutboxState, Priority
from storage.outgoing import Outgoing, chat_lane
from tests.integration.cli.conftest import Typed
from tests.integration.cli.site import BOT, WORDS, Rows, Site


def _call(tx: Tx, key: str, **wishes: object) -> OutboxId:
    row = Outgoing(
        method="sendMediaGroup",
        params={"chat_id": "5", "media": WORDS},
        lane=chat_lane(5),
        key=key,
        chat_id=5,
        **wishes,  # type: ignore[arg-type]  # fields of Outgoing
    )
    return outbox.enqueue(tx, BOT, row).id


def _claimed(tx: Tx, row: OutboxId, at_ms: int) -> claims.Claim:
    heads = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9)
    [claim] = claims.claim(tx, [head for head in heads if head.id == row], 1)
    claims.stamp(Tx(tx._connection, at_ms), [claim])
    return claim


def _sent(tx: Tx, key: str, at_ms: int, message_id: int) -> OutboxId:
    claim = _claimed(tx, _call(tx, key), at_ms)
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=5, status=200)
    claims.close_attempts(tx, [(claim, end)])
    claims.mark_sent(tx, [claims.Accepted(claim, message_id)])
    return claim.item.id


@pytest.fixture
def album(rows: Rows, site: Site) -> OutboxId:
    """An album of which nobody knows what has arrived, between two messages."""

    def fill(tx: Tx) -> OutboxId:
        now_ms = tx.now_ms()
        _sent(tx, "before", now_ms - 90_000, 31)
        held = _call(tx, "album", items=3, placeholder=-5)
        claim = _claimed(tx, held, now_ms - 60_000)
        told = [
            {"number": 1, "state": "unknown", "reason": ""},
            {"number": 2, "state": "failed", "reason": f'no such file "{WORDS}"'},
        ]
        end = AttemptEnd(
            AttemptStage.ANSWERED,
            "partial",
            duration_ms=80,
            status=400,
            code=400,
            items_told=json.dumps(told),
            request_id="req-7",
        )
        claims.close_attempts(tx, [(claim, end)])
        claims.hold(tx, claim, OutboxState.UNCERTAIN, reason="some items may have arrived")
        _sent(tx, "after", now_ms - 30_000, 35)
        child = _call(tx, "child")
        lanes.step_out(tx, BOT, child, waits_for=held, reason="waits")
        receive(tx, Received(BOT, 99, "message", chat_lane(5), "u:5", b"{}"))
        return held

    return site.write(fill)


def test_a_held_call_is_shown_with_the_chat_around_it(ferryman: Typed, album: OutboxId) -> None:
    told = ferryman(f"review show c{album}").out
    for fact in (
        "said before   message 31",
        "said after    message 35",
        "spoken since  yes, ",
        "item 1        unknown\n",
        'item 2        failed: no such file "…"',
        "waiting       1 call",
        "is known there as req-7",
        "partial",
    ):
        assert fact in told


def test_what_each_decision_would_do_is_told(ferryman: Typed, album: OutboxId) -> None:
    told = ferryman(f"review show c{album}").out
    assert "1 waiting call will go on with --message-id, else be cancelled" in told
    assert "send it again, all 3 messages, behind later ones: twice if it did arrive" in told
    assert "give it up; 1 waiting call will be cancelled" in told
    assert max(map(len, told.splitlines())) <= 100


def test_a_program_gets_all_of_it(ferryman: Typed, album: OutboxId) -> None:
    document = ferryman(f"review show c{album} --json").document()
    [row], [known] = document["rows"], document["evidence"]
    assert row["id"] == known["id"] == album
    assert [each["message_id"] for each in known["before"]] == [31]
    assert [each["message_id"] for each in known["after"]] == [35]
    assert known["spoken_at_ms"] is not None
    assert (known["items"], known["waiting"]) == (3, 1)
    assert [item["state"] for item in known["attempts"][0]["items_told"]] == ["unknown", "failed"]


def test_a_quiet_chat_is_said_to_be_quiet(ferryman: Typed, rows: Rows) -> None:
    told = ferryman(f"review show c{rows.review}").out
    assert "spoken since  no\n" in told


def test_only_a_held_call_has_evidence_to_show(ferryman: Typed, rows: Rows) -> None:
    printed = ferryman(f"review show c{rows.sent}")
    assert (printed.code, printed.err) == (
        1,
        f"ferryman: c{rows.sent} is not held: ferryman show c{rows.sent}\n",
    )


def test_the_number_that_a_person_has_found_goes_with_the_decision(
    ferryman: Typed, album: OutboxId, site: Site
) -> None:
    assert ferryman(f"review resolve c{album} sent --message-id 33").code == 0
    found = site.write(lambda tx: reports.show(tx, album))
    assert found is not None
    assert (found.state, found.message_id) == (OutboxState.SENT, 33)


@pytest.mark.parametrize("words", ["drop --message-id 3", "sent --message-id x"])
def test_a_number_goes_with_one_call_that_was_sent(
    ferryman: Typed, album: OutboxId, words: str
) -> None:
    assert ferryman(f"review resolve c{album} {words}").code == 2
