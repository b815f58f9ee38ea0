"""A conversation inside another: a family is described member by member."""

import os
from pathlib import Path
from typing import Any

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    CommandHandler,
    ContextTypes,
    ConversationHandler,
    MessageHandler,
    PicklePersistence,
    filters,
)

CHOOSING, DESCRIBING, TYPING, SHOWING, STOPPING = range(5)
END = ConversationHandler.END


def keyboard(*labels: str) -> InlineKeyboardMarkup:
    """One row of buttons, each standing for its label."""
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(each, callback_data=each) for each in labels]]
    )


MAIN = keyboard("Add", "Show", "Done")
MEMBER = keyboard("Name", "Back")


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Begin, or return from below."""
    assert context.user_data is not None
    family: list[Any] = context.user_data.setdefault("family", [])
    text = f"Your family has {len(family)} members"
    if update.callback_query is not None:
        await update.callback_query.answer()
        await update.callback_query.edit_message_text(text, reply_markup=MAIN)
    else:
        assert update.message is not None
        await update.message.reply_text("Hi, I know families.")
        await update.message.reply_text(text, reply_markup=MAIN)
    return CHOOSING


async def add(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Go down: describe a member."""
    assert update.callback_query is not None
    await update.callback_query.answer()
    await update.callback_query.edit_message_text("Who is it?", reply_markup=MEMBER)
    return DESCRIBING


async def ask_name(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Ask for a name."""
    assert update.callback_query is not None
    await update.callback_query.answer()
    await update.callback_query.edit_message_text("Their name?")
    return TYPING


async def named(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Take the name, and offer the same again."""
    assert update.message is not None
    assert context.user_data is not None
    context.user_data["family"].append(update.message.text)
    await update.message.reply_text(f"Got {update.message.text}", reply_markup=MEMBER)
    return DESCRIBING


async def up(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Return to the upper conversation."""
    await start(update, context)
    return END


async def show(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """Tell of all members."""
    assert update.callback_query is not None
    assert context.user_data is not None
    members = ", ".join(context.user_data["family"]) or "nobody"
    await update.callback_query.answer()
    await update.callback_query.edit_message_text(
        f"They are {members}", reply_markup=keyboard("Up")
    )
    return SHOWING


async def done(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """End all."""
    assert update.callback_query is not None
    await update.callback_query.answer()
    await update.callback_query.edit_message_text("See you around!")
    return END


async def stop(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """End all from anywhere."""
    assert update.message is not None
    await update.message.reply_text("Okay, bye.")
    return END


async def stop_below(update: Update, context: ContextTypes.DEFAULT_TYPE) -> int:
    """End the upper conversation from the lower one."""
    await stop(update, context)
    return STOPPING


def describing() -> ConversationHandler[ContextTypes.DEFAULT_TYPE]:
    """The lower conversation."""
    return ConversationHandler(
        entry_points=[CallbackQueryHandler(add, "^Add$")],
        states={
            DESCRIBING: [CallbackQueryHandler(ask_name, "^Name$")],
            TYPING: [MessageHandler(filters.TEXT & ~filters.COMMAND, named)],
        },
        fallbacks=[CallbackQueryHandler(up, "^Back$"), CommandHandler("stop", stop_below)],
        map_to_parent={END: CHOOSING, STOPPING: END},
        name="describing",
        persistent=True,
    )


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .persistence(PicklePersistence(Path(os.environ["BOT_FOLDER"]) / "nested.pickle"))
        .build()
    )
    application.add_handler(
        ConversationHandler(
            entry_points=[CommandHandler("start", start)],
            states={
                CHOOSING: [
                    describing(),
                    CallbackQueryHandler(show, "^Show$"),
                    CallbackQueryHandler(done, "^Done$"),
                ],
                SHOWING: [CallbackQueryHandler(start, "^Up$")],
            },
            fallbacks=[CommandHandler("stop", stop)],
            name="family",
            persistent=True,
        )
    )
    application.run_polling(allowed_updates=Update.ALL_TYPES)


if __name__ == "__main__":
    main()
