"""Name a file instead of uploading it again, where Telegram has it from this bot already.

Pure. Telegram's server slows repeated uploads of one file down, and refuses them in the end; the
`file_id` that an earlier send brought back costs nothing. It is worth something to the same bot
alone, as the same kind of file. What an upload says of a file (its title, its size on the screen)
is kept with it at Telegram and could not be changed under a `file_id`: so that is part of what is
remembered. A file with a thumbnail or a cover of its own is always uploaded. Sources: Bot API,
"Sending files", and its methods.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sender.answer import envelope_of
from storage.files import FileKey
from storage.outgoing import FilePart

_KINDS: Final[Mapping[str, str]] = {
    "sendPhoto": "photo",
    "sendDocument": "document",
    "sendVideo": "video",
    "sendAudio": "audio",
    "sendVoice": "voice",
    "sendAnimation": "animation",
    "sendVideoNote": "video_note",
    "sendSticker": "sticker",
}
"""The methods that send one file: in the parameter named like its kind, as is the result's."""

_MEDIA_METHODS: Final = frozenset({"sendMediaGroup", "editMessageMedia"})
_MEDIA: Final = "media"
_MEDIA_KINDS: Final = frozenset({"photo", "video", "animation", "audio", "document"})
_COMPANIONS: Final = frozenset({"thumbnail", "cover"})
_SAID_OF_THE_FILE: Final = (
    *("width", "height", "length", "duration", "performer", "title", "emoji"),
    *("supports_streaming", "disable_content_type_detection", "start_timestamp"),
)
_ATTACHED: Final = "attach://"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a call where a file could be named instead; `item`: of an album, from 0."""

    part: str
    key: FileKey
    kind: str
    item: int | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """The files of a row, where they could be named instead, and what Telegram calls them."""

    parts: tuple[FilePart, ...] = ()
    slots: tuple[Slot, ...] = ()
    named: Mapping[FileKey, str] = field(default_factory=dict)


NOTHING_CARRIED: Final = Carried()


@dataclass(frozen=True, slots=True)
class Lightened:
    """A call's parameters and what is left to be uploaded with them."""

    params: Mapping[str, str]
    parts: tuple[FilePart, ...]


def slots_of(method: str, params: Mapping[str, str], parts: Sequence[FilePart]) -> tuple[Slot, ...]:
    """The places of a call where its files could be named by a `file_id`."""
    brought = {part.part: part for part in parts}
    kind = _KINDS.get(method)
    if kind is not None:
        part = brought.get(kind)
        if part is None or not _COMPANIONS.isdisjoint([*params, *brought]):
            return ()
        return (Slot(kind, _key(part, kind, params), kind),)
    if method not in _MEDIA_METHODS:
        return ()
    media = _read(params.get(_MEDIA, ""))
    items = enumerate(media) if isinstance(media, list) else [(None, media)]
    found = (_slot_of_item(item, number, brought) for number, item in items)
    return tuple(slot for slot in found if slot is not None)


def lightened(params: Mapping[str, str], carried: Carried) -> Lightened:
    """The call with each file that Telegram knows named instead of brought along."""
    if not carried.named:
        return Lightened(params, carried.parts)
    form = dict(params)
    media = _read(form.get(_MEDIA, ""))
    for slot in carried.slots:
        file_id = carried.named.get(slot.key)
        if file_id is None:
            continue
        if slot.kind == slot.part:
            form[slot.part] = file_id
        elif isinstance(media, list) and slot.item is not None:
            media[slot.item][_MEDIA] = file_id
        elif isinstance(media, dict):
            media[_MEDIA] = file_id
    if _MEDIA in form:
        form[_MEDIA] = json.dumps(media)
    replaced = {slot.part for slot in carried.slots if slot.key in carried.named}
    left = (each for each in carried.parts if each.part not in replaced or _is_attached(each, form))
    return Lightened(form, tuple(left))


def learned(carried: Carried, body: bytes) -> Mapping[FileKey, str]:
    """What Telegram calls the files that were uploaded, as an accepting answer tells."""
    uploaded = [slot for slot in carried.slots if slot.key not in carried.named]
    if not uploaded:
        return {}
    envelope = envelope_of(body)
    result = None if envelope is None else envelope.result
    found = {slot.key: _file_id(_message(result, slot.item), slot.kind) for slot in uploaded}
    return {key: file_id for key, file_id in found.items() if file_id}


def _slot_of_item(item: object, number: int | None, brought: Mapping[str, FilePart]) -> Slot | None:
    if not isinstance(item, dict) or not _COMPANIONS.isdisjoint(item):
        return None
    kind, named = item.get("type"), item.get(_MEDIA)
    if kind not in _MEDIA_KINDS or not isinstance(named, str):
        return None
    part = brought.get(named.removeprefix(_ATTACHED)) if named.startswith(_ATTACHED) else None
    return None if part is None else Slot(part.part, _key(part, kind, item), kind, number)


def _key(part: FilePart, kind: str, said: Mapping[str, object]) -> FileKey:
    told = {name: said[name] for name in _SAID_OF_THE_FILE if name in said}
    if not told:
        return FileKey(part.sha256, kind, part.filename)
    # Numbers are text in a form and numbers in an album's JSON.
    plain = json.dumps({name: str(value) for name, value in told.items()}, sort_keys=True)
    mark = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return FileKey(part.sha256, f"{kind}#{mark}", part.filename)


def _is_attached(part: FilePart, form: Mapping[str, str]) -> bool:
    return any(f'"{_ATTACHED}{part.part}"' in text for text in form.values())


def _message(result: object, item: int | None) -> object:
    if item is None:
        return result
    return result[item] if isinstance(result, list) and item < len(result) else None


def _file_id(message: object, kind: str) -> str | None:
    """The `file_id` of a message's file; of a photo that of its largest size."""
    shown = message.get(kind) if isinstance(message, dict) else None
    if isinstance(shown, list):
        sizes = [size for size in shown if isinstance(size, dict)]
        shown = max(sizes, key=_pixels, default=None)
    file_id = shown.get("file_id") if isinstance(shown, dict) else None
    return file_id if isinstance(file_id, str) else None


def _pixels(size: Mapping[str, object]) -> int:
    width, height = size.get("width"), size.get("height")
    return width * height if isinstance(width, int) and isinstance(height, int) else 0


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
