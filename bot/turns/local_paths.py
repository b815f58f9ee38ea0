"""A string is never a file of this machine, unless the configuration says so.

python-telegram-bot uploads the file when a string that is given for a photo or a document names
one: `send_document(chat, text_of_a_user)` gives away whatever the worker can read. So a string that
names a local file, or is a `file://` address, which a Bot API server on this machine would open, is
refused. A `pathlib.Path` is said on purpose, and is always uploaded: the call then stands on its
own, whatever becomes of the file, and whether or not the server is on this machine.

The library has no public way in for this; it reads all such parameters by one function, which is
replaced while a worker runs. This is the only place that knows it, and `checked` at the start.
"""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import telegram
from telegram._utils import files as library
from telegram.error import BadRequest

from storage.errors import UnsupportedLibrary

_NAME: Final = "parse_file_input"
_PARAMETERS: Final = ("file_input", "tg_type", "filename", "attach", "local_mode")
# Where the library reads what it is given for a file, seen in 22.8.
_READERS: Final = frozenset(
    {
        "telegram._bot",
        *("telegram._files.inputmedia", "telegram._files.inputsticker"),
        *("telegram._files.inputprofilephoto", "telegram._files.inputstorycontent"),
    }
)

Parser = Callable[..., Any]


@contextlib.contextmanager
def guarded(*, local_files: bool) -> Iterator[None]:
    """Refuse strings that name local files for a block, unless `local_files` allows them.

    Blocks may overlap in any way: the library is as it was when the last of them has ended. Raises
    UnsupportedLibrary where the library does not read files as it is known to.
    """
    if local_files:
        yield
        return
    guard = getattr(library, _NAME, None)
    if not isinstance(guard, _Guard):
        guard = _Guard(_checked())
        _replace(guard.original, guard)
    guard.users += 1
    try:
        yield
    finally:
        guard.users -= 1
        if not guard.users:
            _replace(guard, guard.original)


def _replace(now: object, then: object) -> None:
    for module in _modules():
        if vars(module).get(_NAME) is now:
            setattr(module, _NAME, then)


def _checked() -> Parser:
    """The library's function, found where it is known to be and nowhere unknown."""
    original: Parser | None = getattr(library, _NAME, None)
    readers = {module.__name__ for module in _modules() if vars(module).get(_NAME) is original}
    if (
        original is None
        or tuple(inspect.signature(original).parameters) != _PARAMETERS
        or not readers >= _READERS
    ):
        raise UnsupportedLibrary(
            f"python-telegram-bot {telegram.__version__} reads files in another way than is known, "
            "so that strings that name local files can't be refused; [worker] local_files = true "
            "runs without that"
        )
    return original


def _modules() -> list[ModuleType]:
    return [module for name, module in sys.modules.items() if name.startswith("telegram.")]


class _Guard:
    """The library's function, behind a look at what is a string. `users` are blocks under way."""

    def __init__(self, original: Parser) -> None:
        self.original = original
        self.users = 0

    def __call__(
        self,
        file_input: object,
        tg_type: type[Any] | None = None,
        filename: str | None = None,
        attach: bool = False,  # noqa: FBT001, FBT002  # the library's signature
        local_mode: bool = False,  # noqa: FBT001, FBT002  # the same
    ) -> object:
        if isinstance(file_input, str):
            _refuse_local(file_input)
        # A file that stays where it is may be gone when its call is made.
        keeps_place = local_mode and not isinstance(file_input, Path)
        return self.original(file_input, tg_type, filename, attach, keeps_place)


def _refuse_local(text: str) -> None:
    if text.startswith("file:") or library.is_local_file(text):
        raise BadRequest(
            "a string that names a file of this machine is not sent: give a pathlib.Path, or its "
            "content, or set local_files = true in [worker]"
        )
