"""The Python client against the real API, and against a server that fails it."""

import asyncio
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

import bot.client
from bot.client import Ferryman, KeyTaken, Left, Refused, Unreachable, Wish
from tests.integration.web.door import API_TOKEN, Door, open_door

T = TypeVar("T")


async def asking(door: Door, work: Callable[[Ferryman], T], token: str = API_TOKEN) -> T:
    """Use the client as a program of its own would: in another thread, with patience."""
    return await asyncio.to_thread(work, Ferryman(door.url, token))


async def test_a_message_is_left_in_one_line(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        left = await asking(door, lambda it: it.send_message("main", 5, "done", key="backup-7"))
        again = await asking(door, lambda it: it.send_message("main", 5, "done", key="backup-7"))
        (row,) = door.rows("select * from outbox")
    assert left == again == Left(row["id"], "queued", "backup-7")
    assert json.loads(row["params"]) == {"chat_id": "5", "text": "done"}


async def test_a_wish_goes_with_it(tmp_path: Path) -> None:
    wish = Wish(
        urgency="bulk",
        not_before=datetime(2099, 8, 24, 16, tzinfo=UTC),
        expires_at=4_091_270_500_000,
        supersede="progress",
        on_uncertain="drop",
    )
    album = [{"type": "photo", "media": "https://example.org/a.jpg"}] * 2
    params = {"chat_id": -100, "media": album}
    async with open_door(tmp_path, api=True) as door:
        left = await asking(door, lambda it: it.send("main", "sendMediaGroup", params, wish=wish))
        (row,) = door.rows("select * from outbox")
    assert len(left.key) == 32, "it makes a key, so that it may send again"
    assert row["key"] == f"api:{left.key}"
    assert (row["priority"], row["on_uncertain"], row["items"]) == ("bulk", "drop", 2)
    assert (row["not_before_ms"], row["expires_at_ms"]) == (4_091_270_400_000, 4_091_270_500_000)
    assert row["supersede_key"] == "c:-100/progress"


async def test_refusals_name_their_fields(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        with pytest.raises(Refused) as wrong:
            await asking(door, lambda it: it.send("main", "sendMesage", {}))
        with pytest.raises(Refused, match="401: Expected the header"):
            await asking(door, lambda it: it.send_message("main", 5, "x"), token="wrong")
        await asking(door, lambda it: it.send_message("main", 5, "x", key="k"))
        with pytest.raises(KeyTaken, match="409: This key stands for call 1 already"):
            await asking(door, lambda it: it.send_message("main", 5, "y", key="k"))
        with pytest.raises(Refused, match="404: There is no such call here"):
            await asking(door, lambda it: it.get(4711))
    assert wrong.value.status == 422
    assert wrong.value.problems == {
        "method": "unknown method sendMesage; did you mean sendMessage?"
    }


async def test_a_call_is_told_as_it_stands(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        left = await asking(door, lambda it: it.send_message("main", 5, "x"))
        call = await asking(door, lambda it: it.get(left.id))
        late = await asking(door, lambda it: it.wait(left.id, timeout_s=0.1, every_s=0.05))
    assert (call.id, call.state, call.method, call.bot) == (
        *(left.id, "queued"),
        *("sendMessage", "main"),
    )
    assert (call.is_sent, call.is_settled, call.attempts) == (False, False, [])
    assert late == call


class _Script(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next line of a script: a status, or None to hang up."""

    script: list[int | None]
    heard: list[dict[str, object]]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.heard.append(json.loads(self.rfile.read(length)))
        status = self.script.pop(0)
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Retry-After", "7")
        self.end_headers()
        self.wfile.write(b'{"id": 34, "state": "queued", "new": true}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def scripted(*script: int | None) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that follows a script; its address, and what it was asked."""
    heard: list[dict[str, object]] = []
    handler = type("Handler", (_Script,), {"script": [*script], "heard": heard})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", heard
        finally:
            server.shutdown()
            thread.join()


def test_without_an_answer_it_sends_the_same_again_with_the_same_key() -> None:
    waits: list[float] = []
    with scripted(None, 503, 502, 202) as (url, heard):
        left = Ferryman(url, "token", pause=waits.append).send_message("main", 5, "x")
    assert left.id == 34
    assert len(heard) == 4
    assert all(body == heard[0] for body in heard)
    assert heard[0]["key"] == left.key
    assert waits == [0.5, 7, 7], "what the server asked for is waited"


def test_in_the_end_it_says_that_it_does_not_know() -> None:
    with scripted(None, None, None) as (url, heard):
        client = Ferryman(url, "token", tries=3, pause=lambda _: None)
        with pytest.raises(Unreachable, match=r"after 3 tries: \w+ instead of an answer"):
            client.send_message("main", 5, "x")
    assert len(heard) == 3


def test_what_is_refused_is_not_sent_again_and_nobody_is_followed() -> None:
    for status in (302, 307, 403, 418):
        with scripted(status) as (url, heard):
            client = Ferryman(url, "token", pause=lambda _: None)
            with pytest.raises(Refused, match=f"{status}: refused"):
                client.send_message("main", 5, "x")
        assert len(heard) == 1


def test_only_http_is_spoken() -> None:
    with pytest.raises(ValueError, match="expected an address"):
        Ferryman("file:///etc/passwd", "token")


def test_the_client_is_one_file_that_needs_nothing_of_ours(tmp_path: Path) -> None:
    copy = tmp_path / "ferryman_client.py"
    copy.write_bytes(Path(bot.client.__file__).read_bytes())
    program = "import ferryman_client, sys; print(sorted(m for m in sys.modules if '.' not in m))"
    told = subprocess.run(
        [sys.executable, "-S", "-E", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "'ferryman_client'" in told
    assert not any(f"'{name}'" in told for name in ("storage", "pydantic", "httpx", "telegram"))
