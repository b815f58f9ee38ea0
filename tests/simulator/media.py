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
from tests.simulator.methods import Call, Result
from tests.simulator.state import State
from tests.simulator.wire import JsonObject, bad_request

_FILE_ID = re.compile(r"sim-(?P<kind>[a-z_]+)-(?P<bot>\d+)-(?P<number>\d{10})")
DOWNLOAD_BYTES_MAX = 20 << 20
PHOTO_BYTES_MAX = 10 << 20
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
        number = _taken_in(kind, call.files[named.removeprefix(ATTACHED)], call)
        return _shown(kind, file_id(kind, call.bot.id, number))
    if urlsplit(named).scheme not in ("http", "https") or not urlsplit(named).hostname:
        raise bad_request("wrong file identifier/HTTP URL specified")
    return _shown(kind, file_id(kind, call.bot.id, zlib.crc32(named.encode())))


def _taken_in(kind: str, content: bytes, call: Call) -> int:
    """Keep an upload; the number by which every bot's `file_id` names it. Raises Refused."""
    if kind == "photo" and len(content) > PHOTO_BYTES_MAX:
        raise bad_request(
            f"file of size {len(content)} bytes is too big for a photo; "
            f"the maximum size is {PHOTO_BYTES_MAX} bytes"
        )
    if not content:
        raise bad_request("file must be non-empty")
    number = zlib.crc32(content)
    call.state.files[number] = content
    return number


def get_file(call: Call) -> Result:
    """Prepare an uploaded file for its download; raises Refused (telegram.md §2.5, §3.5)."""
    named = call.args.text("file_id")
    found = _FILE_ID.fullmatch(named)
    content = None if found is None else call.state.files.get(int(found["number"]))
    if found is None or int(found["bot"]) != call.bot.id or content is None:
        raise bad_request("wrong file_id or the file is temporarily unavailable")
    if len(content) > DOWNLOAD_BYTES_MAX:
        raise bad_request("file is too big")
    return Result(
        {
            "file_id": named,
            "file_unique_id": named[-10:],
            "file_size": len(content),
            "file_path": f"{found['kind']}s/file_{int(found['number'])}",
        }
    )


def upload_sticker_file(call: Call) -> Result:
    """Take a file in, for a set of stickers to come; raises Refused."""
    if call.args.text("sticker_format") not in ("static", "animated", "video"):
        raise bad_request("sticker format must be one of static, animated or video")
    if "sticker" not in call.files:
        raise bug("the sticker must be brought along")
    content = call.files["sticker"]
    named = file_id("sticker", call.bot.id, _taken_in("sticker", content, call))
    return Result({"file_id": named, "file_unique_id": named[-10:], "file_size": len(content)})


def downloaded(path: str, state: State) -> bytes | None:
    """The content behind a `file_path`; None where there is none."""
    number = path.rpartition("/file_")[2]
    return state.files.get(int(number)) if number.isdecimal() else None


def _shown(kind: str, file: str) -> JsonObject:
    told: JsonObject = {"file_id": file, "file_unique_id": file[-10:], **KINDS[kind]}
    return {kind: [told] if kind == "photo" else told}


def file_in(kind: str, call: Call) -> tuple[JsonObject, str]:
    """The file of a method that sends one: what is shown, and what stands for it."""
    if kind in call.files:
        number = _taken_in(kind, call.files[kind], call)
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
