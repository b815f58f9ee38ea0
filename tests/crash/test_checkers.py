"""Each checker passes a house where all is well, and sees the breach that it is for."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from storage.claims import CAME_LATE
from tests.crash import checkers
from tests.crash.books import Attempt, Books, Row, Update
from tests.crash.checkers import Evidence
from tests.simulator.ledger import Accepted, Arrival, Delivery, Ledger

BOT = 7_000_000_001
CHAT = 5
Change = Callable[[Evidence], Evidence]


def _update(number: int) -> Update:
    return Update(
        id=number, bot="main", update_id=900 + number, chat_lane="c:5", state="done", reason=None
    )


def _row(number: int) -> Row:
    return Row(
        id=number,
        bot="main",
        key=f"turn:{number}:0:0",
        method="sendMessage",
        params={"chat_id": "5", "text": f"answer {number}"},
        lane="c:5",
        chat_id=CHAT,
        priority="interactive",
        on_uncertain="hold",
        state="sent",
        not_before_ms=0,
        due_ms=0,
        message_id=70 + number,
        reason=None,
    )


def _attempt(number: int) -> Attempt:
    return Attempt(
        id=number,
        outbox_id=number,
        stage="answered",
        stamped_at_ms=1_000 * number,
        ended_at_ms=1_000 * number + 20,
        status=200,
        verdict="sent",
    )


def _told(
    number: int, *, method: str = "sendMessage", at_ms: int | None = None
) -> list[Arrival | Accepted]:
    moment_ms = at_ms or 1_000 * number + 10
    text = f"answer {number}"
    arrival = Arrival(
        at_ms=moment_ms,
        bot_id=BOT,
        method=method,
        chat_id=CHAT,
        is_group=False,
        params={"chat_id": "5", "text": text},
        charged=True,
        effect=True,
        code=200,
        description="",
        message_id=70 + number,
        fault=None,
        early_by_ms=0,
        flood_ordered_at_ms=None,
        client_bug=None,
    )
    accepted = Accepted(
        at_ms=moment_ms, bot_id=BOT, chat_id=CHAT, message_id=70 + number, text=text
    )
    return [arrival, accepted]


def _delivery(number: int) -> Delivery:
    return Delivery(
        at_ms=number,
        ended_at_ms=number + 1,
        bot_id=BOT,
        update_id=900 + number,
        attempt=1,
        status=200,
        error=None,
    )


def _all_well() -> Evidence:
    """Two questions of one chat, each answered once, in order."""
    numbers = (1, 2)
    return Evidence(
        Ledger(
            [
                *(_delivery(number) for number in numbers),
                *(entry for number in numbers for entry in _told(number)),
            ]
        ),
        Books(
            bots={"main": BOT},
            updates=[_update(number) for number in numbers],
            rows=[_row(number) for number in numbers],
            attempts=[_attempt(number) for number in numbers],
        ),
    )


def _without_update(number: int) -> Change:
    return lambda seen: _books(seen, updates=[u for u in seen.books.updates if u.id != number])


def _with_update(number: int, **changes: object) -> Change:
    def change(seen: Evidence) -> Evidence:
        changed = [replace(u, **changes) if u.id == number else u for u in seen.books.updates]  # type: ignore[arg-type]  # fields by name
        return _books(seen, updates=changed)

    return change


def _with_row(number: int, **changes: object) -> Change:
    def change(seen: Evidence) -> Evidence:
        changed = [replace(r, **changes) if r.id == number else r for r in seen.books.rows]  # type: ignore[arg-type]  # fields by name
        return _books(seen, rows=changed)

    return change


def _with_attempt(number: int, **changes: object) -> Change:
    def change(seen: Evidence) -> Evidence:
        changed = [replace(a, **changes) if a.id == number else a for a in seen.books.attempts]  # type: ignore[arg-type]  # fields by name
        return _books(seen, attempts=changed)

    return change


def _books(seen: Evidence, **parts: object) -> Evidence:
    return Evidence(seen.ledger, replace(seen.books, **parts))  # type: ignore[arg-type]  # fields by name


def _told_again(seen: Evidence) -> Evidence:
    return Evidence(Ledger([*seen.ledger.entries, *_told(1, at_ms=3_000)]), seen.books)


def _never_told(seen: Evidence) -> Evidence:
    kept = [
        e
        for e in seen.ledger.entries
        if not (isinstance(e, Arrival | Accepted) and e.message_id == 71)
    ]
    return Evidence(Ledger(kept), seen.books)


def _told_backwards(seen: Evidence) -> Evidence:
    return Evidence(Ledger([_delivery(1), _delivery(2), *_told(2), *_told(1)]), seen.books)


def _chain(*changes: Change) -> Change:
    def change(seen: Evidence) -> Evidence:
        for each in changes:
            seen = each(seen)
        return seen

    return change


def _edit_of_first(state: str, *, at_ms: int) -> Change:
    """The first row is an edit, and its call went twice."""

    def change(seen: Evidence) -> Evidence:
        twice = [
            _told(1, method="editMessageText")[0],
            _told(1, method="editMessageText", at_ms=at_ms)[0],
        ]
        ledger = Ledger([_delivery(1), _delivery(2), *twice, *_told(2)])
        return _with_row(1, method="editMessageText", state=state)(Evidence(ledger, seen.books))

    return change


def _edit_behind_others(**parent: object) -> Change:
    """The second row edits the first one's message, and came when a later row had gone."""

    def change(seen: Evidence) -> Evidence:
        edit = replace(
            _row(2), method="editMessageText", params={**_row(2).params, "message_id": "-9"}
        )
        third = _told(3)
        ledger = Ledger(
            [*seen.ledger.entries[:2], *_told(1), *third, _told(2, method="editMessageText")[0]]
        )
        books = replace(
            seen.books,
            rows=[replace(_row(1), placeholder=-9, **parent), edit, _row(3)],  # type: ignore[arg-type]  # fields by name
            attempts=[*seen.books.attempts, _attempt(3)],
        )
        return Evidence(ledger, books)

    return change


