"""What a bot counts of each user, of each chat, and of all together."""

import os
from pathlib import Path

from telegram import Update
from telegram.ext import Application, CommandHandler, ContextTypes, PicklePersistence, TypeHandler


async def count(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Count whatever comes, before it is handled."""
    for data in (context.user_data, context.chat_data, context.bot_data):
        assert data is not None
        data["updates"] = data.get("updates", 0) + 1
    assert update.effective_user is not None
    context.bot_data.setdefault("users", set()).add(update.effective_user.id)


async def stats(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell all counts."""
    assert update.message is not None
    assert context.user_data is not None
    assert context.chat_data is not None
    await update.message.reply_text(
        f"you {context.user_data['updates']}, here {context.chat_data['updates']}, "
        f"all {context.bot_data['updates']} of {len(context.bot_data['users'])} users"
    )


async def note(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Keep a note in a list, and show the list."""
    assert update.message is not None
    assert context.chat_data is not None
    notes: list[str] = context.chat_data.setdefault("notes", [])
    notes.append(" ".join(context.args or []))
    await update.message.reply_text("; ".join(notes))


async def forget(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Forget what is known of this chat."""
    assert update.message is not None
    assert context.chat_data is not None
    context.chat_data.clear()
    await update.message.reply_text("Forgotten")


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .persistence(PicklePersistence(Path(os.environ["BOT_FOLDER"]) / "counters.pickle"))
        .build()
    )
    application.add_handler(TypeHandler(Update, count), group=-1)
    application.add_handler(CommandHandler("stats", stats))
    application.add_handler(CommandHandler("note", note))
    application.add_handler(CommandHandler("forget", forget))
    application.run_polling()


if __name__ == "__main__":
    main()
