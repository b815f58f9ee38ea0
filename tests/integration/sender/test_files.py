"""Rows with files: uploaded from disk once, named from then on, and what comes of a stale name."""

import json
from collections.abc import Mapping

import pytest

from storage import files
from storage.blobs import Blobs
from storage.files import FileKey
from storage.lifecycle import BotName, OutboxState
from storage.outgoing import FilePart, Outgoing
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Late, Reply, Stub, flood, refusal
from tests.integration.storage.calls import call

GREEN = b"green picture"
WRONG_ID = "Bad Request: wrong remote file identifier specified: can't unserialize it"


def kept(house: House, data: bytes, part: str, filename: str = "a.png") -> FilePart:
    sha256 = Blobs(house.folder / "blobs").keep(data)
    return FilePart(part, filename, "image/png", sha256, len(data))


def photo(house: House, key: str, data: bytes = GREEN, **params: str) -> Outgoing:
    parts = (kept(house, data, "photo"),)
    return call(key, method="sendPhoto", params={"chat_id": "7", **params}, files=parts)


def shown(file_id: str, **more: object) -> Mapping[str, object]:
    sizes = [
        {"file_id": f"small-{file_id}", "width": 90, "height": 60},
        {"file_id": file_id, "width": 900, "height": 600},
    ]
    return {"message_id": 90, "photo": sizes, **more}


def accepted(result: object) -> Reply:
    return Reply(200, json.dumps({"ok": True, "result": result}).encode(), {})


async def test_a_file_is_uploaded_once_and_named_from_then_on(house: House, stub: Stub) -> None:
    stub.will("sendPhoto", accepted(shown("AgAC")))
    await house.start()
    await house.says(photo(house, "a", caption="hello & bye"))
    await house.passes(2_000)
    await house.says(photo(house, "b"))
    await house.passes(2_000)

    first, second = stub.arrivals
    assert first.form == {"chat_id": "7", "caption": "hello & bye"}
    assert first.files == {"photo": GREEN}
    assert second.form == {"chat_id": "7", "photo": "AgAC"}
    assert not second.files


async def test_what_was_sent_needs_its_files_no_more(house: House, stub: Stub) -> None:
    await house.start()
    [row] = await house.says(photo(house, "a"))
    await house.becomes(row, OutboxState.SENT)
    assert not await house.db.read(lambda tx: files.of_rows(tx, [row]))


async def test_a_file_that_waits_out_a_flood_goes_after_it(house: House, stub: Stub) -> None:
    stub.will("sendPhoto", flood(3))
    await house.start()
    [row] = await house.says(photo(house, "a"))
    await house.passes(4_000)
    await house.becomes(row, OutboxState.SENT)
    assert [arrival.files for arrival in stub.arrivals] == [{"photo": GREEN}] * 2


async def test_an_album_names_what_is_known_and_brings_the_rest(house: House, stub: Stub) -> None:
    stub.will("sendPhoto", accepted(shown("AgAC")))
    stub.will("sendMediaGroup", accepted([shown("AgAC"), shown("BgBC")]))
    await house.start()
    await house.says(photo(house, "a"))
    await house.passes(2_000)
    parts = (kept(house, GREEN, "file0"), kept(house, b"red", "file1"))
    media = [{"type": "photo", "media": f"attach://file{number}"} for number in (0, 1)]
    album = call(
        "b",
        method="sendMediaGroup",
        params={"chat_id": "7", "media": json.dumps(media)},
        files=parts,
        items=2,
    )
    await house.says(album)
    await house.passes(3_000)

    arrival = stub.arrivals[-1]
    assert arrival.files == {"file1": b"red"}
    assert [item["media"] for item in json.loads(arrival.form["media"])] == [
        "AgAC",
        "attach://file1",
    ]
    key = FileKey(parts[1].sha256, "photo", "a.png")
    assert await house.db.read(lambda tx: files.known(tx, BOT, [key])) == {key: "BgBC"}


