"""What a handler may learn of messages by the ids that it was given before they were sent."""

import json
from functools import partial
from pathlib import Path

from telegram import InputMediaPhoto, Message, Update
from telegram.error import BadRequest
from telegram.ext import CallbackQueryHandler, MessageHandler, filters

from bot.turns.application import TurnApplication
from bot.turns.wishes import real_id, same_message
from storage import claims, message_ids
from storage.claims import AttemptEnd
from storage.database import Tx
from storage.lifecycle import AttemptStage, Priority
from tests.integration.turns.stand import BOT, Context, Handler, Stand, press, standing

ALBUM = [InputMediaPhoto("AgACAgIAAx1"), InputMediaPhoto("AgACAgIAAx2")]


def hearing(handler: Handler, on_press: Handler | None = None) -> partial[None]:
    return partial(_register, handler, on_press)


def _register(handler: Handler, on_press: Handler | None, application: TurnApplication) -> None:
    application.add_handler(MessageHandler(filters.TEXT, handler))
    if on_press is not None:
        application.add_handler(CallbackQueryHandler(on_press))


async def sends(stand: Stand, *ids: int) -> None:
    """A sender makes what waits, oldest first, and Telegram gives these ids."""
    left = list(ids)
    while left:
        left = await stand.db.write(partial(_send_one, ids=left))


def _send_one(tx: Tx, ids: list[int]) -> list[int]:
    [head, *_] = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=1)
    [claim] = claims.claim(tx, [head], 1)
    made, left = ids[: head.items], ids[head.items :]
    result = [{"message_id": each} for each in made]
    body = json.dumps({"ok": True, "result": result}).encode()
    claims.close_attempts(tx, [(claim, AttemptEnd(AttemptStage.ANSWERED, "sent"))])
    claims.mark_sent(tx, [claims.Accepted(claim, made[0], result=body)])
    return left


async def test_an_id_is_known_once_its_message_was_sent(tmp_path: Path) -> None:
    found: list[int | None] = []

    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.text == "say":
            said = await update.message.reply_text("hello")
            context.chat_data["said"] = said.message_id
        stored = context.chat_data["said"]
        found.extend([await real_id(stored), await real_id(update.message.message_id)])

    async with standing(tmp_path, hearing(handle)) as stand:
        await stand.hears("say")
        await stand.hears("ask")
        await sends(stand, 100)
        await stand.hears("ask")
    assert found == [None, 5, None, 5, 100, 5]


async def test_a_pressed_button_is_told_to_stand_under_the_message_that_was_stored(
    tmp_path: Path,
) -> None:
    found: list[bool] = []
    kept: list[Message] = []

    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        kept.append(await update.message.reply_text("one"))
        kept.append(await update.message.reply_text("two"))
        found.append(await same_message(kept[0], kept[0].message_id))
        found.append(await same_message(kept[0], kept[1]))

    async def on_press(update: Update, context: Context) -> None:
        assert update.callback_query is not None
        shown = update.callback_query.message
        assert shown is not None
        found.extend([await same_message(shown, each) for each in kept])
        found.append(await same_message(kept[1].message_id, shown.message_id))

    async with standing(tmp_path, hearing(handle, on_press)) as stand:
        await stand.hears("say")
        assert found == [True, False]
        await stand.handle(await stand.receive(callback_query=press("x", message_id=101)))
        assert found[2:] == [False, False, False], "nothing was sent yet"
        await sends(stand, 100, 101)
        await stand.handle(await stand.receive(callback_query=press("x", message_id=101)))
        assert found[5:] == [False, True, True]
        # Another chat counts its messages for itself.
        elsewhere = press("x", message_id=101, user=8)
        await stand.handle(await stand.receive(callback_query=elsewhere))
        assert found[8:] == [False, False, True], "of a bare id of Telegram's no chat is known"


async def test_the_items_of_an_album_that_is_sent_outside_of_any_turn_have_ids_of_their_own(
    tmp_path: Path,
) -> None:
    async def handle(update: Update, context: Context) -> None:
        """Nobody writes."""

    async with standing(tmp_path, hearing(handle)) as stand:
        album = await stand.application.bot.send_media_group(7, ALBUM)
        single = await stand.application.bot.send_message(7, "after")
        ids = [each.message_id for each in (*album, single)]
        assert len(set(ids)) == 3
        await sends(stand, 100, 101, 102)
        outside = stand.application.bot
        await outside.edit_message_caption(7, album[1].message_id, caption="new")
        edit = (await stand.shown())[-1]
        assert json.loads(edit["params"])["message_id"] == str(album[1].message_id)
        look = partial(message_ids.resolve, bot=BOT)
        found = [await stand.db.read(partial(look, placeholder=each)) for each in ids]
    assert [each and each.message_id for each in found] == [100, 101, 102]


async def test_a_read_about_a_message_names_it_as_telegram_does(tmp_path: Path) -> None:
    outcomes: list[object] = []

    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        if "said" not in context.chat_data:
            context.chat_data["said"] = (await update.message.reply_text("a game")).message_id
        try:
            scores = await context.bot.get_game_high_scores(7, 7, context.chat_data["said"])
            outcomes.append(scores)
        except BadRequest as error:
            outcomes.append(type(error))

    async with standing(tmp_path, hearing(handle)) as stand:
        stand.telegram.answers["getGameHighScores"] = (200, [])
        await stand.hears("play")
        assert stand.telegram.asked == [], "a message that is not sent can't be read about"
        await sends(stand, 100)
        await stand.hears("play")
        [(_, asked)] = stand.telegram.asked
    assert outcomes == [BadRequest, ()]
    assert asked["message_id"] == "100"
