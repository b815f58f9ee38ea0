"""What Telegram's server counts: the characters that are left of a text, and whether any shows.

Pure. The limits are in code points of the parsed text, after the server has dropped the characters
that it lets nobody send and the white space at both ends (TDLib, `clean_input_string`,
`fix_formatted_text`, `utf8_length`, `is_empty_string`; telegram.md, section 2.5). Where white
space at an end belongs to an entity the server keeps it; here it never counts, so that a text is
at least as long as is said here.
"""

import re
from collections.abc import Sequence
from typing import Final

from storage.markup.entities import Entity, Formatted, Units, byte_offset, outer_first

MARKUP_BYTES_MAX: Final = 1 << 15
"""Of a text as it is given, markup included; above it no server looks for markup at all."""

_ENTITY_UNITS_MAX: Final = 1_000_000
_CONTROLS: Final = "".join(map(chr, range(33)))
_DROPPED: Final = "\r\u2028-\u202e\u030a\u0333\u033f"
_DROPPED_ONES: Final = re.compile(f"[{_DROPPED}]")
# White space, what the server takes for a space, and what takes no room on a screen.
_SHOWS: Final = re.compile(
    f"[^\\x00-\\x20\\xa0{_DROPPED}\u1680\u180e\u2000-\u200f\u202f\u205f\u2800\u3000\ufeff\ufffc"
    "\U000e0000-\U000e007f]"
)
# Of these kinds Telegram takes no notice: it finds them by itself.
_FOUND: Final = frozenset(
    {
        *("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"),
        "bank_card_number",
    }
)


def shows(text: str) -> bool:
    """Tell whether there is anything to see in a text; without it, it is empty to Telegram."""
    return _SHOWS.search(text) is not None


def count(text: str) -> int:
    """The code points of a parsed text that count against a limit."""
    ends = text.strip(_CONTROLS)
    if ends.isascii() and "\r" not in ends:
        return len(ends)
    return len(_DROPPED_ONES.sub("", ends).strip(_CONTROLS))


def passes_at(text: str, limit: int) -> int:
    """The byte of a parsed text at which it passes this limit, in UTF-8."""
    index = len(text) - len(text.lstrip(_CONTROLS))
    counted = 0
    while index < len(text):
        if not _DROPPED_ONES.match(text, index):
            counted += 1
            if counted > limit:
                break
        index += 1
    return byte_offset(text, index)


def misplaced(formatted: Formatted) -> str | None:
    """What Telegram would say of entities that don't fit their text; None when they do.

    Silent where entities overlap that do not nest, and about what lies within another one: of
    those the server drops some before it looks.
    """
    entities = [each for each in formatted.entities if each.type not in _FOUND]
    for each in entities:
        for name, value in (("offset", each.offset), ("length", each.length)):
            if not 0 <= value <= _ENTITY_UNITS_MAX:
                return f"Receive an entity with incorrect {name} {value}"
    outermost = _outermost(outer_first(each for each in entities if each.length))
    units = Units(formatted.text)
    return next((told for each in outermost if (told := _told(each, formatted.text, units))), None)


def _outermost(ordered: Sequence[Entity]) -> list[Entity]:
    """The entities within no other one; none when two overlap that do not nest."""
    found: list[Entity] = []
    within: list[Entity] = []
    for each in ordered:
        while within and within[-1].end <= each.offset:
            within.pop()
        if not within:
            found.append(each)
        elif within[-1].end < each.end:
            return []
        within.append(each)
    return found


def _told(entity: Entity, text: str, units: Units) -> str | None:
    size = units.of(len(text))
    if entity.offset > size:
        return f"Entity begins after the end of the text at UTF-16 offset {entity.offset}"
    begins = f"Entity beginning at UTF-16 offset {entity.offset}"
    if entity.end > size:
        return f"{begins} ends after the end of the text at UTF-16 offset {entity.end}"
    if units.splits(entity.offset):
        at = byte_offset(text, units.index(entity.offset) + 1)
        return f"Entity begins in a middle of a UTF-16 symbol at byte offset {at}"
    if units.splits(entity.end):
        at = byte_offset(text, units.index(entity.end) + 1)
        return f"{begins} ends in a middle of a UTF-16 symbol at byte offset {at}"
    return None
