"""Which of the dead are meant, in the same words for listing and for reviving them."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Final

from bot.cli.parser import Parser, span_ms
from storage.sieve import Sieve

_UPDATES: Final = "update"
_CALLS: Final = "call"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen, and among what."""

    sieve: Sieve
    updates: bool
    calls: bool


def add_sieve(parser: Parser) -> None:
    """Accept what tells some of the dead from the others."""
    parser.add_argument("--bot", metavar="NAME", help="only of this bot")
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="only updates (update), only calls (call), an update's kind (message), or a call's "
        "method (sendMessage)",
    )
    parser.add_argument("--reason", metavar="TEXT", help="only where the reason holds this text")
    parser.add_argument(
        "--since", metavar="SPAN", type=span_ms, help="only what was given up within it: 90s, 2h"
    )
    parser.add_argument(
        "--before", metavar="SPAN", type=span_ms, help="only what was given up longer ago than it"
    )


def is_sieved(given: Namespace) -> bool:
    """Whether any of it was given."""
    named = (given.bot, given.kind, given.reason, given.since, given.before)
    return any(each is not None for each in named)


def chosen(given: Namespace, now_ms: int) -> Chosen:
    """What was given, as of now."""
    kind = None if given.kind in {_UPDATES, _CALLS} else given.kind
    sieve = Sieve(
        bot=given.bot,
        kind=kind,
        reason=given.reason,
        since_ms=None if given.since is None else now_ms - given.since,
        before_ms=None if given.before is None else now_ms - given.before,
    )
    return Chosen(sieve, updates=given.kind != _CALLS, calls=given.kind != _UPDATES)
