"""A string never sends a file of this machine; a path that was given on purpose does."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from telegram import (
    Bot,
    InputFile,
    InputMediaDocument,
    InputMediaPhoto,
    InputMediaVideo,
    InputPaidMediaPhoto,
    InputProfilePhotoStatic,
    InputSticker,
    InputStoryContentPhoto,
)
from telegram._files import inputmedia
from telegram._utils import files as library
from telegram.error import BadRequest

from bot.turns import local_paths
from storage.errors import UnsupportedLibrary


@pytest.fixture
def guard() -> Iterator[None]:
    with local_paths.guarded(local_files=False):
        yield


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_bytes(b"a secret")
    return path


MAKERS = [
    InputMediaPhoto,
    InputMediaDocument,
    InputPaidMediaPhoto,
    InputProfilePhotoStatic,
    InputStoryContentPhoto,
    lambda named: InputSticker(named, ["🦀"], "static"),
    lambda named: InputMediaVideo("AgAC", thumbnail=named),
    lambda named: InputMediaVideo("AgAC", cover=named),
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_string_that_names_a_file_is_refused(guard: None, secret: Path, make: type) -> None:
    with pytest.raises(BadRequest, match="names a file of this machine"):
        make(str(secret))
    with pytest.raises(BadRequest, match="names a file of this machine"):
        make(secret.as_uri())


async def test_so_it_is_in_the_methods_of_a_bot(guard: None, secret: Path) -> None:
    bot = Bot("1:A")
    for send in (bot.send_photo, bot.send_document, bot.send_video, bot.send_audio):
        with pytest.raises(BadRequest, match="names a file of this machine"):
            await send(7, str(secret))
    with pytest.raises(BadRequest, match="names a file of this machine"):
        await bot.set_chat_photo(7, str(secret))


def test_so_it_is_for_a_path_that_is_relative(
    guard: None, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(secret.parent)
    with pytest.raises(BadRequest):
        InputMediaPhoto("secret.txt")


@pytest.mark.parametrize("named", ["AgACAgIAAxkBAAE", "https://example.org/a.png", "no/such/file"])
def test_any_other_string_is_passed_on(guard: None, named: str) -> None:
    assert InputMediaPhoto(named).media == named


@pytest.mark.parametrize("make", [InputMediaPhoto, InputMediaDocument, InputPaidMediaPhoto])
def test_a_path_is_uploaded_wherever_it_is_given(guard: None, secret: Path, make: type) -> None:
    found = make(secret).media
    assert isinstance(found, InputFile)
    assert found.input_file_content == b"a secret"
    assert found.filename == "secret.txt"


def test_bytes_and_handles_are_what_they_were(guard: None, secret: Path) -> None:
    with secret.open("rb") as handle:
        for given in (b"a secret", handle):
            found = InputMediaPhoto(given).media
            assert isinstance(found, InputFile)
            assert found.input_file_content == b"a secret"


def test_the_library_is_as_it_was_afterwards_and_where_it_is_allowed(secret: Path) -> None:
    before = library.parse_file_input
    with local_paths.guarded(local_files=False):
        assert inputmedia.parse_file_input is not before  # type: ignore[attr-defined]  # as said
    assert inputmedia.parse_file_input is before  # type: ignore[attr-defined]  # as said
    with local_paths.guarded(local_files=True):
        assert InputMediaPhoto(str(secret)).media == secret.as_uri()


def test_whoever_ends_last_leaves_the_library_as_it_was() -> None:
    before = library.parse_file_input
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(local_paths.guarded(local_files=False))
        second.enter_context(local_paths.guarded(local_files=False))
        first.close()
        assert inputmedia.parse_file_input is not before  # type: ignore[attr-defined]  # as said
        second.close()
        assert inputmedia.parse_file_input is before  # type: ignore[attr-defined]  # as said


def test_a_library_that_reads_files_otherwise_is_noticed_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parse_file_input(file_input: object) -> object:
        return file_input

    monkeypatch.setattr(inputmedia, "parse_file_input", parse_file_input)
    with (
        pytest.raises(UnsupportedLibrary, match="local_files = true"),
        local_paths.guarded(local_files=False),
    ):
        raise AssertionError("it was not noticed")
