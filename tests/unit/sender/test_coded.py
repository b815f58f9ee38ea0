"""The contract whose errors have codes: nothing of the Bot API's rules holds there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sender.answer import Answer, Evidence, Stage
from sender.coded import classify, told
from sender.verdict import (
    Cooldown,
    Refused,
    RefusedKind,
    Review,
    Sent,
    Throttled,
    Transient,
    Uncertain,
    Verdict,
    Withheld,
)
from tests.unit.sender.answers import answered

REQUEST_ID = "req_8f3a"


def failed(
    status: int,
    numeric_code: object = None,
    *,
    code: str = "X",
    message: str = "words",
    **beside: object,
) -> Answer:
    error = {"code": code, "numeric_code": status if numeric_code is None else numeric_code}
    return answered(
        status, {"error": error | {"message": message} | beside, "request_id": REQUEST_ID}
    )


@pytest.mark.parametrize("status", [200, 201, 202, 299])
@pytest.mark.parametrize("body", [{}, {"id": "m-1", "request_id": REQUEST_ID}, {"error": None}])
def test_an_object_without_an_error_is_an_acceptance(status: int, body: object) -> None:
    assert classify(answered(status, body)) == Sent()


@pytest.mark.parametrize(
    "answer",
    [
        failed(429, code="RATE_LIMITED"),
        failed(429, 400),
        failed(400, 429),
        failed(200, 429),
        failed(429, "429"),
        answered(429, b""),
        answered(429, b"<html>slow down</html>"),
        answered(429, {}),
        answered(429, {"error": "slow down"}),
        failed(429, retry_after=5),
        answered(429, {"error": {"code": "X"}, "retry_after": 5, "parameters": {"retry_after": 5}}),
        answered(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 5}}),
        answered(429, {"error": {"message": "Too Many Requests: retry after 5"}}, header="90"),
    ],
)
def test_a_429_is_a_refusal_for_haste_and_no_wait_beside_it_is_believed(answer: Answer) -> None:
    assert isinstance(classify(answer), Throttled)


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (failed(401), RefusedKind.PERMISSION, 401),
        (failed(402), RefusedKind.PERMISSION, 402),
        (failed(403), RefusedKind.PERMISSION, 403),
        (failed(404), RefusedKind.TARGET, 404),
        (failed(410), RefusedKind.TARGET, 410),
        (failed(400), RefusedKind.CONTENT, 400),
        (failed(422), RefusedKind.CONTENT, 422),
        (failed(400, 404), RefusedKind.TARGET, 404),
        (failed(200, 403), RefusedKind.PERMISSION, 403),
        (answered(404, {"error": "gone"}), RefusedKind.TARGET, 404),
        (answered(413, b""), RefusedKind.CONTENT, 413),
    ],
)
def test_other_refusals_are_told_apart_by_their_number(
    answer: Answer, kind: RefusedKind, code: int
) -> None:
    found = classify(answer)
    assert isinstance(found, Refused)
    assert (found.kind, found.code) == (kind, code)


@pytest.mark.parametrize(
    "answer",
    [
        failed(500),
        failed(503),
        failed(400, 503),
        failed(503, 429),
        failed(200, 0),
        answered(200, {"error": "boom"}),
        answered(200, []),
        answered(200, b""),
        answered(204, b""),
        answered(302, {}),
        answered(403, b"<html>proxy</html>"),
        answered(502, b"<html>nginx</html>"),
    ],
)
def test_what_may_have_been_executed_is_uncertain(answer: Answer) -> None:
    assert isinstance(classify(answer), Uncertain)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Forbidden: bot was blocked by the user", 403),
        ("Bad Request: message is not modified", 400),
        ("Bad Request: chat not found", 400),
        ("Too Many Requests: retry after 5", 400),
        ("Unauthorized", 401),
    ],
)
def test_telegrams_texts_mean_nothing_here(text: str, status: int) -> None:
    assert isinstance(classify(failed(status, message=text)), Refused)


@pytest.mark.parametrize(
    ("stage", "verdict"),
    [
        (Stage.UNCONNECTED, Transient("not connected: X", outage=True)),
        (Stage.BODY_INCOMPLETE, Transient("request cut short: X", outage=False)),
        (Stage.HANDED_BACK, Withheld("held back at the last moment")),
        (Stage.BODY_COMPLETE, Uncertain("no answer: X")),
    ],
)
def test_a_call_without_an_answer_is_judged_by_how_far_it_got(
    stage: Stage, verdict: Verdict
) -> None:
    assert classify(Answer(stage, fault="X")) == verdict


def test_evidence_has_the_number_the_words_and_the_services_name_for_the_call() -> None:
    answer = failed(429, code="RATE_LIMITED", message='too fast for "my words"')
    assert told(answer) == Evidence(429, "RATE_LIMITED: too fast for …", REQUEST_ID)
    accepted = answered(202, {"id": "m-1", "request_id": REQUEST_ID})
    assert told(accepted) == Evidence(None, None, REQUEST_ID)
    assert told(answered(502, b"<html>nginx</html>")) == Evidence(None, "<html>nginx</html>")
    assert told(Answer(Stage.UNCONNECTED, fault="X")) == Evidence(None, "X")


@pytest.mark.parametrize("name", [7, None, "", "two words", "line\nbreak", "x" * 129, ["a"]])
def test_a_name_for_the_call_that_is_none_is_left_out(name: object) -> None:
    assert told(answered(200, {"request_id": name})).request_id is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["code", "numeric_code", "message", "retry_after"]), inner
        )
    ),
    max_leaves=6,
)


@given(
    stage=st.sampled_from(Stage),
    status=st.none() | st.integers(0, 999),
    body=st.binary(max_size=40)
    | st.dictionaries(st.sampled_from(["error", "request_id", "retry_after", "ok"]), VALUES),
)
def test_whatever_comes_back_gets_a_verdict_and_never_a_telling_wait(
    stage: Stage, status: int | None, body: object
) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = Answer(stage, status, "5", raw)
    found = classify(answer)
    assert not isinstance(found, Cooldown | Review)
    if stage is Stage.ANSWERED and status == 429:
        assert isinstance(found, Throttled | Uncertain)
    if isinstance(found, Sent):
        assert stage is Stage.ANSWERED
        assert status is not None
        assert 200 <= status < 300
    told(answer)
