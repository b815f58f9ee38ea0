"""A form that carries files, as a sequence of pieces, so that no file is ever whole in memory.

Pure: a file is named by its path and size here, and read by the transport alone. The form is
written as httpx writes it for python-telegram-bot, save for the boundary: that is made from what
the form says, never from chance, so that no file can hold it and the same call is the same bytes.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.outgoing import FilePart

# What may not stand in a quoted name, as HTML5's form encoding replaces it (httpx does the same).
_UNFIT: Final = re.compile(r'["\\]|[\x00-\x1a\x1c-\x1f]')


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a file on disk."""

    path: Path
    size_bytes: int


Piece = bytes | Stored


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A file that goes with a call, and where its content is."""

    part: FilePart
    content: Stored


@dataclass(frozen=True, slots=True)
class Form:
    """A body in pieces. Without `tail`, its very end, no server acts on what came before."""

    ahead: tuple[Piece, ...]
    tail: bytes
    content_type: str


def form_of(params: Mapping[str, str], enclosed: Sequence[Enclosed]) -> Form:
    """The form with these parameters and files.

    Raises UnicodeEncodeError for a text that holds half of a surrogate pair.
    """
    boundary = _boundary(params, enclosed)
    return Form(
        ahead=tuple(_pieces(params, enclosed, boundary)),
        tail=f"--{boundary}--\r\n".encode(),
        content_type=f"multipart/form-data; boundary={boundary}",
    )


def size_of(piece: Piece) -> int:
    """How many bytes a piece has."""
    return len(piece) if isinstance(piece, bytes) else piece.size_bytes


def _pieces(
    params: Mapping[str, str], enclosed: Sequence[Enclosed], boundary: str
) -> Iterator[Piece]:
    begins = f"--{boundary}\r\nContent-Disposition: form-data; "
    fields = [f"{begins}{_named('name', key)}\r\n\r\n{text}\r\n" for key, text in params.items()]
    yield "".join(fields).encode()
    for each in enclosed:
        part = each.part
        names = f"{_named('name', part.part)}; {_named('filename', part.filename)}"
        yield f"{begins}{names}\r\nContent-Type: {part.mime}\r\n\r\n".encode()
        yield each.content
        yield b"\r\n"


def _named(title: str, name: str) -> str:
    return f'{title}="{_UNFIT.sub(_replaced, name)}"'


def _replaced(found: re.Match[str]) -> str:
    return "\\\\" if found[0] == "\\" else f"%{ord(found[0]):02X}"


def _boundary(params: Mapping[str, str], enclosed: Sequence[Enclosed]) -> str:
    """A word that nobody can have written into a file: it depends on the file's own hash."""
    told = hashlib.blake2b(digest_size=16)
    said = [piece for item in params.items() for piece in item]
    for each in enclosed:
        said += [each.part.part, each.part.filename, each.part.sha256]
    for text in said:
        raw = text.encode()
        told.update(len(raw).to_bytes(8, "big"))
        told.update(raw)
    return f"ferryman-{told.hexdigest()}"
