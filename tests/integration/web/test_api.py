"""The API for programs over real HTTP: who is let in, what is left, and what is told of it."""

import asyncio
import json
import logging
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from storage.database import connect
from tests.integration.web.door import API_TOKEN, Door, open_door, update
from tests.integration.web.orders import BEARER, PATH, asked, message, order
from tests.integration.web.test_trouble import locked
from tests.live.process import until

ROWS = "select * from outbox order by id"
TOKEN = API_TOKEN.encode()
SPOILT = (
    *(None, b"", b"Bearer", b"Bearer wrong", TOKEN, b"Basic " + TOKEN),
    *(b"Bearer " + TOKEN[:-1], b"Bearer " + TOKEN + b"x", b"Bearer \xe9\xff"),
)
OTHERS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"params": {"chat_id": 5, "text": "other"}}, "params"),
    ({"params": {"chat_id": 6, "text": "hello"}}, "params"),
    ({"method": "sendRichMessage", "params": {"chat_id": 5, "rich_message": {}}}, "method"),
    ({"class": "bulk"}, "class"),
    ({"supersede": "x"}, "supersede"),
    ({"on_uncertain": "drop"}, "on_uncertain"),
    ({"not_before": "2099-08-24T16:00:00Z"}, "not_before"),
    ({"expires_at": "2099-08-24T16:00:00Z"}, "expires_at"),
    ({"class": "bulk", "not_before": "2099-08-24T16:00:00Z"}, "class, not_before"),
)


async def test_a_call_is_on_disk_when_it_is_answered_with_its_number(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        answer = await order(door, message("hello", 5))
        (row,) = door.rows(ROWS)
    assert answer.status_code == 202
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"id": row["id"], "state": "queued"}
    assert (row["bot"], row["method"], row["chat_id"], row["lane"]) == (
        *("main", "sendMessage"),
        *(5, "c:5"),
    )
    assert json.loads(row["params"]) == {"chat_id": "5", "text": "hello"}
    assert (row["priority"], row["on_uncertain"], row["channel"]) == (
        *("interactive", "hold"),
        "telegram",
    )
    assert row["expires_at_ms"] - row["created_at_ms"] == pytest.approx(3_600_000, abs=2_000)
    assert row["key"].startswith("post:")


async def test_values_become_the_form_that_a_handlers_call_would_have(tmp_path: Path) -> None:
    body = message(
        "see",
        -1001234567890,
        **{"class": "bulk", "on_uncertain": "drop", "supersede": "progress", "ttl_s": 60},
    )
    body["params"] |= {
        "disable_notification": True,
        "reply_markup": {"inline_keyboard": [[{"text": "Öl", "callback_data": "1"}]]},
        "message_thread_id": 7,
        "parse_mode": None,
    }
    async with open_door(tmp_path, api=True) as door:
        await order(door, body)
        (row,) = door.rows(ROWS)
    assert json.loads(row["params"]) == {
        "chat_id": "-1001234567890",
        "text": "see",
        "disable_notification": "true",
        "reply_markup": '{"inline_keyboard": [[{"callback_data": "1", "text": "\\u00d6l"}]]}',
        "message_thread_id": "7",
    }
    assert (row["priority"], row["on_uncertain"]) == ("bulk", "drop")
    assert row["supersede_key"] == "c:-1001234567890/progress"
    assert row["expires_at_ms"] - row["created_at_ms"] == pytest.approx(60_000, abs=2_000)


