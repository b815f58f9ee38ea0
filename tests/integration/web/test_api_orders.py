"""Whatever a program posts gets the answer that the corpus states, or at least a 4xx, and no more.

Nothing is left half-done: a row that is there is whole, and stands in its lane.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.methods import METHODS
from storage.outgoing import digest
from tests.integration.web.door import Door, open_door
from tests.integration.web.orders import BEARER, PATH, Case, cases
from tests.integration.web.replay import DATA

WHOLE = """
select o.id, o.method, o.params, o.digest, o.lane, o.state, o.joined, l.head_id
from outbox as o
left join lanes as l on l.bot = o.bot and l.lane = o.lane and l.priority = o.priority
order by o.id
"""


def half_done(door: Door) -> list[int]:
    """Rows that no sender could send as they were asked for."""
    return [
        row["id"]
        for row in door.rows(WHOLE)
        if row["digest"] != digest(row["method"], json.loads(row["params"]))
        or not row["lane"]
        or row["state"] != "queued"
        or (row["joined"] and not 0 < (row["head_id"] or 0) <= row["id"])
    ]


async def _differences(door: Door, found: Sequence[Case]) -> list[str]:
    differing = []
    for case in found:
        answer = await door.http.post(PATH, content=case.body, headers=BEARER)
        told = answer.json().get("error")
        if (answer.status_code, told) != (case.status, case.error):
            differing.append(f"{case.name}: got {answer.status_code} {told}")
    return differing


async def test_every_order_is_answered_as_the_corpus_states(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = list(cases())
    async with open_door(tmp_path, api=True) as door:
        assert await _differences(door, corpus) == []
        taken = sum(case.status == 202 for case in corpus)
        assert len(door.rows("select id from outbox")) == taken
        assert half_done(door) == []
    assert not [record for record in caplog.records if record.exc_info], "no traceback"


def test_the_corpus_is_whole_and_its_texts_are_sentences() -> None:
    corpus = list(cases())
    assert len(corpus) == len({case.name for case in corpus}) == 134
    for case in corpus:
        assert (case.error is None) == (case.status == 202)
        if case.error is not None:
            assert any(word in case.error for word in ("xpected", "unknown", "can't")), case.error


async def test_the_webhooks_poison_is_no_order_either(tmp_path: Path) -> None:
    bodies = [file.read_bytes() for file in DATA.iterdir() if file.name.endswith(".body")]
    assert len(bodies) > 40
    async with open_door(tmp_path, api=True) as door:
        for body in bodies:
            answer = await door.http.post(PATH, content=body, headers=BEARER)
            assert answer.status_code in (400, 422), body[:60]
        assert door.rows("select id from outbox") == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["@news", "-5", "/etc/hostname", "2099-01-01T00:00:00Z", '[{"media": 5}]']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
CHATS = st.sampled_from([5, -100, "@some_channel", "-7"]) | JSON
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("chat_id", "from_chat_id"), CHATS),
        **dict.fromkeys(("message_id", "text", "reply_parameters", "media", "photo"), JSON),
        **dict.fromkeys(("message_ids", "options", "rich_message", "user_id"), JSON),
        **dict.fromkeys(("callback_query_id", "inline_message_id", "action", "name"), JSON),
        "business_connection_id": JSON,
    },
)
ORDERS = st.fixed_dictionaries(
    {
        "bot": st.sampled_from(["main", "other"]) | JSON,
        "method": st.sampled_from(sorted(METHODS)) | JSON,
        "params": PARAMETERS | JSON,
    },
    optional={
        "class": st.sampled_from(["interactive", "bulk", "paid"]) | JSON,
        "not_before": st.integers(0, 2**60) | JSON,
        "expires_at": st.integers(0, 2**60) | JSON,
        "ttl_s": st.floats() | JSON,
        "supersede": st.text(max_size=5) | JSON,
        "key": st.text(max_size=5) | JSON,
        "on_uncertain": st.sampled_from(["hold", "resend", "drop"]) | JSON,
        "channel": JSON,
    },
)
# Most of the time an order that could be meant, so that some get through and leave their rows.
LIKELY = st.builds(
    lambda chat, text, key, more: {
        "bot": "main",
        "method": "sendMessage",
        "params": {"chat_id": chat, "text": text},
        **({} if key is None else {"key": key}),
        **more,
    },
    CHATS,
    st.text(max_size=20) | JSON,
    st.none() | st.sampled_from(["a", "b", "c"]),
    st.fixed_dictionaries({}, optional={"ttl_s": st.floats(0.1, 1000), "supersede": st.just("s")}),
)


ODD = st.sampled_from(["", "x", 0, -5, 7.5, True, [], {}, "/etc/hostname", "\ud800"]) | JSON
SHAPES: dict[str, st.SearchStrategy[Any]] = {
    "chat_id": st.sampled_from([5, -100, "@some_channel", "-7"]),
    "from_chat_id": st.sampled_from([5, -100]),
    "message_id": st.integers(1, 2**31),
    "media": st.just([{"type": "photo", "media": "https://example.org/a.jpg"}]),
    "options": st.just(["a", "b"]),
    "rich_message": st.just({"html": "x"}),
    "stickers": st.just([{"sticker": "https://example.org/a.webp"}]),
    **dict.fromkeys(
        ("photo", "live_photo", "audio", "document", "video", "animation", "voice", "video_note"),
        st.just("https://example.org/a"),
    ),
    **dict.fromkeys(("sticker", "old_sticker"), st.just("https://example.org/a.webp")),
}


def whole(method: str) -> st.SearchStrategy[dict[str, Any]]:
    """Orders of a method with all that it needs, of which a part may be odd."""
    shapes = {name: SHAPES.get(name, st.just("given")) for name in METHODS[method].needs}
    odd = st.fixed_dictionaries({}, optional=dict.fromkeys((*shapes, "chat_id"), ODD))
    params = st.builds(lambda good, bad: good | bad, st.fixed_dictionaries(shapes), odd)
    return params.map(lambda given: {"bot": "main", "method": method, "params": given})


WHOLE_ORDERS = st.sampled_from(sorted(METHODS)).flatmap(whole)


async def test_no_json_whatever_breaks_it_or_leaves_half_a_row(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    statuses: list[int] = []
    left: set[int] = set()

    def post(door: Door) -> None:
        with httpx.Client(base_url=door.url, headers=BEARER, trust_env=False) as http:

            @settings(
                max_examples=400,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.nested_given],
            )
            @given(st.one_of(JSON, ORDERS, LIKELY, WHOLE_ORDERS))
            def check(given_order: Any) -> None:  # noqa: ANN401 - any JSON
                body = json.dumps(given_order).encode()
                answer = http.post(PATH, content=body)
                statuses.append(answer.status_code)
                assert answer.status_code in (202, 400, 409, 422), body
                if answer.status_code == 202:
                    left.add(answer.json()["id"])
                else:
                    assert answer.json()["error"]

            check()

    async with open_door(tmp_path, api=True) as door:
        await asyncio.to_thread(post, door)
        rows = door.rows("select id from outbox where state = 'queued' or state = 'superseded'")
        assert {row["id"] for row in rows} == left
        broken = set(half_done(door))
        superseded = {
            row["id"] for row in door.rows("select id from outbox where state = 'superseded'")
        }
        assert broken <= superseded
    assert {202, 400, 422} <= set(statuses)
    assert not [record for record in caplog.records if record.exc_info], "no traceback"
