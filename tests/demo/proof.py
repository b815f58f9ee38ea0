"""The demo's last act: ledger and database side by side, nothing lost, nothing doubled."""

from dataclasses import dataclass
from functools import partial

from storage import reports
from storage.lifecycle import TERMINAL, BotName, InboxState, OutboxState
from storage.reports import RowEnd, UpdateEnd
from tests.demo.stage import Stage
from tests.simulator.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Balance:
    """What ledger and database say of each other."""

    acknowledged: int
    lost_updates: int
    unhandled: int
    rows: int
    sent: int
    held: int
    lost_messages: int
    doubled: int


def balance(ledger: Ledger, bot_id: int, updates: list[UpdateEnd], rows: list[RowEnd]) -> Balance:
    """Compare what Telegram saw with what the database says."""
    acknowledged = {
        update_id for update_id, end in ledger.ends(bot_id).items() if end == "acknowledged"
    }
    stored = {update.update_id: update.state for update in updates}
    done = {InboxState.DONE, InboxState.DEAD}
    arrived = {
        (arrival.chat_id, arrival.message_id)
        for arrival in ledger.arrivals("sendMessage")
        if arrival.effect and arrival.bot_id == bot_id
    }
    sent = [row for row in rows if row.state is OutboxState.SENT]
    claimed_sent = {(row.chat_id, row.message_id) for row in sent if row.method == "sendMessage"}
    return Balance(
        acknowledged=len(acknowledged),
        lost_updates=len(acknowledged - set(stored)),
        unhandled=sum(1 for update in acknowledged if stored.get(update) not in done),
        rows=len(rows),
        sent=len(sent),
        held=sum(1 for row in rows if row.state not in TERMINAL),
        lost_messages=len(claimed_sent - arrived),
        doubled=sum(count - 1 for count in ledger.doubled().values()),
    )


async def proof(stage: Stage) -> None:
    """Print the balance and check it."""
    told = stage.told
    told.act("The balance: Telegram's ledger against the database")
    name = BotName(stage.bot.name)
    updates = list(await stage.house.read(partial(reports.updates, bot=name)))
    rows = list(await stage.house.read(partial(reports.rows, bot=name)))
    ledger = await stage.sim.ledger()
    found = balance(ledger, stage.bot.id, updates, rows)
    told.tell("updates", f"{found.acknowledged} answered with 200, {found.unhandled} not handled")
    told.tell("messages", f"{found.rows} rows: {found.sent} sent, {found.held} held for a person")
    lost = found.lost_updates + found.unhandled + found.lost_messages
    told.check(f"lost {lost}, doubled {found.doubled}", holds=lost == 0 and found.doubled == 0)
    bugs = ledger.client_bugs()
    told.check("every call was one that Telegram's documentation allows", holds=not bugs)
    early = ledger.early()
    told.check("no call came before a deadline that Telegram had set", holds=not early)
