"""The peer: python-telegram-bot's `Bot.send_message` with the request it builds by itself.

`python -m tests.bench.peer_ptb_sender TOKEN API_URL MESSAGES CONCURRENCY`, in the peers'
environment. As many callers as our sender has calls under way, each with the next message as soon
as its last one was answered; nothing is stored, no limit is kept. Prints how long it took.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator

from telegram import Bot
from telegram.ext import ApplicationBuilder

FIRST_CHAT_ID = 5_000_000_000


async def _caller(bot: Bot, chats: Iterator[int]) -> None:
    for chat_id in chats:
        await bot.send_message(chat_id, f"Your ferry leaves at nine from pier {chat_id % 7}.")


async def _send(token: str, api_url: str, messages: int, concurrency: int) -> None:
    bot = ApplicationBuilder().token(token).base_url(f"{api_url}/bot").updater(None).build().bot
    chats = iter(range(FIRST_CHAT_ID, FIRST_CHAT_ID + messages))
    async with bot:
        began = time.perf_counter()
        await asyncio.gather(*(_caller(bot, chats) for _ in range(concurrency)))
        print(json.dumps({"messages": messages, "seconds": time.perf_counter() - began}))


if __name__ == "__main__":
    asyncio.run(_send(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
