"""A bot that asks everybody, repeats who said what, and closes the poll when it is told to."""

import os

from telegram import Update
from telegram.ext import Application, CommandHandler, ContextTypes, PollAnswerHandler

QUESTIONS = ["Good", "Great", "Fantastic"]


async def poll(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send a poll, and remember it by its own id."""
    assert update.effective_chat is not None
    message = await context.bot.send_poll(
        update.effective_chat.id,
        "How are you?",
        QUESTIONS,
        is_anonymous=False,
        allows_multiple_answers=True,
    )
    assert message.poll is not None
    context.bot_data[message.poll.id] = {
        "questions": QUESTIONS,
        "message_id": message.message_id,
        "chat_id": update.effective_chat.id,
        "answers": 0,
    }


async def receive_answer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell what was chosen."""
    answer = update.poll_answer
    assert answer is not None
    assert answer.user is not None
    try:
        asked = context.bot_data[answer.poll_id]
    except KeyError:
        # An old poll, that is not ours to count any more.
        return
    chosen = " and ".join(asked["questions"][number] for number in answer.option_ids)
    await context.bot.send_message(
        asked["chat_id"], f"{answer.user.mention_html()} feels {chosen}!", parse_mode="HTML"
    )
    asked["answers"] += 1


async def count(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell how many answers the polls of this chat had."""
    assert update.message is not None
    chat_id = update.message.chat_id
    polls = [each for each in context.bot_data.values() if each["chat_id"] == chat_id]
    answers = sum(each["answers"] for each in polls)
    await update.message.reply_text(f"{len(polls)} polls, {answers} answers")


async def close(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Close the newest poll of this chat."""
    assert update.message is not None
    chat_id = update.message.chat_id
    polls = [each for each in context.bot_data.values() if each["chat_id"] == chat_id]
    await context.bot.stop_poll(chat_id, polls[-1]["message_id"])


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler("poll", poll))
    application.add_handler(CommandHandler("count", count))
    application.add_handler(CommandHandler("close", close))
    application.add_handler(PollAnswerHandler(receive_answer))
    application.run_polling(allowed_updates=Update.ALL_TYPES)


if __name__ == "__main__":
    main()
