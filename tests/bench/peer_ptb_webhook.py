"""The peer: python-telegram-bot's own webhook server, as `Updater.start_webhook` runs it.

`python -m tests.bench.peer_ptb_webhook PORT SECRET TOKEN API_URL`, in the peers' environment. It
keeps updates in memory only. They are taken from its queue and thrown away: no handler of its own
slows it down.
"""

import asyncio
import sys

from telegram.ext import ApplicationBuilder


async def _serve(port: int, secret: str, token: str, api_url: str) -> None:
    application = ApplicationBuilder().token(token).base_url(f"{api_url}/bot").build()
    updater = application.updater
    assert updater is not None
    async with application:
        await updater.start_webhook(
            listen="127.0.0.1",
            port=port,
            url_path="telegram/main",
            webhook_url=f"http://127.0.0.1:{port}/telegram/main",
            secret_token=secret,
        )
        while True:
            await application.update_queue.get()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]))
