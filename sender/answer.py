"""What came back from a call, or that nothing did: the fact that a verdict is made from.

Pure data and the strict parsing of the frames that answers come in. An answer never holds the
request, whose address or headers hold the token.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

EVIDENCE_CHARS_MAX = 300
"""How much of an unreadable answer is kept: enough to recognise a gateway's page."""

# The HTTP request itself was refused, with an empty or HTML body: it never became a call.
NEVER_A_CALL = frozenset({400, 413, 414, 415, 431})

Storable = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""A number that the database can keep; a larger one is nobody's id and no code."""


class Stage(StrEnum):
    """How far a call got, as far as this side can know.

    unconnected      no connection came about: not executed
    body_incomplete  the connection ended before the last byte of the request: not executed, as
                     Telegram's server acts only on a whole request
    body_complete    the whole request left, no whole answer came: nobody can tell
    answered         Telegram, or something in front of it, answered
    handed_back      held back at the last moment, as what allowed it had ended: not executed
    """

    UNCONNECTED = "unconnected"
    BODY_INCOMPLETE = "body_incomplete"
    BODY_COMPLETE = "body_complete"
    ANSWERED = "answered"
    HANDED_BACK = "handed_back"

    @property
    def is_unsent(self) -> bool:
        """Whether nothing of the call can have reached Telegram's windows."""
        return self in {Stage.UNCONNECTED, Stage.HANDED_BACK}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one call.

    Of the headers only the one that may say how long to wait is kept. `fault` names the failure's
    type and nothing else, since a message may quote the address, which holds the token.
    """

    stage: Stage
    status: int | None = None
    retry_after_header: str = ""
    body: bytes = b""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the other end said, fit to be kept and shown: no user's words, no secret.

    `request_id` is its own name for the call: for tracing, and no idempotency key.
    """

    code: int | None
    description: str | None
    request_id: str | None = None


class Envelope(BaseModel):
    """The frame around every answer of the Bot API."""

    model_config = ConfigDict(strict=True, frozen=True)

    ok: bool
    error_code: Storable | None = None
    description: str | None = None
    # Their shapes are checked apart: a wait that is no number still makes a flood, not rubbish.
    result: object = None
    parameters: object = None


class RetryAfter(BaseModel):
    """`ResponseParameters` of a flood: whole seconds, and no boolean."""

    model_config = ConfigDict(strict=True, frozen=True)

    retry_after: int


class MigrateTo(BaseModel):
    """`ResponseParameters` of a group that became a supergroup."""

    model_config = ConfigDict(strict=True, frozen=True)

    migrate_to_chat_id: Storable


class SentMessage(BaseModel):
    """The only part of a returned Message or MessageId that the sender needs."""

    model_config = ConfigDict(strict=True, frozen=True)

    message_id: Storable


def envelope_of(body: bytes) -> Envelope | None:
    """Read the frame of an answer; None for what is none, as a gateway's HTML page."""
    try:
        return Envelope.model_validate_json(body)
    except ValidationError:
        return None


def retry_after_s(parameters: object) -> int | None:
    """Seconds that Telegram ordered to wait, any integer; None where it named none."""
    try:
        return RetryAfter.model_validate(parameters).retry_after
    except ValidationError:
        return None


def moved_to(parameters: object) -> int | None:
    """Id of the supergroup that a group became; None where Telegram named none."""
    try:
        return MigrateTo.model_validate(parameters).migrate_to_chat_id
    except ValidationError:
        return None


def message_ids_of(result: object) -> tuple[int, ...]:
    """Ids of the returned Message, MessageId, or array of them; none for `True` and all else.

    A 0 is the id of a message put off by Telegram, to which nothing can refer (Bot API,
    Message.message_id).
    """
    try:
        if isinstance(result, list):
            return tuple(SentMessage.model_validate(each).message_id for each in result)
        return (SentMessage.model_validate(result).message_id,)
    except ValidationError:
        return ()


def excerpt(answer: Answer) -> str:
    """The beginning of an unreadable answer, in one line."""
    return " ".join(answer.body[:EVIDENCE_CHARS_MAX].decode("utf-8", "replace").split())
