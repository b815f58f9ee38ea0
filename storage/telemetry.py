"""Logs: events with fields, from a registry, as JSON lines, or readable on a terminal.

`event("outbox.sent", outbox_id=91)` refuses names and fields that `storage/events.py` does not
list: a misspelt one is our own mistake and must fail in the first test. What may never get out is
held back in three ways. Events have no field for what users write. Exceptions are told as type and
place, never by message or locals, as a message may quote a user. And every text passes a filter
that masks bot tokens by their shape and the secrets this process holds by their value.

Libraries go through the same door, at WARNING and above even when `log_level` is DEBUG, since at
DEBUG aiosqlite prints users' words, python-telegram-bot prints all parameters, and at INFO httpx
prints addresses that hold the token. What they do say is told without the texts put into it.
"""

import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, TextIO
from urllib.parse import quote

from storage.errors import FerrymanError
from storage.events import EVENTS

Value = str | int | float | bool | BaseException | None

LOGGER_NAME: Final = "ferryman"
TEXT_CHARS_MAX: Final = 500
LIBRARIES: Final = (
    "aiohttp",
    "aiosqlite",
    "asyncio",
    "concurrent",
    "hpack",
    "httpcore",
    "httpx",
    "httpx2",
    "telegram",
    "uvicorn",
    "uvicorn.access",
    "uvicorn.asgi",
    "uvicorn.error",
)
# Warns of each safety tick that found the one before still running, which is no trouble here.
SILENCED: Final = ("apscheduler",)
_TOKEN = re.compile(r"\d{6,12}(:|%3[Aa])[A-Za-z0-9_-]{30,}")
_QUOTED = re.compile(r'"[^"]*"')
_MASK: Final = "***"
_OWN_PACKAGES: Final = frozenset({"bot", "sender", "storage"})
_LIBRARY_PLACES: Final = ("site-packages", "dist-packages", f"{sys.base_prefix}/lib", "<frozen ")
_COLOURS: Final = {
    logging.DEBUG: "2",
    logging.INFO: "36",
    logging.WARNING: "33",
    logging.ERROR: "31",
}

_logger: Final = logging.getLogger(LOGGER_NAME)


class _Redactor:
    """Masks what must not be seen in any text."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()

    def register(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        # The longest first, so that no part of it stays when it holds a shorter one.
        self._secrets = tuple(sorted({*self._secrets, *forms}, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return _TOKEN.sub(_MASK, text)


redact: Final = _Redactor()
"""Mask bot tokens and this process's secrets in a text."""


def event(name: str, /, **fields: Value) -> None:
    """Log one event of the registry.

    Raises KeyError for an unknown name and TypeError for an unknown field, whatever the level.
    """
    known = EVENTS[name]
    if not known.fields.issuperset(fields):
        raise TypeError(f"{name} has no field {', '.join(sorted(fields.keys() - known.fields))}")
    if not _logger.isEnabledFor(known.level):
        return
    record = logging.LogRecord(LOGGER_NAME, known.level, "", 0, name, None, None)
    record.fields = fields
    _logger.handle(record)


def setup(
    role: str,
    level: str,
    *,
    secrets: Iterable[str] = (),
    no_color: str = "",
    stream: TextIO | None = None,
) -> None:
    """Send all logs of this process to `stream` (stderr), replacing any handler of the root.

    `level` is one of `log_level`; `secrets` are values to mask wherever they turn up; `no_color`
    is the NO_COLOR variable: not empty means no colours. Exceptions that nobody caught are logged
    the same way, instead of being printed with their message.
    """
    redact.register(secrets)
    out = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(out)
    handler.setFormatter(_Readable(role, bool(no_color)) if out.isatty() else _JsonLines(role))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # A record that can't be written must not be printed with its arguments.
    logging.raiseExceptions = False
    for library in LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    for library in SILENCED:
        logging.getLogger(library).setLevel(logging.ERROR)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable


def describe(error: BaseException) -> str:
    """An exception as type and place, with what caused it; no message, no locals.

    "OperationalError at storage/database.py:88, from ..."; of a group, each exception in it.
    """
    return redact("; ".join(_leaves(error)))


def redact_traceback(error: BaseException) -> str:
    """A traceback fit to be stored: places and types, and messages only of our own errors."""
    return redact("\n".join(_trace(error)))


class _Line:
    """A record made ready: what both forms of the log have in common."""

    def __init__(self, record: logging.LogRecord) -> None:
        moment = datetime.fromtimestamp(record.created, UTC)
        self.ts = f"{moment:%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03d}Z"
        self.level = record.levelname.lower()
        given = getattr(record, "fields", None)
        self.event = record.getMessage() if given is not None else "log"
        fields: dict[str, Value] = given if given is not None else _foreign(record)
        self.fields = {name: _told(name, value) for name, value in fields.items()}


