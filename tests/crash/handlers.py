"""A bot whose every effect carries its cause: for loads under which processes are killed.

Question 17, the fifth in its chat, is answered with "17/5", some with a second message, and some
first answers are edited. The count is kept in the chat's own memory, so that a turn that was taken
twice, or whose memory was lost, shows in what people read. Who writes "hang" waits for ever.
"""

import asyncio
import re
from typing import Any

from telegram import Update
from telegram.ext import Application, ContextTypes, TypeHandler

HANG = "hang"
TURN_S = 0.1
_QUESTION = re.compile(r"question (\d+)")


async def answer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Answer a question; tell of any other message that it came."""
    message = update.message
    if message is None:
        return
    if message.text == HANG:
        await asyncio.Event().wait()
    asked = _QUESTION.fullmatch(message.text or "")
    if asked is None:
        await message.reply_text(f"update {update.update_id}")
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


def register(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    """Let the bot answer."""
    application.add_handler(TypeHandler(Update, answer))
