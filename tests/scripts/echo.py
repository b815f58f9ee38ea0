"""The first bot that everybody writes: it greets, and repeats what it is told."""

import logging
import os

from telegram import ForceReply, Update
from telegram.ext import Application, CommandHandler, ContextTypes, MessageHandler, filters

logging.basicConfig(format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Greet whoever comes."""
    user = update.effective_user
    assert user is not None
    assert update.message is not None
    await update.message.reply_html(
        rf"Hi {user.mention_html()}!", reply_markup=ForceReply(selective=True)
    )


async def help_command(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell what the bot does."""
    assert update.message is not None
    await update.message.reply_text("Say something.")


async def echo(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Repeat, as an answer to what was said."""
    assert update.message is not None
    assert update.message.text is not None
    await update.message.reply_text(update.message.text, do_quote=True)


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler("start", start))
    application.add_handler(CommandHandler("help", help_command))
    application.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, echo))
    application.run_polling(allowed_updates=Update.ALL_TYPES)


if __name__ == "__main__":
    main()
