"""Who the bot is, with and without Telegram."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from telegram.error import NetworkError

from bot.turns.identity import Identity
from storage import bots
from storage.database import opened
from storage.lifecycle import BotName
from storage.migrate import migrate
from tests.integration.turns.stand import until
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
ME = {
    "id": 4242,
    "is_bot": True,
    "first_name": "Ferry",
    "username": "ferry_bot",
    "can_join_groups": True,
}


def test_what_telegram_said_once_is_remembered() -> None:
    assert Identity(BOT, 4242, json.dumps(ME)).me == ME


@pytest.mark.parametrize("stored", [None, '{"id": 1}', json.dumps(ME | {"id": 1})])
def test_before_that_the_tokens_id_must_do(stored: str | None) -> None:
    assert Identity(BOT, 4242, stored).me == {
        "id": 4242,
        "is_bot": True,
        "first_name": "main",
        "username": "",
    }


async def test_telegram_is_asked_until_it_tells(tmp_path: Path) -> None:
    clock = VirtualClock()
    path = tmp_path / "ferryman.db"
    migrate(path, clock)
    answers: list[object] = [NetworkError("away"), ME | {"id": 1}, ME]

    async def ask() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with opened(path, clock) as db:
        await db.write(partial(bots.bind, name=BOT, bot_id=4242))
        identity = Identity(BOT, 4242)
        learning = asyncio.get_running_loop().create_task(identity.learn(db, clock, ask))
        for wait_ms in (1_000, 2_000):
            await until(lambda: clock.next_due_ms() is not None)
            assert clock.next_due_ms() == wait_ms
            clock.advance_ms(wait_ms)
        await learning
        assert identity.me == ME
        bound = await db.read(partial(bots.show, name=BOT))
        assert bound is not None
        assert bound.me is not None
        assert json.loads(bound.me) == ME
