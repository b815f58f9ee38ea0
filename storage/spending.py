"""What paid broadcasts have cost each bot, so that a budget of Stars can be a hard stop.

Counted in tenths of a Star, Telegram's price of one message above what is free (Bot API,
`allow_paid_broadcast`). Telegram tells no bill, so this counts at the dearest: every message that
was accepted, and every one that may have been.
"""

from storage.database import Tx
from storage.lifecycle import BotName


def charge(tx: Tx, bot: BotName, tenths: int) -> None:
    """Add to what a bot has spent."""
    tx.run("spending.charge", {"bot": bot, "tenths": tenths, "now_ms": tx.now_ms()})


def spent(tx: Tx, bot: BotName) -> int:
    """Tenths of a Star that a bot has spent in all."""
    row = tx.row("spending.spent", {"bot": bot})
    return 0 if row is None else int(row["tenths"])


def in_hand(tx: Tx, bot: BotName) -> int:
    """Tenths of a Star that the rows in a sender's hand may cost."""
    row = tx.row("spending.in_hand", {"bot": bot})
    assert row is not None, "an aggregate always gives a row"
    return int(row["tenths"])
