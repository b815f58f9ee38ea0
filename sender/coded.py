"""A contract beside the Bot API's: a service whose errors carry codes, and no wait.

Its refusals are `{"error": {"code": "RATE_LIMITED", "numeric_code": 429, "message": "..."},
"request_id": "..."}`; a JSON object without `error`, with a 2xx, is an acceptance. Pure. Nothing of
the Bot API's rules holds here: this contract has no field for a wait, so one that somebody puts
beside the error is not believed, and a 429 is met with a pause of our own. The request id is the
service's name for one call, kept for tracing; it is no idempotency key, and is never sent back.
"""

import re

from pydantic import BaseModel, ConfigDict, ValidationError

from sender.answer import (
    EVIDENCE_CHARS_MAX,
    NEVER_A_CALL,
    Answer,
    Evidence,
    Storable,
    excerpt,
)
from sender.phrases import unquoted
from sender.verdict import (
    Refused,
    RefusedKind,
    Sent,
    Throttled,
    Uncertain,
    Verdict,
    unanswered,
)

_ACCEPTED_FROM, _ACCEPTED_BELOW = 200, 300
_REFUSALS_FROM, _TOO_MANY, _SERVER_ERRORS_FROM = 400, 429, 500
# Unauthorized, payment required, forbidden; not found, gone.
_PERMISSIONS, _TARGETS = frozenset({401, 402, 403}), frozenset({404, 410})
_REQUEST_ID = re.compile(r"[!-~]{1,128}")


class Frame(BaseModel):
    """What stands around every answer; the shapes inside are checked apart."""

    model_config = ConfigDict(strict=True, frozen=True)

    error: object = None
    request_id: object = None


class CodedError(BaseModel):
    """An error: its name, the number of its kind, and words for a person."""

    model_config = ConfigDict(strict=True, frozen=True)

    code: str = ""
    numeric_code: Storable = 0
    message: str = ""


def told(answer: Answer) -> Evidence:
    """What the service said, as evidence, with its name for the call."""
    frame = _frame_of(answer.body)
    if frame is None:
        return Evidence(None, excerpt(answer) or answer.fault or None)
    error = _error_of(frame)
    request_id = frame.request_id
    is_usable = isinstance(request_id, str) and _REQUEST_ID.fullmatch(request_id)
    return Evidence(
        error.numeric_code or None,
        _words_of(error) or None,
        str(request_id) if is_usable else None,
    )


def classify(answer: Answer) -> Verdict:
    """Say what an answer of the service means."""
    return unanswered(answer) or _classify_answered(answer)


def _classify_answered(answer: Answer) -> Verdict:
    status = answer.status or 0
    frame = _frame_of(answer.body)
    if frame is None:
        return _classify_unreadable(answer, status)
    if frame.error is None and _ACCEPTED_FROM <= status < _ACCEPTED_BELOW:
        return Sent()
    error = _error_of(frame)
    # Where the two differ the graver one is believed: it may have been executed.
    code = max(status, error.numeric_code)
    words = f"{code} {_words_of(error)}".strip()
    if _TOO_MANY in {status, error.numeric_code} and code < _SERVER_ERRORS_FROM:
        return Throttled(evidence=words)
    if _REFUSALS_FROM <= code < _SERVER_ERRORS_FROM:
        return Refused(_kind_of(code), code, _words_of(error))
    return Uncertain(reason=words)


def _classify_unreadable(answer: Answer, status: int) -> Verdict:
    words = f"{status} {excerpt(answer)}".strip()
    if status == _TOO_MANY:
        return Throttled(evidence=words)
    if status in NEVER_A_CALL:
        described = f"the request itself was refused: {excerpt(answer)}"
        return Refused(RefusedKind.CONTENT, status, described)
    return Uncertain(reason=words)


def _kind_of(code: int) -> RefusedKind:
    if code in _PERMISSIONS:
        return RefusedKind.PERMISSION
    return RefusedKind.TARGET if code in _TARGETS else RefusedKind.CONTENT


def _frame_of(body: bytes) -> Frame | None:
    try:
        return Frame.model_validate_json(body)
    except ValidationError:
        return None


def _error_of(frame: Frame) -> CodedError:
    try:
        return CodedError.model_validate(frame.error)
    except ValidationError:
        return CodedError()


def _words_of(error: CodedError) -> str:
    words = ": ".join(part for part in (error.code, unquoted(error.message)) if part)
    return words[:EVIDENCE_CHARS_MAX]
