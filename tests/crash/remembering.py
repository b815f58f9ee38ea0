"""A bot that remembers its messages by the ids it was given before any of them was sent.

"say" sends a message and an album and keeps their ids in the chat's memory. Further words do by
those ids whatever can be done to a message; "same" tells whether a pressed button stands under the
message that is remembered.
"""

from typing import Any

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, InputMediaPhoto, Message, Update
from telegram import ReplyParameters as Reply
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    ContextTypes,
    MessageHandler,
    filters,
)

from bot.turns.wishes import real_id, same_message

Context = ContextTypes.DEFAULT_TYPE
BUTTON = InlineKeyboardMarkup([[InlineKeyboardButton("same?", callback_data="same")]])
PICTURES = [InputMediaPhoto(f"https://pictures.example/{number}.jpg") for number in range(3)]


async def hear(update: Update, context: Context) -> None:
    """Do what the word says."""
    message, chat_data = update.message, context.chat_data
    assert message is not None
    assert chat_data is not None
    match message.text:
        case "say":
            await _say(message, chat_data)
        case "work":
            await _work(message.chat_id, chat_data, context)
        case "delete":
            await _delete(message.chat_id, chat_data, context)
        case _:
            ids = [await real_id(each) for each in (chat_data["said"], *chat_data["album"])]
            await message.reply_text(f"ids {ids}")


async def _say(message: Message, chat_data: dict[Any, Any]) -> None:
    said = await message.reply_text("said", reply_markup=BUTTON)
    await said.edit_text("said, edited", reply_markup=BUTTON)
    album = await message.reply_media_group(PICTURES)
    gone = await message.reply_text("to be deleted")
    chat_data["said"] = said.message_id
    chat_data["album"] = [each.message_id for each in album]
    chat_data["gone"] = gone.message_id
    await message.reply_text(f"same: {await same_message(said, chat_data['said'])}")


async def _work(chat_id: int, chat_data: dict[Any, Any], context: Context) -> None:
    bot, said, album = context.bot, chat_data["said"], chat_data["album"]
    await bot.edit_message_text("said, edited again", chat_id, said, reply_markup=BUTTON)
    await bot.send_message(chat_id, "a reply", reply_parameters=Reply(said))
    await bot.pin_chat_message(chat_id, said)
    await bot.set_message_reaction(chat_id, said, "👍")
    forwarded = await bot.forward_message(chat_id, chat_id, said)
    copied = await bot.copy_message(chat_id, chat_id, said)
    await bot.edit_message_caption(chat_id, album[1], caption="the second picture")
    copies = await bot.copy_messages(chat_id, chat_id, [said, album[1]])
    chat_data["copies"] = [forwarded.message_id, copied.message_id, copies[1].message_id]


async def _delete(chat_id: int, chat_data: dict[Any, Any], context: Context) -> None:
    bot = context.bot
    await bot.delete_message(chat_id, chat_data["gone"])
    await bot.delete_messages(chat_id, [chat_data["album"][0], chat_data["album"][2]])
    await bot.edit_message_text("the copy, edited", chat_id, chat_data["copies"][1])
    await bot.edit_message_caption(chat_id, chat_data["copies"][2], caption="the copied picture")


async def pressed(update: Update, context: Context) -> None:
    """Tell whether the button stands under the message that was remembered."""
    query, chat_data = update.callback_query, context.chat_data
    assert query is not None
    assert query.message is not None
    assert chat_data is not None
    same = await same_message(query.message, chat_data["said"])
    other = await same_message(query.message, chat_data["album"][1])
    await query.answer(f"{same}, {other}")


def register(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    """Let the bot remember."""
    application.add_handler(MessageHandler(filters.TEXT, hear))
    application.add_handler(CallbackQueryHandler(pressed))