class _JsonLines(logging.Formatter):
    """One JSON object a line, for machines."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        line = _Line(record)
        head = {"ts": line.ts, "level": line.level, "role": self._role, "event": line.event}
        return json.dumps(head | line.fields, ensure_ascii=False, separators=(",", ":"))


class _Readable(logging.Formatter):
    """One line of words, for a terminal."""

    def __init__(self, role: str, is_plain: bool) -> None:  # noqa: FBT001  # private, said by name
        super().__init__()
        self._role = role
        self._is_plain = is_plain

    def format(self, record: logging.LogRecord) -> str:
        line = _Line(record)
        # JSON's quoting keeps control characters of foreign texts away from the terminal.
        told = " ".join(
            f"{name}={json.dumps(value, ensure_ascii=True)}" for name, value in line.fields.items()
        )
        level = f"{line.level:<7}"
        if not self._is_plain:
            level = f"\x1b[{_COLOURS.get(record.levelno, '31')}m{level}\x1b[0m"
        return f"{line.ts[11:23]} {level} {self._role:<6} {line.event:<22} {told}".rstrip()


def _told(name: str, value: Value) -> str | int | float | bool | None:
    """A field's value as it may be seen."""
    if isinstance(value, BaseException):
        return describe(value)
    if not isinstance(value, str):
        return value
    if name == "description":
        # Telegram's words may quote the message that it refuses.
        value = _QUOTED.sub('"…"', value)
    text = redact(value)
    return text if len(text) <= TEXT_CHARS_MAX else text[:TEXT_CHARS_MAX] + "…"


def _foreign(record: logging.LogRecord) -> dict[str, Value]:
    """What is kept of a record that is no event: others' libraries, or the handlers' own logs."""
    is_library = record.name.split(".")[0] in {*LIBRARIES, *SILENCED}
    fields: dict[str, Value] = {
        "logger": record.name,
        "message": _template(record) if is_library else _message(record),
    }
    if record.exc_info and record.exc_info[1] is not None:
        fields["error"] = record.exc_info[1]
    return fields


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return str(record.msg)


def _template(record: logging.LogRecord) -> str:
    """A library's message with numbers but without texts, which may be a user's.

    The first line only: asyncio goes on with the `repr` of the exception.
    """
    if isinstance(record.msg, BaseException):
        return type(record.msg).__name__
    text = str(record.msg)
    if isinstance(record.args, tuple) and record.args:
        shown = tuple(arg if isinstance(arg, int | float) else "…" for arg in record.args)
        try:
            text = text % shown
        except (TypeError, ValueError):
            text = str(record.msg)
    return text.partition("\n")[0]


def _leaves(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
        return
    told = f"{type(error).__name__} at {_place(error.__traceback__)}"
    cause = _cause(error)
    yield told if cause is None else f"{told}, from {' and '.join(_leaves(cause))}"


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _place(trace: TracebackType | None) -> str:
    """File and line of the innermost frame of ours or of the handlers', else of the innermost."""
    frames = list(traceback.walk_tb(trace))
    if not frames:
        return "nowhere"
    own = [(frame, line) for frame, line in frames if _is_own(frame)]
    frame, line = (own or frames)[-1]
    return f"{_file(frame)}:{line}"


def _is_own(frame: FrameType) -> bool:
    if str(frame.f_globals.get("__name__", "")).split(".")[0] in _OWN_PACKAGES:
        return True
    return not any(place in frame.f_code.co_filename for place in _LIBRARY_PLACES)


def _file(frame: FrameType) -> str:
    """The file by its module's name, so that no path of this machine is told."""
    path = Path(frame.f_code.co_filename)
    module = str(frame.f_globals.get("__name__", ""))
    depth = module.count(".") + (2 if path.name == "__init__.py" else 1)
    return "/".join(path.parts[-depth:])


def _trace(error: BaseException) -> Iterator[str]:
    cause = _cause(error)
    if cause is not None:
        yield from _trace(cause)
        yield "which led to"
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield f"  {_file(frame)}:{line} {frame.f_code.co_name}"
    message = f": {error}" if isinstance(error, FerrymanError) else ""
    yield f"{type(error).__name__}{message}"
    if isinstance(error, BaseExceptionGroup):
        for number, inner in enumerate(error.exceptions, start=1):
            yield f"of which {number}:"
            yield from _trace(inner)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    event("role.failed", reason="nobody caught it", error=error.with_traceback(trace))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        event("task.failed", task="thread", error=args.exc_value)


def _unraisable(args: "sys.UnraisableHookArgs") -> None:
    if args.exc_value is not None:
        event("task.failed", task="clean-up", error=args.exc_value)
