"""The handlers that the worker runs while it is measured: an answer to everything.

`register` answers each message and each press of a button, as a bot does. A message whose text is
"pause" makes its handler block the worker's loop, which a good handler never does; "quiet" is its
twin that does not.
"""

import time
from typing import Any

from telegram import Update
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    ContextTypes,
    MessageHandler,
    filters,
)

PAUSE_TEXT = "pause"
QUIET_TEXT = "quiet"
PAUSE_S = 0.5
ANSWER = "At nine, and again at noon."


async def _answer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    message = update.effective_message
    assert message is not None
    await message.reply_text(ANSWER)


async def _press(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    assert update.callback_query is not None
    await update.callback_query.answer()


async def _pause(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    time.sleep(PAUSE_S)  # noqa: ASYNC251 - blocking the loop is what is measured


async def _quiet(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    return None


def register(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    """Give the application its handlers."""
    application.add_handler(MessageHandler(filters.Text([PAUSE_TEXT]), _pause))
    application.add_handler(MessageHandler(filters.Text([QUIET_TEXT]), _quiet))
    application.add_handler(MessageHandler(filters.TEXT, _answer))
    application.add_handler(CallbackQueryHandler(_press))
