"""`ferryman show`: one row whole, a call with every attempt or an update with its end.

What users wrote, or are to read, is shown only when `--texts` asks for it.
"""

import asyncio
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bot.cli.ground import settings_of, visit
from bot.cli.output import fields_of, say, say_json
from bot.cli.parser import Commands, Parser, add_json, row_id
from bot.cli.text import (
    call_ref,
    facts,
    moment,
    or_dash,
    printable,
    since,
    span,
    table,
    unquoted,
    update_ref,
)
from storage import inbox, reports
from storage.clock import SystemClock
from storage.errors import FerrymanError, Usage
from storage.inbox import InboxRecord
from storage.lifecycle import InboxId, OutboxId
from storage.reports import AttemptReport, RowReport
from storage.settings import Settings

T = TypeVar("T")

_HIDDEN = "(hidden; --texts shows it)"


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "show", _show, purpose="Show one call with every attempt, or one update, and its reason."
    )
    add_row(parser, kind=row_id)
    parser.add_argument("--update", action="store_true", help="ID is the number of an update")


def add_row(parser: Parser, *, kind: Callable[[str], tuple[str, int]]) -> None:
    """Accept what showing a row takes: its number, read by `kind`, `--texts`, `--json`."""
    parser.add_argument("id", metavar="ID", type=kind, help="c34 for a call, u12 for an update")
    parser.add_argument(
        "--texts", action="store_true", help="print also what users wrote or are to read"
    )
    add_json(parser)


def _show(given: Namespace) -> int:
    letter, number = given.id
    if given.update and letter == "c":
        raise Usage("--update goes with the number of an update, such as u12")
    return show(given, "u" if given.update else letter, number)


def show(given: Namespace, letter: str, number: int) -> int:
    """Print one row: an update for the letter u, else a call.

    Raises FerrymanError when there is none.
    """
    settings = settings_of(given)
    if letter == "u":
        update = asyncio.run(_update(settings, InboxId(number)))
        document = update_document(update, texts=given.texts)
        lines = update_lines(update, now_ms=SystemClock().now_ms(), texts=given.texts)
    else:
        call = asyncio.run(_call(settings, OutboxId(number)))
        call = call if given.texts else _without_quotes(call)
        document = call_document(call, texts=given.texts)
        lines = call_lines(call, now_ms=SystemClock().now_ms(), texts=given.texts)
    if given.json:
        say_json(document)
    else:
        say(lines)
    return 0


async def _update(settings: Settings, number: InboxId) -> InboxRecord:
    async with visit(settings) as database:
        found = await database.read(lambda tx: inbox.show(tx, number))
    return _required(found, f"there is no update {update_ref(number)}; it may have been forgotten")


async def _call(settings: Settings, number: OutboxId) -> RowReport:
    async with visit(settings) as database:
        found = await database.read(lambda tx: reports.show(tx, number))
    return _required(found, f"there is no call {call_ref(number)}; it may have been forgotten")


def _required(found: T | None, otherwise: str) -> T:
    if found is None:
        raise FerrymanError(otherwise)
    return found


def _without_quotes(call: RowReport) -> RowReport:
    history = [
        replace(attempt, description=unquoted(attempt.description or "") or None)
        for attempt in call.history
    ]
    return replace(call, reason=unquoted(call.reason or "") or None, history=history)


def update_document(update: InboxRecord, *, texts: bool) -> dict[str, Any]:
    """An update for a program; its body, as text, only if wanted."""
    document = fields_of(update)
    document["body"] = update.body.decode("utf-8", "replace")
    if not texts:
        del document["body"]
    return document


def call_document(call: RowReport, *, texts: bool) -> dict[str, Any]:
    """A call for a program; its parameters only if wanted."""
    document = fields_of(call)
    if not texts:
        del document["params"]
    return document


