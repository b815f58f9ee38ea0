"""The peer: aiogram's own webhook server, `SimpleRequestHandler` on aiohttp.

`python -m tests.bench.peer_aiogram PORT SECRET TOKEN API_URL`, in the peers' environment. As it
comes: it answers first and handles the update in a task of the same process, from memory only. Its
handlers do nothing, and no access log is written.
"""

import sys

from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import CallbackQuery, Message
from aiogram.webhook.aiohttp_server import SimpleRequestHandler
from aiohttp import web


async def _nothing(update: Message | CallbackQuery) -> None:
    return None


def main() -> None:
    """Serve until stopped."""
    _, port, secret, token, api_url = sys.argv
    session = AiohttpSession(api=TelegramAPIServer.from_base(api_url))
    dispatcher = Dispatcher()
    dispatcher.message.register(_nothing)
    dispatcher.callback_query.register(_nothing)
    app = web.Application()
    handler = SimpleRequestHandler(dispatcher, Bot(token, session=session), secret_token=secret)
    handler.register(app, path="/telegram/main")
    web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=None)


if __name__ == "__main__":
    main()
