"""Photos, videos and other files as parameters name them: by `file_id`, address, or brought along.

A `file_id` belongs to one bot and one kind of file, and says so itself: any test may write one down
by `file_id`. Sources: telegram.md §2.5, §3.5 (82, 83), §6.8.
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.simulator.entities import Formatted
from tests.simulator.forms import ATTACHED, bug
from tests.simulator.message_parts import check_caption, formatted
from tests.simulator.methods import Call
from tests.simulator.wire import JsonObject, bad_request

_FILE_ID = re.compile(r"sim-(?P<kind>[a-z_]+)-(?P<bot>\d+)-(?P<number>\d{10})")
_PIXELS: JsonObject = {"width": 640, "height": 480}
# What each kind of file shows besides its identity.
KINDS: Mapping[str, JsonObject] = {
    "photo": _PIXELS,
    "video": {**_PIXELS, "duration": 3},
    "animation": {**_PIXELS, "duration": 3},
    "audio": {"duration": 3},
    "voice": {"duration": 3},
    "video_note": {"length": 240, "duration": 3},
    "document": {},
    "sticker": {
        **_PIXELS,
        "type": "regular",
        "is_animated": False,
        "is_video": False,
    },
}
_ALBUM_KINDS = frozenset({"photo", "video", "audio", "document"})
_MEDIA_FIELDS = frozenset(
    {
        *("type", "media", "thumbnail", "cover", "caption", "parse_mode", "caption_entities"),
        *("show_caption_above_media", "width", "height", "duration", "performer", "title"),
        *("supports_streaming", "has_spoiler", "disable_content_type_detection"),
        "start_timestamp",
    }
)


@dataclass(frozen=True, slots=True)
class Media:
    """A file with its words: what a message shows, and what stands for it in the ledger."""

    kind: str
    shows: JsonObject
    caption: Formatted
    said: str


def file_id(kind: str, bot_id: int, number: int = 1) -> str:
    """Write down the `file_id` by which this bot knows a file of that kind."""
    assert kind in KINDS, kind
    return f"sim-{kind}-{bot_id}-{number:010d}"


def shown_file(kind: str, named: str, call: Call) -> JsonObject:
    """What a message shows of the file that a parameter names; raises Refused."""
    found = _FILE_ID.fullmatch(named)
    if found is not None:
        if int(found["bot"]) != call.bot.id:
            raise bad_request(
                "wrong remote file identifier specified: can't unserialize it. Wrong last symbol"
            )
        if found["kind"] != kind:
            theirs, ours = (each.replace("_", " ").title() for each in (found["kind"], kind))
            raise bad_request(f"can't use file of type {theirs} as {ours}")
        return _shown(kind, named)
    if named.startswith(ATTACHED):
        if named.removeprefix(ATTACHED) not in call.files:
            raise bug(f"no file was brought along as {named}")
        named = str(zlib.crc32(call.files[named.removeprefix(ATTACHED)]))
    elif urlsplit(named).scheme not in ("http", "https") or not urlsplit(named).hostname:
        raise bad_request("wrong file identifier/HTTP URL specified")
    return _shown(kind, file_id(kind, call.bot.id, zlib.crc32(named.encode())))


def _shown(kind: str, file: str) -> JsonObject:
    told: JsonObject = {"file_id": file, "file_unique_id": file[-10:], **KINDS[kind]}
    return {kind: [told] if kind == "photo" else told}


def file_in(kind: str, call: Call) -> tuple[JsonObject, str]:
    """The file of a method that sends one: what is shown, and what stands for it."""
    if kind in call.files:
        number = zlib.crc32(call.files[kind])
        return _shown(kind, file_id(kind, call.bot.id, number)), f"{kind} {number}"
    named = call.args.text(kind)
    return shown_file(kind, named, call), named


def media_in(given: object, call: Call) -> Media:
    """An InputMedia, alone or in an album; raises Refused."""
    if not isinstance(given, dict):
        raise bug("can't parse InputMedia: expected an Object")
    if unknown := set(given) - _MEDIA_FIELDS:
        raise bug(f"unknown field {min(unknown)} of InputMedia")
    kind, named = given.get("type"), given.get("media")
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(named, str):
        raise bug("can't parse InputMedia: type and media are required")
    entities = given.get("caption_entities")
    caption = formatted(
        str(given.get("caption", "")),
        str(given.get("parse_mode", "")),
        entities if isinstance(entities, list) else [],
    )
    check_caption(caption)
    return Media(kind, shown_file(kind, named, call), caption, named)


def check_album(media: list[Media]) -> None:
    """Raise Refused for what can't be one album."""
    kinds = {each.kind for each in media}
    if kinds - _ALBUM_KINDS:
        raise bad_request("can't use the media of the specified type in the album")
    for alone in ("audio", "document"):
        if alone in kinds and len(kinds) > 1:
            raise bad_request(f"{alone} can't be mixed with other media types")
