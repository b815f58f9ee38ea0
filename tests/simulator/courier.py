"""Whoever carries updates to the webhooks: one task for each bot, on any clock, by any post.

Thin: all decisions are deliverer.py's. `Poster` makes the HTTP request (http_post.py) or hands the
update to a bot in the same process (a simulated world).
"""

import asyncio
from types import TracebackType
from typing import Protocol, Self

from tests.simulator.acting import Ear
from tests.simulator.deliverer import Broken, Outcome
from tests.simulator.model import Telegram
from tests.simulator.posting import Post, repeated_post
from tests.simulator.state import Bot

# News after which a delivery may have become due.
_NEWS = frozenset({"update", "webhook", "delivery", "ended"})


class Poster(Protocol):
    """How a request gets to a webhook."""

    async def post(self, post: Post) -> Outcome:
        """Make the request; every trouble is an outcome."""


class Couriers:
    """Serves every bot's webhook while it is open as a context."""

    def __init__(self, telegram: Telegram, poster: Poster) -> None:
        self._telegram = telegram
        self._poster = poster
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._serve())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        running = [task for task in (self._watch, *self._tasks) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def repeat(self, bot: Bot, update_id: int) -> bool:
        """Post an update once more, beside its queue; False when it or the webhook is unknown."""
        post = repeated_post(self._telegram.state, bot, update_id)
        if post is None:
            return False
        self._start(bot, post)
        return True

    async def _serve(self) -> None:
        telegram = self._telegram
        with Ear(telegram, _NEWS) as ear:
            while True:
                for bot in list(telegram.state.bots.values()):
                    while (post := telegram.next_post(bot)) is not None:
                        self._start(bot, post)
                await ear.hear(telegram.clock, self._wake_ms())

    def _wake_ms(self) -> int | None:
        now_ms = self._telegram.clock.now_ms()
        bots = self._telegram.state.bots.values()
        wakes = [bot.deliverer.wake_ms(now_ms) for bot in bots]
        return min((wake for wake in wakes if wake is not None), default=None)

    def _start(self, bot: Bot, post: Post) -> None:
        task = asyncio.create_task(self._carry(bot, post))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, bot: Bot, post: Post) -> None:
        """One delivery; when the answer takes too long the connection is dropped."""
        posting = asyncio.ensure_future(self._poster.post(post))
        limit = asyncio.ensure_future(
            self._telegram.clock.sleep_ms(bot.deliverer.rules.answer_timeout_ms)
        )
        try:
            await asyncio.wait({posting, limit}, return_when=asyncio.FIRST_COMPLETED)
            outcome = posting.result() if posting.done() else Broken("Read timeout expired")
        finally:
            posting.cancel()
            limit.cancel()
        self._telegram.finish_post(bot, post, outcome)
