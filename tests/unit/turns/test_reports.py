"""A failure is told as the library's own exception, and an end in the words of a delivery."""

from dataclasses import replace

import pytest
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from bot.turns.reports import (
    Audience,
    DeliveryHooks,
    Outcome,
    concerns_error_handlers,
    concerns_hook,
    error_of,
    is_due,
    outcome_of,
)
from storage.lifecycle import BLOCKING, AttemptStage, OutboxId, OutboxState
from storage.outgoing import Tell
from storage.told import EndedCall

DEAD = EndedCall(
    id=OutboxId(77),
    state=OutboxState.DEAD,
    tell=Tell.FAILURES,
    method="sendMessage",
    lane="c:7",
    chat_id=7,
    key="turn:1:0:0",
    placeholder=-1,
    message_id=None,
    reason="target: 403 Forbidden: bot was blocked by the user",
    awaited=False,
    inbox_id=None,
    body=None,
    received_at_ms=None,
    stage=AttemptStage.ANSWERED,
    verdict="unreachable",
    code=403,
    description="Forbidden: bot was blocked by the user",
    wait_ms=None,
    moved_to=None,
)


async def told(call: EndedCall) -> TelegramError:
    error = await error_of(call)
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("code", "description", "kind"),
    [
        (403, "Forbidden: bot was blocked by the user", Forbidden),
        (400, "Bad Request: chat not found", BadRequest),
        (401, "Unauthorized", InvalidToken),
        (404, "Not Found", InvalidToken),
        (409, "Conflict: terminated by other getUpdates request", Conflict),
        (500, "Internal Server Error", NetworkError),
        (429, "Too Many Requests", NetworkError),
    ],
)
async def test_a_refusal_is_told_as_the_library_would_have_raised_it(
    code: int, description: str, kind: type[TelegramError]
) -> None:
    error = await told(replace(DEAD, code=code, description=description))
    assert type(error) is kind
    assert error.message == description.removeprefix("Bad Request: ").capitalize() or (
        error.message == description
    )


@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
async def test_a_flood_names_its_wait_and_a_group_that_moved_its_new_id() -> None:
    flood = await told(replace(DEAD, code=429, wait_ms=3_400))
    assert isinstance(flood, RetryAfter)
    assert "4 seconds" in flood.message
    moved = replace(DEAD, code=400, verdict="moved", moved_to=-1_001, description="upgraded")
    error = await told(moved)
    assert isinstance(error, ChatMigrated)
    assert error.new_chat_id == -1_001
    late = await told(replace(moved, verdict="refused"))
    assert type(late) is BadRequest, "that the chat moved later explains nothing"


@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (None, BadRequest),
        (AttemptStage.HANDED_BACK, BadRequest),
        (AttemptStage.UNCONNECTED, NetworkError),
        (AttemptStage.BODY_INCOMPLETE, NetworkError),
        (AttemptStage.ANSWERED, NetworkError),
        (AttemptStage.BODY_COMPLETE, TimedOut),
        (AttemptStage.ABANDONED, TimedOut),
    ],
)
async def test_without_an_answer_the_error_says_how_far_the_call_got(
    stage: AttemptStage | None, kind: type[TelegramError]
) -> None:
    call = replace(DEAD, stage=stage, code=None, description=None, reason="its message is dead")
    error = await told(call)
    assert type(error) is kind
    assert "its message is dead" in error.message


async def test_what_has_not_failed_has_no_error() -> None:
    assert await error_of(replace(DEAD, state=OutboxState.EXPIRED)) is None


def test_every_end_has_its_word() -> None:
    ends = {state: outcome_of(state) for state in OutboxState if state not in BLOCKING}
    assert set(ends.values()) == set(Outcome)
    assert ends[OutboxState.REVIEW] is ends[OutboxState.UNCERTAIN] is Outcome.UNCERTAIN


def test_error_handlers_hear_of_failures_that_no_handler_has_seen() -> None:
    assert concerns_error_handlers(DEAD)
    assert not concerns_error_handlers(replace(DEAD, awaited=True))
    assert not concerns_error_handlers(replace(DEAD, state=OutboxState.EXPIRED))


def test_what_lives_for_seconds_ends_unsaid_as_a_matter_of_course() -> None:
    expired = replace(DEAD, tell=Tell.ALL, state=OutboxState.EXPIRED)
    assert concerns_hook(expired)
    assert not concerns_hook(replace(expired, method="sendChatAction"))
    assert not concerns_hook(replace(expired, method="answerCallbackQuery"))
    assert concerns_hook(replace(DEAD, tell=Tell.ALL, method="sendChatAction"))
    assert not concerns_hook(DEAD)


def test_only_an_end_is_due() -> None:
    assert is_due(DEAD)
    assert not is_due(replace(DEAD, state=OutboxState.UNCERTAIN))
    assert is_due(replace(DEAD, tell=Tell.ALL, state=OutboxState.UNCERTAIN))
    assert not is_due(replace(DEAD, tell=Tell.ALL, state=OutboxState.QUEUED))


def test_nobody_is_told_who_has_not_asked() -> None:
    class Application(DeliveryHooks):
        error_handlers: dict[object, object] = {}  # noqa: RUF012  # as the library has it

    audience, application = Audience(), Application()
    assert audience.tell() is Tell.NOTHING
    audience.seat(application)
    assert audience.tell() is Tell.NOTHING
    application.error_handlers = {print: True}
    assert audience.tell() is Tell.FAILURES

    async def hook(delivery: object, context: object) -> None:
        """Listen."""

    application.on_delivery(hook)
    assert audience.tell() is Tell.ALL
    with pytest.raises(ValueError, match="a delivery hook already"):
        application.on_delivery(hook)
