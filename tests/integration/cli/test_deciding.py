"""Commands that change something: what a person decides is done at once, and told."""

import pytest

from storage import inbox, reports
from storage.database import Tx
from storage.doorbell import Doorbell
from storage.lifecycle import InboxState, OutboxId, OutboxState
from storage.reports import RowReport
from tests.integration.cli.conftest import Typed
from tests.integration.cli.site import Rows, Site


def _call(site: Site, row: OutboxId) -> RowReport:
    def look(tx: Tx) -> RowReport:
        found = reports.show(tx, row)
        assert found is not None
        return found

    return site.write(look)


def test_the_held_calls_are_listed_with_their_evidence(ferryman: Typed, rows: Rows) -> None:
    told = ferryman("review list").out
    for fact in (
        f"c{rows.uncertain}  uncertain  sendMessage",
        f"c{rows.review}  review  sendMessage",
        "stage         body_complete",
        "status, code  502, 502",
        'description   Bad Gateway for "…"',
        "took          30 s",
        "ferryman review resolve ID sent|resend|drop",
    ):
        assert fact in told
    document = ferryman("review list --json").document()
    assert [row["id"] for row in document["rows"]] == [rows.uncertain, rows.review]
    assert document["rows"][0]["stage"] == "body_complete"


def test_listing_notes_that_a_person_has_seen_them(ferryman: Typed, rows: Rows, site: Site) -> None:
    ferryman("review list --json")
    assert _call(site, rows.uncertain).seen_at_ms is None
    ferryman("review list --limit 1")
    assert _call(site, rows.uncertain).seen_at_ms is not None
    assert _call(site, rows.review).seen_at_ms is None


@pytest.mark.parametrize(
    ("decision", "state", "told"),
    [
        ("sent", OutboxState.SENT, "is noted as sent"),
        ("resend", OutboxState.QUEUED, "goes again"),
        ("drop", OutboxState.DEAD, "is given up"),
    ],
)
def test_a_decision_is_carried_out(
    decision: str, state: OutboxState, told: str, ferryman: Typed, rows: Rows, site: Site
) -> None:
    printed = ferryman(f"review resolve {rows.uncertain} {decision}")
    assert (printed.code, printed.out) == (0, f"c{rows.uncertain} {told}\n")
    assert _call(site, rows.uncertain).state is state
    assert _call(site, rows.review).state is OutboxState.REVIEW


def test_several_calls_are_decided_at_once(ferryman: Typed, rows: Rows, site: Site) -> None:
    assert ferryman(f"review resolve c{rows.uncertain} {rows.review} drop").code == 0
    assert _call(site, rows.review).state is OutboxState.DEAD


def test_only_a_held_call_can_be_decided(ferryman: Typed, rows: Rows) -> None:
    printed = ferryman(f"review resolve {rows.sent} {rows.uncertain} c4711 resend")
    assert printed.code == 1
    assert printed.out == f"c{rows.uncertain} goes again\n"
    assert printed.err.splitlines() == [
        f"c{rows.sent} is sent: only a held call waits for a decision",
        "there is no call c4711",
    ]


def test_the_dead_are_listed_by_kind(ferryman: Typed, rows: Rows) -> None:
    told = ferryman("dead list").out
    assert f"u{rows.dead_update}      main  message  dead" in told
    assert "quarantined" in told
    assert f"c{rows.dead}" in told
    assert 'content refused: 400 tag "…"' in told
    document = ferryman("dead list --json").document()
    assert [row["ref"] for row in document["updates"]] == [
        f"u{rows.quarantined}",
        f"u{rows.dead_update}",
    ]
    assert [row["ref"] for row in document["calls"]] == [f"c{rows.dead}"]


def test_the_dead_are_revived(ferryman: Typed, rows: Rows, site: Site) -> None:
    printed = ferryman(f"dead requeue u{rows.dead_update} c{rows.dead}")
    assert printed.code == 0
    assert printed.out.splitlines() == [
        f"u{rows.dead_update} will be handled again",
        f"c{rows.dead} will be sent again",
    ]
    assert _call(site, rows.dead).state is OutboxState.QUEUED
    update = site.write(lambda tx: inbox.show(tx, rows.dead_update))
    assert update is not None
    assert update.state is InboxState.RECEIVED


def test_what_is_not_dead_is_not_revived(ferryman: Typed, rows: Rows) -> None:
    refs = f"u{rows.quarantined} u{rows.waiting_update} c{rows.sent} u4711 c4711"
    printed = ferryman(f"dead requeue {refs}")
    assert (printed.code, printed.out) == (1, "")
    assert printed.err.splitlines() == [
        f"u{rows.quarantined} is quarantined: nobody can read it as an update",
        f"u{rows.waiting_update} is received: only a dead update can be requeued",
        f"c{rows.sent} is sent: only a dead call can be requeued",
        "there is no update u4711",
        "there is no call c4711",
    ]


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("review resolve {uncertain} resend", "sender"),
        ("dead requeue c{dead}", "sender"),
        ("dead requeue u{dead_update}", "worker"),
    ],
)
def test_whoever_has_work_now_is_rung(
    line: str, role: str, ferryman: Typed, rows: Rows, site: Site
) -> None:
    bell = Doorbell(site.state, role)
    try:
        numbers = {name: getattr(rows, name) for name in ("uncertain", "dead", "dead_update")}
        assert ferryman(line.format(**numbers)).code == 0
        assert bell._socket.recv(1) == b"!"
    finally:
        bell.close()


def test_a_house_without_bells_is_no_hindrance(ferryman: Typed, rows: Rows, site: Site) -> None:
    """A lost bell costs a second, never a decision."""
    (site.state / "bells").write_text("in the way", encoding="ascii")
    assert ferryman(f"dead requeue c{rows.dead}").code == 0
