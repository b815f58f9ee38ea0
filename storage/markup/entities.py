"""Formatted text: a text and its entities, and the markup that is no text.

Pure. A parser builds its text in characters, Python's unit; Telegram counts entities in units of
UTF-16. The one turns into the other here, once, when a text is finished.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from storage.errors import FerrymanError

# Which of two entities over the same stretch is the outer one (TDLib, `get_type_priority`).
_INNERNESS: Final[Mapping[str, int]] = {
    "blockquote": 0,
    "expandable_blockquote": 0,
    "pre": 10,
    "code": 20,
    "date_time": 30,
    "text_link": 49,
    "bold": 90,
    "italic": 91,
    "underline": 92,
    "strikethrough": 93,
    "spoiler": 94,
    "custom_emoji": 99,
}


class MarkupError(FerrymanError):
    """The markup is no text: `why` in Telegram's words, `offset` in bytes of UTF-8.

    Telegram's own words name the byte of some faults and not of others; `str` names it always.
    """

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why if "byte offset" in why else f"{why} (at byte offset {offset})")
        self.why = why
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Entity:
    """One stretch of formatted text, in UTF-16 units. `extra` are its other fields, by name."""

    type: str
    offset: int
    length: int
    extra: tuple[tuple[str, object], ...] = field(default=(), hash=False)

    @property
    def end(self) -> int:
        """Where it ends, in UTF-16 units."""
        return self.offset + self.length

    def to_json(self) -> dict[str, object]:
        """A MessageEntity of the Bot API."""
        return {"type": self.type, "offset": self.offset, "length": self.length, **dict(self.extra)}


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text without markup and its entities, outer ones first."""

    text: str
    entities: tuple[Entity, ...] = ()


@dataclass(slots=True)
class Mark:
    """An entity while its text grows: `start` and `length` in characters."""

    kind: str
    start: int
    length: int
    extra: dict[str, object] = field(default_factory=dict)


def finished(text: str, marks: Sequence[Mark]) -> Formatted:
    """The text with these marks as entities, outer ones first."""
    if not marks:
        return Formatted(text)
    units = Units(text)
    made = [
        Entity(
            mark.kind,
            units.of(mark.start),
            units.of(mark.start + mark.length) - units.of(mark.start),
            tuple(mark.extra.items()),
        )
        for mark in marks
    ]
    return Formatted(text, tuple(outer_first(made)))


def outer_first(entities: Iterable[Entity]) -> list[Entity]:
    """Entities by where they begin, and of those that begin together the longest first."""
    return sorted(
        entities, key=lambda each: (each.offset, -each.length, _INNERNESS.get(each.type, 50))
    )


class Units:
    """Positions of one text, from characters to UTF-16 units and back."""

    __slots__ = ("_wide", "_wide_units")

    def __init__(self, text: str) -> None:
        # Characters above the first plane take two units.
        self._wide = () if is_narrow(text) else tuple(_wide_in(text))
        self._wide_units = tuple(at + before for before, at in enumerate(self._wide))

    def of(self, index: int) -> int:
        """The unit at which this character begins."""
        return index + bisect_left(self._wide, index)

    def index(self, unit: int) -> int:
        """The character that begins at this unit, or within which it lies."""
        before = bisect_left(self._wide_units, unit)
        if before and self._wide_units[before - 1] == unit - 1:
            return self._wide[before - 1]
        return unit - before

    def splits(self, unit: int) -> bool:
        """Tell whether a character lies on both sides of this unit."""
        before = bisect_left(self._wide_units, unit)
        return before > 0 and self._wide_units[before - 1] == unit - 1


def is_narrow(text: str) -> bool:
    """Tell whether every character takes one UTF-16 unit."""
    return text.isascii() or max(text) < "\U00010000"


def _wide_in(text: str) -> Iterable[int]:
    return (index for index, char in enumerate(text) if char >= "\U00010000")


def byte_offset(text: str, index: int) -> int:
    """Where a character stands, in bytes, as Telegram's error texts count."""
    return len(text[:index].encode("utf-8", "surrogatepass"))
