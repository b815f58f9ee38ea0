"""The handlers of a world's bots: what somebody writes says what is to be done about it.

`17 reply` is answered once, `18 burst` three times, and so on; whatever is said in answer begins
with the number and is said nowhere else, so that it can be told what came of each update. The
handlers know nothing of the world they run in.
"""

import asyncio
from typing import Any, Final

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Message, Update
from telegram.ext import Application, CallbackQueryHandler, MessageHandler, filters

from bot.turns.wishes import Send

HANG_S: Final = 10_000.0
SLOW_S: Final = 12.0
Context = Any
_WISHES: Final = {
    "bulk": Send(urgency="bulk"),
    "resend": Send(on_uncertain="resend"),
    "drop": Send(on_uncertain="drop"),
    "hold": Send(on_uncertain="hold"),
    "stale": Send(expires_in=20.0),
    "newest": Send(supersede="newest"),
}


class Planned(Exception):
    """A handler's own failure."""


def register(application: "Application[Any, Any, Any, Any, Any, Any]") -> None:
    """Add the handlers to a bot."""
    application.add_handler(MessageHandler(filters.UpdateType.MESSAGE & filters.TEXT, hear))
    application.add_handler(CallbackQueryHandler(press))


async def hear(update: Update, context: Context) -> None:
    """Do what is asked."""
    message = update.message
    if message is None or message.text is None:
        return
    number, verb, *_ = message.text.split(" ")
    if verb in _WISHES:
        await _say(message, f"{number}.0 to {verb}", _WISHES[verb])
        return
    match verb:
        case "burst":
            for part in range(3):
                await message.reply_text(f"{number}.{part} in a burst")
        case "edit":
            said = await message.reply_text(f"{number}.0 to be edited")
            for part in range(1, 4):
                await said.edit_text(f"{number}.{part} edited")
        case "delete":
            said = await message.reply_text(f"{number}.0 to be deleted")
            await said.delete()
        case "menu":
            await _say(message, f"{number}.0 a menu", keyboard=_menu(number))
        case "typing":
            await message.reply_chat_action("typing")
            await message.reply_text(f"{number}.0 typed")
        case "read":
            chat = await context.bot.get_chat(message.chat_id)
            await message.reply_text(f"{number}.0 in {chat.type}")
        case _:
            await _misbehave(message, number, verb)


async def _misbehave(message: Message, number: str, verb: str) -> None:
    match verb:
        case "fail":
            await message.reply_text(f"{number}.0 never said")
            raise Planned
        case "hang":
            await asyncio.wait_for(asyncio.Event().wait(), HANG_S)
        case "slow":
            with_patience = asyncio.Event()
            asyncio.get_running_loop().call_later(SLOW_S, with_patience.set)
            await with_patience.wait()
            await message.reply_text(f"{number}.0 at last")
        case _:
            await message.reply_text(f"{number}.0 answered")


async def press(update: Update, context: Context) -> None:
    """Answer a button, and show it in its message."""
    query = update.callback_query
    if query is None or query.data is None:
        return
    await query.answer()
    await query.edit_message_text(f"{query.data}.1 chosen {query.id}")


async def _say(
    message: Message,
    text: str,
    wish: Send | None = None,
    keyboard: InlineKeyboardMarkup | None = None,
) -> None:
    bot = message.get_bot()
    await bot.send_message(
        message.chat_id,
        text,
        reply_markup=keyboard,
        rate_limit_args=wish,  # type: ignore[call-arg]  # ours is an ExtBot
    )


def _menu(number: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton("choose", callback_data=number)]])
