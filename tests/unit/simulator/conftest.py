"""A small world: one bot, one person who has written to it, and a clock that stands still."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.simulator.clock import VirtualClock
from tests.simulator.limits import OFF
from tests.simulator.model import Telegram
from tests.simulator.state import Bot
from tests.simulator.wire import Reply

TOKEN = "123456:simulated-secret"


@dataclass(slots=True)
class Town:
    """A Telegram with Ada and a bot in it."""

    clock: VirtualClock
    telegram: Telegram
    bot: Bot
    ada: int

    def reply(self, method: str, **form: object) -> Reply:
        """Make a call as a client would write it."""
        written = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in form.items()
        }
        return self.telegram.call(TOKEN, method, written)

    def call(self, method: str, **form: object) -> Any:  # noqa: ANN401  # as many shapes as methods
        """Make a call that must be answered `ok`; its result."""
        told = json.loads(self.reply(method, **form).body)
        assert told["ok"], told
        return told["result"]

    def refusal(self, method: str, **form: object) -> str:
        """Make a call that must be refused; code and description."""
        told = json.loads(self.reply(method, **form).body)
        assert not told["ok"], told
        return f"{told['error_code']} {told['description']}"

    def send(self, text: str = "hello") -> int:
        """Let the bot write to Ada; the message's id."""
        return int(self.call("sendMessage", chat_id=self.ada, text=text)["message_id"])


@pytest.fixture
def town() -> Town:
    clock = VirtualClock()
    telegram = Telegram(clock, limits=OFF)
    bot = telegram.bot(TOKEN, username="ferry_bot")
    ada = telegram.people.add_user("Ada", username="ada")
    telegram.people.says(ada.id, "/start", bot_id=bot.id)
    return Town(clock, telegram, bot, ada.id)
