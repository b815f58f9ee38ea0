"""Waits of every shape: what Telegram orders is obeyed to the second, and nothing else is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sender.answer import Answer, Stage
from sender.botapi import classify
from sender.verdict import (
    WAIT_MS_MAX,
    Cooldown,
    FloodHint,
    Partial,
    Refused,
    RefusedKind,
    Review,
    Sent,
    Verdict,
    WaitSource,
)
from tests.unit.sender.answers import answered, refused, wrapped

DAYS_14_S = 1_209_600
TEXT = "Too Many Requests: retry after 5"
ABSENT = object()


def flood(wait: object, *, text: str = TEXT, header: str = "") -> Answer:
    parameters = None if wait is ABSENT else {"retry_after": wait}
    return refused(429, text, parameters, header=header)


@pytest.mark.parametrize(
    ("wait", "wait_ms"),
    [(5, 5_000), (1, 1_000), (0, 1_000), (10_072, 10_072_000), (DAYS_14_S, WAIT_MS_MAX)],
)
def test_a_whole_number_of_seconds_is_waited_and_zero_counts_as_one(
    wait: int, wait_ms: int
) -> None:
    found = classify(flood(wait), "sendMessage")
    assert found == Cooldown(wait_ms, FloodHint.CHAT, WaitSource.PARAMETERS)


def test_a_flood_of_an_edit_holds_back_edits() -> None:
    found = classify(flood(5), "editMessageText")
    assert found == Cooldown(5_000, FloodHint.EDITS, WaitSource.PARAMETERS)


@pytest.mark.parametrize(
    "wait",
    [
        *(-1, -DAYS_14_S, DAYS_14_S + 1, 10**30, 2**63),
        *(5.0, 5.5, 0.5, -0.5, float("inf"), float("nan")),
        *(True, False, "5", "5 s", "", None, [5], [], {"s": 5}, {}),
        ABSENT,
    ],
    ids=str,
)
def test_a_429_without_a_usable_wait_is_for_a_person(wait: object) -> None:
    """Its text may only lengthen the pause that we make meanwhile."""
    found = classify(flood(wait), "sendMessage")
    assert isinstance(found, Review)
    assert found.wait_at_least_ms == 5_000


@pytest.mark.parametrize(
    ("text", "header", "at_least_ms"),
    [
        ("Too Many Requests", "", 0),
        ("Too Many Requests", "90", 90_000),
        (TEXT, "90", 90_000),
        (TEXT, "3", 5_000),
        (TEXT, "-90", 5_000),
        (TEXT, "9.5", 5_000),
        (TEXT, "Wed, 21 Oct 2026 07:28:00 GMT", 5_000),
        (TEXT, "999999999999", WAIT_MS_MAX),
        ("Too Many Requests: retry after 999999999999", "", WAIT_MS_MAX),
        ("Too Many Requests: retry after 8.5", "", 0),
        ("Too Many Requests: retry after -8", "", 0),
        ("Too Many Requests: retry after 12345678901234567890", "", 0),
        ("Too Many Requests: RETRY AFTER 8.", "", 8_000),
    ],
)
def test_header_and_text_may_only_lengthen(text: str, header: str, at_least_ms: int) -> None:
    found = classify(flood(ABSENT, text=text, header=header), "sendMessage")
    assert isinstance(found, Review)
    assert found.wait_at_least_ms == at_least_ms
    assert found.evidence.startswith(f"429 {text}")
    assert header[:20] in found.evidence


def test_a_usable_wait_is_not_changed_by_header_or_text() -> None:
    found = classify(flood(2, text="Too Many Requests: retry after 60", header="60"), "sendMessage")
    assert found == Cooldown(2_000, FloodHint.CHAT, WaitSource.PARAMETERS)


@pytest.mark.parametrize("body", [b"", b"<html>slow down</html>", b'{"ok": false'])
def test_a_429_that_nobody_can_read_is_for_a_person(body: bytes) -> None:
    found = classify(answered(429, body, header="90"), "sendMessage")
    assert isinstance(found, Review)
    assert found.wait_at_least_ms == 90_000


HIDDEN: list[tuple[str, Verdict | type[Verdict]]] = [
    (f"Bad Request: {TEXT}", Cooldown(5_000, FloodHint.CHAT, WaitSource.TEXT)),
    (wrapped(1, TEXT), Cooldown(5_000, FloodHint.CHAT, WaitSource.TEXT)),
    (
        wrapped(1, "too many requests: RETRY AFTER 0"),
        Cooldown(1_000, FloodHint.CHAT, WaitSource.TEXT),
    ),
    (wrapped(1, "Too Many Requests: retry after 1209601"), Review),
    (wrapped(1, "Too Many Requests: retry after 8.5"), Review),
    (wrapped(1, "Too Many Requests: retry after -8"), Review),
    ("Bad Request: Too Many Requests", Review),
]


@pytest.mark.parametrize(("text", "expected"), HIDDEN)
def test_a_flood_hidden_in_the_400_of_a_single_send_has_its_text_alone(
    text: str, expected: Verdict | type[Verdict]
) -> None:
    found = classify(refused(400, text, header="3600"), "sendMessage")
    assert isinstance(found, expected) if isinstance(expected, type) else found == expected


@pytest.mark.parametrize(
    "text",
    [
        'Bad Request: can\'t parse entities: unsupported start tag "retry after 99" at byte 3',
        wrapped(1, 'can\'t parse entities: unsupported start tag "retry after 99" at byte 3'),
        wrapped(1, "can't parse entities: tag \"it's too many requests: retry after 99\""),
        "Bad Request: inline keyboard button URL 'too many requests: retry after 99' is invalid",
        'Bad Request: bot "too many requests retry after 99" not found',
        'Bad Request: parameter "retry after 99" is required',
    ],
)
def test_what_a_user_wrote_makes_no_flood(text: str) -> None:
    found = classify(refused(400, text), "sendMessage")
    assert isinstance(found, Refused)
    assert found.kind is RefusedKind.CONTENT
    assert "99" not in found.description


def test_a_wait_that_a_user_wrote_is_not_the_one_that_telegram_ordered() -> None:
    text = 'Bad Request: chat "retry after 99" was told: Too Many Requests: retry after 5'
    found = classify(refused(400, text), "sendMessage")
    assert found == Cooldown(5_000, FloodHint.CHAT, WaitSource.TEXT)
    bare = classify(refused(429, 'Too Many Requests of "retry after 99"'), "sendMessage")
    assert bare == Review("429 Too Many Requests of …", 0)


@pytest.mark.parametrize(
    ("text", "wait_ms"),
    [
        (wrapped(2, "Too Many Requests: retry after 8"), 8_000),
        (wrapped(2, "Too Many Requests: retry after 0"), 1_000),
        (wrapped(2, "Too Many Requests: retry after 1209601"), None),
        (wrapped(2, "Too Many Requests: retry after 8.5"), None),
        (wrapped(2, "Too Many Requests"), None),
    ],
)
def test_a_flood_hidden_in_an_album_cools_and_leaves_the_album_in_doubt(
    text: str, wait_ms: int | None
) -> None:
    for spelt in (text, text.upper()):
        found = classify(refused(400, spelt), "sendMediaGroup", items=3)
        assert isinstance(found, Partial)
        assert found.wait_ms == wait_ms


def test_an_open_429_of_an_album_is_a_plain_flood() -> None:
    """A 429 as such was not executed, whatever the call carried."""
    found = classify(flood(9), "sendMediaGroup", items=3)
    assert found == Cooldown(9_000, FloodHint.CHAT, WaitSource.PARAMETERS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["retry_after", "migrate_to_chat_id"]), inner)
    ),
    max_leaves=4,
)
DESCRIPTIONS = st.one_of(
    st.text(max_size=40),
    st.builds(
        "{}: retry after {}{}".format,
        st.sampled_from(["Too Many Requests", 'with the error message "Too Many Requests', "'x"]),
        st.integers() | st.floats() | st.text(max_size=5),
        st.sampled_from(["", '"', "'", ".", '" and "more"']),
    ),
)
BODIES = st.one_of(
    st.binary(max_size=60),
    st.fixed_dictionaries(
        {},
        optional={
            "ok": st.booleans() | VALUES,
            "error_code": st.sampled_from([400, 403, 429, 500]) | VALUES,
            "description": DESCRIPTIONS | VALUES,
            "parameters": st.dictionaries(st.just("retry_after"), VALUES) | VALUES,
            "result": VALUES,
        },
    ),
)


@given(
    stage=st.sampled_from(Stage),
    status=st.none() | st.integers(0, 999),
    header=st.text(max_size=12) | st.integers().map(str),
    body=BODIES,
    method=st.sampled_from(["sendMessage", "editMessageText", "sendMediaGroup", "unknown", ""]),
    items=st.integers(1, 3),
)
def test_whatever_comes_back_gets_a_verdict_and_no_wait_is_out_of_bounds(
    stage: Stage, status: int | None, header: str, body: object, method: str, items: int
) -> None:
    """And nothing but a plain acceptance, or a text that says so, is ever taken for sent."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = Answer(stage, status, header, raw)
    match classify(answer, method, items=items):
        case Cooldown(wait_ms=wait_ms) | Partial(wait_ms=int(wait_ms)):
            assert 1_000 <= wait_ms <= WAIT_MS_MAX
        case Review(wait_at_least_ms=wait_ms):
            assert 0 <= wait_ms <= WAIT_MS_MAX
        case Sent(has_result=True):
            assert stage is Stage.ANSWERED
            assert status == 200
            assert isinstance(body, dict)
            assert body["ok"] is True
        case _:
            pass
