"""How a process is brought to a named point: what somebody does, so that the house writes there.

Each deed is done while the role at the point is armed and the others run. May judge nothing.
"""

import json
import re
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from sender.claiming import Heir, take_over
from sender.sharing import Sharer
from storage import outbox
from storage.database import Tx
from storage.failpoint import COMMITS, MOMENTS
from storage.lifecycle import BotName
from storage.outgoing import Outgoing
from tests.crash.books import Books, read_books
from tests.crash.living import API_TOKEN, Living
from tests.live.process import LiveProcess
from tests.simulator.faults import Flood, Hold

BOT: Final = BotName("main")
NOWHERE: Final = "nowhere"
QUESTIONS: Final = 2
_SOON_MS: Final = 20_000
_CALL_MS: Final = 2_000
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Scene:
    """The house, and the process that is to die."""

    house: Living
    process: LiveProcess


Deed = Callable[[Scene], Awaitable[None]]


async def nothing(scene: Scene) -> None:
    """The role comes there by itself: at its start, or again and again."""


async def ask(scene: Scene) -> None:
    """A person asks."""
    for _ in range(QUESTIONS):
        await scene.house.load.ask(scene.house.load.chats[0])


async def say(scene: Scene, text: str) -> int:
    """A person says a word that has the bot do something; the update that tells of it."""
    load = scene.house.load
    said = await scene.house.sim.says(load.chats[0].user, text, bot=load.bot.id)
    return said.update_ids[0]


async def speak_late(scene: Scene) -> None:
    """A task outlives its turn, speaks and remembers."""
    await say(scene, "late")


async def speak_long(scene: Scene) -> None:
    """A call is too large to be handed over at once."""
    await say(scene, "long")


async def speak_early(scene: Scene) -> None:
    """A handler has its words committed before it is done."""
    await say(scene, "flush")


async def be_reminded(scene: Scene) -> None:
    """A reminder is due at once."""
    await say(scene, "remind")


async def write_to_nobody(scene: Scene) -> None:
    """A call is refused for good, and the bot is told."""
    await say(scene, "lose")


async def date_a_reminder_ahead(scene: Scene) -> None:
    """A reminder was kept before the clock was set back. It is due long after all of this."""

    def keep(tx: Tx) -> None:
        ahead_ms = tx.now_ms() + _DAY_MS
        unsaid = dict.fromkeys(("name", "data", "chat_id", "user_id", "rule", "late_ms_max"))
        known = {"bot": BOT, "callback": "tests.crash.handlers:remind", "elapses": 1}
        moments = {"now_ms": ahead_ms, "due_ms": ahead_ms + _DAY_MS}
        tx.insert("reminders.keep", {**unsaid, **known, **moments})

    await scene.house.house.write(keep)


async def flood_a_read(scene: Scene) -> None:
    """Telegram lets a read wait; the turn is taken again."""
    await scene.house.sim.arm(Flood(1), method="getChat")
    await say(scene, "who")


async def flood_a_call(scene: Scene) -> None:
    """Telegram lets a call wait."""
    await scene.house.sim.arm(Flood(1), method="sendMessage")
    await ask(scene)


async def bring_again(scene: Scene) -> None:
    """Telegram delivers an update again that was acknowledged."""
    sim, bot = scene.house.sim, scene.house.load.bot.id
    update_id = await scene.house.load.ask(scene.house.load.chats[0])
    await sim.wait_end(bot, update_id, timeout_s=_SOON_MS / 1_000)
    await sim.redeliver(bot, update_id)


async def post_nonsense(scene: Scene) -> None:
    """Something authentic comes that nobody can read."""
    bot = scene.house.load.bot
    headers = {"X-Telegram-Bot-Api-Secret-Token": bot.secret, "Content-Type": "application/json"}
    await _post(scene, f"/telegram/{bot.name}", headers, b"{")


async def leave_by_program(scene: Scene) -> None:
    """A program leaves a call."""
    load = scene.house.load
    params = {"chat_id": load.chats[0].id, "text": "by program"}
    body = json.dumps({"bot": load.bot.name, "method": "sendMessage", "params": params})
    headers = {"Authorization": f"Bearer {API_TOKEN}", "Content-Type": "application/json"}
    await _post(scene, "/api/messages", headers, body.encode())