BREACHES: tuple[tuple[str, Change, str], ...] = (
    ("an acknowledged update is gone", _without_update(2), "lost_updates"),
    ("it was never handled", _with_update(2, state="received"), "lost_updates"),
    ("a turn left its calls twice", _with_row(2, key="turn:1:0:0"), "doubled_effects"),
    ("a text came twice", _told_again, "doubled_effects"),
    ("a row went twice", _told_again, "sends_beyond_policy"),
    (
        "a held row went twice",
        _chain(_told_again, _with_attempt(1, verdict="uncertain")),
        "sends_beyond_policy",
    ),
    (
        "an edit went twice without a reason",
        _edit_of_first("sent", at_ms=1_500),
        "sends_beyond_policy",
    ),
    ("nobody had asked for it", _with_row(1, params={"text": "other"}), "effects_from_nowhere"),
    (
        "it left before it was stamped",
        _with_attempt(1, stamped_at_ms=1_100),
        "effects_from_nowhere",
    ),
    ("a row is marked sent and was not", _never_told, "false_records"),
    ("another message is taken for it", _with_row(1, message_id=72), "false_records"),
    ("a dead row was sent", _with_row(1, state="dead", reason="refused"), "false_records"),
    ("answers came in another order", _told_backwards, "disorder"),
    ("an edit came after others without a reason", _edit_behind_others(), "disorder"),
    (
        "turns committed in another order",
        _chain(_with_row(1, key="turn:2:0:0"), _with_row(2, key="turn:1:0:0")),
        "disorder",
    ),
    ("a row stays in hand", _with_row(2, state="claimed"), "unexplained_rows"),
    ("a row waits for nothing", _with_row(2, state="queued"), "unexplained_rows"),
    ("a held row has no reason", _with_row(2, state="uncertain"), "unexplained_rows"),
    ("an attempt never ended", _with_attempt(2, ended_at_ms=None), "unexplained_rows"),
    ("a dead letter has no reason", _with_update(2, state="dead"), "unexplained_rows"),
)


def test_where_all_is_well_nothing_is_reported() -> None:
    assert checkers.damage(_all_well()) == []


@pytest.mark.parametrize(
    ("plant", "checker"),
    [(plant, name) for _, plant, name in BREACHES],
    ids=[b[0] for b in BREACHES],
)
def test_a_breach_is_seen(plant: Change, checker: str) -> None:
    seen = {breach.partition(":")[0] for breach in checkers.damage(plant(_all_well()))}
    assert checker in seen


def test_every_checker_has_been_seen_to_fail() -> None:
    assert {name for _, _, name in BREACHES} == {each.__name__ for each in checkers.CHECKERS}


FORGIVEN: tuple[tuple[str, Change], ...] = (
    (
        "what may be resent went twice after an unknown outcome",
        _chain(
            _told_again,
            _with_row(1, on_uncertain="resend", params={"text": "answer 1"}),
            _with_attempt(1, verdict="uncertain"),
        ),
    ),
    (
        "an edit was repeated after an unknown outcome",
        _chain(_edit_of_first("sent", at_ms=1_500), _with_attempt(1, verdict="uncertain")),
    ),
    (
        "a held row was sent after all",
        _chain(
            _with_row(1, state="uncertain", message_id=None, reason="its sender ended"),
            _with_attempt(1, stage="abandoned", verdict="uncertain"),
        ),
    ),
    (
        "an edit waited outside until its message's answer came",
        _edit_behind_others(reason=CAME_LATE),
    ),
    (
        "an edit waited outside until a person had decided",
        _chain(_edit_behind_others(), _with_attempt(1, verdict="uncertain")),
    ),
    (
        "a row waits for its time",
        _chain(
            _never_told,
            _with_row(1, state="queued", due_ms=9_000, reason="Telegram asked for a wait"),
        ),
    ),
)


@pytest.mark.parametrize("plant", [plant for _, plant in FORGIVEN], ids=[f[0] for f in FORGIVEN])
def test_what_is_allowed_is_no_breach(plant: Change) -> None:
    breaches = checkers.damage(plant(_all_well()))
    assert [each for each in breaches if not each.startswith("doubled_effects: chat")] == []
