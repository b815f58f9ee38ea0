"""The demo's acts: what a newcomer sees Ferryman do, each with the checks that it was really so."""

from functools import partial

from storage import reports, review
from storage.lifecycle import BotName, OutboxState
from tests.demo.stage import PATIENCE_S, Stage, first_line
from tests.live.corpus import Collected, corpus
from tests.live.process import until
from tests.simulator.faults import Acceptance, Flood, Hang

FLOOD_S = 3
# How late after the ordered moment a message may arrive: a commit, a call, a busy small machine.
PUNCTUAL_WITHIN_MS = 1_000


async def crossing(stage: Stage) -> None:
    """Real payloads go in, answers come out in order."""
    told, sim = stage.told, stage.sim
    told.act("The crossing: real payloads in, answers out, in order")
    for each in _written_messages(stage.clock.now_ms() // 1000):
        message, name = each.update["message"], each.update["message"]["from"]["first_name"]
        told.tell(name, f"“{first_line(message['text'])}”  ({each.name})")
        await sim.inject(stage.bot.id, each.update)
        chat_id = message["chat"]["id"]
        (answer, *_) = await sim.wait_messages(stage.bot.id, chat_id, 1, timeout_s=PATIENCE_S)
        told.tell("bot", f"→ {name}: {first_line(answer.text)}")
    ada = await sim.add_user("Ada")
    for question in ("When do you leave?", "What does it cost?", "Is the river safe?"):
        await stage.answer_to(ada, question)
    chat = await sim.conversation(stage.bot.id, ada.id)
    asked = [message.message_id for message in chat if not message.from_bot]
    quoted = [message.reply_to for message in chat if message.from_bot]
    told.check("each answer quotes its question, in the order asked", holds=asked == quoted)


async def buttons(stage: Stage) -> None:
    """A keyboard whose press edits its own message."""
    told, sim = stage.told, stage.sim
    told.act("A button edits its own message")
    ben = await sim.add_user("Ben")
    await stage.answer_to(ben, "/menu")
    (menu,) = await stage.said_to(ben)
    button = menu.buttons[0][0]
    told.tell("Ben", f"presses [{button.text}]")
    query = await sim.presses(ben.id, menu.message_id, button.data or "", bot=stage.bot.id)
    answered = await sim.wait_answered(query, timeout_s=PATIENCE_S)

    async def edited() -> bool:
        return (await stage.said_to(ben))[0].edit_date_s is not None

    await until(edited, within_ms=int(PATIENCE_S * 1000), what="the edit")
    (menu,) = await stage.said_to(ben)
    told.tell("bot", f"→ Ben: {first_line(menu.text)}  (edited)")
    told.check(
        "the press was answered and the message edited, not repeated",
        holds="text" in answered and len(await stage.said_to(ben)) == 1,
    )


async def flood(stage: Stage) -> None:
    """A flood is waited out to the moment; what went stale meanwhile is never said."""
    told, sim = stage.told, stage.sim
    told.act(f"A flood of {FLOOD_S} s, and an answer that goes stale in it")
    cleo = await sim.add_user("Cleo")
    await sim.arm(Flood(FLOOD_S), method="sendMessage", chat=cleo.id)
    await stage.ask(cleo, "What does a ticket cost?")
    refused = (await sim.wait_arrivals("sendMessage", 1, chat=cleo.id, timeout_s=PATIENCE_S))[0]
    told.tell("telegram", f"429: {refused.description}")
    stale = await stage.waiting_row(cleo)
    await stage.ask(cleo, "Never mind: when does the next one leave?")
    newest = max(message.message_id for message in await sim.conversation(stage.bot.id, cleo.id))
    gone = await stage.row_in(stale.id, OutboxState.SUPERSEDED)
    told.tell("ferryman", f"row {gone.id} is superseded: {gone.reason}")
    (answer,) = await stage.answers(cleo, 1)
    told.tell("bot", f"→ Cleo: {first_line(answer.text)}")
    (accepted,) = await stage.accepted(cleo)
    late_ms = accepted.at_ms - (refused.at_ms + FLOOD_S * 1000)
    told.check(
        "nothing left before the flood's end, and the answer left at it",
        holds=0 <= late_ms < PUNCTUAL_WITHIN_MS,
        seen=f"{late_ms} ms after the moment",
    )
    told.check(
        "only the newer question was answered",
        holds=len(await stage.said_to(cleo)) == 1 and answer.reply_to == newest,
    )


async def redelivery(stage: Stage) -> None:
    """Telegram posts an update twice; it counts once."""
    told, sim = stage.told, stage.sim
    told.act("The same update again")
    emil = await sim.add_user("Emil")
    update_id = await stage.ask(emil, "May my dog come along?")
    await stage.answers(emil, 1)
    before = await _updates_stored(stage)
    await sim.redeliver(stage.bot.id, update_id)
    await sim.wait_deliveries(stage.bot.id, update_id, 2, timeout_s=PATIENCE_S)
    told.tell("telegram", f"posts update {update_id} again; it is answered 200 again")
    await stage.answer_to(emil, "And how long is it in a flood?")
    after = await _updates_stored(stage)
    told.check(
        "one update more is stored, not two; one answer more, not two",
        holds=after == before + 1 and len(await stage.said_to(emil)) == 2,
    )


async def killed_before(stage: Stage) -> None:
    """SIGKILL before anything left: the message goes again."""
    told, house = stage.told, stage.house
    told.act("The sender is killed before Telegram accepted the message")
    finn = await stage.sim.add_user("Finn")
    await house.stop("sender")
    await house.start("sender", failpoint="sender.claimed")
    await stage.ask(finn, "How much is it with a bicycle?")
    code = await house.running["sender"].ended()
    told.tell("sender", f"killed (return code {code}) with the message in hand, before the call")
    await house.start("sender")
    (answer,) = await stage.answers(finn, 1)
    told.tell("bot", f"→ Finn: {first_line(answer.text)}")
    told.check("it went again, and arrived once", holds=len(await stage.accepted(finn)) == 1)


async def killed_after(stage: Stage) -> None:
    """SIGKILL after Telegram accepted: nobody can tell, so a person is asked."""
    told, house, sim = stage.told, stage.house, stage.sim
    told.act("The sender is killed after Telegram accepted the message")
    gina = await sim.add_user("Gina")
    await sim.arm(Hang(Acceptance.AFTER), method="sendMessage", chat=gina.id)
    await stage.ask(gina, "When is the last departure?")
    await sim.wait_arrivals("sendMessage", 1, chat=gina.id, timeout_s=PATIENCE_S)
    row = await stage.waiting_row(gina)
    await house.kill("sender")
    told.tell("sender", "killed (SIGKILL) after Telegram took the message, before it said so")
    await sim.release()
    await house.start("sender")
    held = await stage.row_in(row.id, OutboxState.UNCERTAIN)
    told.tell("ferryman", f"row {held.id} is {held.state}: {held.reason}")
    code, printed = await house.command("review", "list")
    told.plain("              $ ferryman review list")
    told.quote(printed)
    told.check(
        "it is held with its evidence, and was not sent a second time",
        holds=code == 0
        and str(held.id) in printed
        and len(await stage.accepted(gina)) == 1
        and bool(await house.read(partial(review.held, limit=5))),
    )


async def _updates_stored(stage: Stage) -> int:
    name = BotName(stage.bot.name)
    return len(await stage.house.read(partial(reports.updates, bot=name)))


def _written_messages(now_s: int) -> list[Collected]:
    """The private text messages of the corpus: what people wrote to bots."""
    found = []
    for each in corpus(now_s):
        message = each.update.get("message", {})
        private = message.get("chat", {}).get("type") == "private"
        if private and message.get("text") and each.is_readable:
            found.append(each)
    return found
