"""What Telegram is answered, and what is on disk by then."""

import asyncio
import json
import logging
import socket
from pathlib import Path

import pytest

from tests.integration.web.door import (
    HEADER,
    OLDER_SECRET,
    SECRET,
    Door,
    open_door,
    posted,
    update,
)
from tests.live.corpus import collected


async def test_an_update_is_stored_with_its_original_bytes_and_answered_empty(
    tmp_path: Path,
) -> None:
    odd = b'{ "update_id" : 10 ,"message":{"chat":{"id":7},"from":{"id":8},"text":"\\u00e9"}}\n'
    async with open_door(tmp_path) as door:
        answer = await door.post(odd)
        (row,) = door.rows()
    assert (answer.status_code, answer.content) == (200, b"")
    assert bytes(row["body"]) == odd
    assert (row["bot"], row["update_id"], row["kind"]) == ("main", 10, "message")
    assert (row["chat_lane"], row["user_lane"], row["state"]) == ("c:7", "u:8", "received")


async def test_every_real_payload_is_acknowledged_and_stored_once(tmp_path: Path) -> None:
    updates = [entry["update"] for entry in collected()]
    async with open_door(tmp_path) as door:
        for _ in range(2):
            answers = await asyncio.gather(*(door.post(posted(each)) for each in updates))
            assert {answer.status_code for answer in answers} == {200}
        rows = door.rows()
    assert {bytes(row["body"]) for row in rows} == {posted(each) for each in updates}
    assert len(rows) == len(updates)


async def test_updates_posted_one_after_the_other_keep_their_order(tmp_path: Path) -> None:
    numbers = [7, 3, 2_000_000_000, 5]
    async with open_door(tmp_path) as door:
        for number in numbers:
            await door.post(update(number))
        assert [row["update_id"] for row in door.rows()] == numbers


async def test_a_redelivery_is_acknowledged_and_not_stored_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="ferryman")
    async with open_door(tmp_path) as door:
        for _ in range(3):
            assert (await door.post(update(1))).status_code == 200
        assert door.counts() == (1, 0)
    assert caplog.messages.count("web.duplicate") == 2


async def test_many_redeliveries_at_once_are_one_update(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        answers = await asyncio.gather(*(door.post(update(1)) for _ in range(40)))
        assert {answer.status_code for answer in answers} == {200}
        assert door.counts() == (1, 0)


async def test_another_content_under_a_known_id_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_door(tmp_path) as door:
        await door.post(update(1, "first"))
        answer = await door.post(update(1, "second, with private words"))
        assert door.counts() == (1, 1)
    assert answer.status_code == 200
    assert "inbox.quarantined" in caplog.messages
    assert "private words" not in caplog.text


async def test_two_bots_may_be_sent_the_same_id(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.post(update(1))
        answer = await door.post(update(1), bot="other", secret="the-secret-of-other")
        assert answer.status_code == 200
        assert door.counts() == (2, 0)


async def test_both_secrets_are_valid_while_they_are_changed(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        assert (await door.post(update(1), secret=SECRET)).status_code == 200
        assert (await door.post(update(2), secret=OLDER_SECRET)).status_code == 200


@pytest.mark.parametrize(
    "secret", [None, "", "wrong", SECRET[:-1], SECRET + "x", "the-secret-of-other"]
)
async def test_without_the_bots_own_secret_nothing_is_stored(
    tmp_path: Path, secret: str | None
) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.post(update(1), secret=secret)
        assert (answer.status_code, answer.content) == (401, b"")
        assert door.counts() == (0, 0)


async def test_a_secret_that_is_told_twice_is_none(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.http.post(
            "/telegram/main", content=update(1), headers=[(HEADER, SECRET), (HEADER, SECRET)]
        )
        assert answer.status_code == 401


async def test_a_stranger_is_answered_before_any_body_came(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        head = b"POST /telegram/main HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"
        assert await _status(door, head) == 401


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/telegram/nobody", 404),
        ("POST", "/telegram/", 404),
        ("POST", "/telegram/main/", 404),
        ("POST", "/telegram/main/more", 404),
        ("POST", "/elsewhere", 404),
        ("GET", "/telegram/main", 405),
        ("HEAD", "/telegram/main", 405),
        ("PUT", "/telegram/main", 405),
        ("POST", "/livez", 405),
    ],
)
async def test_what_is_no_webhook_call_is_neither_gone_nor_elsewhere(
    tmp_path: Path, method: str, path: str, status: int
) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.http.request(
            method, path, content=update(1), headers={HEADER: SECRET}, follow_redirects=False
        )
        assert answer.status_code == status


async def test_an_encoded_body_is_refused_unread(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.post(update(1), headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 415
        assert door.counts() == (0, 0)


async def test_a_body_that_is_declared_too_long_is_refused_at_once(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        head = (
            f"POST /telegram/main HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\n"
            f"Content-Length: {(1 << 20) + 1}\r\n\r\n"
        )
        assert await _status(door, head.encode()) == 413


async def test_a_body_that_grows_too_long_is_cut_off(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        head = (
            f"POST /telegram/main HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"40000\r\n" + b"x" * 0x40000 + b"\r\n"
        assert await _status(door, head.encode() + chunk * 4 + b"1\r\nx\r\n") == 413
        assert door.counts() == (0, 0)


async def test_the_longest_body_is_taken(tmp_path: Path) -> None:
    empty = len(posted({"update_id": 1, "message": {"text": ""}}))
    longest = posted({"update_id": 1, "message": {"text": "x" * ((1 << 20) - empty)}})
    assert len(longest) == 1 << 20
    async with open_door(tmp_path) as door:
        assert (await door.post(longest)).status_code == 200
        assert bytes(door.rows()[0]["body"]) == longest


async def test_what_is_authentic_but_no_update_is_kept_raw_and_answered_200(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.post(b"my private words")
        (row,) = door.rows()
    assert answer.status_code == 200
    assert (row["state"], bytes(row["body"])) == ("quarantined", b"my private words")
    assert "inbox.quarantined" in caplog.messages
    assert "private words" not in caplog.text


async def test_a_sender_that_leaves_in_the_middle_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = (
        f"POST /telegram/main HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\n"
        "Content-Length: 500\r\n\r\n"
    )
    async with open_door(tmp_path) as door:
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(head.encode() + b'{"update_id":1,')
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await door.post(update(2))).status_code == 200
        assert door.counts() == (1, 0)
    assert not [record for record in caplog.records if record.exc_info]


async def test_the_connection_stays_open_between_updates(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        body = update(1)
        head = f"POST /telegram/main HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        for _ in range(3):
            writer.write(request)
            told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            assert told.startswith(b"HTTP/1.1 200 OK")
            assert b"content-length: 0" in told
            assert b"server:" not in told
        writer.close()
        await writer.wait_closed()


async def test_the_worker_is_rung_after_the_commit(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.settimeout(0)
            bell.bind(str(door.state / "bells" / "worker.1.abc"))
            await door.post(update(1))
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_recv(bell, 1), 5)
            assert door.counts() == (1, 0)


async def test_who_is_turned_away_is_counted_and_not_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand knocks are one line."""
    async with open_door(tmp_path) as door:
        for _ in range(20):
            await door.post(update(1), secret="wrong")
    told = [record for record in caplog.records if record.message == "web.refused"]
    fields = [record.__dict__["fields"] for record in told]
    assert sum(each["count"] for each in fields) == 20
    assert len(fields) <= 3
    assert {(each["reason"], each["status"]) for each in fields} == {("secret", 401)}
    assert SECRET not in json.dumps(fields)


async def _status(door: Door, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request)
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    return int(line.split()[1])
