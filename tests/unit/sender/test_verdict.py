"""The verdicts: what each answer that Telegram is known to give means, one row each."""

import json
from pathlib import Path
from typing import Any

import pytest

from sender.answer import Answer, Evidence, Stage
from sender.botapi import classify, outdated, told
from sender.verdict import (
    Cooldown,
    Fatal,
    Moved,
    Refused,
    RefusedKind,
    Review,
    Sent,
    Transient,
    Uncertain,
    Unreachable,
    Verdict,
    Withheld,
    name_of,
)
from tests.unit.sender.answers import accepted, answered, refused

ERRORS = Path(__file__).parents[2] / "data" / "botapi-errors.json"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "botapi" / "errors.json"
PUT_OFF = "put off by Telegram: what has no id can't be referred to"


@pytest.mark.parametrize(
    ("result", "sent"),
    [
        ({"message_id": 7, "date": 1, "text": "hi"}, Sent(7, message_ids=(7,))),
        ({"message_id": 0}, Sent(None, PUT_OFF, (0,))),
        ({"message_id": True}, Sent()),
        ({"message_id": "7"}, Sent()),
        (True, Sent()),
        (None, Sent()),
        ([{"message_id": 7}], Sent(7, message_ids=(7,))),
        ([{"message_id": 7}, "?"], Sent()),
    ],
)
def test_an_accepted_call_is_sent(result: object, sent: Sent) -> None:
    assert classify(accepted(result), "sendMessage") == sent


@pytest.mark.parametrize(
    ("ids", "sent"),
    [
        ([7, 8, 9], Sent(7, message_ids=(7, 8, 9))),
        ([7, 9], Sent(7, "2 of 3 were made, the others left out", (7, 9))),
        ([], Sent(None, "0 of 3 were made, the others left out")),
        ([0, 8, 9], Sent(8, PUT_OFF, (0, 8, 9))),
        ([7, 8, 9, 10], Sent(7, message_ids=(7, 8, 9, 10))),
    ],
)
def test_a_call_of_several_tells_the_id_of_each(ids: list[int], sent: Sent) -> None:
    """Copies and forwards leave out what is not there any more, and call it a success."""
    result = [{"message_id": message_id} for message_id in ids]
    assert classify(accepted(result), "copyMessages", items=3) == sent


@pytest.mark.parametrize(
    ("stage", "verdict"),
    [
        (Stage.UNCONNECTED, Transient("not connected: X", outage=True)),
        (Stage.BODY_INCOMPLETE, Transient("request cut short: X", outage=False)),
        (Stage.BODY_COMPLETE, Uncertain("no answer: X")),
        (Stage.HANDED_BACK, Withheld("held back at the last moment")),
    ],
)
def test_a_call_without_an_answer_is_judged_by_how_far_it_got(
    stage: Stage, verdict: Verdict
) -> None:
    assert classify(Answer(stage, fault="X"), "sendMessage") == verdict


UNREADABLE = [
    answered(200, b""),
    answered(200, b"{}"),
    answered(200, b"[1]"),
    answered(200, b'{"ok": 1}'),
    answered(200, b'{"ok": true'),
    answered(200, {"ok": False}),
    answered(302, b""),
    answered(401, b"<html>proxy</html>"),
    answered(403, b"<html>proxy</html>"),
    answered(404, b"<html>proxy</html>"),
    answered(500, b""),
    answered(500, {"ok": True, "result": {"message_id": 7}}),
    answered(502, b"<html>nginx</html>"),
    answered(504, {"ok": False, "error_code": 504, "description": "Gateway Timeout"}),
    answered(400, {"ok": True, "result": True}),
    refused(500, "Internal Server Error: restart"),
    refused(500, "Internal Server Error: request aborted"),
    refused(502, "Bad Gateway"),
]


@pytest.mark.parametrize("answer", UNREADABLE)
def test_what_may_have_been_executed_is_uncertain(answer: Answer) -> None:
    found = classify(answer, "sendMessage")
    is_malformed_refusal = answer.status == 400
    assert isinstance(found, Refused if is_malformed_refusal else Uncertain), found


@pytest.mark.parametrize("status", [400, 413, 414, 415, 431])
def test_a_request_that_never_became_a_call_is_refused(status: int) -> None:
    found = classify(answered(status, b""), "sendMessage")
    assert isinstance(found, Refused)
    assert found.kind is RefusedKind.CONTENT


def test_a_message_sent_and_taken_away_counts_as_sent() -> None:
    """To repeat it would double it."""
    text = "Internal Server Error: sent message was immediately deleted and can't be returned"
    assert classify(refused(500, text), "sendMessage") == Sent(note=text, has_result=False)


def test_a_chat_that_moved_is_named_by_a_parameter() -> None:
    text = "Bad Request: group chat was upgraded to a supergroup chat"
    found = classify(refused(400, text, {"migrate_to_chat_id": -100155}), "sendMessage")
    assert found == Moved(-100155)
    found = classify(refused(400, text), "editMessageText")
    assert found == Refused(RefusedKind.TARGET, 400, text)


def test_what_a_user_wrote_is_not_taken_for_telegrams_own_words() -> None:
    text = 'Bad Request: can\'t parse entities: unsupported start tag "bot was blocked by the user"'
    found = classify(refused(400, text), "sendMessage")
    assert isinstance(found, Refused)
    assert found.kind is RefusedKind.CONTENT
    assert "blocked" not in found.description


