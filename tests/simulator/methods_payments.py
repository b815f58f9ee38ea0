"""Invoices: as a message or as a link. What is bought is known by its payload.

Sources: Bot API 10.2 (sendInvoice); telegram.md §3.5 for what is refused.
"""

from tests.simulator.forms import Args, bug
from tests.simulator.leaving import send
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, bad_request

TITLE_MAX, DESCRIPTION_MAX, PAYLOAD_BYTES_MAX = 32, 255, 128
STARS = "XTR"


def send_invoice(call: Call) -> Result:
    """Offer something for sale, with a button to pay it."""
    invoice = _offered(call)
    start = call.args.text("start_parameter")
    return send(call, {"invoice": {**invoice, "start_parameter": start}}, str(invoice["title"]))


def create_invoice_link(call: Call) -> Result:
    """The same as an address that can be handed on."""
    _offered(call)
    return Result(f"https://t.me/${call.state.dice.getrandbits(64):016x}")


def _offered(call: Call) -> JsonObject:
    """The invoice that the parameters tell, from now on known by its payload."""
    args = call.args
    payload, currency = args.text("payload"), args.text("currency")
    _check_words(args)
    amounts = [_amount(each) for each in args.items("prices") or []]
    if currency != STARS and not args.text("provider_token"):
        raise bad_request("PAYMENT_PROVIDER_INVALID")
    total = sum(amounts)
    if total <= 0 or (currency == STARS and len(amounts) != 1):
        raise bad_request("CURRENCY_TOTAL_AMOUNT_INVALID")
    call.state.offers[call.bot.id, payload] = {"currency": currency, "total_amount": total}
    return {
        "title": args.text("title"),
        "description": args.text("description"),
        "currency": currency,
        "total_amount": total,
    }


def _check_words(args: Args) -> None:
    for name, longest in (("title", TITLE_MAX), ("description", DESCRIPTION_MAX)):
        if not 0 < len(args.text(name)) <= longest:
            raise bad_request(f"INVOICE_{name.upper()}_INVALID")
    if not 0 < len(args.text("payload").encode()) <= PAYLOAD_BYTES_MAX:
        raise bad_request("INVOICE_PAYLOAD_INVALID")


def _amount(given: object) -> int:
    label, amount = (given.get("label"), given.get("amount")) if isinstance(given, dict) else (0, 0)
    if not isinstance(label, str) or not isinstance(amount, int) or isinstance(amount, bool):
        raise bug("can't parse LabeledPrice: expected an Object with a label and an amount")
    return amount
