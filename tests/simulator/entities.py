"""Formatted text: entities as Telegram keeps them, offsets in UTF-16 units.

The builder that both markup parsers write into, the trimming that Telegram applies, and the few
entities that Telegram finds in plain text by itself. Pure.
"""

import re
from dataclasses import dataclass, field, replace

from tests.simulator.wire import JsonObject


class Unparsable(Exception):
    """The markup is broken; the message is the part behind `can't parse entities: `."""


def utf16_length(text: str) -> int:
    """Length as Telegram counts entity offsets."""
    return len(text.encode("utf-16-le")) // 2


def byte_offset(text: str, index: int) -> int:
    """Where a character stands, as Telegram's error texts count."""
    return len(text[:index].encode())


@dataclass(frozen=True, slots=True)
class Entity:
    """One stretch of formatted text."""

    type: str
    offset: int
    length: int
    extra: tuple[tuple[str, object], ...] = ()

    def to_json(self) -> JsonObject:
        """Write it as Telegram does."""
        return {"type": self.type, "offset": self.offset, "length": self.length, **dict(self.extra)}


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text and its entities, outer ones first."""

    text: str
    entities: tuple[Entity, ...] = ()

    def trimmed(self) -> "Formatted":
        """Without white space at both ends, entities moved and shortened to fit."""
        text = self.text.strip()
        before = utf16_length(self.text[: len(self.text) - len(self.text.lstrip())])
        length = utf16_length(text)
        kept = []
        for entity in self.entities:
            start = max(0, entity.offset - before)
            end = min(length, entity.offset - before + entity.length)
            if end > start:
                kept.append(replace(entity, offset=start, length=end - start))
        return Formatted(text, tuple(kept))


@dataclass(slots=True)
class Builder:
    """Text without its markup, growing, and the entities found so far."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    entities: list[Entity] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Append plain text."""
        self.parts.append(text)
        self.length += utf16_length(text)

    def mark(self, kind: str, start: int, **extra: object) -> None:
        """Mark everything from `start` to here; an empty stretch is no entity."""
        if self.length > start:
            self.entities.append(Entity(kind, start, self.length - start, tuple(extra.items())))

    def built(self) -> Formatted:
        """Return the result; outer entities come before inner ones."""
        ordered = sorted(self.entities, key=lambda each: (each.offset, -each.length))
        return Formatted("".join(self.parts), tuple(ordered))


# Nothing is found inside these.
_CLOSED = frozenset({"code", "pre", "text_link", "text_mention"})
_FOUND = re.compile(
    r"(?P<url>https?://[^\s<>\"]+)"
    r"|(?<![\w/])(?P<bot_command>/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)"
    r"|(?<!\w)(?P<mention>@[A-Za-z0-9_]{3,32})"
    r"|(?<!\w)(?P<hashtag>#\w{1,256})"
)


def found_in(text: str) -> tuple[Entity, ...]:
    """Commands, mentions, hashtags and addresses in plain text, as Telegram finds them."""
    return tuple(
        Entity(
            str(match.lastgroup), utf16_length(text[: match.start()]), utf16_length(match.group())
        )
        for match in _FOUND.finditer(text)
    )


def with_found(formatted: Formatted) -> Formatted:
    """The same text with the entities that Telegram finds beside those it was given."""
    closed = [each for each in formatted.entities if each.type in _CLOSED]
    found = [
        each
        for each in found_in(formatted.text)
        if not any(
            each.offset < other.offset + other.length and other.offset < each.offset + each.length
            for other in closed
        )
    ]
    ordered = sorted((*formatted.entities, *found), key=lambda each: (each.offset, -each.length))
    return Formatted(formatted.text, tuple(ordered))
