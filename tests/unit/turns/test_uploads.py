"""Files that a handler sends: kept before the row, named by number, refused when too large."""

import io
import json
import os
from pathlib import Path

import pytest
from telegram import InputFile, InputMediaPhoto, InputMediaVideo
from telegram.error import BadRequest
from telegram.request import RequestData
from telegram.request._requestparameter import RequestParameter

from bot.turns.uploads import (
    FILE_BYTES_MAX,
    LOCAL_FILE_BYTES_MAX,
    PHOTO_BYTES_MAX,
    Uploads,
    file_bytes_max,
)
from storage.blobs import Blobs


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


@pytest.fixture
def uploads(blobs: Blobs) -> Uploads:
    return Uploads(blobs, bytes_max=FILE_BYTES_MAX)


def request(**params: object) -> RequestData:
    """What the library makes of a method's parameters."""
    return RequestData([RequestParameter.from_input(key, value) for key, value in params.items()])


def album() -> RequestData:
    media = [InputMediaPhoto(b"green"), InputMediaVideo(b"moving", thumbnail=b"small")]
    return request(chat_id=7, media=media)


async def test_a_file_goes_beside_the_parameters(uploads: Uploads, blobs: Blobs) -> None:
    data = request(chat_id=7, photo=InputFile(b"green", filename="a.png"), caption="hi")
    form = await uploads.form_of("sendPhoto", data)
    assert form.params == {"chat_id": "7", "caption": "hi"}
    [file] = form.files
    assert (file.part, file.filename, file.mime, file.size_bytes) == (
        "photo",
        "a.png",
        "image/png",
        5,
    )
    assert blobs.path(file.sha256).read_bytes() == b"green"


async def test_a_call_without_files_is_left_as_it_is(uploads: Uploads) -> None:
    form = await uploads.form_of("sendMessage", request(chat_id=7, text="attach://attached"))
    assert (form.params, form.files) == ({"chat_id": "7", "text": "attach://attached"}, ())


async def test_what_is_attached_has_the_same_names_whenever_the_turn_runs(uploads: Uploads) -> None:
    """The library draws them by lot."""
    first, second = [await uploads.form_of("sendMediaGroup", album()) for _ in range(2)]
    assert first == second
    photo, video = json.loads(first.params["media"])
    assert (photo["media"], video["media"], video["thumbnail"]) == (
        "attach://file0",
        "attach://file1",
        "attach://file2",
    )
    assert {file.part for file in first.files} == {"file0", "file1", "file2"}


async def test_a_handle_is_read_when_the_call_is_made(uploads: Uploads, blobs: Blobs) -> None:
    handle = io.BytesIO(b"read late")
    file = InputFile(handle, filename="a.txt", read_file_handle=False)
    form = await uploads.form_of("sendDocument", request(chat_id=7, document=file))
    handle.close()
    assert blobs.path(form.files[0].sha256).read_bytes() == b"read late"


async def test_a_handle_is_sent_whole_each_time_wherever_it_stands(
    uploads: Uploads, blobs: Blobs
) -> None:
    """So httpx sends it: one file for many chats, or one that was just written to."""
    handle = io.BytesIO()
    handle.write(b"written first")
    file = InputFile(handle, filename="a.txt", read_file_handle=False)
    for chat_id in (7, 8):
        form = await uploads.form_of("sendDocument", request(chat_id=chat_id, document=file))
        assert blobs.path(form.files[0].sha256).read_bytes() == b"written first"


async def test_a_pipe_is_read_from_where_it_stands(uploads: Uploads, blobs: Blobs) -> None:
    read, write = os.pipe()
    os.write(write, b"passing by")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        file = InputFile(pipe, filename="a.txt", read_file_handle=False)
        form = await uploads.form_of("sendDocument", request(chat_id=7, document=file))
    assert blobs.path(form.files[0].sha256).read_bytes() == b"passing by"


@pytest.mark.parametrize("how", ["content", "handle"])
async def test_what_is_too_large_is_refused_with_its_size_and_the_limit(
    blobs: Blobs, how: str
) -> None:
    uploads = Uploads(blobs, bytes_max=1_000)
    given = io.BytesIO(bytes(1_001))
    file = InputFile(given, filename="a.txt", read_file_handle=how == "content")
    with pytest.raises(BadRequest) as refused:
        await uploads.form_of("sendDocument", request(chat_id=7, document=file))
    told = "The file a.txt is too large: it has 1001 bytes, and Telegram takes 1000"
    assert str(refused.value) == told


@pytest.mark.parametrize(("method", "name"), [("sendPhoto", "photo"), ("setChatPhoto", "photo")])
async def test_a_photo_may_be_less_than_another_file(
    uploads: Uploads, method: str, name: str
) -> None:
    file = InputFile(bytes(PHOTO_BYTES_MAX + 1))
    with pytest.raises(BadRequest, match=f"takes {PHOTO_BYTES_MAX}"):
        await uploads.form_of(method, request(chat_id=7, **{name: file}))
    assert (await uploads.form_of("sendDocument", request(chat_id=7, document=file))).files


async def test_so_it_is_in_an_album(uploads: Uploads) -> None:
    media = [InputMediaVideo(bytes(PHOTO_BYTES_MAX + 1)), InputMediaPhoto(b"green")]
    assert len((await uploads.form_of("sendMediaGroup", request(media=media))).files) == 2
    with pytest.raises(BadRequest, match="too large"):
        await uploads.form_of(
            "sendMediaGroup", request(media=[InputMediaPhoto(bytes(PHOTO_BYTES_MAX + 1))])
        )


def test_a_bot_api_server_of_ones_own_takes_larger_files() -> None:
    assert file_bytes_max("https://api.telegram.org") == FILE_BYTES_MAX
    assert file_bytes_max("http://127.0.0.1:8081") == LOCAL_FILE_BYTES_MAX
