"""The policy: what becomes of a row after each verdict, as a table."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sender.policy import (
    BACKOFF_MS_MAX,
    Bury,
    CloseChat,
    Expire,
    Fate,
    Hold,
    MarkSent,
    Move,
    Requeue,
    RowFacts,
    Settlement,
    Spend,
    StopBot,
    Wait,
    WaitCause,
    backoff_ms,
    decide,
    decide_abandoned,
)
from sender.verdict import (
    Cooldown,
    Fatal,
    FloodHint,
    Moved,
    Outdated,
    Partial,
    Refused,
    RefusedKind,
    Review,
    Sent,
    Throttled,
    Transient,
    Uncertain,
    Unreachable,
    Verdict,
    WaitSource,
    Withheld,
)
from storage.lifecycle import OnUncertain, OutboxState

NOW_MS = 1_800_000_000_000
FLOOD = Cooldown(7_000, FloodHint.CHAT, WaitSource.PARAMETERS)
FAILED = Transient("cut", outage=False)
OUTAGE = Transient("refused", outage=True)
DOUBT = Uncertain("no answer")
HASTE = Throttled("429 RATE_LIMITED")
HELD_BACK = Withheld("held back")
OUTDATED = Outdated("file")


def row(
    *,
    idempotent: bool = False,
    on_uncertain: OnUncertain = OnUncertain.HOLD,
    attempts: int = 0,
    expires_in_ms: int | None = None,
    is_ephemeral: bool = False,
    bare_floods: int = 0,
) -> RowFacts:
    return RowFacts(
        idempotent=idempotent,
        on_uncertain=on_uncertain,
        attempts=attempts,
        attempts_max=5,
        expires_at_ms=None if expires_in_ms is None else NOW_MS + expires_in_ms,
        is_ephemeral=is_ephemeral,
        bare_floods=bare_floods,
    )


def unwatched(facts: RowFacts) -> RowFacts:
    """The same row on a channel that no breaker watches over."""
    return replace(facts, has_breaker=False)


def settled(verdict: Verdict, facts: RowFacts, jitter: float = 0.0) -> Settlement:
    return decide(verdict, facts, now_ms=NOW_MS, jitter=jitter)


AGAIN = Requeue(NOW_MS + 1_000, Spend.ATTEMPT, "no answer")
TABLE: list[tuple[Verdict, RowFacts, Fate]] = [
    (Sent(5), row(), MarkSent(5, "")),
    (Sent(note="is so"), row(), MarkSent(None, "is so")),
    (FLOOD, row(), Requeue(NOW_MS + 7_000, Spend.NOTHING, "cooling")),
    (FLOOD, row(attempts=4), Requeue(NOW_MS + 7_000, Spend.NOTHING, "cooling")),
    (
        FLOOD,
        row(expires_in_ms=7_000),
        Expire("its next try would come too late: cooling"),
    ),
    (FLOOD, row(expires_in_ms=7_001), Requeue(NOW_MS + 7_000, Spend.NOTHING, "cooling")),
    (FLOOD, row(is_ephemeral=True), Expire("not repeated after a flood")),
    (Review("429"), row(), Hold(OutboxState.REVIEW, "429")),
    (Review("429"), row(is_ephemeral=True), Expire("not repeated after a flood")),
    (Partial("400 x"), row(), Hold(OutboxState.UNCERTAIN, "some items may have arrived: 400 x")),
    (
        Partial("400 x"),
        row(idempotent=True, on_uncertain=OnUncertain.RESEND),
        Hold(OutboxState.UNCERTAIN, "some items may have arrived: 400 x"),
    ),
    (OUTAGE, row(), Requeue(NOW_MS, Spend.NOTHING, "refused")),
    (OUTAGE, row(attempts=4), Requeue(NOW_MS, Spend.NOTHING, "refused")),
    (OUTAGE, row(is_ephemeral=True), Expire("not repeated: refused")),
    (HASTE, row(), Requeue(NOW_MS + 1_000, Spend.NOTHING, "429 RATE_LIMITED")),
    (HASTE, row(attempts=4), Requeue(NOW_MS + 1_000, Spend.NOTHING, "429 RATE_LIMITED")),
    (HASTE, row(bare_floods=3), Requeue(NOW_MS + 8_000, Spend.NOTHING, "429 RATE_LIMITED")),
    (
        HASTE,
        row(bare_floods=3, expires_in_ms=8_000),
        Expire("its next try would come too late: 429 RATE_LIMITED"),
    ),
    (HASTE, row(is_ephemeral=True), Expire("not repeated: 429 RATE_LIMITED")),
    (OUTAGE, unwatched(row()), Requeue(NOW_MS + 1_000, Spend.NOTHING, "refused")),
    (
        OUTAGE,
        unwatched(row(bare_floods=2)),
        Requeue(NOW_MS + 4_000, Spend.NOTHING, "refused"),
    ),
    (OUTDATED, row(), Requeue(NOW_MS, Spend.NOTHING, "file")),
    (OUTDATED, row(attempts=4), Requeue(NOW_MS, Spend.NOTHING, "file")),
    (OUTDATED, row(expires_in_ms=0), Expire("its next try would come too late: file")),
    (HELD_BACK, row(), Requeue(NOW_MS, Spend.NOTHING, "held back")),
    (HELD_BACK, row(is_ephemeral=True), Requeue(NOW_MS, Spend.NOTHING, "held back")),
    (FAILED, row(), Requeue(NOW_MS + 1_000, Spend.ATTEMPT, "cut")),
    (FAILED, row(attempts=2), Requeue(NOW_MS + 4_000, Spend.ATTEMPT, "cut")),
    (FAILED, row(attempts=4), Bury("5 attempts are spent: cut")),
    (FAILED, row(expires_in_ms=500), Expire("its next try would come too late: cut")),
    (DOUBT, row(), Hold(OutboxState.UNCERTAIN, "no answer")),
    (DOUBT, row(idempotent=True), AGAIN),
    (DOUBT, row(idempotent=True, attempts=4), Bury("5 attempts are spent: no answer")),
    (DOUBT, row(on_uncertain=OnUncertain.RESEND), AGAIN),
    (
        DOUBT,
        row(on_uncertain=OnUncertain.DROP),
        Bury("dropped, as its policy says: no answer"),
    ),
    (DOUBT, row(idempotent=True, on_uncertain=OnUncertain.DROP), AGAIN),
    (DOUBT, row(idempotent=True, is_ephemeral=True), Expire("not repeated: no answer")),
    (Moved(-1007), row(), Move(-1007)),
    (Moved(-1007), row(attempts=5), Bury("moved 5 times, at last to -1007")),
    (Unreachable("blocked"), row(), CloseChat("blocked")),
    (
        Refused(RefusedKind.CONTENT, 400, "too long"),
        row(),
        Bury("content refused: 400 too long"),
    ),
    (
        Refused(RefusedKind.PERMISSION, 400, "no rights"),
        row(),
        Bury("permission refused: 400 no rights"),
    ),
    (Refused(RefusedKind.TARGET, 400, "gone"), row(), Bury("target refused: 400 gone")),
    (Refused(RefusedKind.LATE, 400, "too old"), row(), Expire("too old")),
    (Fatal("401"), row(), StopBot("401")),
]


@pytest.mark.parametrize(("verdict", "facts", "fate"), TABLE)
def test_each_verdict_has_its_consequence(verdict: Verdict, facts: RowFacts, fate: Fate) -> None:
    assert settled(verdict, facts).fate == fate


def test_a_flood_brings_its_wait_over_others() -> None:
    wait = Wait(7_000, FloodHint.CHAT, WaitCause.FLOOD)
    assert settled(FLOOD, row()).wait == wait
    assert settled(FLOOD, row(is_ephemeral=True)).wait == wait
    assert settled(Partial("x", wait_ms=7_000), row()).wait == wait
    assert settled(Partial("x"), row()).wait is None


@pytest.mark.parametrize(
    ("verdict", "bare_floods", "wait_ms"),
    [
        (Review("429"), 0, 5_000),
        (Review("429"), 1, 10_000),
        (Review("429"), 4, 80_000),
        (Review("429"), 60, 3_600_000),
        (Review("429", wait_at_least_ms=60_000), 0, 60_000),
        (Review("429", wait_at_least_ms=1_000), 0, 5_000),
    ],
)
def test_a_flood_without_a_wait_pauses_its_lane_longer_each_time(
    verdict: Review, bare_floods: int, wait_ms: int
) -> None:
    found = settled(verdict, row(bare_floods=bare_floods))
    assert found.wait == Wait(wait_ms, FloodHint.CHAT, WaitCause.BARE_FLOOD)


def test_our_own_pause_grows_with_each_refusal_and_has_an_end() -> None:
    waits = [settled(HASTE, row(bare_floods=count)).wait for count in range(40)]
    lengths = [wait.wait_ms for wait in waits if wait is not None]
    assert len(lengths) == len(waits)
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (1_000, BACKOFF_MS_MAX)
    longer = settled(HASTE, row(bare_floods=2), jitter=0.5).wait
    assert longer == Wait(5_000, FloodHint.CHAT, WaitCause.THROTTLED)
    missing = settled(OUTAGE, unwatched(row())).wait
    assert missing == Wait(1_000, FloodHint.CHAT, WaitCause.OUTAGE)
    assert settled(OUTAGE, row()).wait is None


def test_what_was_stamped_and_never_answered_is_in_doubt() -> None:
    assert decide_abandoned(row(), now_ms=NOW_MS, jitter=0.0) == Hold(
        OutboxState.UNCERTAIN, "the sender ended before an answer came"
    )
    again = decide_abandoned(row(idempotent=True), now_ms=NOW_MS, jitter=0.0)
    assert isinstance(again, Requeue)


@given(failures=st.integers(1, 10_000), jitter=st.floats(0, 1, exclude_max=True))
def test_jitter_only_adds_and_a_backoff_has_an_end(failures: int, jitter: float) -> None:
    plain = backoff_ms(failures, 0.0)
    assert plain <= backoff_ms(failures, jitter) <= plain * 1.5
    assert plain <= BACKOFF_MS_MAX
    assert plain <= backoff_ms(failures + 1, 0.0)
