"""Words for a terminal: spans and moments of time, tables, and texts that cannot harm it.

Pure. What Telegram answered may quote a user or hold control characters; nothing here lets either
through unasked. What is cut to fit is redacted before, as half a token is no token to a mask.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from storage.telemetry import redact

WIDTH: Final = 100
"""Columns of everything that is printed: what a terminal beside a browser window has."""

_GAP: Final = "  "
_LAST_COLUMN_MIN: Final = 8
_CELL_CHARS_MAX: Final = 40
_QUOTED = re.compile(r'"[^"]*("|$)')
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


def span(ms: int) -> str:
    """A length of time in at most two units: `3 m 20 s`; milliseconds below one second."""
    if abs(ms) < _UNITS[-1][0]:
        return f"{ms} ms"
    sign, left_ms = ("-", -ms) if ms < 0 else ("", ms)
    for position, (unit_ms, unit) in enumerate(_UNITS):
        if left_ms >= unit_ms:
            count, rest_ms = divmod(left_ms, unit_ms)
            told = f"{sign}{count} {unit}"
            if position + 1 == len(_UNITS):
                return told
            finer_ms, finer = _UNITS[position + 1]
            return f"{told} {rest_ms // finer_ms} {finer}" if rest_ms >= finer_ms else told
    raise AssertionError("a second or more has a unit")


def moment(at_ms: int | None) -> str:
    """A moment in UTC, to the second; a dash when there is none."""
    if at_ms is None:
        return "-"
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def since(at_ms: int | None, now_ms: int) -> str:
    """How long ago a moment was; a dash when there is none."""
    return "-" if at_ms is None else span(max(0, now_ms - at_ms))


def until(at_ms: int | None, now_ms: int) -> str:
    """How long it is to a moment: `in 20 s`, or `now`; a dash when there is none."""
    if at_ms is None:
        return "-"
    return f"in {span(at_ms - now_ms)}" if at_ms > now_ms else "now"


def or_dash(value: object) -> str:
    """The value as text, or a dash when there is none."""
    return "-" if value is None or value == "" else printable(str(value))


def printable(text: str) -> str:
    """The text on one line, without any character that steers a terminal."""
    return "".join(
        character if character.isprintable() else _escaped(character) for character in text
    )


def _escaped(character: str) -> str:
    return " " if character in "\n\t" else character.encode("unicode_escape").decode("ascii")


def unquoted(text: str) -> str:
    """Telegram's words without what they quote, as that may be a user's."""
    return _QUOTED.sub('"…"', text)


def shortened(text: str, chars_max: int) -> str:
    """The text, cut with an ellipsis where it is longer."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def call_ref(row_id: int) -> str:
    """What an outgoing call is called at the command line: c34."""
    return f"c{row_id}"


def update_ref(row_id: int) -> str:
    """What an update is called at the command line: u12."""
    return f"u{row_id}"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table within `WIDTH` columns; the last column gives way where it must."""
    cells = [
        [*(shortened(redact(cell), _CELL_CHARS_MAX) for cell in row[:-1]), redact(row[-1])]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in (titles, *cells)) for column in range(len(titles))]
    room = WIDTH - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
    widths[-1] = min(widths[-1], max(room, _LAST_COLUMN_MIN))
    return [
        _GAP.join(
            shortened(cell, width).ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in (titles, *cells)
    ]


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines of names and what stands for them, one below the other."""
    told = list(pairs)
    width = max((len(name) for name, _ in told), default=0)
    return [f"{name.ljust(width)}{_GAP}{value}".rstrip() for name, value in told]


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 fault`, `2 faults`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
