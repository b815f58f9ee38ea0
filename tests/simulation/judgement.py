"""The invariants that are judged when a world has healed, drained and ended.

I1 nothing acknowledged is lost, I5 true records, I8 limits, I10 everything ended or explained, I12
the budget of attempts, I13 answers are recorded, I14 a sound file, I15 no secrets anywhere.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from storage.database import WAL_BYTES_MAX, connect
from storage.options import Settings
from tests.simulation.history import Call, History, Row
from tests.simulation.windows import excesses
from tests.simulator.ledger import Delivery, Ledger

# So long a living sender may take to write an answer down while its disk fails.
RECORDED_WITHIN_MS: Final = 180_000
FAR_OFF_MS: Final = 3_600_000
_UNSENT: Final = frozenset({"queued", "dead", "expired", "cancelled", "superseded"})
_HELD: Final = frozenset({"uncertain", "review"})


def lost(history: History, ledger: Ledger, names: Mapping[int, str]) -> Iterator[str]:
    """I1: every update that was answered with 200 is in the inbox, and has been handled."""
    stored = {(bot, update_id): state for bot, update_id, state in history.inbox.values()}
    answered = {
        (names[delivery.bot_id], delivery.update_id)
        for delivery in ledger.of(Delivery)
        if delivery.status is not None and 200 <= delivery.status < 300
    }
    for key in sorted(answered):
        state = stored.get(key)
        if state not in ("done", "dead"):
            yield f"I1: update {key} was acknowledged and is {state or 'not there'}"


def untrue(history: History) -> Iterator[str]:
    """I5: what ended otherwise than sent, and is not unknown, was not sent."""
    for row in history.rows.values():
        unknown = any(attempt.is_unknown for attempt in row.attempts)
        if not row.effects or unknown or row.revivals:
            continue
        if row.state in _UNSENT and row.items == 1:
            yield f"I5: row {row.id} is {row.state}, and was sent"


def beyond_limits(history: History, settings: Settings) -> Iterator[str]:
    """I8: no window of any limit was exceeded."""
    calls: defaultdict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        calls[call.bot].append(call)
    for bot, made in calls.items():
        for told in excesses(made, settings.limits_for(bot)):
            yield f"I8: {told}"


def is_far_off(row: Row, wall_ms: int) -> bool:
    """Whether a row is scheduled for long after the world's end, by a clock that went wrong."""
    return row.state == "queued" and row.not_before_ms > wall_ms + FAR_OFF_MS


def unended(history: History, reasons: Mapping[int, str | None], wall_ms: int) -> Iterator[str]:
    """I10: nothing is in hand any more, and what has no end says why."""
    for row in history.rows.values():
        if is_far_off(row, wall_ms):
            continue
        if row.state == "claimed":
            yield f"I10: row {row.id} is still in somebody's hand"
        is_held = row.state in _HELD or row.is_out
        if (row.state == "queued" or is_held) and not (is_held and reasons.get(row.id)):
            yield f"I10: row {row.id} is {row.state} and can't say why"
    for attempt in history.attempts.values():
        if attempt.stage in ("claimed", "stamped"):
            yield f"I10: attempt {attempt.id} of row {attempt.row.id} has no end"


def over_budget(history: History, settings: Settings, spent: Mapping[int, int]) -> Iterator[str]:
    """I12: no row has spent more attempts than it had, and none was called without an attempt."""
    for row in history.rows.values():
        most = row.attempts_max or settings.delivery.attempts_max
        if spent.get(row.id, 0) > most:
            yield f"I12: row {row.id} has spent {spent[row.id]} attempts of {most}"
        if len(row.calls) > len(row.attempts):
            yield f"I12: row {row.id} was called {len(row.calls)} times"


def unrecorded(history: History, deaths: Mapping[int, int], ended_ms: int) -> Iterator[str]:
    """I13: an answer that came to a living sender is recorded, whoever owns the bot by then."""
    for call in history.calls:
        if call.status is None or call.attempt is None or call.returned_ms is None:
            continue
        until_ms = call.returned_ms + RECORDED_WITHIN_MS
        if min(deaths.get(call.returned_to, ended_ms), ended_ms) < until_ms:
            continue
        if call.attempt.stage != "answered":
            row = call.attempt.row
            yield (
                f"I13: call {call.number} of row {row.id} was answered {call.status}, and its"
                f" attempt is {call.attempt.stage}"
            )


def unsound(path: Path) -> Iterator[str]:
    """I14: the file is whole."""
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size > WAL_BYTES_MAX:
        yield f"I14: the log has {wal.stat().st_size} bytes"
    raw = connect(path)
    try:
        for row in raw.execute("pragma integrity_check", {}).fetchall():
            if row["integrity_check"] != "ok":
                yield f"I14: {row['integrity_check']}"
        for row in raw.execute("pragma foreign_key_check", {}).fetchall():
            yield f"I14: a row of {row['table']} refers to nothing"
    finally:
        raw.close()


def told_secrets(path: Path, secrets: Sequence[str]) -> Iterator[str]:
    """I15: no secret is in the file."""
    for file in sorted(path.parent.glob(path.name + "*")):
        content = file.read_bytes()
        for secret in secrets:
            if secret.encode() in content:
                yield f"I15: a secret is in {file.name}"


def books_of(path: Path) -> tuple[dict[int, str | None], dict[int, int]]:
    """The reason and the spent attempts of each row that is still there."""
    raw = connect(path)
    try:
        found = raw.execute("select id, reason, attempts from outbox", {}).fetchall()
        return (
            {row["id"]: row["reason"] for row in found},
            {row["id"]: row["attempts"] for row in found},
        )
    finally:
        raw.close()


def is_at_rest(history: History, wall_ms: int) -> bool:
    """Whether nothing waits for its turn or to be sent."""
    return not (
        any(
            row.state == "claimed"
            or (row.state == "queued" and not row.is_out and not is_far_off(row, wall_ms))
            for row in history.rows.values()
        )
        or any(state in ("received", "claimed") for _, _, state in history.inbox.values())
    )
