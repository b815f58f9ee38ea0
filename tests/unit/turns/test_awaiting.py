"""What who has waited is told, by the state in which the row ended."""

import json
from dataclasses import replace

import pytest
from telegram.error import TimedOut

from bot.turns.awaiting import answer_of
from storage.ends import End
from storage.lifecycle import OutboxId, OutboxState

BODY = b'{"ok":true,"result":{"message_id":90}}'
SENT = End(OutboxId(77), "sendDice", OutboxState.SENT, BODY, None, None, None, None)


def test_an_acceptance_comes_back_as_it_came() -> None:
    assert answer_of(SENT) == (200, BODY)


@pytest.mark.parametrize(
    ("end", "status", "description"),
    [
        (
            replace(SENT, result=None, code=400, description="Bad Request: not modified"),
            400,
            "Bad Request: not modified",
        ),
        (
            replace(SENT, state=OutboxState.DEAD, result=None, code=403, description="Forbidden"),
            403,
            "Forbidden",
        ),
        (
            replace(SENT, state=OutboxState.DEAD, result=None, reason="its parent died"),
            400,
            "sendDice was not made: its parent died",
        ),
        (
            replace(SENT, result=None, reason="an operator decided: sent"),
            400,
            "sendDice was made, and its answer is lost: an operator decided: sent",
        ),
        *(
            (
                replace(SENT, state=state, result=None, reason="so"),
                400,
                f"sendDice was not made: {state} (so)",
            )
            for state in (OutboxState.EXPIRED, OutboxState.CANCELLED, OutboxState.SUPERSEDED)
        ),
    ],
)
def test_what_has_no_answer_is_answered_as_telegram_refuses(
    end: End, status: int, description: str
) -> None:
    found, body = answer_of(end)
    told = json.loads(body)
    assert (found, told["ok"], told["error_code"]) == (status, False, status)
    assert told["description"] == description
    assert "parameters" not in told


def test_a_flood_names_its_wait() -> None:
    end = replace(
        SENT, state=OutboxState.DEAD, result=None, code=429, description="Flood", wait_ms=2_001
    )
    assert json.loads(answer_of(end)[1])["parameters"] == {"retry_after": 3}


@pytest.mark.parametrize("state", [OutboxState.UNCERTAIN, OutboxState.REVIEW])
def test_what_nobody_can_tell_is_no_answer(state: OutboxState) -> None:
    with pytest.raises(TimedOut, match="row 77 is held for a person"):
        answer_of(replace(SENT, state=state, result=None, reason="no answer"))
