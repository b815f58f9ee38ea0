"""A shop: invoices with and without shipping, the questions before the payment, and the thanks."""

import os

from telegram import LabeledPrice, ShippingOption, Update
from telegram.ext import (
    Application,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    PreCheckoutQueryHandler,
    ShippingQueryHandler,
    filters,
)

PAYLOAD = "a-book"
PROVIDER_TOKEN = os.environ.get("PAYMENT_PROVIDER_TOKEN", "284685063:TEST:made-up")


async def start(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell what can be bought."""
    assert update.message is not None
    await update.message.reply_text("/book to have one sent, /ebook to read at once")


async def book(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Ask for the price of what is to be shipped."""
    assert update.message is not None
    await context.bot.send_invoice(
        update.message.chat_id,
        "A book",
        "Sent to your door",
        PAYLOAD,
        "EUR",
        [LabeledPrice("the book", 1200), LabeledPrice("the wrapping", 50)],
        provider_token=PROVIDER_TOKEN,
        need_shipping_address=True,
        is_flexible=True,
    )


async def ebook(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Ask for Stars."""
    assert update.message is not None
    await update.message.reply_invoice(
        "An e-book", "To read at once", PAYLOAD, "XTR", [LabeledPrice("the e-book", 9)]
    )


async def shipping(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Tell what shipping costs; nothing is sent to where no post goes."""
    query = update.shipping_query
    assert query is not None
    if query.invoice_payload != PAYLOAD or query.shipping_address.country_code == "AQ":
        await query.answer(ok=False, error_message="No post goes there")
        return
    options = [
        ShippingOption("post", "By post", [LabeledPrice("by post", 300)]),
        ShippingOption(
            "raven", "By raven", [LabeledPrice("a raven", 250), LabeledPrice("seed", 5)]
        ),
    ]
    await query.answer(ok=True, shipping_options=options)


async def checkout(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Say whether the order still stands."""
    query = update.pre_checkout_query
    assert query is not None
    if query.invoice_payload == PAYLOAD:
        await query.answer(ok=True)
    else:
        await query.answer(ok=False, error_message="That is no longer sold")


async def paid(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Thank, and count what was spent."""
    assert update.message is not None
    assert update.message.successful_payment is not None
    assert context.user_data is not None
    payment = update.message.successful_payment
    spent = context.user_data.setdefault("spent", {})
    spent[payment.currency] = spent.get(payment.currency, 0) + payment.total_amount
    told = ", ".join(f"{amount} {currency}" for currency, amount in sorted(spent.items()))
    await update.message.reply_text(f"Thank you! So far: {told}")


def main() -> None:
    """Run the bot."""
    application = (
        Application.builder()
        .token(os.environ["BOT_TOKEN"])
        .base_url(os.environ["BOT_API"] + "/bot")
        .build()
    )
    application.add_handler(CommandHandler("start", start))
    application.add_handler(CommandHandler("book", book))
    application.add_handler(CommandHandler("ebook", ebook))
    application.add_handler(ShippingQueryHandler(shipping))
    application.add_handler(PreCheckoutQueryHandler(checkout))
    application.add_handler(MessageHandler(filters.SUCCESSFUL_PAYMENT, paid))
    application.run_polling(allowed_updates=Update.ALL_TYPES)


if __name__ == "__main__":
    main()
