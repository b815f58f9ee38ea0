"""Random valid calls of python-telegram-bot's own methods, in its own classes, made from the data.

Every method of the Bot API is called as its users call it: by the library's method where it has
one, by name where it has none, with what is newer than the library in `api_kwargs`. What is called
is decided by the dice alone, so the same dice make the same call twice, with files of their own.
"""

import inspect
import io
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import telegram
from telegram import Bot, InputFile, TelegramObject

from tests.simulator.arguments import METHODS, TYPES, Arguments

AnyBot = Any
Saying = Callable[[AnyBot], Awaitable[object]]
# Where the library takes a file within an object: not as the cover of a video, nor as the still of
# a live photo, although its signatures say so; nor in the options of a poll.
_FILE_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "InputMedia": frozenset({"media", "thumbnail"}),
    "InputPaidMedia": frozenset({"media", "thumbnail"}),
    "InputProfilePhoto": frozenset({"photo", "animation"}),
    "InputStoryContent": frozenset({"photo", "video"}),
    "InputSticker": frozenset({"sticker"}),
}
_FILELESS: Final = "InputPollOption"
_NAMES: Final = ("a.png", "b c.pdf", "ü.mp3", 'q"uote.txt', "noending", "back\\slash.bin")
_TRIES: Final = 200


class LibraryArguments(Arguments):
    """The same arguments, of the library's classes wherever it has one for the type."""

    def made(self, kind: str, fields: dict[str, object]) -> object:
        """The library's object; a plain one of a type that is newer than the library."""
        named = getattr(telegram, kind, None)
        if named is None:
            return {name: _plain(value) for name, value in fields.items()}
        known = inspect.signature(named).parameters
        # What is fixed for a class, as its `type`, is no argument of it.
        given = {name: value for name, value in fields.items() if name in known}
        for name in _needed(named) - given.keys():
            given[name] = self.value(name, TYPES[kind]["fields"][name])
        if isinstance(self.file, Files):
            self._bring(self.file, kind, given)
            if "filename" in known:
                given["filename"] = self.dice.choice(_NAMES)
        return named(**given)

    def _bring(self, files: "Files", kind: str, given: dict[str, object]) -> None:
        """Put files into the fields of an object that takes them, and into no others."""
        fit = sorted(_file_fields(kind) & given.keys())
        for name, value in list(given.items()):
            if isinstance(value, _FORMS):
                given[name] = "a-file-id"
                files.given -= 1
        given |= {name: files.within() for name in fit}
        if kind == _FILELESS and "media" in given:
            given["media"] = LibraryArguments(self.dice).value("media", f"{kind}Media")


class Files:
    """Files in every way in which the library takes them; counts what it has given out."""

    def __init__(self, dice: Random, folder: Path) -> None:
        self.given = 0
        self._dice = dice
        self._folder = folder

    def __call__(self) -> object:
        """A file for a parameter."""
        content, name = self._made()
        match self._dice.randrange(4):
            case 0:
                return content
            case 1:
                return InputFile(content, filename=name)
            case 2:
                return self._written(content, name)
            case _:
                return _Opened(self._written(content, name))

    def within(self) -> object:
        """A file for an object, of which the library makes an attachment.

        No path: outside of a worker the library only names it there, for a server that can see it.
        """
        content, name = self._made()
        if self._dice.random() < 0.5:
            return content
        return InputFile(content, filename=name, attach=True)

    def _made(self) -> tuple[bytes, str]:
        self.given += 1
        content = bytes(self._dice.choices(range(256), k=20)) + b"\r\n--x--\r\n"
        return content, self._dice.choice(_NAMES)

    def _written(self, content: bytes, name: str) -> Path:
        # Read when the call is made: each has a folder of its own.
        path = self._folder / str(self._dice.randrange(10**12)) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path


def _file_fields(kind: str) -> frozenset[str]:
    return next(
        (names for begin, names in _FILE_FIELDS.items() if kind.startswith(begin)), frozenset()
    )


class _Opened(io.BytesIO):
    """A file that was opened by its path: it has its name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.read_bytes())
        self.name = path.name


_FORMS: Final = (InputFile, bytes, Path, io.IOBase)


def saying(method: str, dice: Random, rate: float) -> Saying:
    """A call that names its files, with this share of what may be left out."""
    return _saying(method, LibraryArguments(dice), rate)


def saying_with_files(method: str, seed: str, folder: Path) -> Saying:
    """A call that brings at least one file."""
    for number in range(_TRIES):
        dice = Random(f"{seed} {number}")
        files = Files(dice, folder)
        found = _saying(method, LibraryArguments(dice, file=files), 1.0)
        if files.given:
            return found
    raise AssertionError(f"{method} takes no file")


@cache
def takes_files(method: str) -> bool:
    """Whether the library can send a file with this method."""
    return any(_is_file(name, told) for name, told in METHODS[method].items())


def snake(method: str) -> str:
    """The library's name of a method."""
    return re.sub(r"([A-Z])", r"_\1", method).lower()


def _saying(method: str, arguments: Arguments, rate: float) -> Saying:
    found = arguments.of(method, rate=rate)
    own = getattr(Bot, snake(method), None)
    if own is None:
        return lambda bot: bot.do_api_request(method, dict(found))
    known = inspect.signature(own).parameters
    for name in _needed(own) - found.keys() - {"self"}:
        found[name] = arguments.value(name, METHODS[method][name])
    given = {name: value for name, value in found.items() if name in known}
    newer = {name: value for name, value in found.items() if name not in known}
    return lambda bot: getattr(bot, snake(method))(**given, api_kwargs=newer)


def _plain(value: object) -> object:
    """The same without the library's classes, which it does not look for in what it does not know.

    So no file can be there either.
    """
    match value:
        case TelegramObject():
            return _plain(value.to_dict())
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _ if isinstance(value, _FORMS):
            return "a-file-id"
        case _:
            return value


def _needed(made: Callable[..., object]) -> frozenset[str]:
    """The arguments without which the library makes nothing."""
    return frozenset(
        name
        for name, told in inspect.signature(made).parameters.items()
        if told.default is told.empty and told.kind not in (told.VAR_KEYWORD, told.VAR_POSITIONAL)
    )


def _is_file(name: str, told: str, within: str = "", above: tuple[str, ...] = ()) -> bool:
    if name in _file_fields(within):
        return True
    for kind in re.split(r"\||, | and ", re.sub(r"^\?|Array of ", "", told)):
        if kind == "InputFile":
            return True
        if kind != _FILELESS and kind in TYPES and kind not in above and hasattr(telegram, kind):
            found: Mapping[str, Any] = TYPES[kind]
            inside = (*above, kind)
            if any(_is_file(name, each, within, inside) for each in found.get("subtypes", ())):
                return True
            fields = found.get("fields", {}).items()
            if any(_is_file(field, each, kind, inside) for field, each in fields):
                return True
    return False
