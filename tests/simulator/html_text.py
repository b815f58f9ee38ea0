"""Telegram's HTML: the tags a bot may use, and the errors it gets for the rest.

Not an HTML parser: Telegram's own small language with its own error texts (telegram.md §3.5, 78).
"""

import html
import re
from dataclasses import dataclass

from tests.simulator.entities import Builder, Formatted, Unparsable, byte_offset

_SIMPLE = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "code": "code",
    "pre": "pre",
    "tg-spoiler": "spoiler",
    "blockquote": "blockquote",
}
_SUPPORTED = {*_SIMPLE, "a", "span", "tg-emoji"}
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z0-9-]*)(?P<rest>[^>]*)>")
_ATTRIBUTE = re.compile(r"""([A-Za-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
# The only named references Telegram knows; others stay as they are.
_REFERENCE = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9A-Fa-f]+);")


@dataclass(frozen=True, slots=True)
class _Open:
    name: str
    start: int
    attributes: dict[str, str]


def parse_html(text: str) -> Formatted:
    """Read HTML; raises Unparsable with Telegram's words."""
    builder = Builder()
    stack: list[_Open] = []
    index = 0
    while index < len(text):
        bracket = text.find("<", index)
        if bracket < 0:
            builder.add(_plain(text[index:]))
            break
        builder.add(_plain(text[index:bracket]))
        index = _read_tag(text, bracket, builder, stack)
    if stack:
        raise Unparsable(f'Can\'t find end tag corresponding to start tag "{stack[-1].name}"')
    return builder.built()


def _plain(text: str) -> str:
    return _REFERENCE.sub(lambda match: html.unescape(match.group()), text)


def _read_tag(text: str, at: int, builder: Builder, stack: list[_Open]) -> int:
    offset = byte_offset(text, at)
    tag = _TAG.match(text, at)
    if tag is None:
        raise Unparsable(f"Unclosed start tag at byte offset {offset}")
    name = tag["name"].lower()
    if tag["end"]:
        _close(name, offset, builder, stack)
    elif name not in _SUPPORTED:
        raise Unparsable(f'Unsupported start tag "{name}" at byte offset {offset}')
    else:
        attributes = {
            found[1].lower(): _plain(found[2] or found[3] or found[4] or "")
            for found in _ATTRIBUTE.finditer(tag["rest"])
        }
        if name == "span" and attributes.get("class") != "tg-spoiler":
            raise Unparsable(f'Tag "span" must have class "tg-spoiler" at byte offset {offset}')
        stack.append(_Open(name, builder.length, attributes))
    return tag.end()


def _close(name: str, offset: int, builder: Builder, stack: list[_Open]) -> None:
    if not stack:
        raise Unparsable(f"Unexpected end tag at byte offset {offset}")
    opened = stack.pop()
    if name not in (opened.name, ""):
        raise Unparsable(
            f"Unmatched end tag at byte offset {offset}, "
            f'expected "</{opened.name}>", found "</{name}>"'
        )
    match opened.name:
        case "a":
            if url := opened.attributes.get("href"):
                builder.mark("text_link", opened.start, url=url)
        case "span":
            builder.mark("spoiler", opened.start)
        case "tg-emoji":
            emoji = opened.attributes.get("emoji-id", "")
            builder.mark("custom_emoji", opened.start, custom_emoji_id=emoji)
        case "code" if stack and stack[-1].name == "pre" and "class" in opened.attributes:
            # A `code` inside a `pre` only names the language of the whole block.
            language = opened.attributes["class"].removeprefix("language-")
            stack[-1].attributes["language"] = language
        case "pre" if "language" in opened.attributes:
            builder.mark("pre", opened.start, language=opened.attributes["language"])
        case "blockquote" if "expandable" in opened.attributes:
            builder.mark("expandable_blockquote", opened.start)
        case simple:
            builder.mark(_SIMPLE[simple], opened.start)
