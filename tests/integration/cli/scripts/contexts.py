"""A bot with classes of its own: its context, what it remembers, its bot and its application."""

import asyncio
import os
from typing import Any

from telegram import Bot, Update
from telegram.ext import (
    Application,
    CallbackContext,
    CommandHandler,
    ContextTypes,
    Defaults,
    ExtBot,
)


class ChatData:
    """What is remembered of a chat."""

    def __init__(self) -> None:
        self.clicks = 0


class LoudBot(ExtBot[Any]):
    """A bot with a method of its own."""

    async def shout(self, chat_id: int, text: str) -> None:
        """Say it in capitals."""
        await self.send_message(chat_id, text.upper())


class OwnContext(CallbackContext[LoudBot, dict[Any, Any], ChatData, dict[Any, Any]]):
    """A context with a property and a name that others may want too."""

    later = "tomorrow"

    @property
    def clicks(self) -> int:
        """How often this chat has clicked."""
        assert self.chat_data is not None
        return self.chat_data.clicks


class OwnApplication(Application[Any, Any, Any, Any, Any, Any]):
    """An application that is given something."""

    def __init__(self, greeting: str, **parts: Any) -> None:  # noqa: ANN401  # as the library's page shows it
        super().__init__(**parts)
        self.greeting = greeting


async def click(update: Update, context: OwnContext) -> None:
    """Count and tell."""
    assert update.effective_chat is not None
    assert context.chat_data is not None
    assert isinstance(context.application, OwnApplication)
    context.chat_data.clicks += 1
    words = f"{context.application.greeting} {context.clicks}, {context.later}"
    await context.bot.shout(update.effective_chat.id, f"<b>{words}</b>")


async def stop(update: Update, context: OwnContext) -> None:
    """End the bot from within."""
    context.application.stop_running()


async def said(what: str) -> None:
    """Tell what the application does."""
    print(what, flush=True)


async def opened() -> asyncio.Event:
    """Something that belongs to the loop it was opened in."""
    return asyncio.Event()


def main() -> None:
    """Run the bot."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(opened())
    bot: Bot = LoudBot(
        os.environ["BOT_TOKEN"],
        base_url=f"{os.environ['BOT_API']}/bot",
        defaults=Defaults(parse_mode="HTML"),
    )
    application = (
        Application.builder()
        .application_class(OwnApplication, {"greeting": "click"})
        .bot(bot)
        .context_types(ContextTypes(context=OwnContext, chat_data=ChatData))
        .job_queue(None)
        .concurrent_updates(8)
        .post_init(lambda _: said("post_init"))
        .post_stop(lambda _: said("post_stop"))
        .post_shutdown(lambda _: said("post_shutdown"))
        .build()
    )
    application.add_handler(CommandHandler("click", click))
    application.add_handler(CommandHandler("stop", stop))
    application.run_polling(drop_pending_updates=True)
    print("the end")


main()
