"""The status page: who may see it, what stands on it, and that nobody's words do."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import pytest

from storage import claims, cooldowns, lanes, outbox, pauses
from storage.claims import AttemptEnd
from storage.clock import SystemClock, deadline_in
from storage.database import Tx, connect, opened
from storage.lifecycle import AttemptStage, BotName, OutboxId, OutboxState, Priority
from tests.integration.storage.calls import call
from tests.integration.web.door import API_TOKEN, Door, open_door, posted, update

MAIN = BotName("main")
WORDS = "these are somebody's private words"


async def written(door: Door, work: Callable[[Tx], None]) -> None:
    """Write as another role would."""
    async with opened(door.database_path, SystemClock()) as db:
        await db.write(work)


async def test_it_is_shown_at_this_machine_and_says_that_nothing_may_run_or_fetch(
    tmp_path: Path,
) -> None:
    async with open_door(tmp_path) as door:
        page = await door.http.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["content-security-policy"].startswith("default-src 'none'; ")
    assert "unsafe" not in page.headers["content-security-policy"]
    assert " style=" not in page.text, "nothing inline"
    assert "<script>" not in page.text


@pytest.mark.parametrize("path", ["/", "/status.json"])
@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Host": "bot.example.org"},
        {"Authorization": f"Bearer {API_TOKEN}"} | {"Host": "bot.example.org"},
    ],
)
async def test_whoever_comes_from_elsewhere_sees_nothing(
    tmp_path: Path, path: str, headers: dict[str, str]
) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.http.get(path, headers=headers)
    assert answer.status_code == 403
    assert "main" not in answer.text.replace("machine", "")


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {API_TOKEN}", 200),
        (f"bearer  {API_TOKEN}", 200),
        (f"Bearer {API_TOKEN}x", 401),
        (f"Basic {API_TOKEN}", 401),
        (API_TOKEN, 401),
        ("Bearer \xff", 401),
        (None, 401),
    ],
)
async def test_from_elsewhere_the_bearer_token_opens_it(
    tmp_path: Path, authorization: str | None, status: int
) -> None:
    headers = [(b"X-Forwarded-For", b"203.0.113.9")]
    if authorization is not None:
        headers.append((b"Authorization", authorization.encode("latin-1")))
    async with open_door(tmp_path, api=True) as door:
        answer = await door.http.get("/status.json", headers=headers)
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) == (status == 401)
    assert API_TOKEN not in answer.text


@pytest.mark.parametrize("name", ["status.css", "status.js"])
async def test_its_files_are_served(tmp_path: Path, name: str) -> None:
    async with open_door(tmp_path) as door:
        answer = await door.http.get(f"/{name}")
        page = (await door.http.get("/")).text
    assert answer.status_code == 200
    assert f'"{name}"' in page
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_updates_are_counted_by_state_and_shown_without_their_words(
    tmp_path: Path,
) -> None:
    async with open_door(tmp_path) as door:
        await door.post(update(1, WORDS))
        await door.post(posted({"update_id": 2, WORDS: {"text": WORDS}}))
        await door.post(WORDS.encode())
        page = (await door.http.get("/")).text
        document = (await door.http.get("/status.json")).json()
    main, other = document["bots"]
    assert (main["name"], main["updates_waiting"], main["updates_quarantined"]) == ("main", 2, 1)
    assert (other["name"], other["updates_waiting"]) == ("other", 0)
    assert document["acks"]["count"] == 3
    assert [role["role"] for role in document["roles"]] == ["web"]
    assert document["roles"][0]["state"] == "ready"
    assert "private" not in page + str(document)
    assert "sender" in page, "that no sender runs is said"
    assert "not running" in page


async def test_cooldowns_are_shown_with_the_time_that_is_left(tmp_path: Path) -> None:
    def cool(tx: Tx) -> None:
        deadline = deadline_in(5_820_000, SystemClock())
        cooldowns.merge(tx, MAIN, "chat:7", deadline, reason="429: retry after 5820")

    async with open_door(tmp_path) as door:
        await written(door, cool)
        page = (await door.http.get("/")).text
        document = (await door.http.get("/status.json")).json()
    (shown,) = document["bots"][0]["cooldowns"]
    assert 5_800_000 < shown["remaining_ms"] <= 5_820_000
    assert "chat:7" in page
    assert re.search(r"1 h 3[67] min", page)


async def test_pauses_are_shown_with_their_reason_and_end(tmp_path: Path) -> None:
    def stop(tx: Tx) -> None:
        until_ms = tx.now_ms() + 5_820_000
        for scope, end_ms in (("bulk", until_ms), ("c:4711", None)):
            pauses.pause(tx, MAIN, scope, reason="too <loud>", by_whom="ada", until_ms=end_ms)

    async with open_door(tmp_path) as door:
        await written(door, stop)
        page = (await door.http.get("/")).text
        document = (await door.http.get("/status.json")).json()
    assert [pause["scope"] for pause in document["bots"][0]["pauses"]] == ["bulk", "c:4711"]
    for shown in ("bulk", "chat 4711", "until resumed", "too &lt;loud&gt;", "ada"):
        assert shown in page
    assert re.search(r"1 h 3[67] min", page)


async def test_the_page_does_not_grow_with_what_cools(tmp_path: Path) -> None:
    def cool(tx: Tx) -> None:
        for chat in range(60):
            deadline = deadline_in(60_000, SystemClock())
            cooldowns.merge(tx, MAIN, f"c:{chat}", deadline, reason="429")

    async with open_door(tmp_path) as door:
        await written(door, cool)
        page = (await door.http.get("/")).text
    assert page.count('data-label="Scope"') == 50
    assert "and 10 more, in status.json" in page


def hold_one(tx: Tx) -> None:
    """A call whose answer never came, for a chat with a number of its own."""
    outbox.enqueue(tx, MAIN, call("a", chat_id=4711, text=WORDS))
    (head,) = claims.heads(tx, MAIN, Priority.INTERACTIVE, limit=1)
    (claim,) = claims.claim(tx, [head], 1)
    claims.stamp(tx, [claim])
    end = AttemptEnd(
        AttemptStage.BODY_COMPLETE,
        "uncertain",
        duration_ms=30_000,
        status=502,
        description=f'Bad Gateway for "{WORDS}"',
    )
    claims.close_attempts(tx, [(claim, end)])
    claims.hold(tx, claim, OutboxState.UNCERTAIN, reason="no answer came")


async def test_a_held_call_is_shown_with_its_evidence_and_not_with_its_words(
    tmp_path: Path,
) -> None:
    async with open_door(tmp_path) as door:
        await written(door, hold_one)
        page = (await door.http.get("/")).text
        document = (await door.http.get("/status.json")).json()
    (held,) = document["held"]
    assert (held["chat_id"], held["method"], held["stage"]) == (
        4711,
        "sendMessage",
        "body_complete",
    )
    assert (document["bots"][0]["uncertain"], document["bots"][0]["review"]) == (1, 0)
    for shown in (
        "4711",
        "sendMessage",
        "no answer came",
        "stage body_complete",
        "HTTP 502",
        "30 s",
    ):
        assert shown in page
    assert "private" not in page + str(document)


async def test_what_waits_for_the_decision_about_a_held_call_is_counted(tmp_path: Path) -> None:
    def refer(tx: Tx) -> None:
        hold_one(tx)
        child = outbox.enqueue(tx, MAIN, call("b", chat_id=4711, text=WORDS)).id
        lanes.step_out(tx, MAIN, child, waits_for=OutboxId(1), reason="waits for c1")

    async with open_door(tmp_path) as door:
        await written(door, refer)
        page = (await door.http.get("/")).text
        document = (await door.http.get("/status.json")).json()
    assert document["bots"][0]["outside"] == 1
    assert "for a decision 1" in page


async def test_the_page_is_whole_html(tmp_path: Path) -> None:
    """Every tag that was opened is closed, so that a browser shows what was meant."""

    class Tags(HTMLParser):
        open: ClassVar[list[str]] = []

        def handle_starttag(self, tag: str, _: object) -> None:
            if tag not in {"meta", "link"}:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    async with open_door(tmp_path) as door:
        await written(door, hold_one)
        tags = Tags()
        tags.feed((await door.http.get("/")).text)
    assert tags.open == []


async def test_while_the_database_can_not_be_read_the_page_says_so(
    tmp_path: Path,
) -> None:
    async with open_door(tmp_path) as door:
        raw = connect(door.database_path)
        raw.execute("alter table heartbeats rename to gone", {})
        for path in ("/", "/status.json"):
            answer = await door.http.get(path)
            assert (answer.status_code, "StorageError" in answer.text) == (503, True)
        raw.execute("alter table gone rename to heartbeats", {})
        raw.close()
