"""A configured Ferryman in a folder of its own, its database filled as a life would fill it.

Secrets and users' words are planted where a careless command would print them.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from storage import bots, claims, cooldowns, heartbeats, inbox, outbox
from storage.claims import AttemptEnd, Claim
from storage.clock import SystemClock, deadline_in
from storage.database import Tx, opened
from storage.heartbeats import RoleState
from storage.inbox import Received
from storage.lifecycle import AttemptStage, BotName, InboxId, OutboxId, OutboxState, Priority
from storage.migrate import migrate
from storage.outgoing import Outgoing, chat_lane

T = TypeVar("T")

BOT = BotName("main")
TOKEN = "7000000001:AAplanted-token-that-nobody-may-see_1"
SECRET = "planted-webhook-secret-that-nobody-may-see"
WORDS = "planted words of a user"
# Parts of them too: what is cut to fit must be masked before.
PLANTED = (TOKEN[11:31], SECRET, SECRET[:20], WORDS)

CONFIGURATION = """\
state_dir = "state"
[bots.main]
token_file = "main.token"
secret_file = "main.secret"
"""


@dataclass(frozen=True, slots=True)
class Site:
    """One configured place."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "ferryman.toml"

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.folder / "state"

    @property
    def database(self) -> Path:
        """The database file."""
        return self.state / "ferryman.db"

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run a transaction as a role would."""

        async def run() -> T:
            async with opened(self.database, SystemClock()) as database:
                return await database.write(work)

        return asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Rows:
    """The numbers of the rows that `fill` left."""

    dead_update: InboxId
    quarantined: InboxId
    waiting_update: InboxId
    queued: OutboxId
    uncertain: OutboxId
    review: OutboxId
    dead: OutboxId
    sent: OutboxId


def configured(folder: Path, configuration: str = CONFIGURATION) -> Site:
    """Write a configuration with its secrets; no database yet."""
    site = Site(folder)
    site.config.write_text(configuration, encoding="utf-8")
    (folder / "main.token").write_text(TOKEN + "\n", encoding="ascii")
    (folder / "main.secret").write_text(SECRET + "\n", encoding="ascii")
    return site


def filled(site: Site) -> Rows:
    """Make the database, and let a row of each kind come about."""
    migrate(site.database, SystemClock())
    return site.write(_fill)


def _fill(tx: Tx) -> Rows:
    bots.bind(tx, BOT, 7_000_000_001)
    bots.bind(tx, BotName("retired"), 7_000_000_002)
    heartbeats.beat(tx, "worker.4711.0a0b0c0d", "worker", RoleState.READY, {"running": 1})
    cooldowns.merge(
        tx,
        BOT,
        chat_lane(7),
        deadline_in(5_820_000, SystemClock()),
        reason=f'429 of the chat "{WORDS}"',
    )
    update = inbox.receive(tx, _received(1))
    inbox.claim(tx, [update.id], 1)
    trace = "  bot/handlers/ask.py:20 ask\nValueError"
    inbox.bury(tx, update.id, 1, reason="ValueError at bot/handlers/ask.py:20", trace=trace)
    quarantined = inbox.quarantine(tx, BOT, f'["{WORDS}"]'.encode(), "no update: a list")
    waiting = inbox.receive(tx, _received(2))
    return Rows(
        dead_update=update.id,
        quarantined=quarantined.id,
        waiting_update=waiting.id,
        queued=_leave(tx, "waits", 9, priority=Priority.BULK),
        uncertain=_held(tx, "uncertain", OutboxState.UNCERTAIN),
        review=_held(tx, "review", OutboxState.REVIEW),
        dead=_dead(tx),
        sent=_sent(tx),
    )


def _received(update_id: int) -> Received:
    body = json.dumps({"update_id": update_id, "message": {"text": WORDS}}).encode()
    return Received(BOT, update_id, "message", "c:7", "u:7", body)


def _leave(tx: Tx, key: str, chat_id: int, priority: Priority = Priority.INTERACTIVE) -> OutboxId:
    call = Outgoing(
        method="sendMessage",
        params={"chat_id": str(chat_id), "text": WORDS},
        lane=chat_lane(chat_id),
        key=f"turn:{key}",
        chat_id=chat_id,
    )
    return outbox.enqueue(tx, BOT, replace(call, priority=priority)).id


def _claimed(tx: Tx, key: str) -> Claim:
    left = _leave(tx, key, 7)
    (item,) = (
        item for item in claims.heads(tx, BOT, Priority.INTERACTIVE, limit=10) if item.id == left
    )
    (claimed,) = claims.claim(tx, [item], 1)
    claims.stamp(tx, [claimed])
    return claimed


def _held(tx: Tx, key: str, state: OutboxState) -> OutboxId:
    claimed = _claimed(tx, key)
    end = AttemptEnd(
        AttemptStage.BODY_COMPLETE,
        str(state),
        duration_ms=30_012,
        status=502,
        code=502,
        description=f'Bad Gateway for "{WORDS}" \x1b[2J {TOKEN}',
    )
    claims.close_attempts(tx, [(claimed, end)])
    claims.hold(tx, claimed, state, reason=f'502 "{WORDS}"')
    return claimed.item.id


def _dead(tx: Tx) -> OutboxId:
    claimed = _claimed(tx, "dead")
    end = AttemptEnd(
        AttemptStage.ANSWERED,
        "refused",
        duration_ms=84,
        status=400,
        code=400,
        description=f'Bad Request: no such tag "{WORDS}"',
    )
    claims.close_attempts(tx, [(claimed, end)])
    claims.end(tx, claimed, OutboxState.DEAD, reason=f'content refused: 400 tag "{WORDS}"')
    return claimed.item.id


def _sent(tx: Tx) -> OutboxId:
    claimed = _claimed(tx, "sent")
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=52, status=200)
    claims.close_attempts(tx, [(claimed, end)])
    claims.mark_sent(tx, [claims.Accepted(claimed, 990)])
    return claimed.item.id
