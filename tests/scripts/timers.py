"""Timers that a command sets: one that rings once, one that ticks a few times."""

import os

from telegram import Update
from telegram.ext import Application, CommandHandler, ContextTypes

TICKS = 3
TICK_S = 0.3


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell how to use it."""
    assert update.message is not None
    await update.message.reply_text("/set SECONDS, /unset, /tick")


async def ring(context: ContextTypes.DEFAULT_TYPE) -> None:
    """Ring."""
    assert context.job is not None
    assert context.job.chat_id is not None
    await context.bot.send_message(context.job.chat_id, f"Beep! {context.job.data} s are over")


async def ticking(context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tick, and stop after a while."""
    assert context.job is not None
    assert context.job.chat_id is not None
    assert isinstance(context.job.data, list)
    context.job.data.append("tick")
    await context.bot.send_message(context.job.chat_id, " ".join(context.job.data))
    if len(context.job.data) == TICKS:
        context.job.schedule_removal()


def remove_jobs(name: str, context: ContextTypes.DEFAULT_TYPE) -> bool:
    """Remove the jobs of that name; whether there were any."""
    assert context.job_queue is not None
    current = context.job_queue.get_jobs_by_name(name)
    for job in current:
        job.schedule_removal()
    return bool(current)


async def set_timer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Set the timer, instead of one that is set already."""
    assert update.message is not None
    assert context.job_queue is not None
    chat_id = update.message.chat_id
    try:
        seconds = float((context.args or [])[0])
    except (IndexError, ValueError):
        await update.message.reply_text("Usage: /set SECONDS")
        return
    removed = remove_jobs(str(chat_id), context)
    context.job_queue.run_once(
        ring, seconds, chat_id=chat_id, name=str(chat_id), data=f"{seconds:g}"
    )
    await update.message.reply_text("Timer set" + (", the old one was removed" if removed else ""))


async def unset(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Take the timer back."""
    assert update.message is not None
    removed = remove_jobs(str(update.message.chat_id), context)
    await update.message.reply_text("Timer removed" if removed else "There is none")


async def tick(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tick from now on."""
    assert update.message is not None
    assert context.job_queue is not None
    context.job_queue.run_repeating(
        ticking, TICK_S, first=TICK_S, chat_id=update.message.chat_id, data=[]
    )
    await update.message.reply_text("Listen:")


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler(["start", "help"], start))
    application.add_handler(CommandHandler("set", set_timer))
    application.add_handler(CommandHandler("unset", unset))
    application.add_handler(CommandHandler("tick", tick))
    application.run_polling()


if __name__ == "__main__":
    main()
