"""The verdicts: what each answer that Telegram is known to give means, one row each."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sender.answer import Answer, Stage
from sender.verdict import (
    PHRASES,
    WAIT_MS_MAX,
    Cooldown,
    Fatal,
    FloodHint,
    Moved,
    Partial,
    Refused,
    RefusedKind,
    Review,
    Sent,
    Transient,
    Uncertain,
    Unreachable,
    Verdict,
    WaitSource,
    classify,
    meaning_of,
    name_of,
    told,
)

ERRORS = Path(__file__).parents[2] / "data" / "botapi-errors.json"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "botapi" / "errors.json"


def answered(status: int, body: object, *, header: str = "") -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(Stage.ANSWERED, status, header, raw)


def refused(code: int, description: str, parameters: object = None, *, header: str = "") -> Answer:
    body: dict[str, object] = {"ok": False, "error_code": code, "description": description}
    if parameters is not None:
        body["parameters"] = parameters
    return answered(code, body, header=header)


def accepted(result: object) -> Answer:
    return answered(200, {"ok": True, "result": result})


def flood(wait: object) -> Answer:
    return refused(429, "Too Many Requests: retry after 5", {"retry_after": wait})


@pytest.mark.parametrize(
    ("result", "message_id"),
    [
        ({"message_id": 7, "date": 1, "text": "hi"}, 7),
        ({"message_id": 0}, None),
        ({"message_id": True}, None),
        (True, None),
        ([{"message_id": 7}], None),
    ],
)
def test_an_accepted_call_is_sent(result: object, message_id: int | None) -> None:
    assert classify(accepted(result), "sendMessage") == Sent(message_id)


@pytest.mark.parametrize(("wait", "wait_ms"), [(5, 5_000), (0, 1_000), (1_209_600, WAIT_MS_MAX)])
def test_a_flood_is_a_cooldown_of_the_seconds_told(wait: int, wait_ms: int) -> None:
    found = classify(flood(wait), "sendMessage")
    assert found == Cooldown(wait_ms, FloodHint.CHAT, WaitSource.PARAMETERS)


def test_a_flood_of_an_edit_holds_back_edits() -> None:
    found = classify(flood(5), "editMessageText")
    assert found == Cooldown(5_000, FloodHint.EDITS, WaitSource.PARAMETERS)


@pytest.mark.parametrize(
    "wait", [-1, 1_209_601, 10**30, 5.0, 5.5, True, False, "5", None, [5], {"s": 5}]
)
def test_a_flood_without_a_usable_wait_is_for_a_person(wait: object) -> None:
    found = classify(flood(wait), "sendMessage")
    assert isinstance(found, Review)
    assert found.wait_at_least_ms == 5_000, "its text may lengthen our own wait"


def test_a_bare_flood_shows_its_header_as_evidence() -> None:
    answer = refused(429, "Too Many Requests", header="90")
    found = classify(answer, "sendMessage")
    assert found == Review("429 Too Many Requests (Retry-After: 90)", 90_000)


def test_a_flood_in_html_is_for_a_person() -> None:
    found = classify(answered(429, b"<html>slow down</html>"), "sendMessage")
    assert found == Review("429 <html>slow down</html>", 0)


def test_a_flood_hidden_in_the_400_of_a_single_send_is_a_cooldown() -> None:
    text = 'Bad Request: failed to send message #1 with the error message "Too Many Requests: '
    answer = refused(400, text + 'retry after 8"')
    found = classify(answer, "sendMessage")
    assert found == Cooldown(8_000, FloodHint.CHAT, WaitSource.TEXT)


def test_a_flood_hidden_in_an_album_leaves_the_whole_call_in_doubt() -> None:
    text = 'Bad Request: failed to send message #2 with the error message "Too Many Requests: '
    found = classify(refused(400, text + 'retry after 8"'), "sendMediaGroup", items=3)
    assert isinstance(found, Partial)
    assert found.wait_ms == 8_000


def test_any_other_error_of_an_album_leaves_it_in_doubt_too() -> None:
    text = 'Forbidden: failed to send message #1 with the error message "USER_IS_BLOCKED"'
    found = classify(refused(403, text), "sendMediaGroup", items=3)
    assert found == Partial(f"403 {text}")


@pytest.mark.parametrize(
    ("stage", "verdict"),
    [
        (Stage.UNCONNECTED, Transient("not connected: X", outage=True)),
        (Stage.BODY_INCOMPLETE, Transient("request cut short: X", outage=False)),
        (Stage.BODY_COMPLETE, Uncertain("no answer: X")),
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
    assert classify(refused(500, text), "sendMessage") == Sent(note=text)


def test_a_chat_that_moved_is_named_by_a_parameter() -> None:
    text = "Bad Request: group chat was upgraded to a supergroup chat"
    found = classify(refused(400, text, {"migrate_to_chat_id": -100155}), "sendMessage")
    assert found == Moved(-100155)
    found = classify(refused(400, text), "editMessageText")
    assert found == Refused(RefusedKind.TARGET, 400, text)


TEXTS: list[tuple[int, str, type[Verdict], RefusedKind | None]] = [
    (401, "Unauthorized", Fatal, None),
    (401, "Unauthorized: invalid token specified", Fatal, None),
    (404, "Not Found", Fatal, None),
    (404, "Not Found: method not found", Refused, RefusedKind.CONTENT),
    (421, "Misdirected Request: unallowed token specified", Fatal, None),
    (400, "Logged out", Fatal, None),
    (400, "Bad Request: FROZEN_METHOD_INVALID", Fatal, None),
    (409, "Conflict: terminated by other setWebhook", Transient, None),
    (409, "Conflict: can't use getUpdates method while webhook is active", Refused, None),
    (403, "Forbidden: bot was blocked by the user", Unreachable, None),
    (403, "Forbidden: user is deactivated", Unreachable, None),
    (403, "Forbidden: bot can't initiate conversation with a user", Unreachable, None),
    (403, "Forbidden: the bot can't send messages to the bot", Unreachable, None),
    (403, "Forbidden: bot can't send messages to bots", Unreachable, None),
    (403, "Forbidden: bot was kicked from the supergroup chat", Unreachable, None),
    (403, "Forbidden: bot is not a member of the channel chat", Unreachable, None),
    (403, "Forbidden: the group chat was deleted", Unreachable, None),
    (403, "Forbidden: something new", Unreachable, None),
    (403, "Forbidden: not enough rights to do it", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: chat not found", Unreachable, None),
    (400, "Bad Request: private chat not found", Unreachable, None),
    (400, "Bad Request: PEER_ID_INVALID", Unreachable, None),
    (400, "Peer_id_invalid", Unreachable, None),
    (400, "Bad Request: CHANNEL_PRIVATE", Unreachable, None),
    (400, "Bad Request: group is deactivated", Unreachable, None),
    (400, "Bad Request: CHAT_RESTRICTED", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: CHAT_WRITE_FORBIDDEN", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: have no write access to the chat", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: have no rights to send a message", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: need administrator rights in the channel chat", Refused, None),
    (400, "Bad Request: not enough rights to send photos to the chat", Refused, None),
    (400, "Bad Request: USER_BANNED_IN_CHANNEL", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: VOICE_MESSAGES_FORBIDDEN", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: TOPIC_CLOSED", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: BUSINESS_PEER_INVALID", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: BALANCE_TOO_LOW", Refused, RefusedKind.PERMISSION),
    (400, "Bad Request: TOPIC_DELETED", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message thread not found", Refused, RefusedKind.TARGET),
    (400, "Bad Request: business connection not found", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message to edit not found", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message can't be edited", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message to be replied not found", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message to copy not found", Refused, RefusedKind.TARGET),
    (400, "Bad Request: there is no text in the message to edit", Refused, RefusedKind.TARGET),
    (400, "Bad Request: MESSAGE_ID_INVALID", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message can't be deleted for everyone", Refused, RefusedKind.TARGET),
    (400, "Bad Request: user not found", Refused, RefusedKind.TARGET),
    (400, "Bad Request: message text is empty", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: message is too long", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: message caption is too long", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: MESSAGE_TOO_LONG", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: ENTITIES_TOO_LONG", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: BUTTON_DATA_INVALID", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: wrong file identifier/HTTP URL specified", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: file is too big", Refused, RefusedKind.CONTENT),
    (400, 'Bad Request: parameter "x" is required', Refused, RefusedKind.CONTENT),
    (400, "Bad Request: something new", Refused, RefusedKind.CONTENT),
    (400, "Bad Request: wrong file_id or the file is temporarily unavailable", Transient, None),
    (400, "Bad Request: failed to get HTTP URL content", Transient, None),
    (400, "Bad Request: FILE_PART_3_MISSING", Transient, None),
    (400, "Bad Request: FILE_REFERENCE_EXPIRED", Transient, None),
    (400, "Bad Request: message is not modified: specified new message content", Sent, None),
    (400, "Bad Request: chat description is not modified", Sent, None),
    (400, "Bad Request: message to delete not found", Sent, None),
    (400, "Bad Request: query is too old and response timeout expired", Refused, RefusedKind.LATE),
    (400, "Bad Request: QUERY_ID_INVALID", Refused, RefusedKind.LATE),
    (400, "Bad Request: group send failed", Partial, None),
]


@pytest.mark.parametrize(("code", "text", "kind", "why"), TEXTS)
def test_a_refusal_is_told_apart_by_its_text(
    code: int, text: str, kind: type[Any], why: RefusedKind | None
) -> None:
    for spelt in (text, text.upper(), text.lower()):
        found = classify(refused(code, spelt), "sendMessage")
        assert isinstance(found, kind), found
        if why is not None:
            assert found.kind is why


def test_what_a_user_wrote_is_not_taken_for_telegrams_own_words() -> None:
    text = 'Bad Request: can\'t parse entities: unsupported start tag "bot was blocked by the user"'
    found = classify(refused(400, text), "sendMessage")
    assert isinstance(found, Refused)
    assert found.kind is RefusedKind.CONTENT
    assert "blocked" not in found.description
    hidden = 'Bad Request: can\'t parse entities: unsupported start tag "retry after 99"'
    assert isinstance(classify(refused(400, hidden), "sendMessage"), Refused)


def test_evidence_keeps_telegrams_words_and_leaves_the_users_out() -> None:
    text = "Bad Request: inline keyboard button URL 'my words' is invalid: Wrong HTTP URL"
    assert told(refused(400, text)) == (
        400,
        "Bad Request: inline keyboard button URL … is invalid: Wrong HTTP URL",
    )
    assert told(answered(502, b"<html>nginx</html>")) == (None, "<html>nginx</html>")
    assert told(Answer(Stage.UNCONNECTED, fault="ClientConnectorError")) == (
        None,
        "ClientConnectorError",
    )


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


def test_no_phrase_hides_behind_an_earlier_one_with_another_meaning() -> None:
    for meaning, texts in PHRASES:
        for text in texts:
            assert text == text.lower()
            assert meaning_of(f"Bad Request: {text.upper()} x") is meaning, text


def test_every_verdict_has_a_word_of_its_own() -> None:
    assert name_of(Sent()) == "sent"
    assert name_of(Review("x")) == "review"


@given(
    status=st.integers(100, 599),
    body=st.one_of(
        st.binary(max_size=60),
        st.dictionaries(
            st.sampled_from(["ok", "error_code", "description", "parameters", "result"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(st.sampled_from(["retry_after", "migrate_to_chat_id"]), inner)
                ),
                max_leaves=4,
            ),
        ),
    ),
    items=st.integers(1, 3),
)
def test_whatever_answers_gets_a_verdict(status: int, body: object, items: int) -> None:
    """And nothing but a plain acceptance, or a text that says so, is ever taken for sent."""
    answer = answered(status, body)
    found = classify(answer, "sendMessage", items=items)
    if isinstance(found, Sent) and not found.note:
        assert status == 200
        assert isinstance(body, dict)
        assert body["ok"] is True
    if isinstance(found, Cooldown):
        assert 1_000 <= found.wait_ms <= WAIT_MS_MAX
