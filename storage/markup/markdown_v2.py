"""Telegram's MarkdownV2: markers that nest, characters that must be escaped, quotes by lines.

Pure, step by step as Telegram's server reads it (TDLib, `parse_markdown_v2`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from storage.markup.entities import Formatted, Mark, MarkupError, byte_offset, finished
from storage.markup.links import date_of, emoji_of, is_link
from storage.markup.markdown import block_start

_SPECIAL: Final = re.compile(r"[_*\[\]()~`>#+\-=|{}.!\n\\]")
_SPECIAL_IN_CODE: Final = re.compile(r"[`\\]")
_ESCAPE: Final = re.compile(r"\\([\x01-\x7e])")
_ADDRESS_ENDS: Final = re.compile(r"(?:\\[\x01-\x7e]|[^)])*", re.DOTALL)
_QUOTE: Final = "BlockQuote"
# What Telegram calls each in its errors, what ends it, and the entity that it makes.
_ENDS: Final[Mapping[str, str]] = {
    "Bold": "*",
    "Italic": "_",
    "Underline": "__",
    "Strikethrough": "~",
    "Spoiler": "||",
    "Code": "`",
    "Pre": "```",
    "PreCode": "```",
    "TextUrl": "]",
    "CustomEmoji": "]",
}
_KINDS: Final[Mapping[str, str]] = {
    "Bold": "bold",
    "Italic": "italic",
    "Underline": "underline",
    "Spoiler": "spoiler",
    "Strikethrough": "strikethrough",
    "Code": "code",
    "Pre": "pre",
    "PreCode": "pre",
    "TextUrl": "text_link",
    "CustomEmoji": "custom_emoji",
    _QUOTE: "blockquote",
}
# Longer markers first: `__` is underline, not two italics.
_BEGINNINGS: Final = (
    *(("__", "Underline"), ("_", "Italic"), ("*", "Bold"), ("~", "Strikethrough")),
    *(("||", "Spoiler"), ("[", "TextUrl"), ("![", "CustomEmoji"), ("`", "Code")),
)
_IN_CODE: Final = frozenset({"Code", "Pre", "PreCode"})


@dataclass(slots=True)
class _Open:
    """A marker that waits for its end: where it stands, and where its text begins."""

    name: str
    at: int
    start: int
    piece: int
    language: str = ""


def parse_markdown_v2(text: str) -> Formatted:
    """Read MarkdownV2.

    Raises MarkupError.
    """
    return _Reader(text).read()


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    stack: list[_Open] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    quoted: bool = False
    may_quote: bool = True

    def read(self) -> Formatted:
        text = self.text
        while self.at < len(text):
            in_code = bool(self.stack) and self.stack[-1].name in _IN_CODE
            found = (_SPECIAL_IN_CODE if in_code else _SPECIAL).search(text, self.at)
            ends = len(text) if found is None else found.start()
            if ends > self.at:
                self._add_plain(text[self.at : ends])
                self.at = ends
            if found is not None:
                self._special(found[0])
        if self.quoted:
            self._end_last_quote()
        if self.stack:
            self._endless(self.stack[-1])
        return finished("".join(self.pieces), self.marks)

    def _add(self, plain: str) -> None:
        self.pieces.append(plain)
        self.length += len(plain)

    def _add_plain(self, plain: str) -> None:
        self._add(plain)
        if self.may_quote and plain.strip("\r"):
            self.may_quote = False

    def _special(self, char: str) -> None:
        if char == "\\":
            self._backslash()
        elif self._ends_here(char):
            self._end(char)
        elif char == "\n":
            self._add(char)
            self.may_quote = True
            self.at += 1
        elif char == ">":
            self._begin_quote()
        else:
            self._begin(char)

    def _backslash(self) -> None:
        escaped = _ESCAPE.match(self.text, self.at)
        if escaped is None:
            self._add("\\")
            self.may_quote = False
            self.at += 1
            return
        self._add(escaped[1])
        if escaped[1] != "\r":
            self.may_quote = escaped[1] == "\n"
        self.at += 2

    def _ends_here(self, char: str) -> bool:
        if not self.stack:
            return False
        if char == "\n":
            return self.quoted and not self.text.startswith(">", self.at + 1)
        name = self.stack[-1].name
        if name == _QUOTE:
            return False
        if name == "Italic":
            return char == "_" and not self.text.startswith("__", self.at)
        return self.text.startswith(_ENDS[name], self.at)

    def _begin_quote(self) -> None:
        if not self.may_quote:
            self._reserved(">")
        if not self.quoted:
            self.quoted = True
            self.stack.append(_Open(_QUOTE, self.at, self.length, len(self.pieces)))
        self.at += 1

    def _begin(self, char: str) -> None:
        known = (each for each in _BEGINNINGS if self.text.startswith(each[0], self.at))
        marker, name = next(known, ("", ""))
        if not marker:
            self._reserved(char)
        opened = _Open(name, self.at, self.length, len(self.pieces))
        self.at += len(marker)
        if name == "Code" and self.text.startswith("``", self.at):
            opened.language, self.at = block_start(self.text, self.at + 2)
            opened.name = "PreCode" if opened.language else "Pre"
        self.stack.append(opened)

    def _reserved(self, char: str) -> NoReturn:
        raise MarkupError(
            f"Character '{char}' is reserved and must be escaped with the preceding '\\'",
            byte_offset(self.text, self.at),
        )

    def _endless(self, opened: _Open) -> NoReturn:
        offset = byte_offset(self.text, opened.at)
        why = f"Can't find end of {opened.name} entity at byte offset {offset}"
        raise MarkupError(why, offset)

    def _end(self, char: str) -> None:
        if char == "\n":
            self._end_quote()
            return
        opened = self.stack[-1]
        # An entity may be refused for its address even where it holds no text.
        begins = self.at
        self.at += len(_ENDS[opened.name])
        mark = Mark(_KINDS[opened.name], opened.start, self.length - opened.start)
        fits = True
        if opened.name == "TextUrl":
            fits = self._read_link(opened, mark)
        elif opened.name == "CustomEmoji":
            self._read_emoji(begins, mark)
        elif opened.language:
            mark.extra["language"] = opened.language
        if fits and mark.length:
            self.marks.append(mark)
        self.stack.pop()

    def _read_link(self, opened: _Open, mark: Mark) -> bool:
        if self.text.startswith("(", self.at):
            url = self._address()
        else:
            url = "".join(self.pieces[opened.piece :])
        mark.extra["url"] = url
        return is_link(url)

    def _read_emoji(self, begins: int, mark: Mark) -> None:
        if not self.text.startswith("(", self.at):
            raise MarkupError(
                "The entity must contain a tg://emoji or tg://time URL",
                byte_offset(self.text, begins),
            )
        url = self._address()
        emoji = emoji_of(url)
        date = None if emoji is not None else date_of(url)
        if emoji is not None:
            mark.extra["custom_emoji_id"] = emoji
        elif date is not None:
            mark.kind = "date_time"
            mark.extra.update(date)
        else:
            raise MarkupError(
                "Invalid tg://emoji or tg://time URL specified", byte_offset(self.text, begins)
            )

    def _address(self) -> str:
        """Read the address in parentheses; afterwards `at` stands behind it."""
        begins = self.at + 1
        found = _ADDRESS_ENDS.match(self.text, begins)
        assert found is not None, "it matches nothing as well"
        if found.end() == len(self.text):
            offset = byte_offset(self.text, begins)
            raise MarkupError(f"Can't find end of a URL at byte offset {offset}", offset)
        self.at = found.end() + 1
        return _ESCAPE.sub(r"\1", found[0])

    def _end_quote(self) -> None:
        """End a quote with its last line; a spoiler just begun there says that it is folded."""
        kind = _KINDS[_QUOTE]
        if self.stack[-1].name != _QUOTE:
            opened = self.stack[-1]
            before = self.at - (3 if self.pieces and self.pieces[-1][-1:] == "\r" else 2)
            if opened.name != "Spoiler" or opened.at not in (self.at - 2, before):
                self._endless(opened)
            self.stack.pop()
            if self.stack[-1].name != _QUOTE:
                self._endless(self.stack[-1])
            kind = "expandable_blockquote"
        opened = self.stack.pop()
        self._add("\n")
        self.at += 1
        self.quoted = False
        self.may_quote = True
        self.marks.append(Mark(kind, opened.start, self.length - opened.start))

    def _end_last_quote(self) -> None:
        kind = _KINDS[_QUOTE]
        last = self.stack[-1]
        if last.name == "Spoiler" and last.at == len(self.text) - 2:
            self.stack.pop()
            kind = "expandable_blockquote"
        if self.stack[-1].name == _QUOTE:
            opened = self.stack.pop()
            if self.length > opened.start:
                self.marks.append(Mark(kind, opened.start, self.length - opened.start))
