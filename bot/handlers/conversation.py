"""Questions and answers about a crossing: commands, a menu that edits itself, and free questions.

The handlers may never call anything but Telegram's methods and `bot.turns.wishes`.
"""

from typing import Any

from telegram import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    ReplyParameters,
    Update,
)
from telegram.ext import (
    Application,
    CallbackContext,
    CallbackQueryHandler,
    CommandHandler,
    ExtBot,
    MessageHandler,
    filters,
)

from bot import texts
from bot.turns.wishes import Send, opt_in, opt_out

Context = CallbackContext[ExtBot[Send], dict[Any, Any], dict[Any, Any], dict[Any, Any]]

MENU = InlineKeyboardMarkup(
    [
        [InlineKeyboardButton(title, callback_data=f"menu:{topic}")]
        for topic, title in texts.TITLES.items()
    ]
)
# While an answer waits, a newer question makes it pointless: only the newer one is answered.
ANSWER = Send(supersede="answer")


def register(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    """Add the handlers to a bot."""
    application.add_handler(CommandHandler("start", start))
    application.add_handler(CommandHandler("help", tell_help))
    application.add_handler(CommandHandler("stop", stop))
    application.add_handler(CommandHandler("menu", show_menu))
    application.add_handler(CallbackQueryHandler(choose, pattern=r"^menu:\w+$"))
    application.add_handler(
        MessageHandler(filters.UpdateType.MESSAGE & filters.TEXT & ~filters.COMMAND, answer)
    )
    # In a group a command may be meant for another bot.
    strange = filters.UpdateType.MESSAGE & filters.COMMAND & filters.ChatType.PRIVATE
    application.add_handler(MessageHandler(strange, point_to_help))
    application.add_error_handler(apologise)


async def start(update: Update, context: Context) -> None:
    """Welcome a user; whoever starts wants to hear from us."""
    if update.message is not None:
        await opt_in(update.message.chat_id)
        await update.message.reply_text(texts.WELCOME)


async def tell_help(update: Update, context: Context) -> None:
    """Tell what the bot can do."""
    if update.message is not None:
        await update.message.reply_text(texts.HELP)


async def stop(update: Update, context: Context) -> None:
    """Send no more news to a user, and say so."""
    if update.message is not None:
        await opt_out(update.message.chat_id)
        await update.message.reply_text(texts.STOPPED)


async def show_menu(update: Update, context: Context) -> None:
    """Show the menu."""
    if update.message is not None:
        await update.message.reply_text(texts.MENU, reply_markup=MENU)


async def choose(update: Update, context: Context) -> None:
    """Let the menu show what was chosen, in its own message."""
    query = update.callback_query
    if query is None or query.data is None:
        return
    await query.answer()
    topic = query.data.removeprefix("menu:")
    await query.edit_message_text(texts.TOPICS.get(topic, texts.UNSURE), reply_markup=MENU)


async def answer(update: Update, context: Context) -> None:
    """Answer a question, quoting it."""
    message = update.message
    if message is None or message.text is None:
        return
    await context.bot.send_message(
        message.chat_id,
        texts.answer_to(message.text),
        message_thread_id=message.message_thread_id if message.is_topic_message else None,
        reply_parameters=ReplyParameters(message.message_id, allow_sending_without_reply=True),
        rate_limit_args=ANSWER,
    )


async def point_to_help(update: Update, context: Context) -> None:
    """Tell a user who sent an unknown command where the known ones are."""
    if update.message is not None:
        await update.message.reply_text(texts.UNKNOWN_COMMAND, do_quote=True)


async def apologise(update: object, context: Context) -> None:
    """Tell a user that something went wrong. What it was is for the log."""
    if not isinstance(update, Update):
        return
    if update.callback_query is not None:
        await update.callback_query.answer(texts.APOLOGY, show_alert=True)
    elif update.message is not None:
        await update.message.reply_text(texts.APOLOGY)
