"""Files that a handler sends: their contents go to the store, the call keeps their hashes.

By the time the row of the call is committed its files are on disk; should the turn be let go, they
stay behind without a row, and retention removes them. The library names attached files by chance;
here they are numbered, so that a turn that runs again makes the same call. What Telegram would
refuse for its size is refused at once, before a row is made of it.
"""

import asyncio
import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from telegram.error import BadRequest
from telegram.request import RequestData

from storage.blobs import Blobs
from storage.errors import FileTooLarge
from storage.outgoing import FilePart

_MIB: Final = 1 << 20
PHOTO_BYTES_MAX: Final = 10 * _MIB
"""Telegram's own library refuses a larger photo with this very number, wherever the Bot API server
is (telegram.md §2.5; Bot API, "Sending files")."""
FILE_BYTES_MAX: Final = 50 * _MIB
"""Any other file, where Telegram's own Bot API server takes it."""
LOCAL_FILE_BYTES_MAX: Final = 2_000 * _MIB
"""The same where it is one's own (Bot API, "Using a Local Bot API Server")."""

_TELEGRAMS_OWN: Final = "api.telegram.org"
_PHOTO: Final = "photo"
_ATTACHED: Final = "attach://"
# As python-telegram-bot names an attached file: never the name of a parameter.
_BY_CHANCE: Final = re.compile(r"attached[0-9a-f]{32}")
_CARRIERS_OF_PHOTOS: Final = frozenset(
    {
        *("sendPhoto", "setChatPhoto", "setMyProfilePhoto", "setBusinessAccountProfilePhoto"),
        "sendLivePhoto",
    }
)
_PHOTO_FIELDS: Final = ("media", "photo")


@dataclass(frozen=True, slots=True)
class UploadForm:
    """The parameters of a call as they are stored, and the files that go with it."""

    params: Mapping[str, str]
    files: tuple[FilePart, ...]


def file_bytes_max(base_url: str) -> int:
    """How large a file that is no photo may be, by the Bot API server that takes it.

    Every server that is not Telegram's own counts as a local one, as only those take large files;
    one that does not, as a proxy to Telegram's own, refuses what is too large for it by itself.
    """
    host = urlsplit(base_url).hostname
    return FILE_BYTES_MAX if host == _TELEGRAMS_OWN else LOCAL_FILE_BYTES_MAX


class Uploads:
    """Takes the files out of the library's requests, for one Bot API server."""

    def __init__(self, blobs: Blobs, *, bytes_max: int) -> None:
        """`bytes_max`: how large a file that is no photo may be."""
        self._blobs = blobs
        self._bytes_max = bytes_max

    async def form_of(self, method: str, data: RequestData) -> UploadForm:
        """The call's parameters and files; the files are kept when this returns.

        Raises BadRequest for one that Telegram would refuse for its size, and OSError where the
        disk takes nothing.
        """
        if not data.contains_files:
            return UploadForm(data.json_parameters, ())
        brought = data.multipart_data
        names = _numbered(brought)
        params = {key: _renamed(text, names) for key, text in data.json_parameters.items()}
        photos = _photos_of(method, params)
        files = [
            await self._kept(names.get(part, part), given, is_photo=names.get(part, part) in photos)
            for part, given in brought.items()
        ]
        return UploadForm(params, tuple(files))

    async def _kept(
        self, part: str, given: tuple[str, bytes | IO[bytes], str], *, is_photo: bool
    ) -> FilePart:
        filename, content, mime = given
        bytes_max = min(PHOTO_BYTES_MAX, self._bytes_max) if is_photo else self._bytes_max
        # Beside the event loop: the disk is waited for.
        sha256, size_bytes = await asyncio.to_thread(self._keep, content, filename, bytes_max)
        return FilePart(part, filename, mime, sha256, size_bytes)

    def _keep(self, content: bytes | IO[bytes], filename: str, bytes_max: int) -> tuple[str, int]:
        if isinstance(content, bytes):
            if len(content) > bytes_max:
                raise _too_large(filename, f"it has {len(content)} bytes", bytes_max)
            return self._blobs.keep(content), len(content)
        _rewind(content)
        try:
            return self._blobs.keep_from(content, bytes_max=bytes_max)
        except FileTooLarge:
            found = _length_of(content)
            raise _too_large(filename, found, bytes_max) from None


def _rewind(source: IO[bytes]) -> None:
    """Let a file be read from its beginning, wherever it stands: so httpx reads it for each call.

    What can't go back is read from where it stands.
    """
    with contextlib.suppress(AttributeError, io.UnsupportedOperation):
        source.seek(0)


def _too_large(filename: str, found: str, bytes_max: int) -> BadRequest:
    named = Path(filename).name
    return BadRequest(f"The file {named} is too large: {found}, and Telegram takes {bytes_max}")


def _length_of(source: IO[bytes]) -> str:
    """How long a file is that was not read to its end, in words."""
    if not source.seekable():
        return "it has more bytes"
    return f"it has {source.seek(0, 2)} bytes"


def _numbered(brought: Mapping[str, object]) -> Mapping[str, str]:
    """New names for the parts that were named by chance, in the order in which they come."""
    by_chance = (part for part in brought if _BY_CHANCE.fullmatch(part))
    return {part: f"file{number}" for number, part in enumerate(by_chance)}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(_ATTACHED + old, _ATTACHED + new)
    return text


def _photos_of(method: str, params: Mapping[str, str]) -> frozenset[str]:
    """The parts that are photos to Telegram, which takes smaller ones only."""
    found = {_PHOTO} if method in _CARRIERS_OF_PHOTOS else set()
    for text in params.values():
        if _ATTACHED in text:
            found.update(_attached_photos(_read(text)))
    return frozenset(found)


def _attached_photos(value: object) -> Iterator[str]:
    """The parts that a parameter's JSON names as photos, however deep."""
    if isinstance(value, list):
        for each in value:
            yield from _attached_photos(each)
    elif isinstance(value, dict):
        for name in _PHOTO_FIELDS:
            named = value.get(name)
            is_photo = value.get("type") == _PHOTO or name == _PHOTO
            if is_photo and isinstance(named, str) and named.startswith(_ATTACHED):
                yield named.removeprefix(_ATTACHED)
        for each in value.values():
            if isinstance(each, list | dict):
                yield from _attached_photos(each)


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