def update_lines(update: InboxRecord, *, now_ms: int, texts: bool) -> Iterator[str]:
    """An update for a person."""
    pairs = [
        ("update", f"{update_ref(update.id)} ({or_dash(update.update_id)} at Telegram)"),
        ("bot", update.bot),
        ("kind", or_dash(update.kind)),
        ("state", update.state),
        ("reason", or_dash(update.reason)),
        ("lanes", f"chat {or_dash(update.chat_lane)}, user {or_dash(update.user_lane)}"),
        ("turns begun", str(update.claims)),
        ("received", _ago(update.received_at_ms, now_ms)),
        ("turn begun", _ago(update.claimed_at_ms, now_ms)),
        ("ended", _ago(update.finished_at_ms, now_ms)),
        ("size", f"{len(update.body)} bytes"),
        ("body", printable(update.body.decode("utf-8", "replace")) if texts else _HIDDEN),
    ]
    yield from facts(pairs)
    if update.trace:
        yield ""
        yield "Where it failed"
        yield from (printable(line) for line in update.trace.splitlines())


def call_lines(call: RowReport, *, now_ms: int, texts: bool) -> Iterator[str]:
    """A call for a person, with its attempts as a table."""
    tries = str(call.attempts) if call.attempts_max is None else _of(call)
    pairs = [
        ("call", f"{call_ref(call.id)} {printable(call.method)}"),
        ("bot", call.bot),
        ("chat", f"{or_dash(call.chat_id)} (lane {printable(call.lane)}, {call.priority})"),
        ("state", call.state),
        ("reason", or_dash(call.reason)),
        ("message id", or_dash(call.message_id)),
        ("attempts spent", tries),
        ("if uncertain", call.on_uncertain),
        ("cause", printable(call.key)),
        ("supersede key", or_dash(call.supersede_key)),
        ("left", _ago(call.created_at_ms, now_ms)),
        ("not before", moment(call.not_before_ms or None)),
        ("due", moment(call.due_ms or None)),
        ("expires", moment(call.expires_at_ms)),
        ("ended", _ago(call.finished_at_ms, now_ms)),
        ("seen by a person", _ago(call.seen_at_ms, now_ms)),
    ]
    yield from facts(pairs)
    yield ""
    yield from facts(_parameters(call, texts=texts))
    yield ""
    yield from history_lines(call.history)


def _of(call: RowReport) -> str:
    return f"{call.attempts} of {call.attempts_max}"


def _parameters(call: RowReport, *, texts: bool) -> Iterator[tuple[str, str]]:
    for name, value in call.params.items():
        yield printable(name), printable(value) if texts else _HIDDEN


def history_lines(history: Sequence[AttemptReport]) -> Iterator[str]:
    """Every attempt of a call as a table, and below it what was answered."""
    if not history:
        yield "No attempt was made yet."
        return
    titles = ("ATTEMPT", "LEFT", "STAGE", "TOOK", "HTTP", "CODE", "VERDICT", "WAIT")
    yield from table(titles, [_attempt_cells(attempt) for attempt in history])
    for attempt in history:
        if attempt.description:
            yield f"attempt {attempt.id} was answered: {printable(attempt.description)}"
        if attempt.request_id:
            yield f"attempt {attempt.id} is known there as {printable(attempt.request_id)}"
        for item in attempt.items_told:
            why = f", {printable(item.reason)}" if item.reason else ""
            yield f"attempt {attempt.id}, item {item.number}: {item.state}{why}"


def _attempt_cells(attempt: AttemptReport) -> Sequence[str]:
    return (
        str(attempt.id),
        moment(attempt.stamped_at_ms).removesuffix(" UTC"),
        attempt.stage,
        "-" if attempt.duration_ms is None else span(attempt.duration_ms),
        or_dash(attempt.status),
        or_dash(attempt.code),
        or_dash(attempt.verdict),
        "-" if attempt.wait_ms is None else span(attempt.wait_ms),
    )


def _ago(at_ms: int | None, now_ms: int) -> str:
    return "-" if at_ms is None else f"{moment(at_ms)}, {since(at_ms, now_ms)} ago"
