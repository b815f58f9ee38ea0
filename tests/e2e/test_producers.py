"""Programs that are no bots leave calls, and the sender carries them to Telegram, once each.

A cron job at the command line, a Python program with the client, a web form with one request: three
ways into the same lane, over real processes and the simulator's ledger.
"""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import httpx

from bot.client import Call, Ferryman
from tests.live.house import House, Plan, house, made_up_bot
from tests.simulator.run import Running, simulator_process

T = TypeVar("T")

TOKEN = "a-bearer-token-of-the-api"
PATIENCE_S = 20


async def in_a_program(work: Callable[[], T]) -> T:
    """Run what a program of its own would run."""
    return await asyncio.to_thread(work)


async def _settled(client: Ferryman, call_id: int) -> Call:
    return await in_a_program(partial(client.wait, call_id, timeout_s=PATIENCE_S, every_s=0.1))


async def _said(built: House, sim: Running, person: int) -> list[str]:
    bot = built.plan.bots[0]
    return [each.text for each in (await sim.control.ledger()).messages(bot.id, person)]


async def test_a_cron_job_a_program_and_a_form_are_delivered_once_each(tmp_path: Path) -> None:
    bot = made_up_bot()
    environment = {"FERRYMAN_WEB__API_TOKEN": TOKEN}
    async with simulator_process() as sim:
        plan = Plan(tmp_path, sim.api_url, (bot,), log_level="DEBUG", environment=environment)
        async with house(plan) as built:
            await sim.control.add_bot(bot.token)
            person = await sim.control.add_user("Ada")
            await sim.control.says(person.id, "/start", bot=bot.id)
            await built.start("web", "sender")
            client = Ferryman(built.url, TOKEN)
            job = (
                *("send", "--bot", bot.name, "--chat", str(person.id)),
                *("--text", "the backup is done", "--key", "backup-7", "--wait", "20"),
            )
            first, second = await built.command(*job), await built.command(*job)
            send = partial(client.send_message, bot.name, person.id, "from a program", key="p-1")
            left = await in_a_program(send)
            assert (await in_a_program(send)).id == left.id
            call = await _settled(client, left.id)
            form = await _post_form(built, bot.name, person.id)
            sent = await _settled(client, form)
            absent = await in_a_program(partial(client.send_message, bot.name, 4711, "to nobody"))
            refused = await _settled(client, absent.id)
            said = await _said(built, sim, person.id)
            await built.stop()
            logs = "".join(built.log_of(role).read_text() for role in ("web", "sender"))
    assert said == ["the backup is done", "from a program", "from a form"]
    assert first == second, "the job that ran again is told the same"
    assert first == (0, f"c1 sent as message {first[1].split()[-1]}\n")
    assert call.is_sent
    assert call.message_id is not None
    assert sent.is_sent
    assert (refused.state, refused.attempts[0].status) == ("dead", 400)
    for private in (TOKEN, bot.token, "the backup", "from a", "to nobody"):
        assert private not in logs


async def _post_form(built: House, bot: str, person: int) -> int:
    """What `curl -d` sends."""
    params = {"chat_id": person, "text": "from a form"}
    order = {"bot": bot, "method": "sendMessage", "params": params}
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(
            f"{built.url}/api/messages",
            content=json.dumps(order),
            headers={
                "Authorization": f"Bearer {TOKEN}",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
    assert answer.status_code == httpx.codes.ACCEPTED
    return int(answer.json()["id"])
