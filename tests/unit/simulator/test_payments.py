"""What is offered is confirmed, and then paid, once."""

import pytest

from tests.simulator.people import Impossible
from tests.unit.simulator.conftest import Town

STARS = {
    "title": "Ticket",
    "description": "One way",
    "payload": "t-1",
    "currency": "XTR",
    "prices": [{"label": "Ticket", "amount": 5}],
}
EUROS = STARS | {
    "currency": "EUR",
    "provider_token": "p:1",
    "prices": [{"label": "Ticket", "amount": 900}, {"label": "Bike", "amount": 100}],
}


def paid(town: Town, payload: str) -> dict[str, object]:
    query = town.telegram.people.checks_out(town.ada, payload, bot_id=town.bot.id)
    assert town.call("answerPreCheckoutQuery", pre_checkout_query_id=query.id, ok=True)
    payment = town.telegram.people.pays(query.id).message.extra["successful_payment"]
    assert isinstance(payment, dict)
    return payment


@pytest.mark.parametrize(("offer", "price"), [(STARS, ("XTR", 5)), (EUROS, ("EUR", 1000))])
def test_an_invoice_is_shown_and_paid_at_its_price(
    town: Town, offer: dict[str, object], price: tuple[str, int]
) -> None:
    shown = town.call("sendInvoice", chat_id=town.ada, **offer)["invoice"]
    payment = paid(town, "t-1")
    for each in (shown, payment):
        assert (each["currency"], each["total_amount"]) == price
    assert payment["invoice_payload"] == "t-1"
    assert town.telegram.ledger.client_bugs() == []


def test_a_link_offers_the_same(town: Town) -> None:
    assert town.call("createInvoiceLink", **STARS).startswith("https://t.me/$")
    assert paid(town, "t-1")["total_amount"] == 5


def test_where_to_ship_it_is_asked_first(town: Town) -> None:
    query = town.telegram.people.asks_shipping(town.ada, "t-1", bot_id=town.bot.id)
    options = [{"id": "1", "title": "Ship", "prices": [{"label": "Ship", "amount": 1}]}]
    answer = {"shipping_query_id": query.id, "ok": True, "shipping_options": options}
    assert town.call("answerShippingQuery", **answer) is True


def test_nobody_pays_what_was_not_confirmed_or_twice(town: Town) -> None:
    people = town.telegram.people
    query = people.checks_out(town.ada, "t-1", bot_id=town.bot.id)
    with pytest.raises(Impossible, match="not confirmed"):
        people.pays(query.id)
    no = {"pre_checkout_query_id": query.id, "ok": False, "error_message": "sold out"}
    town.call("answerPreCheckoutQuery", **no)
    with pytest.raises(Impossible, match="not confirmed"):
        people.pays(query.id)
    again = people.checks_out(town.ada, "t-1", bot_id=town.bot.id)
    town.call("answerPreCheckoutQuery", pre_checkout_query_id=again.id, ok=True)
    people.pays(again.id)
    with pytest.raises(Impossible, match="paid already"):
        people.pays(again.id)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"title": ""}, "INVOICE_TITLE_INVALID"),
        ({"payload": "x" * 129}, "INVOICE_PAYLOAD_INVALID"),
        ({"description": ""}, "INVOICE_DESCRIPTION_INVALID"),
        ({"currency": "EUR"}, "PAYMENT_PROVIDER_INVALID"),
        ({"prices": []}, "CURRENCY_TOTAL_AMOUNT_INVALID"),
        ({"prices": EUROS["prices"]}, "CURRENCY_TOTAL_AMOUNT_INVALID"),
        ({"prices": [{"label": "Gift", "amount": 0}]}, "CURRENCY_TOTAL_AMOUNT_INVALID"),
    ],
)
def test_what_cannot_be_sold_is_refused(
    town: Town, change: dict[str, object], refusal: str
) -> None:
    assert refusal in town.refusal("createInvoiceLink", **(STARS | change))
