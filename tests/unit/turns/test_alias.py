"""The token reaches Telegram and nothing else."""

import logging

import httpx
import pytest
from telegram import Bot
from telegram.error import InvalidToken
from telegram.request import HTTPXRequest

from bot.turns.alias import AliasTransport, alias_of
from storage.settings import Token

SECRET = "4242:AAsecretSECRETsecretSECRETsecretSECRET"


def a_bot(asked: list[str], status: int = 200) -> Bot:
    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        me = {"id": 4242, "is_bot": True, "first_name": "Ferry", "username": "ferry_bot"}
        body = {"ok": status == 200, "result": me, "description": "Unauthorized"}
        return httpx.Response(status, json=body)

    token = Token(SECRET)
    transport = AliasTransport(token, httpx.MockTransport(answer))
    request = HTTPXRequest(httpx_kwargs={"transport": transport})
    return Bot(alias_of(token), request=request, get_updates_request=request)


async def test_telegram_sees_the_token_and_the_log_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Named, since a role that another test has set up keeps the libraries quiet.
    for name in ("", "httpx", "httpcore", "telegram", "telegram.ext"):
        caplog.set_level(logging.DEBUG, logger=name)
    asked: list[str] = []
    bot = a_bot(asked)
    async with bot:
        assert asked == [f"/bot{SECRET}/getMe"]
        assert "secret" not in repr(bot)
    assert "TOKEN-OF-4242" in caplog.text
    assert "AAsecret" not in caplog.text


async def test_a_rejected_token_is_not_quoted() -> None:
    """The library's message quotes what it was given."""
    with pytest.raises(InvalidToken) as rejected:
        await a_bot([], status=401).initialize()
    assert "TOKEN-OF-4242" in str(rejected.value)
    assert "AAsecret" not in str(rejected.value)
