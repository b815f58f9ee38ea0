"""Naming a file instead of uploading it: where that is the same, and where it would not be."""

import json
from dataclasses import replace

import pytest

from sender.reuse import Carried, Slot, learned, lightened, slots_of
from storage.files import FileKey
from storage.outgoing import FilePart

GREEN, RED = "a" * 64, "b" * 64
KINDS = {
    "sendPhoto": "photo",
    "sendDocument": "document",
    "sendVideo": "video",
    "sendAudio": "audio",
    "sendVoice": "voice",
    "sendAnimation": "animation",
    "sendVideoNote": "video_note",
    "sendSticker": "sticker",
}


def part(name: str, sha256: str = GREEN) -> FilePart:
    return FilePart(name, "a.png", "image/png", sha256, 5)


def body(result: object) -> bytes:
    return json.dumps({"ok": True, "result": result}).encode()


def album(*items: dict[str, object]) -> dict[str, str]:
    return {"chat_id": "7", "media": json.dumps(items)}


def photo(name: str, **more: object) -> dict[str, object]:
    return {"type": "photo", "media": f"attach://{name}", **more}


@pytest.mark.parametrize(("method", "kind"), KINDS.items())
def test_each_kind_is_learned_from_its_place_in_the_result(method: str, kind: str) -> None:
    slots = slots_of(method, {"chat_id": "7"}, [part(kind)])
    assert slots == (Slot(kind, FileKey(GREEN, kind, "a.png"), kind),)
    shown = {"file_id": "AgAC", "width": 9, "height": 9}
    result = {"message_id": 1, kind: [shown] if kind == "photo" else shown}
    carried = Carried((part(kind),), slots)
    assert learned(carried, body(result)) == {slots[0].key: "AgAC"}
    light = lightened({"chat_id": "7"}, replace(carried, named={slots[0].key: "AgAC"}))
    assert (light.params, light.parts) == ({"chat_id": "7", kind: "AgAC"}, ())


def test_of_a_photo_the_largest_is_named() -> None:
    carried = Carried((part("photo"),), slots_of("sendPhoto", {}, [part("photo")]))
    sizes = [{"file_id": str(side), "width": side, "height": side} for side in (90, 1280, 320)]
    assert list(learned(carried, body({"photo": sizes})).values()) == ["1280"]


@pytest.mark.parametrize(
    "result",
    [True, None, [], {"photo": []}, {"photo": {"file_id": 7}}, {"document": {"file_id": "x"}}],
)
def test_a_result_without_the_file_teaches_nothing(result: object) -> None:
    carried = Carried((part("photo"),), slots_of("sendPhoto", {}, [part("photo")]))
    assert not learned(carried, body(result))


@pytest.mark.parametrize("companion", ["thumbnail", "cover"])
def test_what_has_a_thumbnail_or_a_cover_is_always_uploaded(companion: str) -> None:
    assert not slots_of("sendVideo", {companion: "attach://file0"}, [part("video"), part("file0")])
    items = [photo("file0", **{companion: "attach://file1"}), photo("file2")]
    parts = [part("file0"), part("file1"), part("file2")]
    assert [slot.part for slot in slots_of("sendMediaGroup", album(*items), parts)] == ["file2"]


def test_what_is_said_of_a_file_makes_it_another() -> None:
    """Under a `file_id` it could not be changed."""
    plain, one, other = [
        slots_of("sendAudio", said, [part("audio")])[0].key
        for said in ({"caption": "x"}, {"title": "One"}, {"title": "Other"})
    ]
    assert len({plain, one, other}) == 3
    assert slots_of("sendAudio", {"caption": "y"}, [part("audio")])[0].key == plain


@pytest.mark.parametrize(
    ("method", "params", "brought"),
    [
        ("setChatPhoto", {"chat_id": "7"}, "photo"),
        ("uploadStickerFile", {"user_id": "7"}, "sticker"),
        ("sendNewThing", {"chat_id": "7"}, "photo"),
        ("sendMediaGroup", {"media": "no JSON"}, "file0"),
        ("sendMediaGroup", {"media": '[7, {"type": "photo", "media": "AgAC"}]'}, "file0"),
        ("sendPhoto", {"photo": "AgAC"}, "file0"),
    ],
)
def test_elsewhere_nothing_is_named(method: str, params: dict[str, str], brought: str) -> None:
    assert not slots_of(method, params, [part(brought)])


def test_in_an_album_each_item_is_named_for_itself() -> None:
    parts = (part("file0"), part("file1", RED))
    params = album(photo("file0", caption="x"), photo("file1"))
    carried = Carried(parts, slots_of("sendMediaGroup", params, parts))
    light = lightened(params, replace(carried, named={carried.slots[0].key: "AgAC"}))
    assert json.loads(light.params["media"]) == [
        {"type": "photo", "media": "AgAC", "caption": "x"},
        photo("file1"),
    ]
    assert light.parts == (parts[1],)
    results = [{"photo": [{"file_id": name, "width": 1, "height": 1}]} for name in ("g", "r")]
    assert list(learned(carried, body(results)).values()) == ["g", "r"]


def test_a_file_that_stands_in_two_places_is_brought_as_long_as_one_needs_it() -> None:
    params = album(photo("file0"), photo("file0", thumbnail="attach://file1"))
    parts = (part("file0"), part("file1", RED))
    carried = Carried(parts, slots_of("sendMediaGroup", params, parts))
    light = lightened(params, replace(carried, named={carried.slots[0].key: "AgAC"}))
    assert light.parts == parts


def test_a_new_medium_of_a_message_is_named_too() -> None:
    params = {"chat_id": "7", "message_id": "5", "media": json.dumps(photo("file0"))}
    carried = Carried((part("file0"),), slots_of("editMessageMedia", params, [part("file0")]))
    light = lightened(params, replace(carried, named={carried.slots[0].key: "AgAC"}))
    assert json.loads(light.params["media"])["media"] == "AgAC"
    assert not light.parts
