"""Telegram's MarkdownV2: markers, escapes, and the errors for what is left open or unescaped.

Nested custom emoji and expandable quotes are not modelled (see README.md).
"""

from dataclasses import dataclass, field

from tests.simulator.entities import Builder, Formatted, Unparsable, byte_offset

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
# Longer markers first: `__` is underline, not two italics.
_PAIRED = (
    ("__", "underline", "Underline"),
    ("||", "spoiler", "Spoiler"),
    ("*", "bold", "Bold"),
    ("_", "italic", "Italic"),
    ("~", "strikethrough", "Strikethrough"),
)
# The last character that a backslash may escape.
_ESCAPABLE_MAX = 126


@dataclass(frozen=True, slots=True)
class _Open:
    marker: str
    kind: str
    title: str
    start: int
    offset: int


@dataclass(slots=True)
class _Reader:
    text: str
    index: int = 0
    builder: Builder = field(default_factory=Builder)
    stack: list[_Open] = field(default_factory=list)

    def read(self) -> Formatted:
        while self.index < len(self.text):
            self._step()
        if self._quote() is not None:
            self._pop()
        if self.stack:
            last = self.stack[-1]
            raise Unparsable(f"Can't find end of {last.title} entity at byte offset {last.offset}")
        return self.builder.built()

    def _step(self) -> None:
        char = self.text[self.index]
        if char == "\\" and self._escapes_next():
            self.builder.add(self.text[self.index + 1])
            self.index += 2
        elif char == "`":
            self._code()
        elif char == "\n":
            self._line_end()
        elif char == ">" and self._at_line_start():
            self.index += 1
            if self._quote() is None:
                self._push("", "blockquote", "BlockQuote")
        elif char in _RESERVED:
            self._reserved(char)
        else:
            self.builder.add(char)
            self.index += 1

    def _escapes_next(self) -> bool:
        after = self.text[self.index + 1 : self.index + 2]
        return after != "" and ord(after) <= _ESCAPABLE_MAX

    def _at_line_start(self) -> bool:
        return self.index == 0 or self.text[self.index - 1] == "\n"

    def _reserved(self, char: str) -> None:
        for marker, kind, title in _PAIRED:
            if self.text.startswith(marker, self.index):
                if self.stack and self.stack[-1].marker == marker:
                    self._pop()
                else:
                    self._push(marker, kind, title)
                self.index += len(marker)
                return
        if char == "[":
            self._push("]", "text_link", "TextUrl")
            self.index += 1
        elif char == "]" and self.stack and self.stack[-1].marker == "]":
            self._link()
        else:
            raise Unparsable(
                f"Character '{char}' is reserved and must be escaped with the preceding '\\'"
            )

    def _link(self) -> None:
        opened = self.stack.pop()
        self.index += 1
        if not self.text.startswith("(", self.index):
            return
        start = self.index + 1
        end = start
        url = ""
        while end < len(self.text) and self.text[end] != ")":
            if self.text[end] == "\\" and end + 1 < len(self.text):
                end += 1
            url += self.text[end]
            end += 1
        if end >= len(self.text):
            offset = byte_offset(self.text, start)
            raise Unparsable(f"Can't find end of a URL at byte offset {offset}")
        self.builder.mark("text_link", opened.start, url=url)
        self.index = end + 1

    def _code(self) -> None:
        marker = "```" if self.text.startswith("```", self.index) else "`"
        title = "Pre" if marker == "```" else "Code"
        offset = byte_offset(self.text, self.index)
        end = self.index + len(marker)
        inside = ""
        while not self.text.startswith(marker, end):
            if end >= len(self.text):
                raise Unparsable(f"Can't find end of {title} entity at byte offset {offset}")
            if self.text[end] == "\\" and self.text[end + 1 : end + 2] in ("\\", "`"):
                end += 1
            inside += self.text[end]
            end += 1
        self.index = end + len(marker)
        self._add_code(marker, inside)

    def _add_code(self, marker: str, inside: str) -> None:
        start = self.builder.length
        language, newline, block = inside.partition("\n")
        if marker == "`":
            self.builder.add(inside)
            self.builder.mark("code", start)
        elif newline and language and " " not in language:
            self.builder.add(block)
            self.builder.mark("pre", start, language=language)
        else:
            self.builder.add(inside.removeprefix("\n"))
            self.builder.mark("pre", start)

    def _line_end(self) -> None:
        if self._quote() is not None and not self.text.startswith(">", self.index + 1):
            self._pop()
        self.builder.add("\n")
        self.index += 1

    def _quote(self) -> _Open | None:
        last = self.stack[-1] if self.stack else None
        return last if last is not None and last.kind == "blockquote" else None

    def _push(self, marker: str, kind: str, title: str) -> None:
        offset = byte_offset(self.text, self.index)
        self.stack.append(_Open(marker, kind, title, self.builder.length, offset))

    def _pop(self) -> None:
        opened = self.stack.pop()
        self.builder.mark(opened.kind, opened.start)


def parse_markdown(text: str) -> Formatted:
    """Read MarkdownV2; raises Unparsable with Telegram's words."""
    return _Reader(text).read()
