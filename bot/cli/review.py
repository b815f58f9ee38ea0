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
from bot.cli.parser import Commands, add_json, add_limit, call_id
from bot.cli.text import call_ref, facts, moment, or_dash, printable, since, span, unquoted
from storage import reports, review
from storage.clock import SystemClock
from storage.database import Tx
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
    """The calls that wait for a person, as of `at_ms`."""

    at_ms: int
    rows: Sequence[Held]


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


def _list(given: Namespace) -> int:
    settings = settings_of(given)
    found = asyncio.run(_held(settings, given.limit))
    if given.json:
        say_json(found)
        return 0
    say(as_lines(found, limit=given.limit))
    asyncio.run(_mark_seen(settings, [row.id for row in found.rows]))
    return 0


async def _held(settings: Settings, limit: int) -> HeldRows:
    async with visit(settings) as database:
        rows = await database.read(lambda tx: review.held(tx, limit=limit))
    told = [
        replace(
            row,
            reason=unquoted(row.reason),
            description=unquoted(row.description or "") or None,
        )
        for row in rows
    ]
    return HeldRows(SystemClock().now_ms(), told)


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
    for row in found.rows:
        yield f"{call_ref(row.id)}  {row.state}  {printable(row.method)}"
        yield from (f"  {line}" for line in facts(_evidence(row, found.at_ms)))
        yield ""
    if len(found.rows) == limit:
        yield f"The first {limit}; --limit shows more."
    yield "Look into the chat, then: ferryman review resolve ID sent|resend|drop"


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


def _resolve(given: Namespace) -> int:
    settings = settings_of(given)
    decision = Decision(given.decision)
    outcomes = asyncio.run(_decide(settings, [OutboxId(each) for each in given.ids], decision))
    if decision is Decision.RESEND and any(outcome.is_done for outcome in outcomes):
        ring(settings, ["sender"])
    return say_outcomes(outcomes)


async def _decide(
    settings: Settings, rows: Sequence[OutboxId], decision: Decision
) -> Sequence[Outcome]:
    async with visit(settings) as database:
        return await database.write(lambda tx: [_decide_one(tx, row, decision) for row in rows])


def _decide_one(tx: Tx, row: OutboxId, decision: Decision) -> Outcome:
    if review.resolve(tx, row, decision, by=_WHO):
        return Outcome(f"{call_ref(row)} {_DONE[decision]}", is_done=True)
    found = reports.show(tx, row)
    if found is None:
        return Outcome(f"there is no call {call_ref(row)}", is_done=False)
    return Outcome(
        f"{call_ref(row)} is {found.state}: only a held call waits for a decision", is_done=False
    )