async def _post(scene: Scene, path: str, headers: Mapping[str, str], body: bytes) -> None:
    """Post to web, which may die of it."""
    async with httpx.AsyncClient(trust_env=False) as http:
        try:
            answer = await http.post(scene.house.house.url + path, headers=headers, content=body)
        except httpx.TransportError:
            return
    raise AssertionError(f"web lived to answer {answer.status_code}: {answer.text}")


async def stop(scene: Scene) -> None:
    """The process is asked to end."""
    scene.process.send(signal.SIGTERM)


async def change_limits(scene: Scene) -> None:
    """The operator changes a limit, and says so."""
    config = scene.house.house.config
    text = config.read_text(encoding="utf-8")
    limit = re.search(r"bulk_per_second = (\d+)", text)
    assert limit is not None, text
    lower = f"bulk_per_second = {int(limit[1]) - 1}"
    config.write_text(text.replace(limit[0], lower), encoding="utf-8")
    scene.process.send(signal.SIGHUP)


async def leave_unsayable(scene: Scene) -> None:
    """A row waits for a channel that nobody has configured: it is claimed and handed back."""
    key = f"{NOWHERE}:{len(_books(scene).rows)}"

    def leave(tx: Tx) -> None:
        row = Outgoing("sendMessage", {"text": key}, "x:1", key, channel=NOWHERE)
        outbox.enqueue(tx, BOT, row)

    await scene.house.house.write(leave)


async def take_the_bot_away(scene: Scene) -> None:
    """While a call is under way, another sender takes the bot, and judges what was stamped."""
    sim = scene.house.sim
    before = len((await sim.ledger()).arrivals("sendMessage"))
    await sim.arm(Hold(_CALL_MS), method="sendMessage")
    await scene.house.load.ask(scene.house.load.chats[0])
    await sim.wait_arrivals("sendMessage", before + 1, timeout_s=_SOON_MS / 1_000)
    sharer = Sharer("sender.0.nobody", frozenset({BOT}), is_dead=lambda _: True)
    heir = Heir(BOT, sharer, attempts_max=3, jitter=0.5, recent_ms=60_000)
    await scene.house.house.write(lambda tx: take_over(tx, heir))


def _books(scene: Scene) -> Books:
    return read_books(scene.house.house.database_path)


_BY_ITSELF: Final = frozenset(
    {
        *("web.beat", "worker.bind", "worker.take", "worker.rescue", "worker.identify"),
        *("worker.beat", "worker.renew", "sender.bind", "sender.take_over", "sender.beat"),
        *("sender.renew", "sender.expire", "sender.claim"),
    }
)
_DEEDS: Final[Mapping[str, Deed]] = {
    "web.tell_apart": bring_again,
    "web.keep_aside": post_nonsense,
    "web.leave_call": leave_by_program,
    "web.leave": stop,
    "worker.retry": flood_a_read,
    "worker.cool_reads": flood_a_read,
    "worker.say": speak_late,
    "worker.flush": speak_early,
    "worker.told": write_to_nobody,
    "worker.reminded": be_reminded,
    "worker.redate": date_a_reminder_ahead,
    "worker.write": speak_late,
    "worker.release": stop,
    "worker.leave": stop,
    "sender.half_written": speak_long,
    "sender.cooled": flood_a_call,
    "sender.hand_back": leave_unsayable,
    "sender.settle_late": take_the_bot_away,
    "sender.record_limits": change_limits,
    "sender.release": stop,
    "sender.leave": stop,
}
# Those to which a living house comes too seldom, or not at all, have tests of their own.
APART: Final = frozenset(
    {"worker.hand_back", "worker.poll", "sender.prune", "sender.checkpoint", "storage.migrate"}
)


def deed_for(point: str) -> Deed:
    """What brings a process to this point."""
    name = point.removesuffix(".committing").removesuffix(".committed")
    return nothing if name in _BY_ITSELF else _DEEDS.get(name, ask)


def points_of(role: str) -> list[str]:
    """The points that a role comes to in a house that lives, in a fixed order."""
    moments = [point for point in MOMENTS if point.startswith(f"{role}.")]
    names = [f"{role}.{name}" for name in COMMITS[role] if f"{role}.{name}" not in APART]
    return [*moments, *(f"{n}.{side}" for n in names for side in ("committing", "committed"))]
