"""A text as a call gives it, read: in a way of marking up, with entities, or plain.

Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from storage.markup.entities import Entity, Formatted, MarkupError, byte_offset
from storage.markup.html import parse_html
from storage.markup.markdown import parse_markdown
from storage.markup.markdown_v2 import parse_markdown_v2

_PARSERS: Final[Mapping[str, Callable[[str], Formatted]]] = {
    "html": parse_html,
    "markdown": parse_markdown,
    "markdownv2": parse_markdown_v2,
}
_NONE: Final = frozenset({"", "none"})


def read(text: str, parse_mode: str, entities: Sequence[Entity] = ()) -> Formatted:
    """Read a text; as on Telegram's server a `parse_mode`, in any case, goes before entities.

    Raises MarkupError, in the words of the Bot API's server, also for a text that no UTF-8 can hold
    and for an unknown `parse_mode`.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            offset = byte_offset(text, error.start)
            raise MarkupError("Strings must be encoded in UTF-8", offset) from None
    mode = parse_mode.lower()
    if mode in _NONE or not text:
        return Formatted(text, tuple(entities))
    parser = _PARSERS.get(mode)
    if parser is None:
        raise MarkupError("Unsupported parse_mode", 0)
    try:
        return parser(text)
    except MarkupError as error:
        raise MarkupError(f"Can't parse entities: {error.why}", error.offset) from None


def entities_of(given: object) -> tuple[Entity, ...] | None:
    """The entities of a call, from JSON; None when they are no list of MessageEntity."""
    if not isinstance(given, list):
        return None
    found: list[Entity] = []
    for each in given:
        match each:
            case {"type": str(kind), "offset": int(offset), "length": int(length), **extra}:
                fields = tuple((str(name), value) for name, value in extra.items())
                found.append(Entity(kind, offset, length, fields))
            case _:
                return None
    return tuple(found)
