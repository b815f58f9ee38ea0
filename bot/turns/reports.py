"""Ends of calls, told to the bot's own code as it knows them: an exception, or a `Delivery`.

A call that failed is told to the error handlers as the exception that python-telegram-bot would
have raised, had the handler waited for the answer: the library itself makes it, from the answer.
Nothing here decides whether a call failed; that has long been settled.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, assert_never

from telegram import Update
from telegram.error import BadRequest, NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData

from bot.turns.refusals import body_of
from bot.turns.turn import Phase, turn_here
from storage.lifecycle import BLOCKING, AttemptStage, OutboxState
from storage.methods import METHODS, CallKind
from storage.outgoing import Tell
from storage.told import EndedCall

_MOVED: Final = "moved"


class Outcome(StrEnum):
    """How a call ended.

    sent        Telegram accepted it
    failed      refused for good, or its attempts are spent
    expired     its time was over before it could be sent
    cancelled   its reason went away, or a person stopped it
    superseded  a newer call took its place
    uncertain   it may have been carried out and nobody can tell: a person decides
    """

    SENT = "sent"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a call ended, as a delivery hook is told.

    `message_id` is Telegram's own, of the first message that the call made; `placeholder` the one
    that the handler was given. `key` names the cause. `error`: what would have been raised, for a
    call that failed. `update`: the one that caused it, if it is still known.
    """

    outcome: Outcome
    method: str
    chat_id: int | None
    message_id: int | None
    placeholder: int | None
    key: str
    error: TelegramError | None
    update: Update | None


Hook = Callable[[Delivery, Any], Coroutine[Any, Any, object]]
"""`async def hook(delivery, context)`."""


class DeliveryHooks:
    """Of which ends an application wants to be told."""

    delivery_hook: Hook | None = None

    def on_delivery(self, hook: Hook) -> Hook:
        """Have `hook(delivery, context)` told of the end of each call; usable as a decorator.

        It is told once. What it says goes out together with the note that it was told; what
        becomes of that it is not told. Raises ValueError when there is a hook already.
        """
        if self.delivery_hook is not None:
            raise ValueError("there is a delivery hook already")
        self.delivery_hook = hook
        return hook


class Audience:
    """Who wants to be told of the end of a call that is being made."""

    def __init__(self) -> None:
        """Nobody, until `seat` is told of the application."""
        self._application: Any = None

    def seat(self, application: DeliveryHooks) -> None:
        """Whose error handlers and delivery hook it is that are told."""
        self._application = application

    def tell(self) -> Tell:
        """Of which ends of a call that is made here and now the bot is told.

        Of none of what is said about a failure, or one that can't be said would go round for ever.
        """
        turn = turn_here()
        is_about_failure = turn is not None and turn.phase is Phase.ERROR_HANDLERS
        if self._application is None or is_about_failure:
            return Tell.NOTHING
        if self._application.delivery_hook is not None:
            return Tell.ALL
        return Tell.FAILURES if self._application.error_handlers else Tell.NOTHING


def is_due(call: EndedCall) -> bool:
    """Whether there is an end to tell of."""
    if call.tell is Tell.ALL:
        return call.state not in BLOCKING
    return call.tell is Tell.FAILURES and call.state is OutboxState.DEAD


def concerns_error_handlers(call: EndedCall) -> bool:
    """Whether this is a failure that no handler has seen: who waited for the answer has."""
    return call.state is OutboxState.DEAD and not call.awaited


def concerns_hook(call: EndedCall) -> bool:
    """Whether a delivery hook is told of this end.

    What lives for seconds, a chat action or an answer to a query, ends unsaid as a matter of
    course.
    """
    facts = METHODS.get(call.method)
    is_fleeting = facts is not None and facts.kind in {CallKind.ACTION, CallKind.ANSWER}
    return call.tell is Tell.ALL and not (is_fleeting and call.state is OutboxState.EXPIRED)


def outcome_of(state: OutboxState) -> Outcome:
    """How a call in this state ended, in the words of a `Delivery`."""
    match state:
        case OutboxState.SENT:
            return Outcome.SENT
        case OutboxState.DEAD:
            return Outcome.FAILED
        case OutboxState.EXPIRED:
            return Outcome.EXPIRED
        case OutboxState.CANCELLED:
            return Outcome.CANCELLED
        case OutboxState.SUPERSEDED:
            return Outcome.SUPERSEDED
        case OutboxState.UNCERTAIN | OutboxState.REVIEW:
            return Outcome.UNCERTAIN
        case OutboxState.QUEUED | OutboxState.CLAIMED:
            raise AssertionError("this call has not ended")
        case _:
            assert_never(state)


def delivery_of(call: EndedCall, error: TelegramError | None, update: Update | None) -> Delivery:
    """What a delivery hook is told of an end."""
    return Delivery(
        outcome=outcome_of(call.state),
        method=call.method,
        chat_id=call.chat_id,
        message_id=call.message_id,
        placeholder=call.placeholder,
        key=call.key,
        error=error,
        update=update,
    )


async def error_of(call: EndedCall) -> TelegramError | None:
    """The exception that the library would have raised, had the answer been waited for.

    None for a call that has not failed.
    """
    if call.state is not OutboxState.DEAD:
        return None
    why = call.description or call.reason or "it failed"
    if call.code is not None:
        moved_to = call.moved_to if call.verdict == _MOVED else None
        body = body_of(call.code, why, wait_ms=call.wait_ms, moved_to=moved_to)
        error = await _raised_by_library(call.code, body)
        if error is not None:
            return error
    match call.stage:
        case None | AttemptStage.CLAIMED | AttemptStage.HANDED_BACK:
            return BadRequest(f"it was not sent: {call.reason or why}")
        case AttemptStage.STAMPED | AttemptStage.BODY_COMPLETE | AttemptStage.ABANDONED:
            return TimedOut(f"nobody can tell whether it arrived: {why}")
        case AttemptStage.UNCONNECTED | AttemptStage.BODY_INCOMPLETE | AttemptStage.ANSWERED:
            return NetworkError(why)
        case _:
            assert_never(call.stage)


async def _raised_by_library(status: int, body: bytes) -> TelegramError | None:
    try:
        await _Answered(status, body).post("http://telegram/")
    except TelegramError as error:
        return error
    return None


class _Answered(BaseRequest):
    """The library's way to Telegram, on which one answer has come already."""

    def __init__(self, status: int, body: bytes) -> None:
        self._answer = status, body

    @property
    def read_timeout(self) -> float | None:
        return None

    async def initialize(self) -> None:
        """Nothing to prepare."""

    async def shutdown(self) -> None:
        """Nothing to give back."""

    async def do_request(  # type: ignore[override]  # time-outs mean nothing here
        self,
        url: str,  # noqa: ARG002  # the library's signature
        method: str,  # noqa: ARG002  # the same
        request_data: RequestData | None = None,  # noqa: ARG002  # the same
        **_: object,
    ) -> tuple[int, bytes]:
        return self._answer
