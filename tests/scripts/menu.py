"""An inline keyboard whose presses edit the message that they belong to."""

import os

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.ext import Application, CallbackQueryHandler, CommandHandler, ContextTypes

DRINKS = ("Tea", "Coffee")


def choices() -> InlineKeyboardMarkup:
    """The first page."""
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(drink, callback_data=f"drink:{drink}") for drink in DRINKS]]
    )


def spoons(drink: str, count: int) -> InlineKeyboardMarkup:
    """The second page; all that is known is in the buttons."""
    return InlineKeyboardMarkup(
        [
            [
                InlineKeyboardButton("-", callback_data=f"spoons:{drink}:{max(0, count - 1)}"),
                InlineKeyboardButton("+", callback_data=f"spoons:{drink}:{count + 1}"),
            ],
            [
                InlineKeyboardButton("Back", callback_data="back"),
                InlineKeyboardButton("Order", callback_data=f"order:{drink}:{count}"),
            ],
        ]
    )


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Show the menu."""
    assert update.message is not None
    await update.message.reply_text("What would you like?", reply_markup=choices())


async def back(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Turn back to the first page."""
    query = update.callback_query
    assert query is not None
    await query.answer()
    await query.edit_message_text("What would you like?", reply_markup=choices())


async def choose(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Turn to the second page, or count there."""
    query = update.callback_query
    assert query is not None
    assert query.data is not None
    _, drink, *told = query.data.split(":")
    count = int(told[0]) if told else 0
    await query.answer()
    await query.edit_message_text(
        f"<b>{drink}</b>, {count} of sugar", parse_mode="HTML", reply_markup=spoons(drink, count)
    )


async def order(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Take the keyboard away, and tell how the order gets on in a message that is edited twice."""
    query = update.callback_query
    assert query is not None
    assert query.data is not None
    assert query.message is not None
    _, drink, count = query.data.split(":")
    await query.answer("Thank you!", show_alert=True)
    await query.edit_message_reply_markup(None)
    progress = await context.bot.send_message(query.message.chat.id, "Boiling water...")
    await progress.edit_text("Stirring...")
    await progress.edit_text(f"Your {drink.lower()} with {count} of sugar is ready")
    farewell = await progress.reply_text("Wiping the table...")
    await farewell.delete()


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler("start", start))
    application.add_handler(CallbackQueryHandler(back, pattern="^back$"))
    application.add_handler(CallbackQueryHandler(order, pattern="^order:"))
    application.add_handler(CallbackQueryHandler(choose))
    application.run_polling(allowed_updates=Update.ALL_TYPES)


if __name__ == "__main__":
    main()
