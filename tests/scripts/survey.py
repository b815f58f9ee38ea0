"""A conversation that is remembered over restarts: it collects facts about a person."""

import os
from pathlib import Path
from typing import Any

from telegram import ReplyKeyboardMarkup, ReplyKeyboardRemove, Update
from telegram.ext import (
    Application,
    CommandHandler,
    ContextTypes,
    ConversationHandler,
    MessageHandler,
    PicklePersistence,
    filters,
)

CHOOSING, ANSWERING = range(2)
KEYBOARD = ReplyKeyboardMarkup([["Age", "Colour"], ["Done"]], one_time_keyboard=True)


def facts(user_data: dict[Any, Any]) -> str:
    """Write down what is known, a line for each fact."""
    return "\n".join(f"{name} - {told}" for name, told in user_data.items()) or "nothing yet"


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Begin, or go on."""
    assert update.message is not None
    assert context.user_data is not None
    known = ", ".join(context.user_data) or "nothing"
    await update.message.reply_text(f"I know {known} of you.", reply_markup=KEYBOARD)
    return CHOOSING


async def choose(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Ask for the fact that was chosen."""
    assert update.message is not None
    assert update.message.text is not None
    assert context.user_data is not None
    name = update.message.text.lower()
    context.user_data["choice"] = name
    await update.message.reply_text(f"Your {name}?")
    return ANSWERING


async def answer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Take the fact in."""
    assert update.message is not None
    assert context.user_data is not None
    name = context.user_data.pop("choice")
    context.user_data[name] = update.message.text
    await update.message.reply_text(
        f"Now I know:\n{facts(context.user_data)}", reply_markup=KEYBOARD
    )
    return CHOOSING


async def done(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """End the conversation; what was told stays."""
    assert update.message is not None
    assert context.user_data is not None
    context.user_data.pop("choice", None)
    await update.message.reply_text(
        f"I learned:\n{facts(context.user_data)}", reply_markup=ReplyKeyboardRemove()
    )
    return ConversationHandler.END


async def show(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell what is known, whatever the conversation is about."""
    assert update.message is not None
    assert context.user_data is not None
    await update.message.reply_text(f"So far:\n{facts(context.user_data)}")


def main() -> None:
    """Run the bot."""
    persistence = PicklePersistence(Path(os.environ["BOT_FOLDER"]) / "survey.pickle")
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .persistence(persistence)
        .build()
    )
    application.add_handler(
        ConversationHandler(
            entry_points=[CommandHandler("start", start)],
            states={
                CHOOSING: [MessageHandler(filters.Regex("^(Age|Colour)$"), choose)],
                ANSWERING: [
                    MessageHandler(
                        filters.TEXT & ~filters.COMMAND & ~filters.Regex("^Done$"), answer
                    )
                ],
            },
            fallbacks=[MessageHandler(filters.Regex("^Done$"), done)],
            name="survey",
            persistent=True,
        )
    )
    application.add_handler(CommandHandler("show", show))
    application.run_polling()


if __name__ == "__main__":
    main()
