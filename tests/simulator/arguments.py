"""Random valid arguments for every method of the Bot API, made from its own description.

Valid to Telegram's server as far as it looks before it asks anybody: texts that show something and
lie within their limits, one kind of item in an album, one purpose for each button. Marked-up texts
have tests of their own (test_markup.py); here a text is plain, with entities that lie in it.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from random import Random
from typing import Any, Final

Make = Callable[["Arguments"], dict[str, object]]

_DATA: Final = json.loads(
    (resources.files("tests") / "data" / "botapi" / "fields-10.2.json").read_text("utf-8")
)
METHODS: Final[Mapping[str, Mapping[str, str]]] = _DATA["methods"]
TYPES: Final[Mapping[str, Mapping[str, Any]]] = _DATA["types"]
_SIMPLE: Final = frozenset({"Integer", "Float", "Boolean", "String", "True", "InputFile"})
# Types may hold themselves; below this only the plainest of what is allowed is chosen.
_DEPTH: Final = 3
_TEXT_ALPHABET: Final = "ab c&=+%\"'<>é\n🏟\u0301"
_MODES: Final = re.compile(r"(.*_)?parse_mode")
_KIND: Final = re.compile(
    r"^(Input(Paid)?Media|InlineQueryResult(Cached)?|InputStoryContent|Input)"
)
_FIXED: Final[Mapping[str, Make]] = {
    "MessageEntity": lambda _: {"type": "bold", "offset": 0, "length": 1},
    "InlineKeyboardButton": lambda made: {"text": made.text(), "callback_data": made.text()},
}


class Arguments:
    """Chooses arguments; `file` makes what is given where a file may be."""

    def __init__(self, dice: Random, *, file: Callable[[], object] = lambda: "a-file-id") -> None:
        self.dice = dice
        self.file = file

    def of(self, method: str, *, rate: float = 0.3) -> dict[str, object]:
        """The arguments of one call: what it needs, and this share of the rest."""
        return self._fields(METHODS[method], _DEPTH, rate)

    def text(self) -> str:
        """A text that shows, with an `a` at its beginning."""
        return "a" + "".join(self.dice.choices(_TEXT_ALPHABET, k=self.dice.randrange(12)))

    def made(self, kind: str, fields: dict[str, object]) -> object:  # noqa: ARG002  # for others
        """An object of this type; one who knows classes for them makes those instead."""
        return fields

    def value(self, name: str, told: str) -> object:
        """The plainest value of these types."""
        return self._value(name, told.removeprefix("?"), 0)

    def _fields(self, fields: Mapping[str, str], depth: int, rate: float) -> dict[str, object]:
        found = {}
        for name, told in fields.items():
            is_optional = told.startswith("?")
            wanted = not is_optional or (depth > 0 and self.dice.random() < rate)
            if not wanted or _MODES.fullmatch(name):
                continue
            # What may be left out may be empty too, a text that is to be shown aside.
            is_empty = told == "?String" and name != "text" and self.dice.random() < 0.1
            found[name] = "" if is_empty else self._value(name, told.removeprefix("?"), depth)
        return found

    def _value(self, name: str, told: str, depth: int) -> object:
        kinds = told.split("|")
        kind = self.dice.choice(kinds) if depth > 0 else min(kinds, key=height)
        if "InputFile" in kinds:
            kind = "InputFile"
        if kind.startswith("Array of "):
            return self._array(name, kind.removeprefix("Array of "), depth)
        return self._one(name, kind, depth)

    def _array(self, name: str, kind: str, depth: int) -> list[object]:
        each = "|".join(re.split(r" and |, ", kind))
        if not each.startswith("Array of "):
            # Kinds of items are not mixed: an album of some takes no others.
            each = self.dice.choice(each.split("|"))
            each = each if depth <= 0 or each in _SIMPLE else self._member(each, depth)
        return [self._value(name, each, depth - 1) for _ in range(self.dice.randint(2, 3))]

    def _member(self, kind: str, depth: int) -> str:
        members: list[str] = TYPES[kind].get("subtypes", [])
        if not members:
            return kind
        return self.dice.choice(members) if depth > 0 else min(members, key=height)

    def _one(self, name: str, kind: str, depth: int) -> object:
        match kind:
            case "Integer":
                return self.dice.randint(1, 1 << 31)
            case "Float":
                return self.dice.randint(1, 999) / 8
            case "Boolean" | "True":
                return kind == "True" or self.dice.random() < 0.5
            case "InputFile":
                return self.file()
            case "String" if name.endswith("chat_id"):
                return "@ferry_crew"
            case "String":
                return self.file() if name in ("media", "photo", "video") else self.text()
            case _ if kind in _FIXED:
                return self.made(kind, _FIXED[kind](self))
            case _:
                member = self._member(kind, depth)
                if member != kind:
                    return self._value(name, member, depth)
                found = self._fields(TYPES[kind].get("fields", {}), depth - 1, 0.3)
                if "type" in found:
                    found["type"] = _KIND.sub("", kind).lower()
                return self.made(kind, found)


@cache
def height(told: str, above: tuple[str, ...] = ()) -> int:
    """How deep the plainest value of these types is."""
    return min(_height(kind, above) for kind in told.removeprefix("?").split("|"))


def _height(kind: str, above: tuple[str, ...]) -> int:
    if kind.startswith("Array of "):
        inner = re.split(r" and |, ", kind.removeprefix("Array of "))
        return 1 + min(height(each, above) for each in inner)
    if kind in _SIMPLE or kind in _FIXED:
        return 0
    if kind in above:
        return 1_000
    found = TYPES[kind]
    inside = (*above, kind)
    if members := found.get("subtypes"):
        return min(height(each, inside) for each in members)
    needed = [told for told in found.get("fields", {}).values() if not told.startswith("?")]
    return 1 + max((height(each, inside) for each in needed), default=0)
