"""What travels between a bot and Telegram: answers, refusals, and the JSON they are written in.

Pure values. A `Reply` also says how the answer travels: late, cut off, or never.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

JsonObject: TypeAlias = dict[str, object]

JSON_HEADERS = {"Content-Type": "application/json"}
HTML_HEADERS = {"Content-Type": "text/html"}

_PREFIXES = {
    400: "Bad Request: ",
    401: "Unauthorized: ",
    403: "Forbidden: ",
    404: "Not Found: ",
    409: "Conflict: ",
    500: "Internal Server Error: ",
}


class Ending(StrEnum):
    """How the answer reaches the caller."""

    WHOLE = "whole"
    CUT = "cut"  # the connection closes without a byte of answer
    RESET = "reset"  # the same by TCP reset
    HALF = "half"  # the announced length is never reached
    SILENT = "silent"  # nothing comes until the silence is released


class Silence:
    """A call that waits for its answer until somebody releases it."""

    def __init__(self) -> None:
        """Begin the silence."""
        self.released = False

    def release(self) -> None:
        """Let the answer go."""
        self.released = True


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the Bot API and the way it travels."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: JSON_HEADERS)
    hold_ms: int = 0
    ending: Ending = Ending.WHOLE
    silence: Silence | None = None
    waiting: "Waiting | None" = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A long poll with nothing to tell yet: ask `again` when the world changes or time is up."""

    until_ms: int
    again: Callable[[], Reply]


class Refused(Exception):
    """Telegram says no; `client_bug` marks a call that no correct client would have made.

    `inner` is what the error of an album says of it, where the server knows it only from Telegram.
    """

    def __init__(
        self,
        code: int,
        text: str,
        *,
        parameters: JsonObject | None = None,
        client_bug: bool = False,
        inner: str = "",
    ) -> None:
        """Refuse with `code`; `text` is the description without its prefix."""
        super().__init__(code, text)
        self.code = code
        self.description = _PREFIXES.get(code, "") + text
        self.parameters = parameters
        self.client_bug = client_bug
        self.inner = inner


def bad_request(text: str) -> Refused:
    """A 400 with Telegram's prefix."""
    return Refused(400, text)


def forbidden(text: str) -> Refused:
    """A 403 with Telegram's prefix."""
    return Refused(403, text)


def encode(value: object) -> bytes:
    """JSON as Telegram writes it: compact, everything outside ASCII escaped."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def accept(result: object, description: str | None = None) -> Reply:
    """The answer to a call that was carried out."""
    body: JsonObject = {"ok": True, "result": result}
    if description is not None:
        body["description"] = description
    return Reply(200, encode(body))


def refuse(code: int, description: str, parameters: JsonObject | None = None) -> Reply:
    """The answer to a call that was not."""
    body: JsonObject = {"ok": False, "error_code": code, "description": description}
    headers = dict(JSON_HEADERS)
    if parameters is not None:
        body["parameters"] = parameters
        wait = parameters.get("retry_after")
        if isinstance(wait, int) and not isinstance(wait, bool):
            headers["Retry-After"] = str(wait)
    return Reply(code, encode(body), headers)


def flooded(retry_after_s: int) -> Reply:
    """A 429 with all three carriers of the wait: parameter, header and text."""
    return refuse(
        429, f"Too Many Requests: retry after {retry_after_s}", {"retry_after": retry_after_s}
    )
