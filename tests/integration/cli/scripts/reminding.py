"""A script of one file that is reminded later, told of refusals, and of how its calls ended."""

import os
from typing import Any

from telegram import Update
from telegram.ext import ApplicationBuilder, CommandHandler

Context = Any
NOWHERE = 4_711


async def ring(context: Context) -> None:
    """Say that the tea is ready."""
    await context.bot.send_message(context.job.chat_id, f"{context.job.data} tea is ready")


async def tea(update: Update, context: Context) -> None:
    """Ask to be reminded."""
    assert update.message is not None
    await context.later(1.0, ring, data="Green", chat_id=update.message.chat_id)
    await update.message.reply_text("In a moment")


async def lose(update: Update, context: Context) -> None:
    """Write to nobody."""
    await context.bot.send_message(NOWHERE, "Is anybody there?")


async def failed(update: object, context: Context) -> None:
    """Tell who caused it."""
    assert isinstance(update, Update)
    assert update.message is not None
    await update.message.reply_text(f"{type(context.error).__name__}: {context.error}")


def main() -> None:
    """Run until stopped."""
    application = ApplicationBuilder().token(os.environ["BOT_TOKEN"]).build()
    application.add_handler(CommandHandler("tea", tea))
    application.add_handler(CommandHandler("lose", lose))
    application.add_error_handler(failed)
    application.run_polling()


if __name__ == "__main__":
    main()
