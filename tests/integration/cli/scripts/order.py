"""A conversation with persistence, buttons (that hold objects, with BOT_OBJECTS) and timers."""

import os
from dataclasses import dataclass
from pathlib import Path

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.ext import (
    ApplicationBuilder,
    CallbackQueryHandler,
    CommandHandler,
    ContextTypes,
    ConversationHandler,
    MessageHandler,
    PicklePersistence,
    filters,
)

SIZE, NAME = range(2)
OBJECTS = bool(os.environ.get("BOT_OBJECTS"))


@dataclass
class Size:
    """What a button stands for."""

    litres: int


async def order(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Ask for a size."""
    assert update.message is not None
    sizes = [
        InlineKeyboardButton(f"{litres} l", callback_data=Size(litres) if OBJECTS else str(litres))
        for litres in (1, 2)
    ]
    await update.message.reply_text("How much?", reply_markup=InlineKeyboardMarkup([sizes]))
    return SIZE


async def sized(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Take the size, ask for a name."""
    query = update.callback_query
    assert query is not None
    assert query.data is not None
    assert context.user_data is not None
    await query.answer()
    chosen: object = query.data
    litres = chosen.litres if isinstance(chosen, Size) else int(query.data)
    context.user_data["litres"] = litres
    await query.edit_message_text(f"{litres} l. For whom?")
    return NAME


async def named(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Take the name, and remind later."""
    assert update.message is not None
    assert context.user_data is not None
    assert context.job_queue is not None
    litres = context.user_data["litres"]
    await update.message.reply_text(f"{litres} l for {update.message.text}")
    context.job_queue.run_once(ready, 0.2, chat_id=update.message.chat_id)
    return ConversationHandler.END


async def ready(context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell that it is ready."""
    assert context.job is not None
    assert context.job.chat_id is not None
    await context.bot.send_message(context.job.chat_id, "It is ready")


builder = (
    ApplicationBuilder()
    .token(os.environ["BOT_TOKEN"])
    .persistence(PicklePersistence(Path(os.environ["BOT_FOLDER"]) / "order.pickle"))
    .read_timeout(30)
)
if OBJECTS:
    builder.arbitrary_callback_data(64)
application = builder.build()
application.add_handler(
    ConversationHandler(
        entry_points=[CommandHandler("order", order)],
        states={
            SIZE: [CallbackQueryHandler(sized, Size if OBJECTS else None)],
            NAME: [MessageHandler(filters.TEXT & ~filters.COMMAND, named)],
        },
        fallbacks=[],
        name="order",
        persistent=True,
    )
)

if __name__ == "__main__":
    application.run_polling()
