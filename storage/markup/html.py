"""Telegram's HTML: its few tags, four names and numbers of characters, and its words for faults.

Pure. Not an HTML parser: Telegram's own small language, step by step as its server reads it
(TDLib, `parse_html`), since what a browser forgives is refused there, and the other way round.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from storage.markup.entities import Formatted, Mark, MarkupError, byte_offset, finished
from storage.markup.links import date_fields, emoji_id, is_date_format, is_link

_KINDS: Final[Mapping[str, str]] = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "code": "code",
    "pre": "pre",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "blockquote": "blockquote",
    "a": "text_link",
    "tg-emoji": "custom_emoji",
    "tg-time": "date_time",
}
_END: Final = "\0"
# TDLib's `is_space`; the character that ends a text of C is one.
_SPACES: Final = frozenset(" \t\r\n\0\v")
_NAME_ENDS: Final = re.compile(r"[ \t\r\n\0\v>]")
_KEY_ENDS: Final = re.compile(r"[ \t\r\n\0\v=>/\"']")
_QUOTE_ENDS: Final = {quote: re.compile(f"[{quote}\0]") for quote in "'\""}
_TOKEN: Final = re.compile(r"[A-Za-z0-9.-]*")
_GAP: Final = re.compile(r"[ \t\r\n\v]*")
_PLAIN_TAG: Final = re.compile(r"<(/?)([a-z-]+)>")
_REFERENCE: Final = re.compile(r"&(?:#x([0-9A-Fa-f]*)|#([0-9]*)|([A-Za-z]*));?")
_DIGITS: Final = re.compile(r"(-?)([0-9]*)")
_NAMED: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_CODE_END: Final = 0x10FFFF
# With its `&#`, before which the server stops reading a number.
_NUMBER_CHARS_MAX: Final = 9


@dataclass(slots=True)
class _Open:
    """A tag that waits for its end: where it stands, and where its text begins."""

    name: str
    at: int
    start: int
    piece: int
    argument: str = ""
    date: int = 0


def parse_html(text: str) -> Formatted:
    """Read HTML.

    Raises MarkupError.
    """
    if "<" not in text:
        return Formatted(_checked(_decoded(text), text))
    return _Reader(text).read()


def _decoded(text: str) -> str:
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(found: re.Match[str]) -> str:
    named = found[3]
    if named is not None:
        return _NAMED.get(named, found[0])
    told = found[0].removesuffix(";")
    digits = found[1] if found[2] is None else found[2]
    if len(told) > _NUMBER_CHARS_MAX or not digits:
        return found[0]
    code = int(digits, 16 if found[2] is None else 10)
    return chr(code) if 0 < code < _CODE_END else found[0]


def _checked(result: str, source: str) -> str:
    if not result.isascii():
        try:
            result.encode()
        except UnicodeEncodeError:
            why = (
                "Text contains invalid Unicode characters after decoding HTML entities, check for "
                "unmatched surrogate code units"
            )
            raise MarkupError(why, byte_offset(source, _half_character(source))) from None
    return result


def _half_character(source: str) -> int:
    for found in _REFERENCE.finditer(source):
        if "\ud800" <= _character(found)[0] <= "\udfff":
            return found.start()
    return 0


@dataclass(slots=True)
class _Reader:
    source: str
    text: str = ""
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    stack: list[_Open] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def read(self) -> Formatted:
        # Reading past the end finds what ends a text of C, as the server does.
        self.text = self.source + _END
        at = 0
        while (bracket := self.source.find("<", at)) >= 0:
            self._add(self.source[at:bracket])
            at = self._tag(bracket)
        self._add(self.source[at:])
        if self.stack:
            last = self.stack[-1]
            self._fail(f'Can\'t find end tag corresponding to start tag "{last.name}"', last.at)
        for mark in self.marks:
            if mark.kind == "code":
                mark.extra.clear()
        return finished(_checked("".join(self.pieces), self.source), self.marks)

    def _add(self, raw: str) -> None:
        if raw:
            plain = _decoded(raw)
            self.pieces.append(plain)
            self.length += len(plain)

    def _fail(self, why: str, at: int) -> NoReturn:
        raise MarkupError(why, byte_offset(self.source, at))

    def _fail_at(self, why: str, at: int) -> NoReturn:
        self._fail(f"{why} at byte offset {byte_offset(self.source, at)}", at)

    def _tag(self, at: int) -> int:
        """Read the tag at `at`; returns where the text goes on."""
        plain = _PLAIN_TAG.match(self.source, at)
        if plain is not None and plain[2] in _KINDS:
            if plain[1]:
                self._close(plain[2], at)
            elif plain[2] == "span":
                self._fail_at('Tag "span" must have class "tg-spoiler"', at)
            else:
                self.stack.append(_Open(plain[2], at, self.length, len(self.pieces)))
            return plain.end()
        return self._end_tag(at) if self.text[at + 1] == "/" else self._start_tag(at)

    def _end_tag(self, at: int) -> int:
        if not self.stack:
            self._fail_at("Unexpected end tag", at)
        ends = self._find(_NAME_ENDS, at + 2)
        name = _lower(self.text[at + 2 : ends])
        ends = self._after_gap(ends)
        if self.text[ends] != ">":
            self._fail_at("Unclosed end tag", at)
        self._close(name, at)
        return ends + 1

    def _start_tag(self, at: int) -> int:
        ends = self._find(_NAME_ENDS, at + 1)
        if self.text[ends] == _END:
            self._fail_at("Unclosed start tag", at)
        name = _lower(self.text[at + 1 : ends])
        if name not in _KINDS:
            self._fail_at(f'Unsupported start tag "{name}"', at)
        opened = _Open(name, at, self.length, len(self.pieces))
        while self.text[ends] != ">":
            ends = self._after_gap(ends)
            if self.text[ends] == ">":
                break
            ends = self._attribute(opened, ends)
        if name == "span" and opened.argument != "spoiler":
            self._fail_at('Tag "span" must have class "tg-spoiler"', at)
        self.stack.append(opened)
        return ends + 1

    def _attribute(self, opened: _Open, begins: int) -> int:
        """Read one attribute of the tag; returns where it ends."""
        text = self.text
        ends = self._find(_KEY_ENDS, begins)
        key = text[begins:ends]
        if not key:
            self._fail_at(f'Empty attribute name in the tag "{opened.name}"', opened.at)
        ends = self._after_gap(ends)
        if text[ends] != "=":
            if text[ends] == _END:
                self._fail_at(f'Unclosed start tag "{opened.name}"', opened.at)
            if opened.name == "blockquote" and key == "expandable":
                opened.argument = "1"
            return ends
        ends = self._after_gap(ends + 1)
        if text[ends] == _END:
            self._fail_at(f'Unclosed start tag "{opened.name}"', opened.at)
        value, ends = self._quoted(ends) if text[ends] in "'\"" else self._token(ends)
        if text[ends] == _END:
            self._fail_at("Unclosed start tag", opened.at)
        _set(opened, key, value)
        return ends

    def _quoted(self, begins: int) -> tuple[str, int]:
        quote = self.text[begins]
        ends = self._find(_QUOTE_ENDS[quote], begins + 1)
        value = _decoded(self.text[begins + 1 : ends])
        return value, ends + (self.text[ends] == quote)

    def _token(self, begins: int) -> tuple[str, int]:
        found = _TOKEN.match(self.text, begins)
        assert found is not None, "it matches nothing as well"
        if self.text[found.end()] not in _SPACES and self.text[found.end()] != ">":
            self._fail_at("Unexpected end of name token", begins)
        return _lower(found[0]), found.end()

    def _find(self, ends: re.Pattern[str], begins: int) -> int:
        found = ends.search(self.text, begins)
        assert found is not None, "the text's own end is among them"
        return found.start()

    def _after_gap(self, at: int) -> int:
        found = _GAP.match(self.text, at)
        assert found is not None, "it matches nothing as well"
        return found.end()

    def _close(self, name: str, at: int) -> None:
        if not self.stack:
            self._fail_at("Unexpected end tag", at)
        opened = self.stack[-1]
        if name and name != opened.name:
            offset = byte_offset(self.source, at)
            self._fail(
                f"Unmatched end tag at byte offset {offset}, "
                f'expected "</{opened.name}>", found "</{name}>"',
                at,
            )
        if self.length > opened.start:
            self._mark(opened)
        self.stack.pop()

    def _mark(self, opened: _Open) -> None:
        """Make an entity of a tag that holds text."""
        mark = Mark(_KINDS[opened.name], opened.start, self.length - opened.start)
        match opened.name:
            case "a":
                url = opened.argument or "".join(self.pieces[opened.piece :])
                if not is_link(url):
                    return
                mark.extra["url"] = url
            case "tg-emoji":
                known = emoji_id(opened.argument)
                if known is None:
                    self._fail("Invalid custom emoji identifier specified", opened.at)
                mark.extra["custom_emoji_id"] = known
            case "tg-time":
                if not is_date_format(opened.argument):
                    self._fail("Invalid date format used", opened.at)
                if opened.date <= 0:
                    return
                mark.extra.update(date_fields(opened.date, opened.argument))
            case "pre" | "code":
                if self._names_language(opened, mark):
                    return
            case "blockquote":
                mark.kind = "expandable_blockquote" if opened.argument else mark.kind
            case _:
                pass
        self.marks.append(mark)

    def _names_language(self, opened: _Open, mark: Mark) -> bool:
        """Make one block of a `pre` and a `code` over the same text, if one names a language.

        What a `code` alone says of its language is forgotten.
        """
        last = self.marks[-1] if self.marks else None
        if last is None or (last.start, last.length) != (mark.start, mark.length):
            fits = False
        elif opened.name == "pre":
            fits = last.kind == "code" and "language" in last.extra
        else:
            fits = last.kind == "pre" and "language" not in last.extra and bool(opened.argument)
        if fits and last is not None:
            last.kind = "pre"
            last.extra.setdefault("language", opened.argument)
        elif opened.name == "code" and opened.argument:
            mark.extra["language"] = opened.argument
        return fits


def _set(opened: _Open, key: str, value: str) -> None:
    match opened.name, key:
        case ("a", "href") | ("tg-emoji", "emoji-id") | ("tg-time", "format"):
            opened.argument = value
        case "code", "class" if value.startswith("language-"):
            opened.argument = value.removeprefix("language-")
        case "span", "class" if value.startswith("tg-"):
            opened.argument = value.removeprefix("tg-")
        case "blockquote", "expandable":
            opened.argument = "1"
        case "tg-time", "unix":
            opened.date = _number(value)
        case _:
            pass


def _number(text: str) -> int:
    """The number at the beginning, in 32 bits, whatever follows (TDLib, `to_integer`)."""
    found = _DIGITS.match(text)
    assert found is not None, "it matches nothing as well"
    number = 0
    for digit in found[2]:
        number = (number * 10 + int(digit)) % (1 << 32)
    signed = -number if found[1] else number
    return (signed + (1 << 31)) % (1 << 32) - (1 << 31)


def _lower(name: str) -> str:
    return name.lower() if name.isascii() else name
