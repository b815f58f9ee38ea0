"""Handlers that fail, and an error handler that tells the user and a developer."""

import html
import os
import traceback

from telegram import Update
from telegram.constants import ParseMode
from telegram.error import BadRequest
from telegram.ext import Application, CommandHandler, ContextTypes


async def divide(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Divide two numbers, carelessly."""
    assert update.message is not None
    first, second = (int(each) for each in context.args or [])
    await update.message.reply_text(f"It is {first / second:g}")


async def broken(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send what Telegram can't read."""
    assert update.message is not None
    await update.message.reply_text("<b>unclosed", parse_mode=ParseMode.HTML)


async def careful(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send it too, and see to it."""
    assert update.message is not None
    try:
        await update.message.reply_text("<b>unclosed", parse_mode=ParseMode.HTML)
    except BadRequest:
        await update.message.reply_text("unclosed, without its markup")


async def failed(update: object, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell what went wrong."""
    assert context.error is not None
    where = traceback.extract_tb(context.error.__traceback__)
    functions = [line.name for line in where if line.filename.endswith("errors.py")]
    if isinstance(update, Update) and update.effective_message is not None:
        await update.effective_message.reply_text(
            f"Sorry: <code>{html.escape(repr(type(context.error)))}</code>\nin {functions[0]}",
            parse_mode=ParseMode.HTML,
        )


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler("divide", divide))
    application.add_handler(CommandHandler("broken", broken))
    application.add_handler(CommandHandler("careful", careful))
    application.add_error_handler(failed)
    application.run_polling()


if __name__ == "__main__":
    main()
