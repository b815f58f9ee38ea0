"""Photos, an album, a document; and what it is given it sends back by its `file_id`."""

import io
import os
import struct
import zlib

from telegram import InputMediaPhoto, Update
from telegram.constants import ChatAction
from telegram.ext import Application, CommandHandler, ContextTypes, MessageHandler, filters

SIDE = 64
TABLE = b"river,width\nElbe,300\nOder,250\n"


def picture(red: int, green: int, blue: int) -> bytes:
    """A small PNG of one colour."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    row = b"\0" + bytes((red, green, blue)) * SIDE
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, body)
        for kind, body in (
            (b"IHDR", head),
            (b"IDAT", zlib.compress(row * SIDE)),
            (b"IEND", b""),
        )
    )


async def photo(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send a picture from memory."""
    assert update.message is not None
    await update.message.reply_chat_action(ChatAction.UPLOAD_PHOTO)
    sent = await update.message.reply_photo(
        picture(200, 0, 0), caption="<i>red</i>", parse_mode="HTML"
    )
    await sent.edit_caption("dark red")


async def album(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send two pictures as one."""
    assert update.message is not None
    await update.message.reply_media_group(
        [InputMediaPhoto(picture(0, 200, 0), caption="green"), InputMediaPhoto(picture(0, 0, 200))]
    )


async def table(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send a file that is made on the fly."""
    assert update.message is not None
    with io.BytesIO(TABLE) as made:
        await update.message.reply_document(made, filename="rivers.csv", caption="Here it is")


async def document(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send a document back."""
    assert update.message is not None
    assert update.message.document is not None
    given = update.message.document
    await update.message.reply_document(given.file_id, caption=f"{given.file_name} again")


async def seen(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Send a photo back, the biggest of its sizes."""
    assert update.message is not None
    await update.message.reply_photo(update.message.photo[-1].file_id, caption="Nice!")


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler("photo", photo))
    application.add_handler(CommandHandler("album", album))
    application.add_handler(CommandHandler("table", table))
    application.add_handler(MessageHandler(filters.Document.ALL, document))
    application.add_handler(MessageHandler(filters.PHOTO, seen))
    application.run_polling()


if __name__ == "__main__":
    main()
