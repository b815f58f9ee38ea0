"""Turn a stored row into a call again: the same form that python-telegram-bot would have posted.

Pure. A row with files becomes a multipart form, one of another channel a JSON object. Where a form
names a message not sent yet, `sender/references.py` puts Telegram's own id; with a placeholder left
nothing is made.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote_plus

from sender.multipart import Enclosed, Piece, form_of, size_of
from sender.references import filled_in, leftover

_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How parameters become a body. `write` raises ValueError for what can't be written.

    `has_placeholders`: where they name messages, they may name ours before they are sent.
    """

    content_type: str
    write: Callable[[Mapping[str, str]], bytes]
    has_placeholders: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call ready to be posted. The body holds users' words; never log it.

    `ahead`: pieces of the body that come before `body`, which is its end, where it carries files.
    """

    method: str
    body: bytes
    content_type: str = "application/x-www-form-urlencoded"
    ahead: tuple[Piece, ...] = ()

    @property
    def size_bytes(self) -> int:
        """How long the whole body is."""
        return sum(map(size_of, self.ahead)) + len(self.body)


@dataclass(frozen=True, slots=True)
class Unsayable:
    """The row's parameters can't be written as its channel wants them."""

    reason: str


def encode(form: Mapping[str, str]) -> bytes:
    """Encode a form byte for byte as httpx does, and so as python-telegram-bot sends it."""
    pairs = (f"{_quoted(name)}={_quoted(value)}" for name, value in form.items())
    return "&".join(pairs).encode("ascii")


def encode_json(form: Mapping[str, str]) -> bytes:
    """Encode parameters, each of them JSON already, as one JSON object.

    Raises ValueError for a parameter that is not JSON.
    """
    values = {name: json.loads(value) for name, value in form.items()}
    return json.dumps(values, ensure_ascii=False, allow_nan=False).encode()


FORM = Encoding("application/x-www-form-urlencoded", encode, has_placeholders=True)
JSON = Encoding("application/json", encode_json)


def render(
    method: str,
    params: Mapping[str, str],
    message_ids: Mapping[int, int],
    encoding: Encoding = FORM,
    enclosed: Sequence[Enclosed] = (),
) -> Call | Unsayable:
    """Make the call, each of its placeholders replaced by Telegram's id, with its files."""
    form = sayable(params, message_ids) if encoding.has_placeholders else params
    if isinstance(form, Unsayable):
        return form
    if enclosed and encoding is not FORM:
        return Unsayable("no call of its channel carries a file")
    try:
        if enclosed:
            parts = form_of(form, enclosed)
            return Call(method, parts.tail, parts.content_type, parts.ahead)
        return Call(method, encoding.write(form), encoding.content_type)
    except UnicodeEncodeError:
        return Unsayable("a text holds half of a surrogate pair, which no call can carry")
    except (ValueError, RecursionError):
        return Unsayable("a parameter is not written as JSON")


def sayable(
    params: Mapping[str, str], message_ids: Mapping[int, int]
) -> Mapping[str, str] | Unsayable:
    """The form with Telegram's ids; a last look makes sure that no placeholder is left in it."""
    form = filled_in(params, message_ids)
    left = leftover(form)
    return form if left is None else Unsayable(left)


def _quoted(text: str) -> str:
    # Names and numbers need no quoting, and finding that out is far cheaper than to try.
    return text if _PLAIN.fullmatch(text) else quote_plus(text)
