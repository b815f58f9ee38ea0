"""`ferryman review`: held calls with their evidence, and what a person decides about them.

Whether an uncertain call was carried out is known to nobody here; a look into the chat tells. A
decision is one transaction, and the sender is told at once.
"""

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bot.cli.ground import ring, settings_of, visit
from bot.cli.output import Outcome, say, say_json, say_outcomes
from bot.cli.parser import Commands, add_json, add_limit, call_id, message_id
from bot.cli.show import history_lines
from bot.cli.text import (
    call_ref,
    counted,
    facts,
    moment,
    or_dash,
    printable,
    since,
    span,
    unquoted,
)
from storage import evidence, reports, review
from storage.clock import SystemClock
from storage.database import Tx
from storage.errors import FerrymanError, Usage
from storage.evidence import Evidence, Neighbour
from storage.lifecycle import OutboxId
from storage.review import Decision, Held
from storage.settings import Settings

_ROWS_SHOWN = 50
_WHO: Final = "an operator"

_DONE: Final[Mapping[Decision, str]] = {
    Decision.SENT: "is noted as sent",
    Decision.RESEND: "goes again",
    Decision.DROP: "is given up",
}
_DECISIONS_TOLD: Final = """\
decisions:
  sent     it is in the chat: note that, and send nothing
  resend   it is not in the chat: send it again, at its old place in the chat's order
  drop     give it up
"""


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The calls that wait for a person, as of `at_ms`, each with what is known of it."""

    at_ms: int
    rows: Sequence[Held]
    evidence: Sequence[Evidence]


def add(commands: Commands) -> None:
    """Add both actions."""
    group = commands.group(
        "review", purpose="List or decide the calls that nobody but you can judge."
    )
    listing = group.add(
        "list",
        _list,
        purpose="List the held calls with their evidence, oldest first.",
        notes="Each call listed is noted as seen by a person; with --json it is not.",
    )
    add_limit(listing, default=_ROWS_SHOWN)
    add_json(listing)
    showing = group.add(
        "show", _show, purpose="Show all evidence about one held call, and what each decision does."
    )
    showing.add_argument("id", metavar="ID", type=call_id, help="the call, such as c34")
    add_json(showing)
    resolving = group.add(
        "resolve", _resolve, purpose="Decide what becomes of held calls.", notes=_DECISIONS_TOLD
    )
    resolving.add_argument(
        "ids", metavar="ID", nargs="+", type=call_id, help="the call, such as c34"
    )
    resolving.add_argument(
        "decision",
        metavar="DECISION",
        choices=[str(each) for each in Decision],
        help="sent, resend or drop",
    )
    resolving.add_argument(
        "--message-id",
        metavar="N",
        type=message_id,
        help="with sent: its number in the chat, so that what refers to it can go on",
    )


def _list(given: Namespace) -> int:
    settings = settings_of(given)
    found = asyncio.run(_held(settings, given.limit))
    if given.json:
        say_json(found)
        return 0
    say(as_lines(found, limit=given.limit))
    asyncio.run(_mark_seen(settings, [row.id for row in found.rows]))
    return 0


def _show(given: Namespace) -> int:
    settings = settings_of(given)
    number = OutboxId(given.id)
    found = asyncio.run(_held(settings, 1, number))
    if not found.rows:
        raise FerrymanError(f"{call_ref(number)} is not held: ferryman show {call_ref(number)}")
    if given.json:
        say_json(found)
        return 0
    say(_whole(found.rows[0], found.evidence[0], found.at_ms))
    asyncio.run(_mark_seen(settings, [number]))
    return 0


async def _held(settings: Settings, limit: int, row: OutboxId | None = None) -> HeldRows:
    def look(tx: Tx) -> tuple[Sequence[Held], Sequence[Evidence | None]]:
        rows = review.held(tx, limit=limit, row=row)
        return rows, [evidence.of_row(tx, each.id) for each in rows]

    async with visit(settings) as database:
        rows, known = await database.read(look)
    return HeldRows(
        SystemClock().now_ms(),
        [_held_without_quotes(row) for row in rows],
        [_without_quotes(each) for each in known if each is not None],
    )


def _held_without_quotes(row: Held) -> Held:
    description = unquoted(row.description or "") or None
    return replace(row, reason=unquoted(row.reason), description=description)


def _without_quotes(known: Evidence) -> Evidence:
    attempts = [
        replace(
            attempt,
            description=unquoted(attempt.description or "") or None,
            items_told=[replace(item, reason=unquoted(item.reason)) for item in attempt.items_told],
        )
        for attempt in known.attempts
    ]
    return replace(known, attempts=attempts)


async def _mark_seen(settings: Settings, rows: Sequence[OutboxId]) -> None:
    if not rows:
        return
    async with visit(settings) as database:
        await database.write(lambda tx: review.mark_seen(tx, rows))


def as_lines(found: HeldRows, *, limit: int) -> Iterator[str]:
    """The held calls for a person: a block each, as the evidence wants room."""
    if not found.rows:
        yield "Nothing waits for a decision."
        return
    known = {each.id: each for each in found.evidence}
    for row in found.rows:
        yield f"{call_ref(row.id)}  {row.state}  {printable(row.method)}"
        pairs = [*_evidence(row, found.at_ms), *_around(known[row.id], found.at_ms)]
        yield from (f"  {line}" for line in facts(pairs))
        yield ""
    if len(found.rows) == limit:
        yield f"The first {limit}; --limit shows more."
    yield "All about one: ferryman review show ID"
    yield "Look into the chat, then: ferryman review resolve ID sent|resend|drop"


def _whole(row: Held, known: Evidence, now_ms: int) -> Iterator[str]:
    """One held call for a person: every attempt, the chat around it, what each decision does."""
    yield f"{call_ref(row.id)}  {row.state}  {printable(row.method)}"
    yield from facts([*_evidence(row, now_ms), *_around(known, now_ms)])
    yield ""
    yield from history_lines(known.attempts)
    yield ""
    yield from facts(_choices(known))


def _evidence(row: Held, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "bot", row.bot
    yield "chat", f"{or_dash(row.chat_id)} (lane {printable(row.lane)})"
    yield "why", printable(row.reason)
    yield "waits since", f"{moment(row.created_at_ms)}, {since(row.created_at_ms, now_ms)} ago"
    if row.attempt_id is None:
        yield "evidence", "no attempt is on record"
        return
    yield "attempts", f"{row.attempts} spent; the last one has id {row.attempt_id}"
    yield "left at", moment(row.stamped_at_ms)
    yield "stage", or_dash(row.stage)
    yield "status, code", f"{or_dash(row.status)}, {or_dash(row.code)}"
    yield "description", or_dash(row.description)
    yield "took", "-" if row.duration_ms is None else span(row.duration_ms)
    if row.wait_ms is not None:
        yield "wait told", span(row.wait_ms)


def _around(known: Evidence, now_ms: int) -> Iterator[tuple[str, str]]:
    """What happened in the chat around the call."""
    yield "said before", _nearest(known.before)
    yield "said after", _nearest(known.after)
    spoken = known.spoken_at_ms
    yield "spoken since", "no" if spoken is None else f"yes, {since(spoken, now_ms)} ago"
    for attempt in known.attempts[-1:]:
        for item in attempt.items_told:
            why = f": {printable(item.reason)}" if item.reason else ""
            yield f"item {item.number}", f"{item.state}{why}"
    if known.waiting:
        yield "waiting", f"{counted(known.waiting, 'call')} that refer to it"


def _nearest(calls: Sequence[Neighbour]) -> str:
    for each in calls:
        return f"message {or_dash(each.message_id)} ({call_ref(each.id)}) at {moment(each.at_ms)}"
    return "nothing that is remembered"


def _choices(known: Evidence) -> Iterator[tuple[str, str]]:
    """What each decision would do."""
    waiting = counted(known.waiting, "waiting call")
    whole = f", all {known.items} messages" if known.items > 1 else ""
    behind = ", behind later ones" if known.after else ""
    goes = f"; {waiting} will go on with --message-id, else be cancelled"
    follows = f"; {known.waiting} will follow"
    ends = f"; {waiting} will be cancelled"
    yield "sent", f"note it, send nothing{goes if known.waiting else ''}"
    again = f"send it again{whole}{behind}: twice if it did arrive"
    yield "resend", f"{again}{follows if known.waiting else ''}"
    yield "drop", f"give it up{ends if known.waiting else ''}"


def _resolve(given: Namespace) -> int:
    settings = settings_of(given)
    decision = Decision(given.decision)
    rows = [OutboxId(each) for each in given.ids]
    if given.message_id is not None and (decision is not Decision.SENT or len(rows) != 1):
        raise Usage("--message-id goes with one call that was sent")
    outcomes = asyncio.run(_decide(settings, rows, decision, given.message_id))
    if any(outcome.is_done for outcome in outcomes):
        ring(settings, ["sender"])
    return say_outcomes(outcomes)


async def _decide(
    settings: Settings, rows: Sequence[OutboxId], decision: Decision, message_id: int | None
) -> Sequence[Outcome]:
    async with visit(settings) as database:
        return await database.write(
            lambda tx: [_decide_one(tx, row, decision, message_id) for row in rows]
        )


def _decide_one(tx: Tx, row: OutboxId, decision: Decision, message_id: int | None) -> Outcome:
    if review.resolve(tx, row, decision, by=_WHO, message_id=message_id):
        return Outcome(f"{call_ref(row)} {_DONE[decision]}", is_done=True)
    found = reports.show(tx, row)
    if found is None:
        return Outcome(f"there is no call {call_ref(row)}", is_done=False)
    return Outcome(
        f"{call_ref(row)} is {found.state}: only a held call waits for a decision", is_done=False
    )