async def test_what_an_album_an_answer_and_a_setting_are_shows_in_their_rows(
    tmp_path: Path,
) -> None:
    photo = {"type": "photo", "media": "https://example.org/a.jpg"}
    orders = [
        {"method": "sendMediaGroup", "params": {"chat_id": 5, "media": [photo, photo, photo]}},
        {"method": "answerCallbackQuery", "params": {"callback_query_id": "81"}},
        {"method": "setMyName", "params": {"name": "Ferry"}},
        {"method": "sendChatAction", "params": {"chat_id": 5, "action": "typing"}},
        {"method": "deleteMessage", "params": {"chat_id": 5, "message_id": 9}},
        {"method": "editMessageText", "params": {"inline_message_id": "Ab", "text": "x"}},
    ]
    async with open_door(tmp_path, api=True) as door:
        for each in orders:
            assert (await order(door, {"bot": "main", **each})).status_code == 202
        rows = door.rows(ROWS)
    assert [row["items"] for row in rows] == [3, 1, 1, 1, 1, 1]
    assert [row["lane"] for row in rows] == ["c:5", "q:81", "m:", "c:5", "c:5", "i:Ab"]
    assert [row["on_uncertain"] for row in rows] == [
        *("hold", "resend", "resend", "drop", "resend", "resend"),
    ]
    lives = [row["expires_at_ms"] and row["expires_at_ms"] - row["created_at_ms"] for row in rows]
    assert lives == [
        pytest.approx(3_600_000, abs=2_000),
        pytest.approx(15_000, abs=2_000),
        None,
        pytest.approx(5_000, abs=2_000),
        None,
        pytest.approx(3_600_000, abs=2_000),
    ]
    assert [row["attempts_max"] for row in rows] == [None, None, None, 1, None, None]
    assert rows[5]["coalesce_key"] is not None


async def test_a_moment_is_one_moment_however_it_is_written(tmp_path: Path) -> None:
    moments = {
        "2099-08-24T18:00:00+02:00": 4_091_270_400_000,
        "2099-08-24T16:00:00Z": 4_091_270_400_000,
        "2099-08-24t16:00:00.5z": 4_091_270_400_500,
        4_091_270_400_000: 4_091_270_400_000,
    }
    async with open_door(tmp_path, api=True) as door:
        for moment in moments:
            assert (await order(door, message(not_before=moment))).status_code == 202
        rows = door.rows(ROWS)
    assert [row["not_before_ms"] for row in rows] == [*moments.values()]
    for row in rows:
        assert row["joined"] == 0
        assert row["expires_at_ms"] == row["not_before_ms"] + 3_600_000, "its time begins then"


