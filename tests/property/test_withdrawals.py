"""What is ended when something happens is what the claim would have ended, and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sender.staleness import Cancelled, judge
from storage import claims, outbox, withdrawals
from storage.database import Tx, connect
from storage.lifecycle import Priority, Withdrawal
from storage.migrate import migrate
from storage.outgoing import Outgoing, Source
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

NOW_MS = VirtualClock().now_ms()
LATER_MS = NOW_MS + 2
MOMENTS = st.integers(min_value=NOW_MS - 2, max_value=NOW_MS + 2)
SUBJECTS = st.sampled_from(["1", "2"])


@st.composite
def rows(draw: st.DrawFn) -> Outgoing:
    """A row of one chat, with or without each thing that may be taken from it."""
    return call(
        "row",
        priority=draw(st.sampled_from([Priority.INTERACTIVE, Priority.BULK])),
        source=draw(st.none() | st.builds(Source, st.just("c:7"), st.integers(1, 2))),
        cancel_on_edit=draw(st.booleans()),
        generation=draw(st.none() | SUBJECTS),
        caused_at_ms=draw(st.none() | MOMENTS),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an empty database is; no test leaves anything in it."""
    made = tmp_path_factory.mktemp("withdrawals")
    migrate(made / "ferryman.db", VirtualClock())
    return made


@given(rows(), st.sampled_from(list(Withdrawal)), SUBJECTS, MOMENTS)
@settings(max_examples=300, deadline=None)
def test_what_a_withdrawal_ends_is_what_the_claim_would_end(
    folder: Path, row: Outgoing, what: Withdrawal, subject: str, at_ms: int
) -> None:
    raw = connect(folder / "ferryman.db")
    named = "" if what is Withdrawal.PERSON_ANSWERED else subject
    try:
        raw.execute("begin immediate", {})
        tx = Tx(raw, NOW_MS)
        left = outbox.enqueue(tx, BOT, row).id
        [head] = claims.heads(tx, BOT, row.priority, limit=1)
        noted = withdrawals.note(tx, BOT, "c:7", what, subject=named, at_ms=at_ms)
        standing = claims.standings(tx, [head])[left]
        is_stale = isinstance(judge(head, standing, LATER_MS), Cancelled)
        assert (left in noted.cancelled) is is_stale
    finally:
        raw.execute("rollback", {})
        raw.close()
