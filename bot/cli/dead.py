"""`ferryman dead`: what was given up, updates and calls, and its revival.

Both kinds have numbers of their own, so a letter goes before each: u12 is an update, c34 a call.
Many are revived in many short transactions, so that nobody waits for this command.
"""

import asyncio
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from bot.cli.ground import ring, settings_of, visit
from bot.cli.output import Outcome, fields_of, say, say_json, say_outcomes
from bot.cli.parser import Commands, add_json, add_limit, either_id
from bot.cli.show import add_row, show
from bot.cli.sieving import Chosen, add_sieve, chosen, is_sieved
from bot.cli.text import call_ref, counted, or_dash, printable, since, table, unquoted, update_ref
from storage import inbox, reports, review
from storage.clock import SystemClock
from storage.database import Database, Tx
from storage.errors import Usage
from storage.inbox import DeadUpdate
from storage.lifecycle import InboxId, InboxState, OutboxId
from storage.review import DeadCall
from storage.settings import Settings

_ROWS_SHOWN = 20

_NOTES = """\
u12 is an update that Telegram delivered, whose handler failed or which nobody can read;
c34 is a call to Telegram that was refused for good or whose attempts are spent.

examples:
  ferryman dead requeue u12 c34
  ferryman dead requeue --kind update --reason KeyError --since 2h --dry-run
  ferryman dead requeue --all --bot main

An update that is handled again says nothing twice: what its turn has said before is found again by
the place in which it is said, as long as that is kept (retention.outbox_days).
"""
_AT_ONCE: Final = 200


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
    add_sieve(listing)
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
        "ids", metavar="ID", nargs="*", type=either_id, help="u12 for an update, c34 for a call"
    )
    add_sieve(requeueing)
    requeueing.add_argument("--all", action="store_true", help="everything that was given up")
    requeueing.add_argument("--dry-run", action="store_true", help="count, and change nothing")


def _list(given: Namespace) -> int:
    now_ms = SystemClock().now_ms()
    found = asyncio.run(_look(settings_of(given), given.limit, chosen(given, now_ms), now_ms))
    if given.json:
        say_json(as_document(found))
    else:
        say(as_lines(found, limit=given.limit))
    return 0


async def _look(settings: Settings, limit: int, wanted: Chosen, now_ms: int) -> Dead:
    def look(tx: Tx) -> Dead:
        updates = inbox.dead_list(tx, limit=limit, sieve=wanted.sieve) if wanted.updates else ()
        calls = review.dead_list(tx, limit=limit, sieve=wanted.sieve) if wanted.calls else ()
        told = [replace(call, reason=unquoted(call.reason)) for call in calls]
        return Dead(now_ms, updates, told)

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
    if bool(given.ids) + is_sieved(given) + given.all != 1:
        raise Usage(
            "expected numbers such as u12, or what to choose by, or --all: one of the three"
        )
    if given.ids:
        if given.dry_run:
            raise Usage("--dry-run counts what is chosen by --all or a filter")
        outcomes = asyncio.run(_revive(settings, given.ids))
        _ring(settings, {letter for letter, _ in given.ids})
        return say_outcomes(outcomes)
    wanted = chosen(given, SystemClock().now_ms())
    updates, calls = asyncio.run(_revive_all(settings, wanted, dry_run=given.dry_run))
    told = f"{counted(updates, 'update')} and {counted(calls, 'call')}"
    if given.dry_run:
        say([f"{told} would be requeued; nothing was changed"])
        return 0
    _ring(settings, {letter for letter, count in (("u", updates), ("c", calls)) if count})
    say([f"{told} requeued"])
    return 0


def _ring(settings: Settings, letters: set[str]) -> None:
    roles = [role for role, letter in (("worker", "u"), ("sender", "c")) if letter in letters]
    ring(settings, roles)


async def _revive_all(settings: Settings, wanted: Chosen, *, dry_run: bool) -> tuple[int, int]:
    """Revive all that passes; how many updates and calls these are."""
    async with visit(settings) as database:
        updates = calls = 0
        if wanted.updates:
            among = partial(inbox.dead_among, sieve=wanted.sieve)
            updates = await _each(database, among, None if dry_run else inbox.requeue)
        if wanted.calls:
            those = partial(review.dead_among, sieve=wanted.sieve)
            calls = await _each(database, those, None if dry_run else review.requeue)
        return updates, calls


async def _each(
    database: Database,
    among: Callable[..., Sequence[Any]],
    revive: Callable[[Tx, Any], bool] | None,
) -> int:
    """Go through the dead in short transactions; how many passed, or were revived."""

    def some(tx: Tx) -> tuple[Sequence[Any], int]:
        found = among(tx, after_id=after_id, limit=_AT_ONCE)
        return found, len(found) if revive is None else sum(revive(tx, row) for row in found)

    total = after_id = 0
    while True:
        found, done = await (database.read(some) if revive is None else database.write(some))
        total += done
        if len(found) < _AT_ONCE:
            return total
        after_id = found[-1]


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
