"""What a handler may wish, and what is refused."""

from typing import Any, cast

import pytest
from pydantic import ValidationError

from bot.turns.capture import PassThrough, is_read, refuse_unsupported
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


@pytest.mark.parametrize("method", ["getChat", "getFile", "getSomethingOfTomorrow"])
def test_reads_pass(method: str) -> None:
    assert is_read(method)
    refuse_unsupported(method)


@pytest.mark.parametrize(
    "method", ["sendPhoto", "sendPoll", "setWebhook", "logOut", "getUpdates", "banChatMember"]
)
def test_a_write_that_is_not_supported_is_refused_by_name(method: str) -> None:
    with pytest.raises(UnsupportedCall, match=method) as refused:
        refuse_unsupported(method)
    assert "sendMessage" in str(refused.value)


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
