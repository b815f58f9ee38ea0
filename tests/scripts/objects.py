"""Buttons that stand for objects of any kind: arbitrary callback data."""

import os
from pathlib import Path
from typing import cast

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    CommandHandler,
    ContextTypes,
    InvalidCallbackData,
    PicklePersistence,
)

Pressed = tuple[int, list[int]]


def keyboard(numbers: list[int]) -> InlineKeyboardMarkup:
    """Five buttons, each with its number and all that were chosen so far."""
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(str(each), callback_data=(each, numbers)) for each in range(1, 6)]]
    )


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Offer the first choice."""
    assert update.message is not None
    await update.message.reply_text("Choose:", reply_markup=keyboard([]))


async def clear(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Forget what all buttons stand for."""
    assert update.effective_message is not None
    assert context.bot.callback_data_cache is not None
    context.bot.callback_data_cache.clear_callback_data()
    await update.effective_message.reply_text("All clear!")


async def choose(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Take the choice, and offer the next; what the old buttons stood for is dropped."""
    query = update.callback_query
    assert query is not None
    await query.answer()
    number, numbers = cast("Pressed", query.data)
    numbers.append(number)
    await query.edit_message_text(
        f"Chosen so far: {numbers}, {sum(numbers)} in all. Choose:", reply_markup=keyboard(numbers)
    )
    context.drop_callback_data(query)


async def invalid(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell that a button means nothing any more."""
    assert update.callback_query is not None
    await update.callback_query.answer()
    await update.callback_query.edit_message_text("That was too long ago. /start again")


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .persistence(PicklePersistence(Path(os.environ["BOT_FOLDER"]) / "objects.pickle"))
        .arbitrary_callback_data(256)
        .build()
    )
    application.add_handler(CommandHandler("start", start))
    application.add_handler(CommandHandler("clear", clear))
    application.add_handler(CallbackQueryHandler(invalid, pattern=InvalidCallbackData))
    application.add_handler(CallbackQueryHandler(choose))
    application.run_polling(allowed_updates=Update.ALL_TYPES)


if __name__ == "__main__":
    main()
