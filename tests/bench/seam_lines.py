"""What a `reply_text` costs a handler: through the seam, beside the library's own way.

Both end where a socket would begin: ours at a row in the turn's hands, which is committed with the
turn, the library's own at a request that answers at once and does nothing. Batches take turns.
Nothing is waited for on either side, so what is measured is the CPU time of the loop's thread, to
which others on the machine add nothing; no commit is in it, as a turn has one however much it says.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import thread_time

from telegram import Message, Update
from telegram.ext import ApplicationBuilder, ExtBot
from telegram.request import BaseRequest, RequestData

from bot.turns.application import builder
from bot.turns.awaiting import Answers
from bot.turns.calls import Rules
from bot.turns.capture import OutboxRequest, Surroundings
from bot.turns.identity import Identity
from bot.turns.outside import Outside
from bot.turns.persistence import TurnPersistence
from bot.turns.reads import FloodMemory, Reads
from bot.turns.turn import Phase, Turn, enter, update_cause
from bot.turns.uploads import FILE_BYTES_MAX, Uploads
from storage.blobs import Blobs
from storage.clock import SystemClock
from storage.database import opened
from storage.lifecycle import BotName, InboxId, OnUncertain
from storage.migrate import migrate
from tests.bench.programs import Bench, Broken
from tests.bench.table import Below, Line, Peer, median

BOT = BotName("main")
_CALLS = 200
_ME = {"id": 7_000_000_001, "is_bot": True, "first_name": "Ferry", "username": "ferry_bot"}
_RULES = Rules(reply_ttl_ms=3_600_000, bulk_ttl_ms=86_400_000, on_uncertain=OnUncertain.HOLD)


def _message(text: str) -> dict[str, object]:
    """A person's message, or the bot's own as it comes back."""
    place = {"id": 5, "type": "private", "first_name": "Ann"}
    sender = {"id": 5, "is_bot": False, "first_name": "Ann"}
    return {"message_id": 9, "date": 1_800_000_000, "chat": place, "from": sender, "text": text}


_ANSWER = json.dumps({"ok": True, "result": {**_message("At nine, at noon."), "from": _ME}})


class NoOp(BaseRequest):
    """Answers each call with a message, at once."""

    @property
    def read_timeout(self) -> float:
        """Nothing is ever read."""
        return 5.0

    async def initialize(self) -> None:
        """Nothing to open."""

    async def shutdown(self) -> None:
        """Nothing to close."""

    async def do_request(  # type: ignore[override]  # time-outs mean nothing to it
        self,
        url: str,
        method: str,  # noqa: ARG002  # the library's signature
        request_data: RequestData | None = None,
        **_: object,
    ) -> tuple[int, bytes]:
        """Answer; the form is made, as it has to be for a row too."""
        if url.endswith("/getMe"):
            return 200, json.dumps({"ok": True, "result": _ME}).encode()
        form = {} if request_data is None else request_data.json_parameters
        return (200, _ANSWER.encode()) if form else (400, b"{}")


async def measure(bench: Bench) -> list[Line]:
    """Answer a message many times in one turn, and as often by the library alone, in turns."""
    rounds = 10 if bench.quick else 50
    ours: list[float] = []
    theirs: list[float] = []
    async with _seam(bench.place("seam")) as seam, _library() as bot:
        for number in range(rounds):
            ours.append(await seam.batch(InboxId(number + 1)))
            theirs.append(await _us_per_reply(_heard(bot)))
    bench.notes.append(
        f"seam: medians of {rounds} batches of {_CALLS} replies; ours {_spread(ours)}, the "
        f"library's {_spread(theirs)}; CPU time, without the turn's commit"
    )
    peer = Peer("PTB, to a request that does nothing", median(theirs))
    return [Line("reply_text, through the seam", median(ours), "µs", Below(250), peer, alone=True)]


@dataclass
class _Seam:
    """A bot whose calls become rows, and the way into a turn."""

    bot: ExtBot[None]
    outside: Outside
    clock: SystemClock

    async def batch(self, update: InboxId) -> float:
        """One turn full of replies, let go of in the end; what each of them took."""
        cause = update_cause(update, Phase.HANDLERS)
        now_ms = self.clock.now_ms()
        turn = Turn(BOT, cause, Phase.HANDLERS, now_ms, _message("go"), self.outside)
        enter(turn)
        took_us = await _us_per_reply(_heard(self.bot))
        turn.condemn()
        if len(turn.rows) != _CALLS:
            raise Broken(f"of {_CALLS} replies {len(turn.rows)} have become rows")
        return took_us


@asynccontextmanager
async def _seam(folder: Path) -> AsyncIterator[_Seam]:
    """A worker's way for its handlers' calls, put together as it is there."""
    clock = SystemClock()
    path = folder / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as db:
        outside = Outside(db, BOT, ring=lambda: None)
        here = Surroundings(
            Identity(BOT, 7_000_000_001, json.dumps(_ME)),
            _RULES,
            outside,
            Answers(db, BOT),
            Uploads(Blobs(folder / "blobs"), bytes_max=FILE_BYTES_MAX),
            clock,
        )
        request = OutboxRequest(Reads(NoOp(), FloodMemory(db, BOT, clock, "adaptive")), here)
        built = builder(request, TurnPersistence(), alias="A-TOKEN", base_url="http://telegram")
        async with built.build().bot as bot:
            yield _Seam(bot, outside, clock)


async def _us_per_reply(heard: Message) -> float:
    began = thread_time()
    for number in range(_CALLS):
        await heard.reply_text(f"Your ferry leaves at nine from pier {number % 7}.")
    return (thread_time() - began) / _CALLS * 1e6


def _library() -> ExtBot[None]:
    request = NoOp()
    built = ApplicationBuilder().token("1:A").updater(None)
    bot: ExtBot[None] = built.request(request).get_updates_request(NoOp()).build().bot
    return bot


def _heard(bot: ExtBot[None]) -> Message:
    update = Update.de_json({"update_id": 1, "message": _message("go")}, bot)
    assert update.message is not None
    return update.message


def _spread(figures: list[float]) -> str:
    return f"{min(figures):,.0f} to {max(figures):,.0f} µs"