def test_what_was_asked_for_and_is_so_already_has_no_result() -> None:
    found = classify(refused(400, "Bad Request: message is not modified"), "editMessageText")
    assert isinstance(found, Sent)
    assert (found.note, found.has_result) == ("Bad Request: message is not modified", False)


def test_a_structured_field_is_believed_before_the_code_and_the_code_before_the_text() -> None:
    blocked = "Forbidden: bot was blocked by the user"
    moved = refused(403, blocked, {"migrate_to_chat_id": -1007})
    assert classify(moved, "sendMessage") == Moved(-1007)
    flooded = refused(400, blocked, {"retry_after": 7})
    assert isinstance(classify(flooded, "sendMessage"), Cooldown)
    assert isinstance(classify(refused(401, blocked), "sendMessage"), Fatal)
    assert isinstance(classify(refused(500, blocked), "sendMessage"), Uncertain)
    assert isinstance(classify(refused(429, blocked), "sendMessage"), Review)


def test_where_status_and_code_differ_the_graver_one_is_believed() -> None:
    body = {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}
    assert isinstance(classify(answered(502, body), "sendMessage"), Uncertain)
    assert isinstance(classify(answered(200, body), "sendMessage"), Unreachable)
    assert isinstance(classify(answered(200, {"ok": False}), "sendMessage"), Uncertain)


def test_evidence_keeps_telegrams_words_and_leaves_the_users_out() -> None:
    text = "Bad Request: inline keyboard button URL 'my words' is invalid: Wrong HTTP URL"
    assert told(refused(400, text)) == Evidence(
        400, "Bad Request: inline keyboard button URL … is invalid: Wrong HTTP URL"
    )
    assert told(answered(502, b"<html>nginx</html>")) == Evidence(None, "<html>nginx</html>")
    unconnected = Answer(Stage.UNCONNECTED, fault="ClientConnectorError")
    assert told(unconnected) == Evidence(None, "ClientConnectorError")


SUGGESTED: dict[str, tuple[type[Any], ...]] = {
    "wait": (Cooldown,),
    "migrate": (Moved,),
    "chat-gone": (Unreachable,),
    "permanent": (Refused,),
    "transient": (Transient,),
    "ambiguous": (Uncertain,),
    "done": (Sent,),
    "done-unknown-id": (Sent,),
    "stop": (Fatal,),
}


@pytest.mark.parametrize(
    "row", json.loads(ERRORS.read_text())["answers"], ids=lambda row: str(row["description"])[:60]
)
def test_every_answer_seen_in_the_field_is_classed(row: dict[str, Any]) -> None:
    answer = refused(row["error_code"], row["description"], row.get("parameters"))
    expected = SUGGESTED[row["suggested"]]
    if row["error_code"] == 409:
        # It stops a poller, which is not the sender: for a call it is a plain refusal.
        expected = (Refused,)
    assert isinstance(classify(answer, "sendMessage"), expected)


def test_the_answers_seen_in_the_field_are_those_of_the_source() -> None:
    """The source lies beside the repository only where it is developed."""
    if SHARED.exists():
        assert json.loads(ERRORS.read_text())["answers"] == json.loads(SHARED.read_text())


def test_every_verdict_has_a_word_of_its_own() -> None:
    assert name_of(Sent()) == "sent"
    assert name_of(Review("x")) == "review"


@pytest.mark.parametrize(
    ("description", "method", "is_outdated"),
    [
        ("wrong remote file identifier specified: Wrong padding", "sendPhoto", True),
        ("Wrong file identifier/HTTP URL specified", "sendPhoto", True),
        ("wrong file_id or the file is temporarily unavailable", "sendVideo", True),
        ("invalid file_id", "sendAudio", True),
        ("can't use file of type Video as Photo", "sendPhoto", True),
        ("FILE_REFERENCE_EXPIRED", "sendPhoto", True),
        ("FILE_REFERENCE_0_EXPIRED", "sendPhoto", True),
        ("file is too big", "sendPhoto", False),
        ("chat not found", "sendPhoto", False),
        ('can\'t parse entities: "wrong file identifier"', "sendPhoto", False),
        # Looked up before any item of an album is sent; what comes later may leave some behind.
        ("wrong remote file identifier specified: Wrong padding", "sendMediaGroup", True),
        ("FILE_REFERENCE_0_EXPIRED", "sendMediaGroup", False),
        (
            'failed to send message #2 with the error message "wrong file identifier"',
            "sendMediaGroup",
            False,
        ),
    ],
)
def test_a_named_file_that_is_not_known_any_more_is_told_from_other_refusals(
    description: str, method: str, *, is_outdated: bool
) -> None:
    answer = refused(400, f"Bad Request: {description}")
    assert (outdated(answer, method) is not None) is is_outdated


def test_no_acceptance_and_no_failure_of_the_server_is_outdated() -> None:
    assert outdated(accepted({"message_id": 7}), "sendPhoto") is None
    assert outdated(refused(500, "wrong file identifier"), "sendPhoto") is None
    assert outdated(answered(502, b"<html>"), "sendPhoto") is None
