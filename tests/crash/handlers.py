"""A bot whose every effect carries its cause: for loads under which processes are killed.

Question 17, the fifth in its chat, is answered with "17/5", some with a second message, and some
first answers are edited. The count is kept in the chat's own memory, so that a turn that was taken
twice, or whose memory was lost, shows in what people read. A few words have it do what it seldom
does: wait for ever, speak before or after its turn, ask Telegram, write at length, be reminded, and
write to nobody, of which it is told.
"""

import asyncio
import re
from typing import Any

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Message, Update
from telegram.ext import Application, ContextTypes, TypeHandler

from bot.turns.running import TASKS_GRACE_S

HANG = "hang"
TURN_S = 0.1
# Longer than a turn waits for its tasks.
LATE_S = TASKS_GRACE_S + 0.3
NOBODY = 4_711
_QUESTION = re.compile(r"question (\d+)")
# More than the transport hands over at once: such a call can be cut in its middle.
_WAVES = "🌊" * 4_000
_BUTTONS = [[InlineKeyboardButton("🌊" * 30, callback_data=str(row))] for row in range(60)]


async def answer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Answer a question; tell of any other message that it came."""
    message = update.message
    if message is None:
        return
    if message.text == HANG:
        await asyncio.Event().wait()
    asked = _QUESTION.fullmatch(message.text or "")
    if asked is None:
        await _say(update.update_id, message, context)
        return
    # As if somebody else had to be asked: so that there is a turn to interrupt.
    await asyncio.sleep(TURN_S)
    number = int(asked[1])
    assert context.chat_data is not None, "a message has a chat"
    count = context.chat_data["count"] = context.chat_data.get("count", 0) + 1
    said = await message.reply_text(f"{number}/{count}")
    if number % 3 == 0:
        await message.reply_text(f"{number}/{count} and more")
    if number % 4 == 0:
        await said.edit_text(f"{number}/{count} edited")


async def _say(update_id: int, message: Message, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Say that an update came, in the way that its word asks for."""
    match message.text:
        case "late":
            # The task is the application's.
            _ = context.application.create_task(_later(update_id, message, context))
        case "who":
            chat = await context.bot.get_chat(message.chat_id)
            await message.reply_text(f"update {update_id} of {chat.first_name}")
        case "long":
            markup = InlineKeyboardMarkup(_BUTTONS)
            await message.reply_text(f"update {update_id} {_WAVES}", reply_markup=markup)
        case "flush":
            turns_own: Any = context
            await message.reply_text(f"update {update_id}, at once")
            await turns_own.flush()
            await message.reply_text(f"update {update_id}")
        case "remind":
            in_turns: Any = context
            data = message.chat_id, update_id
            await in_turns.later(0, remind, data=data, chat_id=message.chat_id)
        case "lose":
            await context.bot.send_message(NOBODY, f"update {update_id} to nobody")
        case _:
            await message.reply_text(f"update {update_id}")


async def _later(update_id: int, message: Message, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Speak and remember when the turn has ended."""
    await asyncio.sleep(LATE_S)
    assert context.chat_data is not None, "a message has a chat"
    context.chat_data["late"] = update_id
    await message.reply_text(f"update {update_id}, late")


async def remind(context: ContextTypes.DEFAULT_TYPE) -> None:
    """Say that the moment has come."""
    assert context.job is not None, "a reminder has a job"
    assert isinstance(context.job.data, tuple)
    chat_id, update_id = context.job.data
    await context.bot.send_message(chat_id, f"update {update_id}, reminded")


async def failed(update: object, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell who caused it that nobody was reached."""
    assert isinstance(update, Update)
    assert update.message is not None
    await update.message.reply_text(f"update {update.update_id}, {type(context.error).__name__}")


def register(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    """Let the bot answer."""
    application.add_handler(TypeHandler(Update, answer))
    application.add_error_handler(failed)