@pytest.mark.parametrize(
    "description",
    [
        WRONG_ID,
        "Bad Request: wrong file identifier/HTTP URL specified",
        "Bad Request: wrong file_id or the file is temporarily unavailable",
        "Bad Request: FILE_REFERENCE_EXPIRED",
    ],
)
async def test_a_name_that_is_refused_is_forgotten_and_the_file_goes_along_at_once(
    house: House, stub: Stub, description: str
) -> None:
    stub.will("sendPhoto", accepted(shown("stale")))
    await house.start()
    await house.says(photo(house, "a"))
    await house.passes(2_000)
    stub.will("sendPhoto", refusal(400, description), accepted(shown("fresh")))
    [row] = await house.says(photo(house, "b"))
    await house.passes(2_000)

    found = await house.becomes(row, OutboxState.SENT)
    assert found.attempts == 1
    assert [each.verdict for each in found.history] == ["outdated", "sent"]
    assert stub.arrivals[-1].files == {"photo": GREEN}
    await house.says(photo(house, "c"))
    await house.passes(2_000)
    assert stub.arrivals[-1].form["photo"] == "fresh"


async def test_a_file_is_brought_along_again_only_once(house: House, stub: Stub) -> None:
    """Then Telegram's refusal stands."""
    stub.will("sendPhoto", accepted(shown("stale")))
    await house.start()
    await house.says(photo(house, "a"))
    await house.passes(2_000)
    stub.will("sendPhoto", refusal(400, WRONG_ID), refusal(400, WRONG_ID))
    [row] = await house.says(photo(house, "b"))
    await house.passes(2_000)
    found = await house.becomes(row, OutboxState.DEAD)
    assert [each.verdict for each in found.history] == ["outdated", "refused"]
    await house.says(photo(house, "c"))
    await house.passes(2_000)
    assert stub.arrivals[-1].files == {"photo": GREEN}


async def test_a_name_learned_meanwhile_stays_but_the_row_brings_its_file(
    house: House, stub: Stub
) -> None:
    stub.will("sendPhoto", accepted(shown("stale")))
    await house.start()
    await house.says(photo(house, "a"))
    await house.passes(2_000)
    late = Late(refusal(400, WRONG_ID))
    stub.will("sendPhoto", late, refusal(500, "Internal Server Error"))
    outgoing = photo(house, "b")
    [row] = await house.says(outgoing)
    await stub.arrived(2)
    key = FileKey(outgoing.files[0].sha256, "photo", "a.png")
    await house.db.write(lambda tx: files.learn(tx, BOT, {key: "newer"}))
    late.give()
    await house.becomes(row, OutboxState.QUEUED)
    await house.passes(2_000)
    await house.becomes(row, OutboxState.UNCERTAIN)
    assert stub.arrivals[-1].files == {"photo": GREEN}
    assert await house.db.read(lambda tx: files.known(tx, BOT, [key])) == {key: "newer"}


async def test_an_album_in_which_an_item_failed_is_not_repeated(house: House, stub: Stub) -> None:
    stub.will("sendPhoto", accepted(shown("stale")))
    await house.start()
    await house.says(photo(house, "a"))
    await house.passes(2_000)
    wrapped = f'Bad Request: failed to send message #1 with the error message "{WRONG_ID}"'
    stub.will("sendMediaGroup", refusal(400, wrapped))
    media = json.dumps([{"type": "photo", "media": "attach://file0"}] * 2)
    parts = (kept(house, GREEN, "file0"),)
    params = {"chat_id": "7", "media": media}
    [row] = await house.says(
        call("b", method="sendMediaGroup", params=params, files=parts, items=2)
    )
    await house.passes(2_000)
    await house.becomes(row, OutboxState.UNCERTAIN)


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "out of reach"])
async def test_a_row_whose_file_is_not_there_is_buried_with_the_reason(
    house: House, stub: Stub, *, is_gone: bool
) -> None:
    row_to_be = photo(house, "a")
    path = Blobs(house.folder / "blobs").path(row_to_be.files[0].sha256)
    path.unlink()
    if not is_gone:
        path.parent.rmdir()
        path.parent.write_text("no folder")
    await house.start()
    row, after = await house.says(row_to_be, call("b"))
    found = await house.becomes(row, OutboxState.DEAD)
    assert found.reason == "the content of 1 of its files is not to be had on this machine"
    await house.passes(2_000)
    await house.becomes(after, OutboxState.SENT)


async def test_another_bots_name_is_never_used(house: House, stub: Stub) -> None:
    outgoing = photo(house, "a")
    key = FileKey(outgoing.files[0].sha256, "photo", "a.png")
    await house.db.write(lambda tx: files.learn(tx, BotName("other"), {key: "theirs"}))
    await house.start()
    await house.says(outgoing)
    await house.passes(1_000)
    assert stub.arrivals[-1].files == {"photo": GREEN}