async def test_the_same_key_with_the_same_call_is_the_same_row(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        first = await order(door, message(key="invoice-7"))
        again = await order(door, message(key="invoice-7"))
        by_header = await order(door, message(), **{"Idempotency-Key": "invoice-7"})
        swapped = message(key="invoice-7")
        swapped["params"] = dict(reversed(swapped["params"].items()))
        turned = await order(door, swapped)
        elsewhere = await order(door, message(key="invoice-7", bot="other"))
        assert len(door.rows(ROWS)) == 2
        assert door.rows(ROWS)[0]["key"] == "api:invoice-7"
    answers = [first, again, by_header, turned]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert elsewhere.json()["id"] != first.json()["id"], "a key is one bot's"


async def test_a_key_never_stands_for_two_calls(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        first = (await order(door, message(key="k"))).json()["id"]
        for other, named in OTHERS:
            answer = await order(door, message(key="k") | other)
            assert answer.status_code == 409
            assert answer.json() == {
                "error": f"This key stands for call {first} already, and that one differs in "
                f"{named}: send the same call again, or take another key."
            }
        assert len(door.rows(ROWS)) == 1


async def test_two_keys_are_no_key(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        answer = await order(door, message(key="a"), **{"Idempotency-Key": "b"})
    assert answer.status_code == 422
    assert answer.json()["problems"] == [
        {"field": "key", "expected": "expected one key, found several"}
    ]


async def test_the_same_key_posted_by_many_at_once_is_one_row(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        answers = await asyncio.gather(*(order(door, message(key="once")) for _ in range(40)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert len(door.rows(ROWS)) == 1


async def test_without_a_key_every_post_is_a_call_of_its_own(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        answers = await asyncio.gather(*(order(door, message()) for _ in range(20)))
        assert len({answer.json()["id"] for answer in answers}) == 20


async def test_a_newer_call_of_the_same_name_supersedes_one_that_waits(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        older = (await order(door, message("10 %", supersede="progress"))).json()["id"]
        newer = (await order(door, message("20 %", supersede="progress"))).json()["id"]
        elsewhere = (await order(door, message("0 %", 6, supersede="progress"))).json()["id"]
        states = {row["id"]: row["state"] for row in door.rows(ROWS)}
    assert states == {older: "superseded", newer: "queued", elsewhere: "queued"}


async def test_the_sender_is_rung_after_the_commit(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
            bell.settimeout(0)
            bell.bind(str(door.state / "bells" / "sender.1.abc"))
            await order(door, message())
            await asyncio.wait_for(asyncio.get_running_loop().sock_recv(bell, 1), 5)
            assert len(door.rows(ROWS)) == 1


async def test_without_the_token_nothing_is_left_and_nothing_is_told(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        for told in SPOILT:
            headers = httpx.Headers(None if told is None else {b"authorization": told})
            for method, path in (("POST", PATH), ("GET", f"{PATH}/1")):
                answer = await door.http.request(method, path, json=message(), headers=headers)
                assert answer.status_code == 401, told
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json()["error"].startswith("Expected the header `Authorization:")
        assert door.rows(ROWS) == []


async def test_a_token_that_is_told_twice_is_none(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        twice = [("Authorization", BEARER["Authorization"])] * 2
        answer = await door.http.post(PATH, json=message(), headers=twice)
    assert answer.status_code == 401


async def test_without_a_configured_token_the_api_is_off(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        answers = [await order(door, message()), await asked(door, 1)]
        assert door.rows(ROWS) == []
    for answer in answers:
        assert answer.status_code == 403
        assert "web.api_token_file" in answer.json()["error"]


async def test_a_stranger_is_answered_before_any_body_came(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"
        assert await _status(door, head.encode()) == 401


async def test_an_upload_and_an_encoded_body_are_refused_unread(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        upload = {"Content-Type": "multipart/form-data; boundary=x"}
        for headers, told in (
            (upload, "Files can't be uploaded with this call"),
            ({"Content-Encoding": "gzip"}, "without Content-Encoding"),
        ):
            answer = await order(door, message(), **headers)
            assert answer.status_code == 415
            assert told in answer.json()["error"]
        assert door.rows(ROWS) == []


async def test_json_is_read_whatever_a_simple_program_calls_it(tmp_path: Path) -> None:
    """`curl -d` calls everything a form."""
    async with open_door(tmp_path, api=True) as door:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await order(door, message(), **form)).status_code == 202


async def test_the_body_is_bounded(tmp_path: Path) -> None:
    room = (1 << 20) - len(json.dumps(message("")))
    async with open_door(tmp_path, api=True) as door:
        longest = json.dumps(message("x" * room)).encode()
        assert len(longest) == 1 << 20
        taken = await door.http.post(PATH, content=longest, headers=BEARER)
        refused = await door.http.post(PATH, content=longest + b" ", headers=BEARER)
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {API_TOKEN}\r\n"
        chunk = b"40000\r\n" + b"x" * 0x40000 + b"\r\n"
        chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 4 + b"1\r\nx\r\n"
        assert await _status(door, chunked) == 413
        assert len(door.rows(ROWS)) == 1
    assert (taken.status_code, refused.status_code) == (202, 413)
    assert refused.json()["error"] == "Expected at most 1048576 bytes."


async def test_while_the_disk_is_nearly_full_nothing_is_left(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True, disk=1 << 62) as door:
        answer = await order(door, message())
        assert door.rows(ROWS) == []
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert "nothing was left" in answer.json()["error"]


async def test_a_full_inbox_holds_back_no_program(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True, web="inbox_depth_max = 1") as door:

        async def is_full() -> bool:
            return (await door.post(update(len(door.rows()) + 1))).status_code == 503

        await until(is_full, within_ms=10_000, what="updates are better left with Telegram")
        assert (await order(door, message())).status_code == 202


async def test_a_locked_database_says_that_nothing_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.database.BUSY_BUDGET_MS", 300)
    async with open_door(tmp_path, api=True) as door:
        with locked(door.database_path):
            answer = await order(door, message(key="k"))
        assert door.rows(ROWS) == []
        assert (await order(door, message(key="k"))).status_code == 202
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["error"].startswith("It could not be stored: nothing was left.")


async def test_what_was_asked_for_is_in_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_door(tmp_path, api=True) as door:
        left = await order(door, message("my private words", key="my-private-key"))
        await order(door, message("other private words", key="my-private-key"))
        await order(door, message("more private words", "my private chat"))
        await asked(door, left.json()["id"])
        await door.http.post(PATH, json={}, headers={"Authorization": "Bearer planted-token"})
    logged = caplog.text + json.dumps(
        [record.__dict__.get("fields") for record in caplog.records], default=str
    )
    assert "outbox.enqueued" in logged
    for private in ("private", API_TOKEN, "planted-token"):
        assert private not in logged


async def test_refusals_are_counted_by_their_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_door(tmp_path, api=True) as door:
        for _ in range(5):
            await order(door, {})
        await door.http.post(PATH, json=message())
    told = [record.__dict__["fields"] for record in caplog.records if "refused" in record.message]
    counted = {(each["reason"], each["status"]): 0 for each in told}
    for each in told:
        counted[each["reason"], each["status"]] += each["count"]
    assert counted == {("api_order", 422): 5, ("api_token", 401): 1}


async def test_a_call_tells_how_it_stands(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        later = "2099-08-24T16:00:00Z"
        left = (await order(door, message("my words", not_before=later, key="k"))).json()["id"]
        answer = await asked(door, left)
        (row,) = door.rows(ROWS)
    assert answer.status_code == 200
    assert answer.json() == {
        "id": left,
        "state": "queued",
        "reason": None,
        "bot": "main",
        "method": "sendMessage",
        "class": "interactive",
        "message_id": None,
        "next_ms": 4_091_270_400_000,
        "expires_ms": row["expires_at_ms"],
        "left_ms": row["created_at_ms"],
        "ended_ms": None,
        "attempts": [],
    }


async def test_a_call_tells_its_attempts_with_evidence_and_without_anybodys_words(
    tmp_path: Path,
) -> None:
    async with open_door(tmp_path, api=True) as door:
        left = (await order(door, message())).json()["id"]
        _refuse(door, left)
        told = (await asked(door, left)).json()
    assert (told["state"], told["reason"], told["next_ms"]) == (
        "dead",
        "content refused: …",
        None,
    )
    assert told["attempts"] == [
        {
            "stage": "answered",
            "verdict": "refused",
            "status": 400,
            "code": 400,
            "description": "no such tag …",
            "wait_ms": None,
            "left_ms": 1_000,
            "ended_ms": 1_084,
            "took_ms": 84,
            "request_id": None,
            "items": [],
        }
    ]


async def test_a_call_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        for number in ("4711", "0", "-1", "c1", "1.5", "9" * 30, "%00", "\u0661"):
            answer = await asked(door, number)
            assert answer.status_code == 404, number
            assert answer.json()["error"].startswith("There is no such call here")


async def test_what_is_no_call_of_the_api_is_no_redirect(tmp_path: Path) -> None:
    odd = {
        ("GET", PATH): 405,
        ("PUT", PATH): 405,
        ("DELETE", f"{PATH}/1"): 405,
        ("POST", f"{PATH}/"): 404,
        ("POST", "/api"): 404,
    }
    async with open_door(tmp_path, api=True) as door:
        for (method, path), status in odd.items():
            answer = await door.http.request(method, path, headers=BEARER, follow_redirects=False)
            assert answer.status_code == status, path


def _refuse(door: Door, row_id: int) -> None:
    """Let Telegram have refused a call, in words that quote it."""
    connection = connect(door.database_path)
    try:
        connection.execute(
            "update outbox set state = 'dead', finished_at_ms = 2000,"
            " reason = 'content refused: \"hello\"' where id = :id",
            {"id": row_id},
        )
        connection.execute(
            "insert into attempts (outbox_id, bot, method, lane, chat_id, priority, epoch, stage,"
            " claimed_at_ms, stamped_at_ms, ended_at_ms, duration_ms, status, code, description,"
            " verdict) values (:id, 'main', 'sendMessage', 'c:5', 5, 'interactive', 1, 'answered',"
            " 999, 1000, 1084, 84, 400, 400, 'no such tag \"hello\"', 'refused')",
            {"id": row_id},
        )
    finally:
        connection.close()


async def _status(door: Door, request: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request)
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    return int(line.split()[1])


async def test_nothing_is_left_to_be_paid_for_by_a_bot_that_pays_nothing(tmp_path: Path) -> None:
    async with open_door(tmp_path, api=True) as door:
        body = {**message("hello", 5), "class": "paid"}
        paid = await order(door, body)
        refused = await order(door, {**body, "bot": "other"})
    assert (paid.status_code, refused.status_code) == (202, 422)
    [problem] = refused.json()["problems"]
    assert problem["field"] == "class"
    assert "limits.paid_per_second is 0" in problem["expected"]
