"""Telegram's first Markdown: four markers, no nesting, and one word for every fault.

Pure, step by step as Telegram's server reads it (TDLib, `parse_markdown`).
"""

import re
from typing import Final

from storage.markup.entities import Formatted, Mark, MarkupError, byte_offset, finished
from storage.markup.links import is_link

_MARKER: Final = re.compile(r"\\[_*`\[]|[_*`\[]")
_LANGUAGE: Final = re.compile(r"[^ \t\r\n\0\v`]+")
_FIRST_LINE_END: Final = re.compile(r"\r\n|\n\r|\r|\n|")
_KINDS: Final = {"_": "italic", "*": "bold", "`": "code", "[": "text_link"}


def parse_markdown(text: str) -> Formatted:
    """Read the first Markdown.

    Raises MarkupError.
    """
    pieces: list[str] = []
    marks: list[Mark] = []
    length = 0
    at = 0
    while (found := _MARKER.search(text, at)) is not None:
        pieces.append(text[at : found.start()])
        length += found.start() - at
        marker = found[0]
        if len(marker) > 1:
            pieces.append(marker[1])
            length += 1
            at = found.end()
            continue
        inside, mark, at = _entity(text, found.start(), length)
        pieces.append(inside)
        length += len(inside)
        if mark is not None:
            marks.append(mark)
    pieces.append(text[at:])
    return finished("".join(pieces), marks)


def _entity(text: str, begins: int, start: int) -> tuple[str, Mark | None, int]:
    """The text inside the marker at `begins`, the mark over it, and where the rest goes on."""
    marker = text[begins]
    if text.startswith("```", begins):
        return _block(text, begins, start)
    ends = text.find("]" if marker == "[" else marker, begins + 1)
    if ends < 0:
        raise _endless(text, begins)
    inside = text[begins + 1 : ends]
    if not inside:
        return "", None, ends + 1
    mark = Mark(_KINDS[marker], start, len(inside))
    if marker != "[":
        return inside, mark, ends + 1
    url, rest = inside, ends + 1
    if text.startswith("(", rest):
        closes = text.find(")", rest + 1)
        closes = len(text) if closes < 0 else closes
        url, rest = text[rest + 1 : closes], closes + 1
    mark.extra["url"] = url
    return inside, mark if is_link(url) else None, rest


def _block(text: str, begins: int, start: int) -> tuple[str, Mark | None, int]:
    language, opens = block_start(text, begins + 3)
    ends = text.find("```", opens)
    if ends < 0:
        raise _endless(text, begins)
    inside = text[opens:ends]
    mark = Mark("pre", start, len(inside), {"language": language} if language else {})
    return inside, mark if inside else None, ends + 3


def block_start(text: str, at: int) -> tuple[str, int]:
    """The language of a block of code whose marker ends at `at`, and where its text begins."""
    found = _LANGUAGE.match(text, at)
    language = ""
    if found is not None and found.end() < len(text) and text[found.end()] != "`":
        language = found[0]
        at = found.end()
    line_end = _FIRST_LINE_END.match(text, at)
    assert line_end is not None, "it matches nothing as well"
    return language, line_end.end()


def _endless(text: str, at: int) -> MarkupError:
    offset = byte_offset(text, at)
    return MarkupError(f"Can't find end of the entity starting at byte offset {offset}", offset)
