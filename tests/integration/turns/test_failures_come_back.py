"""How calls ended is told to the bot's own code, once, in turns of their own."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.error import BadRequest, Forbidden, NetworkError
from telegram.ext import CommandHandler

from bot.turns.application import TurnApplication
from bot.turns.reports import Delivery, Outcome
from storage import claims, inbox, review, told
from storage.claims import AttemptEnd
from storage.database import Tx, connect
from storage.lifecycle import AttemptStage, OutboxId, OutboxState
from tests.integration.storage.hand import doubted, sent, stamped
from tests.integration.turns.stand import BOT, Context, Stand, standing, until
from tests.integration.turns.test_worker import working

BLOCKED = "Forbidden: bot was blocked by the user"


def refused(tx: Tx, *, code: int = 403, description: str = BLOCKED) -> None:
    """The first call that waits is refused for good."""
    claim = stamped(tx)
    end = AttemptEnd(
        AttemptStage.ANSWERED, "refused", status=code, code=code, description=description
    )
    claims.close_attempts(tx, [(claim, end)])
    claims.end(tx, claim, OutboxState.DEAD, reason=f"{code} {description}")


class Listener:
    """Says what it is told to, and notes what becomes of it."""

    def __init__(self, *, hook: bool = False, says: str = "sorry") -> None:
        self.errors: list[tuple[object, Any]] = []
        self.deliveries: list[Delivery] = []
        self._wants_hook = hook
        self._says = says

    def register(self, application: TurnApplication) -> None:
        application.add_handler(CommandHandler("go", self.go))
        application.add_error_handler(self.failed)
        if self._wants_hook:
            application.on_delivery(self.ended)

    async def go(self, _: Update, context: Context) -> None:
        context.user_data["n"] = context.user_data.get("n", 0) + 1
        await context.bot.send_message(8, "hello")

    async def failed(self, update: object, context: Context) -> None:
        self.errors.append((update, context.error))
        if context.user_data is not None:
            context.user_data["failed"] = context.user_data.get("failed", 0) + 1
        if self._says:
            await context.bot.send_message(9, f"{self._says} {type(context.error).__name__}")

    async def ended(self, delivery: Delivery, context: Context) -> None:
        self.deliveries.append(delivery)
        await context.bot.send_message(9, f"it was {delivery.outcome}")


async def until_told(stand: Stand) -> None:
    """Let others run until nothing is left to tell."""
    async with asyncio.timeout(10):
        while await stand.db.read(partial(told.due, bot=BOT, limit=9)):
            """Look again: reading takes its time."""


async def test_a_refusal_reaches_the_error_handlers_with_its_update(tmp_path: Path) -> None:
    listener = Listener()
    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        async with working(stand):
            await until_told(stand)
        ((update, error),) = listener.errors
        assert isinstance(update, Update)
        assert update.message is not None
        assert update.message.text == "/go"
        assert isinstance(error, Forbidden)
        assert error.message == BLOCKED
        assert await stand.texts() == ["sorry Forbidden"]
        (row,) = await stand.shown()
        assert row["key"] == "told:1:0"
        found = await stand.db.fetch("turn_state.load", {"bot": BOT, "scope": "user:7"})
        assert b"failed" in bytes(found[0]["data"]), "its memories were laid out and kept"


async def test_what_is_said_about_a_failure_is_not_told_again(tmp_path: Path) -> None:
    """An error handler whose own words are refused must not go round for ever."""
    listener = Listener(hook=True)
    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        async with working(stand):
            await until_told(stand)
            await stand.db.write(refused)
            await stand.db.write(sent_first)
            await until_told(stand)
        assert len(listener.errors) == 1
        assert len(listener.deliveries) == 1


def sent_first(tx: Tx) -> None:
    sent(tx, stamped(tx))


async def test_who_was_told_is_not_told_by_the_next_worker(tmp_path: Path) -> None:
    listener = Listener()
    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        for _ in range(2):
            stand.clock.advance_ms(1_000)
            async with working(stand):
                await until_told(stand)
        assert len(listener.errors) == 1


async def test_what_was_told_before_a_crash_is_told_again_and_said_once(tmp_path: Path) -> None:
    """The transaction in which it was told is lost; the words have the same key."""
    listener = Listener()
    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        async with working(stand):
            await until_told(stand)
        tell_again(stand)
        stand.clock.advance_ms(1_000)
        async with working(stand):
            await until_told(stand)
        assert len(listener.errors) == 2
        assert await stand.texts() == ["sorry Forbidden"]


def tell_again(stand: Stand) -> None:
    """As it stands on disk while the end is not told yet."""
    connection = connect(stand.db.path)
    try:
        connection.execute("update outbox set tell = 'failures' where id = 1", {})
    finally:
        connection.close()


async def test_a_doubt_and_then_the_failure_are_told_even_in_the_same_words(
    tmp_path: Path,
) -> None:
    async def tell(_: object, context: Context) -> None:
        await context.bot.send_message(9, "look at it")

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("go", Listener().go))
        application.on_delivery(tell)
        application.add_error_handler(tell)

    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        await stand.db.write(lambda tx: doubted(tx, stamped(tx)))
        async with working(stand):
            await until_told(stand)
        row = OutboxId(1)
        await stand.db.write(lambda tx: review.resolve(tx, row, review.Decision.DROP, by="Ann"))
        stand.clock.advance_ms(1_000)
        async with working(stand):
            await until_told(stand)
        assert await stand.texts() == ["look at it", "look at it"]


@pytest.mark.parametrize(
    ("end", "outcome", "message_id"),
    [
        (sent_first, Outcome.SENT, 100),
        (refused, Outcome.FAILED, None),
        (lambda tx: doubted(tx, stamped(tx)), Outcome.UNCERTAIN, None),
    ],
)
async def test_a_delivery_hook_is_told_of_every_end(
    tmp_path: Path, end: Callable[[Tx], None], outcome: Outcome, message_id: int | None
) -> None:
    listener = Listener(hook=True, says="")
    async with standing(tmp_path, listener.register) as stand:
        update = await stand.hears("/go")
        (row,) = await stand.shown()
        await stand.db.write(end)
        async with working(stand):
            await until_told(stand)
        (delivery,) = listener.deliveries
        assert (delivery.outcome, delivery.method, delivery.chat_id) == (outcome, "sendMessage", 8)
        assert (delivery.placeholder, delivery.key) == (row["placeholder"], f"turn:{update}:0:0")
        assert delivery.message_id == message_id
        assert isinstance(delivery.error, Forbidden) is (outcome is Outcome.FAILED)
        assert delivery.update is not None
        assert (await stand.texts())[-1] == f"it was {outcome}"


async def test_a_hook_that_fails_is_not_asked_again_and_the_error_handlers_are_heard(
    tmp_path: Path,
) -> None:
    listener = Listener()
    asked: list[Delivery] = []

    async def hook(delivery: Delivery, context: Context) -> None:
        asked.append(delivery)
        await context.bot.send_message(9, "from the hook")
        raise ValueError

    def register(application: TurnApplication) -> None:
        listener.register(application)
        application.on_delivery(hook)

    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        async with working(stand):
            await until_told(stand)
        assert len(asked) == 1
        assert await stand.texts() == ["sorry Forbidden"]


async def test_a_failure_outside_any_turn_is_told_with_the_memories_of_its_chat(
    tmp_path: Path,
) -> None:
    kept: list[Any] = []

    async def hook(delivery: Delivery, context: Context) -> None:
        kept.append((delivery.update, dict(context.user_data)))

    def register(application: TurnApplication) -> None:
        Listener().register(application)
        application.on_delivery(hook)

    async with standing(tmp_path, register) as stand:
        await stand.hears("/go", user=8)
        await stand.db.write(sent_first)
        await stand.application.bot.send_message(8, "by itself")
        await stand.db.write(partial(refused, code=400, description="Bad Request: chat not found"))
        async with working(stand):
            await until_told(stand)
        assert max(kept, key=lambda each: each[0] is None) == (None, {"n": 1})


async def test_an_update_that_is_forgotten_is_told_as_none(tmp_path: Path) -> None:
    listener = Listener()
    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        await stand.db.write(partial(inbox.forget, before_ms=1 << 50, limit=9))
        async with working(stand):
            await until_told(stand)
        ((update, error),) = listener.errors
        assert update is None
        assert isinstance(error, Forbidden)


async def test_without_anybody_to_tell_nothing_is_kept_to_be_told(tmp_path: Path) -> None:
    async def go(update: Update, context: Context) -> None:
        await context.bot.send_message(8, "hello")

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("go", go))

    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        (row,) = stand.whole()
        assert row["tell"] == ""


async def test_an_end_that_nobody_wants_any_more_is_settled(tmp_path: Path) -> None:
    """The release that wanted to hear of it is gone."""
    listener = Listener()
    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(refused)
        stand.application.remove_error_handler(listener.failed)
        async with working(stand):
            await until_told(stand)
        assert listener.errors == []


async def test_many_ends_are_told_without_holding_up_the_updates(tmp_path: Path) -> None:
    listener = Listener(says="")

    async def many(update: Update, context: Context) -> None:
        for _ in range(150):
            await context.bot.send_message(8, "hello")

    def register(application: TurnApplication) -> None:
        listener.register(application)
        application.add_handler(CommandHandler("many", many))

    async with standing(tmp_path, register) as stand:
        await stand.hears("/many")
        for _ in range(150):
            await stand.db.write(refused)
        last = await stand.says("/go", user=12)
        async with working(stand):
            await until(lambda: any(row["inbox_id"] == last for row in stand.whole()))
            async with asyncio.timeout(30):
                while len(listener.errors) < 150:
                    stand.clock.advance_ms(100)
                    await asyncio.sleep(0)
        assert len(listener.errors) == 150


async def test_what_failed_for_want_of_telegram_is_a_network_error(tmp_path: Path) -> None:
    listener = Listener()

    def spent(tx: Tx) -> None:
        claim = stamped(tx)
        end = AttemptEnd(AttemptStage.UNCONNECTED, "transient")
        claims.close_attempts(tx, [(claim, end)])
        claims.end(tx, claim, OutboxState.DEAD, reason="its attempts are spent")

    async with standing(tmp_path, listener.register) as stand:
        await stand.hears("/go")
        await stand.db.write(spent)
        async with working(stand):
            await until_told(stand)
        ((_, error),) = listener.errors
        assert type(error) is NetworkError
        assert not isinstance(error, BadRequest)
