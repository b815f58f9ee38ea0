"""`ferryman cancel`: what waits is not to be said any more.

Nothing is asked: `--dry-run` counts first. Each row is answered for exactly, cancelled or too late,
and much is done in many short transactions, so that nobody waits for this command.
"""

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from bot.cli.ground import one_bot, ring, settings_of, visit
from bot.cli.output import Outcome, say, say_json, say_outcomes
from bot.cli.parser import EXIT_FAILED, Commands, add_json, call_id, span_ms
from bot.cli.scopes import add_bot, add_chat
from bot.cli.text import call_ref, counted
from bot.producing import key_of
from storage import cancelling
from storage.cancelling import Answer, Cursor, Wanted
from storage.clock import SystemClock
from storage.database import Database, Tx
from storage.errors import Usage
from storage.lifecycle import BotName, OutboxId, OutboxState, Priority
from storage.outgoing import chat_lane
from storage.settings import Settings
from storage.telemetry import event

_NOTES: Final = """\
examples:
  ferryman cancel c34 c35 --bot main
  ferryman cancel --chat 5 --bot main --reason "asked by phone"
  ferryman cancel --class bulk --older-than 2h --bot main --dry-run

A call that is under way can't be taken back: it is told as too late, and not tried again.
"""


@dataclass(slots=True)
class Cancelled:
    """What became of everything that was to be cancelled, by its numbers."""

    cancelled: list[OutboxId] = field(default_factory=list)
    too_late: list[OutboxId] = field(default_factory=list)
    held: list[OutboxId] = field(default_factory=list)
    ended: list[OutboxId] = field(default_factory=list)
    unknown: list[OutboxId] = field(default_factory=list)

    def take(self, answers: Sequence[Answer]) -> None:
        """Count these answers in."""
        for answer in answers:
            getattr(self, answer.told).append(answer.id)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a dry run has found: calls that wait, and calls that a sender has in hand."""

    waiting: int
    in_hand: int


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "cancel",
        _cancel,
        purpose="Cancel calls that wait: by number, key, chat or what they are.",
        notes=_NOTES,
    )
    parser.add_argument("ids", metavar="ID", nargs="*", type=call_id, help="a call, such as c34")
    parser.add_argument(
        "--key", metavar="KEY", help="what this cause has left, or this producer's key"
    )
    add_chat(parser)
    add_bot(parser)
    parser.add_argument(
        "--class",
        metavar="CLASS",
        dest="priority",
        choices=[str(each) for each in Priority],
        help="only interactive, bulk or paid calls",
    )
    parser.add_argument("--method", metavar="NAME", help="only calls of this method")
    parser.add_argument("--generation", metavar="ID", help="only what belongs to this draft")
    parser.add_argument(
        "--older-than",
        metavar="SPAN",
        type=span_ms,
        help="only what was left so long ago: 90s, 2h",
    )
    parser.add_argument("--lane-prefix", metavar="TEXT", help="only chats whose lane begins so")
    parser.add_argument("--all", action="store_true", help="everything that waits")
    parser.add_argument("--dry-run", action="store_true", help="count, and change nothing")
    parser.add_argument(
        "--reason", metavar="TEXT", default="cancelled by an operator", help="what others are told"
    )
    add_json(parser)


def _cancel(given: Namespace) -> int:
    settings = settings_of(given)
    bot = one_bot(settings, given.bot)
    wanted = _wanted(given)
    if given.dry_run:
        found = asyncio.run(_count(settings, bot, given, wanted))
        if given.json:
            say_json(found)
        else:
            say(_counted_lines(found))
        return 0
    done = asyncio.run(_carry_out(settings, bot, given, wanted))
    ring(settings, ["sender"])
    if given.json:
        say_json(done)
        return 0 if wanted is not None or _is_success(done) else EXIT_FAILED
    return say_outcomes(list(_outcomes(done, is_listed=wanted is None)))


def _wanted(given: Namespace) -> Wanted | None:
    """What the options describe; None where calls are named by number or key.

    Raises Usage where nothing is meant, or two things at once.
    """
    filters = (given.priority, given.method, given.generation, given.older_than, given.lane_prefix)
    has_filter = any(value is not None for value in filters)
    named = [bool(given.ids), given.key is not None]
    described = given.chat is not None or has_filter or given.all
    if sum(named) + described != 1:
        raise Usage("expected calls by number, --key, or what to look for (--all for everything)")
    if not described:
        return None
    if given.chat is not None and given.lane_prefix is not None:
        raise Usage("--chat and --lane-prefix: expected one of them")
    before_ms = None
    if given.older_than is not None:
        before_ms = SystemClock().now_ms() - given.older_than
    return Wanted(
        lane=None if given.chat is None else chat_lane(given.chat, given.business),
        lane_prefix=given.lane_prefix or "",
        priority=None if given.priority is None else Priority(given.priority),
        method=given.method,
        generation=given.generation,
        created_before_ms=before_ms,
    )


async def _count(
    settings: Settings, bot: BotName, given: Namespace, wanted: Wanted | None
) -> Counted:
    async with visit(settings) as database:
        if wanted is not None:
            return await _count_all(database, bot, wanted)
        answers = await database.read(partial(_cancel_named, bot=bot, given=given))
    states = [answer.state for answer in answers]
    return Counted(states.count(OutboxState.QUEUED), states.count(OutboxState.CLAIMED))


async def _count_all(database: Database, bot: BotName, wanted: Wanted) -> Counted:
    waiting = in_hand = 0
    after: Cursor | None = cancelling.start(wanted)
    while after is not None:
        looked = await database.read(partial(cancelling.look, bot=bot, wanted=wanted, after=after))
        waiting += looked.waiting
        in_hand += looked.in_hand
        after = looked.after
    return Counted(waiting, in_hand)


async def _carry_out(
    settings: Settings,
    bot: BotName,
    given: Namespace,
    wanted: Wanted | None,
) -> Cancelled:
    async with visit(settings) as database:
        if wanted is not None:
            done = await _cancel_all(database, bot, wanted, given.reason)
        else:
            done = Cancelled()
            done.take(await database.write(partial(_cancel_named, bot=bot, given=given)))
    if done.cancelled:
        count = len(done.cancelled)
        row = done.cancelled[0]
        event("outbox.cancelled", bot=bot, outbox_id=row, count=count, reason=given.reason)
    return done


def _cancel_named(tx: Tx, bot: BotName, given: Namespace) -> Sequence[Answer]:
    if given.key is not None:
        answers: list[Answer] = []
        for key in (given.key, key_of(given.key)):
            answers += cancelling.by_key(tx, bot, key, reason=given.reason, is_dry=given.dry_run)
        return answers
    rows = [OutboxId(each) for each in given.ids]
    return cancelling.by_ids(tx, bot, rows, reason=given.reason, is_dry=given.dry_run)


async def _cancel_all(database: Database, bot: BotName, wanted: Wanted, reason: str) -> Cancelled:
    done = Cancelled()
    after: Cursor | None = cancelling.start(wanted)
    while after is not None:
        batch = await database.write(
            partial(cancelling.matching, bot=bot, wanted=wanted, after=after, reason=reason),
        )
        done.take(batch.answers)
        after = batch.after
    return done


def _counted_lines(found: Counted) -> Iterator[str]:
    yield f"{counted(found.waiting, 'call')} would be cancelled"
    if found.in_hand:
        yield f"{counted(found.in_hand, 'call')} in a sender's hand would be too late, or nearly so"


def _outcomes(done: Cancelled, *, is_listed: bool) -> Iterator[Outcome]:
    if is_listed:
        yield from (
            Outcome(f"{call_ref(row)} is cancelled", is_done=True) for row in done.cancelled
        )
        for row in done.too_late:
            told = "is under way: too late; if it fails, it is not tried again"
            yield Outcome(f"{call_ref(row)} {told}", is_done=False)
        for row in done.held:
            told = "waits for a decision already: ferryman review resolve"
            yield Outcome(f"{call_ref(row)} {told}", is_done=False)
        for row in done.ended:
            yield Outcome(f"{call_ref(row)} has ended already", is_done=False)
        for row in done.unknown:
            yield Outcome(f"this bot has no call {call_ref(row)}", is_done=False)
        if not any((done.cancelled, done.too_late, done.held, done.ended, done.unknown)):
            yield Outcome("nothing has that key", is_done=False)
        return
    yield Outcome(f"{counted(len(done.cancelled), 'call')} cancelled", is_done=True)
    if done.too_late:
        told = f"{counted(len(done.too_late), 'call')} under way: too late for"
        yield Outcome(f"{told} {', '.join(map(call_ref, done.too_late))}", is_done=True)


def _is_success(done: Cancelled) -> bool:
    return not (done.too_late or done.held or done.ended or done.unknown)
