"""`ferryman dead`: what was given up, updates and calls, and its revival.

Both kinds have numbers of their own, so a letter goes before each: u12 is an update, c34 a call.
"""

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.cli.ground import ring, settings_of, visit
from bot.cli.output import Outcome, fields_of, say, say_json, say_outcomes
from bot.cli.parser import Commands, add_json, add_limit, either_id
from bot.cli.show import add_row, show
from bot.cli.text import call_ref, or_dash, printable, since, table, unquoted, update_ref
from storage import inbox, reports, review
from storage.clock import SystemClock
from storage.database import Tx
from storage.inbox import DeadUpdate
from storage.lifecycle import InboxId, InboxState, OutboxId
from storage.review import DeadCall
from storage.settings import Settings

_ROWS_SHOWN = 20

_NOTES = """\
u12 is an update that Telegram delivered, whose handler failed or which nobody can read;
c34 is a call to Telegram that was refused for good or whose attempts are spent.
"""


@dataclass(frozen=True, slots=True)
class Dead:
    """What was given up, newest first, as of `at_ms`."""

    at_ms: int
    updates: Sequence[DeadUpdate]
    calls: Sequence[DeadCall]


def add(commands: Commands) -> None:
    """Add the three actions."""
    group = commands.group(
        "dead", purpose="List, show or revive the updates and calls given up.", notes=_NOTES
    )
    listing = group.add("list", _list, purpose="List what was given up, newest first.")
    add_limit(listing, default=_ROWS_SHOWN)
    add_json(listing)
    showing = group.add("show", _show, purpose="Show one of them, with its reason.", notes=_NOTES)
    add_row(showing, kind=either_id)
    requeueing = group.add(
        "requeue",
        _requeue,
        purpose="Let dead updates be handled again, or dead calls be sent again.",
        notes=_NOTES,
    )
    requeueing.add_argument(
        "ids", metavar="ID", nargs="+", type=either_id, help="u12 for an update, c34 for a call"
    )


def _list(given: Namespace) -> int:
    found = asyncio.run(_look(settings_of(given), given.limit))
    if given.json:
        say_json(as_document(found))
    else:
        say(as_lines(found, limit=given.limit))
    return 0


async def _look(settings: Settings, limit: int) -> Dead:
    def look(tx: Tx) -> Dead:
        calls = [
            replace(call, reason=unquoted(call.reason))
            for call in review.dead_list(tx, limit=limit)
        ]
        return Dead(SystemClock().now_ms(), inbox.dead_list(tx, limit=limit), calls)

    async with visit(settings) as database:
        return await database.read(look)


def as_document(found: Dead) -> dict[str, Any]:
    """What was given up, for a program; `ref` is what `requeue` takes."""
    return {
        "at_ms": found.at_ms,
        "updates": [{"ref": update_ref(row.id), **fields_of(row)} for row in found.updates],
        "calls": [{"ref": call_ref(row.id), **fields_of(row)} for row in found.calls],
    }


def as_lines(found: Dead, *, limit: int) -> Iterator[str]:
    """What was given up, for a person."""
    if not found.updates and not found.calls:
        yield "Nothing was given up."
        return
    if found.updates:
        titles = ("UPDATE", "BOT", "KIND", "STATE", "TURNS", "ENDED", "WHY")
        yield from table(titles, [_update_cells(row, found.at_ms) for row in found.updates])
        yield ""
    if found.calls:
        titles = ("CALL", "BOT", "CHAT", "METHOD", "TRIES", "ENDED", "WHY")
        yield from table(titles, [_call_cells(row, found.at_ms) for row in found.calls])
        yield ""
    if limit in {len(found.updates), len(found.calls)}:
        yield f"The newest {limit} of each; --limit shows more."
    yield "All of one: ferryman dead show ID. Once more: ferryman dead requeue ID"


def _update_cells(row: DeadUpdate, now_ms: int) -> Sequence[str]:
    return (
        update_ref(row.id),
        row.bot,
        or_dash(row.kind),
        row.state,
        str(row.claims),
        f"{since(row.finished_at_ms, now_ms)} ago",
        printable(row.reason),
    )


def _call_cells(row: DeadCall, now_ms: int) -> Sequence[str]:
    return (
        call_ref(row.id),
        row.bot,
        or_dash(row.chat_id),
        printable(row.method),
        str(row.attempts),
        f"{since(row.finished_at_ms, now_ms)} ago",
        printable(row.reason),
    )


def _show(given: Namespace) -> int:
    letter, number = given.id
    return show(given, letter, number)


def _requeue(given: Namespace) -> int:
    settings = settings_of(given)
    outcomes = asyncio.run(_revive(settings, given.ids))
    letters = {letter for letter, _ in given.ids}
    roles = [role for role, letter in (("worker", "u"), ("sender", "c")) if letter in letters]
    ring(settings, roles)
    return say_outcomes(outcomes)


async def _revive(settings: Settings, rows: Sequence[tuple[str, int]]) -> Sequence[Outcome]:
    def revive(tx: Tx) -> Sequence[Outcome]:
        return [
            _revive_update(tx, InboxId(number))
            if letter == "u"
            else _revive_call(tx, OutboxId(number))
            for letter, number in rows
        ]

    async with visit(settings) as database:
        return await database.write(revive)


def _revive_update(tx: Tx, number: InboxId) -> Outcome:
    ref = update_ref(number)
    if inbox.requeue(tx, number):
        return Outcome(f"{ref} will be handled again", is_done=True)
    found = inbox.show(tx, number)
    if found is None:
        return Outcome(f"there is no update {ref}", is_done=False)
    if found.state is InboxState.QUARANTINED:
        return Outcome(f"{ref} is quarantined: nobody can read it as an update", is_done=False)
    return Outcome(f"{ref} is {found.state}: only a dead update can be requeued", is_done=False)


def _revive_call(tx: Tx, number: OutboxId) -> Outcome:
    ref = call_ref(number)
    if review.requeue(tx, number):
        return Outcome(f"{ref} will be sent again", is_done=True)
    found = reports.show(tx, number)
    if found is None:
        return Outcome(f"there is no call {ref}", is_done=False)
    return Outcome(f"{ref} is {found.state}: only a dead call can be requeued", is_done=False)
