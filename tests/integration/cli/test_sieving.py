"""The dead are chosen by what they are: listed so, counted first, and revived together."""

import pytest

from storage import inbox, outbox, review
from storage.database import Tx
from storage.inbox import Received
from storage.lifecycle import InboxState, OutboxState
from storage.outgoing import Outgoing, chat_lane
from storage.sieve import ALL
from tests.integration.cli.conftest import Typed
from tests.integration.cli.site import BOT, Rows, Site

MANY = 450


def refs(document: dict[str, list[dict[str, str]]]) -> list[str]:
    return [row["ref"] for kind in ("updates", "calls") for row in document[kind]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--kind update", ["quarantined", "dead_update"]),
        ("--kind call", ["dead"]),
        ("--kind message", ["dead_update"]),
        ("--kind sendMessage", ["dead"]),
        ("--reason valueerror", ["dead_update"]),
        ("--reason 100%", []),
        ("--bot main --since 1h", ["quarantined", "dead_update", "dead"]),
        ("--bot retired", []),
        ("--before 1h", []),
    ],
)
def test_the_dead_are_listed_by_what_they_are(
    words: str, expected: list[str], ferryman: Typed, rows: Rows
) -> None:
    names = {"quarantined": "u", "dead_update": "u", "dead": "c"}
    wanted = [f"{names[name]}{getattr(rows, name)}" for name in expected]
    assert refs(ferryman(f"dead list {words} --json").document()) == wanted


def test_a_dry_run_counts_and_changes_nothing(ferryman: Typed, rows: Rows, site: Site) -> None:
    printed = ferryman("dead requeue --all --dry-run")
    assert printed.out == "1 update and 1 call would be requeued; nothing was changed\n"
    assert site.write(lambda tx: review.dead_among(tx, ALL, after_id=0, limit=9)) == [rows.dead]


def test_what_was_chosen_is_revived_and_nothing_else(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    assert ferryman("dead requeue --reason valueerror").out == "1 update and 0 calls requeued\n"
    update = site.write(lambda tx: inbox.show(tx, rows.dead_update))
    assert update is not None
    assert update.state is InboxState.RECEIVED
    assert site.write(lambda tx: review.dead_among(tx, ALL, after_id=0, limit=9)) == [rows.dead]


def test_thousands_are_revived_in_short_transactions(
    ferryman: Typed, rows: Rows, site: Site
) -> None:
    def bury(tx: Tx) -> None:
        for number in range(MANY):
            update = Received(BOT, 5_000 + number, "message", "c:7", "u:7", b"{}")
            receipt = inbox.receive(tx, update)
            inbox.claim(tx, [receipt.id], 1)
            inbox.bury(tx, receipt.id, 1, reason="KeyError", trace=None)
            row = Outgoing("sendMessage", {"chat_id": "7"}, chat_lane(7), f"many:{number}", 7)
            left = outbox.enqueue(tx, BOT, row)
            ended = {"id": left.id, "state": OutboxState.DEAD, "reason": "KeyError", "now_ms": 1}
            tx.run("ending.end_queued", ended)

    site.write(bury)
    printed = ferryman("dead requeue --reason KEYERROR")
    assert printed.out == f"{MANY} updates and {MANY} calls requeued\n"
    assert ferryman("dead requeue --reason KEYERROR").out == "0 updates and 0 calls requeued\n"


@pytest.mark.parametrize(
    "words", ["", "u1 --all", "u1 --kind message", "--all --kind message", "u1 --dry-run"]
)
def test_what_is_meant_must_be_plain(words: str, ferryman: Typed, rows: Rows) -> None:
    printed = ferryman(f"dead requeue {words}")
    assert printed.code == 2
    assert "expected" in printed.err or "--dry-run" in printed.err
