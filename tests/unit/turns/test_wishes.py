"""What a handler may wish, and what is refused."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from pydantic import ValidationError

from bot.turns.capture import PassThrough, refuse_unsupported
from bot.turns.wishes import Send, opt_out, raw_update
from storage.errors import UnsupportedCall


@pytest.mark.parametrize(
    "wish",
    [
        {"urgency": "now"},
        {"expires_in": 0},
        {"expires_in": "30"},
        {"supersede": ""},
        {"on_uncertain": "retry"},
        {"priorty": "bulk"},
    ],
)
def test_a_wish_that_means_nothing_is_refused_where_it_is_made(wish: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Send(**wish)


def test_nothing_is_wished_by_default() -> None:
    assert Send() == Send(urgency="interactive", expires_in=None, supersede=None, on_uncertain=None)


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("setWebhook", "ferryman webhook set"),
        ("SETWEBHOOK", "ferryman webhook set"),
        ("deleteWebhook", "ferryman webhook delete"),
        ("getUpdates", "inbox"),
        ("replaceManagedBotToken", "token"),
    ],
)
def test_what_would_take_the_updates_away_is_refused_with_the_reason(
    method: str, reason: str
) -> None:
    with pytest.raises(UnsupportedCall, match=reason):
        refuse_unsupported(method)
    for passing in ("getChat", "sendPhoto", "logOut", "doSomethingOfTomorrow"):
        refuse_unsupported(passing)


def test_waiting_for_what_is_put_off_is_refused_and_so_is_a_moment_without_a_zone() -> None:
    with pytest.raises(ValidationError, match="nobody waits for that long"):
        Send(wait=True, not_before=60)
    with pytest.raises(ValidationError, match="timezone"):
        Send(not_before=datetime(2027, 1, 1))  # noqa: DTZ001  # that is what is refused


@pytest.mark.parametrize(
    ("given", "at_ms"),
    [
        (None, None),
        (60, 61_000),
        (timedelta(minutes=1), 61_000),
        (datetime(1970, 1, 1, 0, 2, tzinfo=UTC), 120_000),
        (datetime(1970, 1, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))), 120_000),
    ],
)
def test_a_call_is_put_off_to_a_moment_or_for_a_span(
    given: datetime | timedelta | float | None, at_ms: int | None
) -> None:
    assert Send(not_before=given).not_before_ms(1_000) == at_ms


def test_a_wish_goes_before_a_default_as_far_as_it_says_anything() -> None:
    default = Send(urgency="bulk", expires_in=60)
    assert Send().over(default) == default
    assert Send(expires_in=5).over(default) == Send(urgency="bulk", expires_in=5)
    assert Send(urgency="interactive").over(default) == Send(expires_in=60)


@pytest.mark.parametrize("given", [None, cast("Send", 3), Send(supersede="x")])
async def test_the_limiter_makes_the_call_whatever_is_wished(
    given: Send | None,
) -> None:
    """An old bot's limiter took a number of retries; that means nothing here and does no harm."""

    async def call(endpoint: str) -> bool:
        return endpoint == "sendMessage"

    limiter = PassThrough()
    assert await limiter.process_request(call, ("sendMessage",), {}, "sendMessage", {}, given)


async def test_a_wish_of_another_kind_is_refused() -> None:
    async def call() -> bool:
        return True

    wish = cast("Send", {"urgency": "bulk"})
    with pytest.raises(TypeError, match="dict"):
        await PassThrough().process_request(call, (), {}, "sendMessage", {}, wish)


async def test_outside_any_bot_there_is_nothing_to_write_to() -> None:
    with pytest.raises(RuntimeError, match="no turn here"):
        await opt_out(7)
    assert raw_update() is None
