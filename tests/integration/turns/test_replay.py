"""A dead update is handled again after a fix, and says nothing twice."""

from functools import partial
from pathlib import Path

from telegram import Update
from telegram.ext import CommandHandler

from bot.turns.application import TurnApplication, TurnContext
from storage import inbox
from storage.lifecycle import InboxId, InboxState
from tests.integration.storage.hand import sent, stamped
from tests.integration.turns.stand import RULES, Context, Stand, standing
from tests.integration.turns.test_worker import until_state, working


class Flawed:
    """A handler that fails after it has said something for good, until it is fixed."""

    def __init__(self) -> None:
        self.is_fixed = False

    def register(self, application: TurnApplication) -> None:
        application.add_handler(CommandHandler("go", self.go))
        application.add_error_handler(self.failed)

    async def go(self, update: Update, context: TurnContext) -> None:
        assert update.message is not None
        assert context.user_data is not None
        first = await update.message.reply_text("one")
        await context.flush()
        context.user_data["n"] = context.user_data.get("n", 0) + 1
        if not self.is_fixed:
            raise ValueError
        await first.edit_text("one, and it worked")
        await update.message.reply_text(f"two of {context.user_data['n']}")

    async def failed(self, _: object, context: Context) -> None:
        await context.bot.send_message(9, "sorry")


async def requeue(stand: Stand, update: InboxId) -> None:
    assert await stand.db.write(partial(inbox.requeue, update=update))


async def test_what_was_said_before_the_failure_is_said_once(tmp_path: Path) -> None:
    flawed = Flawed()
    async with standing(tmp_path, flawed.register) as stand:
        update = await stand.hears("/go")
        assert await stand.texts() == ["one", "sorry"]
        await stand.db.write(lambda tx: sent(tx, stamped(tx)))
        await requeue(stand, update)
        async with working(stand):
            await until_state(stand, update, InboxState.DEAD)
        said = [(row["key"], row["state"]) for row in stand.whole()]
        assert said == [
            (f"turn:{update}:0:0", "sent"),
            (f"turn:{update}:1:0", "queued"),
        ], "it failed again, and said the same again"

        flawed.is_fixed = True
        await requeue(stand, update)
        async with working(stand):
            await until_state(stand, update, InboxState.DONE)
        assert await stand.texts() == ["sorry", "one, and it worked", "two of 1"]
        first, _, edit, _ = stand.whole()
        assert f'"message_id":"{first["placeholder"]}"' in edit["params"]


async def test_what_is_said_after_a_late_fix_is_not_old(tmp_path: Path) -> None:
    """Its life counts from when a person let the update be handled again."""
    flawed = Flawed()
    async with standing(tmp_path, flawed.register) as stand:
        update = await stand.hears("/go")
        stand.clock.advance_ms(5 * RULES.reply_ttl_ms)
        flawed.is_fixed = True
        await requeue(stand, update)
        async with working(stand):
            await until_state(stand, update, InboxState.DONE)
        last = stand.whole()[-1]
        assert "two of 1" in last["params"]
        assert last["expires_at_ms"] == stand.clock.now_ms() + RULES.reply_ttl_ms


async def test_all_that_died_of_one_fault_is_handled_again_in_order(tmp_path: Path) -> None:
    flawed = Flawed()
    async with standing(tmp_path, flawed.register) as stand:
        updates = [await stand.hears("/go") for _ in range(3)]
        flawed.is_fixed = True
        for update in reversed(updates):
            await requeue(stand, update)
        async with working(stand):
            for update in updates:
                await until_state(stand, update, InboxState.DONE)
        twos = [text for text in await stand.texts() if text.startswith("two")]
        assert twos == ["two of 1", "two of 2", "two of 3"]
