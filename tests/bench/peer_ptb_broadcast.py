"""The peer: python-telegram-bot's `AIORateLimiter` under a broadcast, with replies in between.

`python -m tests.bench.peer_ptb_broadcast PLAN`, JSON, in the peers' environment. The limiter is as
it comes, with retries, since it would else drop what is refused. The broadcast is a plain loop, one
message after the other: many callers at once only draw more floods. At a steady pace somebody else
is answered through the same bot. It is given up after `seconds_max`, with what was sent by then.
"""

import asyncio
import itertools
import json
import sys
import time
from dataclasses import dataclass

from telegram import Bot
from telegram.error import TelegramError
from telegram.ext import AIORateLimiter, ApplicationBuilder

RETRIES = 5


@dataclass(frozen=True)
class Plan:
    """Whom to write to, and how fast to reply."""

    token: str
    api_url: str
    first_chat: int
    chats: int
    seconds_max: float
    first_reply_chat: int
    reply_chats: int
    reply_every_s: float


class Broadcast:
    """One broadcast, while others are answered."""

    def __init__(self, bot: Bot, plan: Plan) -> None:
        self._bot = bot
        self._plan = plan
        self._is_over = False
        self._sent = 0
        self._failed = 0
        self._replies_ms: list[float] = []

    async def run(self) -> dict[str, object]:
        """Send as much of it as there is time for; what came of it."""
        began = time.perf_counter()
        replies = asyncio.create_task(self._reply(began))
        try:
            async with asyncio.timeout(self._plan.seconds_max):
                await self._send()
        except TimeoutError:
            pass
        took_s = time.perf_counter() - began
        self._is_over = True
        await replies
        return {
            "seconds": took_s,
            "sent": self._sent,
            "failed": self._failed,
            "replies_ms": self._replies_ms,
        }

    async def _send(self) -> None:
        for chat_id in range(self._plan.first_chat, self._plan.first_chat + self._plan.chats):
            if await self._say(chat_id, f"Your ferry leaves at nine from pier {chat_id % 7}."):
                self._sent += 1
            else:
                self._failed += 1

    async def _reply(self, began: float) -> None:
        """Answer somebody at each tick, until the broadcast is over."""
        plan = self._plan
        under_way = set()
        for number in itertools.count():
            due = began + number * plan.reply_every_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if self._is_over:
                break
            chat_id = plan.first_reply_chat + number % plan.reply_chats
            under_way.add(asyncio.create_task(self._answer(chat_id)))
        await asyncio.gather(*under_way)

    async def _answer(self, chat_id: int) -> None:
        asked = time.perf_counter()
        await self._say(chat_id, "At nine, and again at noon.")
        self._replies_ms.append((time.perf_counter() - asked) * 1000)

    async def _say(self, chat_id: int, text: str) -> bool:
        try:
            await self._bot.send_message(chat_id, text)
        except TelegramError:
            return False
        return True


async def _main(plan: Plan) -> None:
    limiter = AIORateLimiter(max_retries=RETRIES)
    builder = ApplicationBuilder().token(plan.token).base_url(f"{plan.api_url}/bot")
    bot = builder.rate_limiter(limiter).updater(None).build().bot
    async with bot:
        print(json.dumps(await Broadcast(bot, plan).run()))


if __name__ == "__main__":
    asyncio.run(_main(Plan(**json.loads(sys.argv[1]))))
