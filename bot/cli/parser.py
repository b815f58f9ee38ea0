"""The grammar of the command line: parsers that suggest what was meant, and never end the process.

argparse with three manners of ours: `--config` stands before or after the command, what was
misspelt is answered with the nearest word, and a fault is an exception (`Usage`) that `main` prints
like any other. Knows no command: each group adds its own.
"""

import argparse
import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn

from storage.errors import Usage

Run = Callable[[argparse.Namespace], int]
"""Carries out one command and gives the exit code."""

EXIT_FAILED: Final = 1

# SQLite's integers have 63 bits.
_ID_DIGITS_MAX: Final = 18
_SPANS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DIGITS: Final = 6


class Parser(argparse.ArgumentParser):
    """A parser that raises `Usage`."""

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, and where help is."""
        raise Usage(f"{message}; see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            kind = str(action.metavar or action.dest).lower()
            raise Usage(unknown(kind, str(value), action.choices))


class Commands:
    """The commands of a parser, or of a group of them."""

    def __init__(self, parser: Parser, metavar: str = "COMMAND") -> None:
        self._added = parser.add_subparsers(
            metavar=metavar,
            title=f"{metavar.lower()}s",
            required=True,
            parser_class=Parser,
        )

    def add(self, name: str, run: Run, *, purpose: str, notes: str = "") -> Parser:
        """Add a command; `purpose` is its one sentence, `notes` stand below its help."""
        parser = self._parser(name, purpose, notes)
        parser.set_defaults(run=run, parser=parser)
        return parser

    def group(self, name: str, *, purpose: str, notes: str = "") -> "Commands":
        """Add a command that has commands of its own."""
        return Commands(self._parser(name, purpose, notes), metavar="ACTION")

    def _parser(self, name: str, purpose: str, notes: str) -> Parser:
        parser = self._added.add_parser(
            name,
            help=purpose,
            description=purpose,
            epilog=notes,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_config(parser, default=argparse.SUPPRESS)
        return parser


def add_config(parser: Parser, *, default: str | None) -> None:
    """Accept `--config PATH`; below the first parser it must not undo what stood before."""
    parser.add_argument(
        "--config",
        metavar="PATH",
        type=Path,
        default=default,
        help="the configuration file; otherwise the one that FERRYMAN_CONFIG names",
    )


def add_json(parser: Parser) -> None:
    """Accept `--json`."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document, for programs to read",
    )


def add_limit(parser: Parser, *, default: int) -> None:
    """Accept `--limit N`."""
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_count,
        default=default,
        help=f"print at most N rows (default {default})",
    )


def parse(parser: Parser, words: Iterable[str]) -> argparse.Namespace:
    """Understand the words of a command line.

    Raises Usage when they make no command.
    """
    given, rest = parser.parse_known_args(list(words))
    if rest:
        raise Usage(_not_understood(given.parser, rest[0]))
    return given


def unknown(kind: str, word: str, known: Iterable[str]) -> str:
    """Say that a word is unknown, and which one was probably meant."""
    names = [str(name) for name in known]
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"unknown {kind} {word!r}; did you mean {near[0]}?"
    return f"unknown {kind} {word!r}; expected one of: {', '.join(names)}"


def _not_understood(parser: Parser, word: str) -> str:
    if not word.startswith("-"):
        return f"{word!r} is one word too many; see {parser.prog} --help"
    # A value may be a secret that was put onto the command line.
    option = word.partition("=")[0]
    options = [name for name in parser.format_help().split() if name.startswith("--")]
    known = sorted({name.strip("[],") for name in options})
    return f"{unknown('option', option, known)} (see {parser.prog} --help)"


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError("expected a number from 1 up")
    return number


def span_ms(text: str) -> int:
    """A length of time, such as 90s, 15m, 2h or 3d, in milliseconds."""
    count, unit = text[:-1], text[-1:]
    if unit not in _SPANS_MS or not (count.isascii() and count.isdecimal()) or len(count) > _DIGITS:
        raise argparse.ArgumentTypeError("expected a length of time, such as 90s, 15m, 2h or 3d")
    return int(count) * _SPANS_MS[unit]


def message_id(text: str) -> int:
    """The number of a message in its chat."""
    return _numbered(text, "expected the number of a message, as Telegram counts them")


def call_id(text: str) -> int:
    """The number of an outgoing call, written 34 or c34."""
    return _numbered(text.removeprefix("c"), "expected the number of a call, such as c34")


def either_id(text: str) -> tuple[str, int]:
    """An update or a call by its letter: ("u", 12) for u12, ("c", 34) for c34."""
    expected = "expected u12 for an update or c34 for a call, as `ferryman dead list` prints them"
    if text[:1] not in {"u", "c"}:
        raise argparse.ArgumentTypeError(expected)
    return text[0], _numbered(text[1:], expected)


def row_id(text: str) -> tuple[str, int]:
    """A row as `show` takes it: 34 and c34 are calls, u12 is an update."""
    expected = "expected the number of a row, such as c34 for a call or u12 for an update"
    letter = text[:1] if text[:1] in {"u", "c"} else ""
    return letter, _numbered(text.removeprefix(letter), expected)


def _numbered(digits: str, expected: str) -> int:
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _ID_DIGITS_MAX):
        raise argparse.ArgumentTypeError(expected)
    return int(digits)
