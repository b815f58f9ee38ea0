"""Cut a long text into parts that Telegram takes, with its entities carried across.

Pure. A part ends where a paragraph, a line or a word does, as long as that leaves it at least half
full; else between two characters as they are seen. The white space at a cut is dropped, as
Telegram would drop it from the end of a message; what shows is never lost. An entity over a cut
goes on in the next part, except what is one sign: a custom emoji, a date.
"""

import unicodedata
from collections.abc import Iterator
from typing import Final

from storage.markup.entities import Entity, Formatted, Units
from storage.markup.measuring import shows

# How far back to look for a place between two characters as they are seen: the longest emoji
# (families, flags of regions) have about ten code points.
_SIGN_CHARS_MAX: Final = 32
_JOINER: Final = "\u200d"
_WHOLE: Final = frozenset({"custom_emoji", "date_time"})
# From the best place to the worst: before a blank line, a line, a word.
_PLACES: Final = ("\n\n", "\n", " ")


def cut(formatted: Formatted, limit: int) -> tuple[Formatted, ...]:
    """The parts of a text, each of at most `limit` characters and with something to see.

    None at all when there is nothing to see in the whole of it.
    """
    units = Units(formatted.text)
    whole = [
        (units.index(each.offset), units.index(each.end))
        for each in formatted.entities
        if each.type in _WHOLE
    ]
    spans = _spans(formatted.text, limit, whole)
    parts = (_part(formatted, units, begins, ends) for begins, ends in spans)
    return tuple(part for part in parts if shows(part.text))


def _spans(text: str, limit: int, whole: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """From where to where each part reaches, in characters."""
    begins = len(text) - len(text.lstrip(" \n"))
    size = len(text.rstrip(" \n"))
    while size - begins > limit:
        ends, after = _place(text, begins, begins + limit)
        ends, after = _outside(whole, begins, ends, after)
        yield begins, ends
        begins = after
    if size > begins:
        yield begins, size


def _place(text: str, begins: int, furthest: int) -> tuple[int, int]:
    """Where the part that begins here ends, and where the next one begins."""
    middle = begins + (furthest - begins) // 2
    for place in _PLACES:
        # White space that begins where the room ends takes none of it.
        at = text.rfind(place, middle, furthest + len(place))
        if at >= 0:
            after = at + len(place)
            while text.startswith(place[-1], after):
                after += 1
            return at, after
    for at in range(furthest, max(begins, furthest - _SIGN_CHARS_MAX), -1):
        if not _belongs(text, at):
            return at, at
    return furthest, furthest


def _outside(whole: list[tuple[int, int]], begins: int, ends: int, after: int) -> tuple[int, int]:
    """Move a cut that would go through a sign to its beginning, unless the part begins there."""
    for start, end in whole:
        if begins < start < ends < end:
            return start, start
    return ends, after


def _belongs(text: str, at: int) -> bool:
    """Tell whether the character at `at` and the one before it are seen as one."""
    before, char = text[at - 1], text[at]
    if _JOINER in (before, char) or (before, char) == ("\r", "\n"):
        return True
    if _is_flag_half(char) and _is_flag_half(before):
        return _flag_halves_before(text, at) % 2 == 1
    # Skin tones, the letters of flags of regions, accents and variants.
    if "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f":
        return True
    return unicodedata.category(char) in ("Mn", "Me", "Mc")


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, at: int) -> int:
    first = at
    while first and _is_flag_half(text[first - 1]):
        first -= 1
    return at - first


def _part(formatted: Formatted, units: Units, begins: int, ends: int) -> Formatted:
    text = formatted.text[begins:ends].rstrip(" \n")
    first, last = units.of(begins), units.of(begins + len(text))
    kept = tuple(
        Entity(each.type, start - first, end - start, each.extra)
        for each in formatted.entities
        if (start := max(first, each.offset)) < (end := min(last, each.end))
    )
    return Formatted(text, kept)
