"""The first bot that everybody writes: it repeats what it is told."""

import os
import sys

from telegram import Update
from telegram.ext import Application, CommandHandler, ContextTypes, MessageHandler, filters


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Greet."""
    assert update.message is not None
    await update.message.reply_text(f"Hello from {' '.join(sys.argv[1:]) or 'nobody'}")


async def echo(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Repeat."""
    assert update.message is not None
    assert update.message.text is not None
    await update.message.reply_text(update.message.text)


def main() -> None:
    """Run the bot."""
    application = Application.builder().token(os.environ["BOT_TOKEN"]).build()
    application.add_handler(CommandHandler("start", start))
    application.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, echo))
    try:
        application.run_polling(allowed_updates=Update.ALL_TYPES)
    finally:
        print("the script went on")


if __name__ == "__main__":
    main()
