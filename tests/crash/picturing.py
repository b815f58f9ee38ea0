"""A bot that answers every word with a picture of its own, made from the word."""

from typing import Any

from telegram import InputMediaPhoto, Update
from telegram.ext import Application, ContextTypes, MessageHandler, filters


def picture_of(word: str) -> bytes:
    """The picture of a word."""
    return f"picture of {word} ".encode() * 20_000


async def hear(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send the word's picture, then an album with it."""
    message = update.message
    assert message is not None
    assert message.text is not None
    picture = picture_of(message.text)
    await message.reply_photo(picture, caption=message.text)
    await message.reply_media_group([InputMediaPhoto(picture), InputMediaPhoto(picture + b"!")])


def register(application: Application[Any, Any, Any, Any, Any, Any]) -> None:
    """Let the bot send pictures."""
    application.add_handler(MessageHandler(filters.TEXT, hear))
