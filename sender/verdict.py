"""The verdicts: all that an answer, or the lack of one, can mean to us.

Pure data, a closed union. Which answer means what is said by the contract of the row's channel
(`sender/contracts.py`); what follows from a verdict is said by `sender/policy.py`. No text of any
other end is known here.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from sender.answer import Answer, Stage

WAIT_MS_MAX = 14 * 24 * 3600 * 1000
"""Telegram's own server clamps a flood wait at 14 days: a longer one is no wait that it ordered."""


class FloodHint(StrEnum):
    """What certainly has to wait: all of the chat, or only the edits in it."""

    CHAT = "chat"
    EDITS = "edits"


class WaitSource(StrEnum):
    """Where the wait was read."""

    PARAMETERS = "parameters"
    TEXT = "text"


class RefusedKind(StrEnum):
    """What stands against the call: our rights, what it points at, what it says, or its age."""

    PERMISSION = "permission"
    TARGET = "target"
    CONTENT = "content"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Sent:
    """Accepted. `note` tells when it was not plainly so, as when nothing was left to change.

    `message_ids` are the ids of all messages that were made, in order; a 0 among them is a message
    that Telegram has put off and that nothing can refer to. `message_id` is the first one that can
    be referred to. `has_result`: the answer's body holds what the call returned.
    """

    message_id: int | None = None
    note: str = ""
    message_ids: tuple[int, ...] = ()
    has_result: bool = True


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A wait was ordered, counted from its answer; nothing was executed."""

    wait_ms: int
    scope_hint: FloodHint
    source: WaitSource


@dataclass(frozen=True, slots=True)
class Throttled:
    """Refused for haste by a contract that names no wait: how long to pause is our own choice."""

    evidence: str


@dataclass(frozen=True, slots=True)
class ItemFate:
    """What is known of one item of a call that failed in part; `number` counts from 1."""

    number: int
    state: Literal["failed", "unknown"]
    reason: str


@dataclass(frozen=True, slots=True)
class Partial:
    """A call of several items failed, and some of them may have been delivered."""

    evidence: str
    wait_ms: int | None = None
    items: tuple[ItemFate, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """A flood without a usable wait. What header and text say may only lengthen our own."""

    evidence: str
    wait_at_least_ms: int = 0


@dataclass(frozen=True, slots=True)
class Transient:
    """Certainly not executed, and another try may succeed. `outage`: nothing even connected."""

    reason: str
    outage: bool


@dataclass(frozen=True, slots=True)
class Withheld:
    """Our own side held the call back at the last moment: nothing of it left."""

    reason: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    """It may have been executed, and nobody can tell."""

    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The group became the supergroup with this id; nothing was executed."""

    new_chat_id: int


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The chat is closed to this bot until it shows itself again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused for good, for this call alone."""

    kind: RefusedKind
    code: int
    description: str


@dataclass(frozen=True, slots=True)
class Outdated:
    """A file that the call named, instead of bringing it along, is not known any more.

    Nothing was executed; brought along, the same file may go.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Fatal:
    """This bot cannot call Telegram at all."""

    reason: str


Verdict = (
    Sent
    | Cooldown
    | Throttled
    | Partial
    | Review
    | Transient
    | Withheld
    | Uncertain
    | Moved
    | Unreachable
    | Refused
    | Outdated
    | Fatal
)


def name_of(verdict: Verdict) -> str:
    """The verdict in one word, as logs, attempts and pages call it."""
    return type(verdict).__name__.lower()


def unanswered(answer: Answer) -> Transient | Withheld | Uncertain | None:
    """What a call that was not answered means, by any contract; None for one that was."""
    match answer.stage:
        case Stage.UNCONNECTED:
            return Transient(reason=f"not connected: {answer.fault}", outage=True)
        case Stage.BODY_INCOMPLETE:
            return Transient(reason=f"request cut short: {answer.fault}", outage=False)
        case Stage.HANDED_BACK:
            return Withheld(reason="held back at the last moment")
        case Stage.BODY_COMPLETE:
            return Uncertain(reason=f"no answer: {answer.fault}")
        case Stage.ANSWERED:
            return None
