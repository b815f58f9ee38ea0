"""The form with files: what httpx would have sent, in pieces."""

from pathlib import Path

import httpx
import pytest

from sender.calls import JSON, Call, Unsayable, render
from sender.multipart import Enclosed, Stored, form_of
from storage.outgoing import FilePart
from tests.simulator.form_bodies import read_body

AWKWARD = ('a"b\\c\r\n.png', "Überfähre.png", "plain.txt", "100%.png")


def enclosed(folder: Path, data: bytes, part: str = "photo", filename: str = "a.png") -> Enclosed:
    path = folder / f"{part}-content"
    path.write_bytes(data)
    return Enclosed(
        FilePart(part, filename, "image/png", "0" * 64, len(data)), Stored(path, len(data))
    )


def whole(call: Call) -> bytes:
    pieces = [
        piece if isinstance(piece, bytes) else piece.path.read_bytes() for piece in call.ahead
    ]
    return b"".join(pieces) + call.body


@pytest.mark.parametrize("filename", AWKWARD)
def test_it_is_the_body_that_httpx_sends(tmp_path: Path, filename: str) -> None:
    params = {"chat_id": "7", "caption": "Grüße & mehr\r\n--x"}
    call = render(
        "sendPhoto", params, {}, enclosed=[enclosed(tmp_path, b"green", filename=filename)]
    )
    assert isinstance(call, Call)
    boundary = call.content_type.partition("boundary=")[2]
    theirs = httpx.Request(
        "POST",
        "http://telegram/",
        data=params,
        files={"photo": (filename, b"green", "image/png")},
        headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
    )
    assert whole(call) == theirs.read()
    assert call.size_bytes == len(whole(call)) == int(theirs.headers["Content-Length"])


def test_a_server_reads_what_was_meant(tmp_path: Path) -> None:
    files = [enclosed(tmp_path, b"\r\n--", "file0"), enclosed(tmp_path, bytes(range(256)), "file1")]
    call = render("sendMediaGroup", {"chat_id": "7", "media": "[]"}, {}, enclosed=files)
    assert isinstance(call, Call)
    form, read = read_body(call.content_type, whole(call), b"")
    assert form == {"chat_id": "7", "media": "[]"}
    assert read == {"file0": b"\r\n--", "file1": bytes(range(256))}


def test_the_same_call_is_the_same_bytes_and_another_has_another_boundary(tmp_path: Path) -> None:
    file = enclosed(tmp_path, b"green")
    assert form_of({"a": "1"}, [file]) == form_of({"a": "1"}, [file])
    assert form_of({"a": "1"}, [file]).content_type != form_of({"a": "2"}, [file]).content_type


def test_without_its_tail_no_form_is_whole(tmp_path: Path) -> None:
    form = form_of({"a": "1"}, [enclosed(tmp_path, b"green")])
    assert form.tail.endswith(b"--\r\n")
    assert len(form.tail) < 100


def test_half_a_surrogate_pair_can_be_carried_by_no_call(tmp_path: Path) -> None:
    file = enclosed(tmp_path, b"green")
    assert isinstance(render("sendPhoto", {"caption": "\ud83d"}, {}, enclosed=[file]), Unsayable)


def test_another_channel_carries_no_file(tmp_path: Path) -> None:
    found = render("post", {"a": "1"}, {}, JSON, [enclosed(tmp_path, b"green")])
    assert found == Unsayable("no call of its channel carries a file")
