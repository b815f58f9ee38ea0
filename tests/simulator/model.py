"""The simulated Telegram: one call in, one reply out, at the present moment of its clock.

Pure of I/O: nothing here waits or opens a connection. A reply says by which way it travels (late,
cut, never); the doors (inproc.py, the server) act it out. Order of judgement for a call: token,
method, running floods, planned faults, the form, limits, and then the method itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import assert_never

from tests.simulator import faults, forms
from tests.simulator.access import chat_id_in
from tests.simulator.broken_answers import (
    bare_flood,
    description_in,
    gateway_page,
    hidden_flood,
    method_in_answer,
)
from tests.simulator.chats import Standing
from tests.simulator.clock import Clock
from tests.simulator.deliverer import Answered, Fate, Outcome
from tests.simulator.faults import Acceptance, Fault, FaultPlan, Target
from tests.simulator.forms import Args
from tests.simulator.guard import Guard
from tests.simulator.ledger import Arrival, Ledger
from tests.simulator.limits import TELEGRAM, Charge, Limiter, LimitRules, Ruling, Scope
from tests.simulator.media import downloaded
from tests.simulator.method_table import METHODS
from tests.simulator.methods import Call, Cost, Method
from tests.simulator.people import People
from tests.simulator.posting import Post, next_post, settle_post
from tests.simulator.state import Bot, State
from tests.simulator.wire import (
    Ending,
    Refused,
    Reply,
    Silence,
    accept,
    flooded,
    refuse,
)

_TOKEN = re.compile(r"[1-9]\d{0,18}:[A-Za-z0-9_-]+")
_INTEGER = re.compile(r"-?\d{1,19}")


@dataclass(slots=True, kw_only=True)
class _Visit:
    """One call while it is being judged; becomes its line in the ledger."""

    bot: Bot
    method: Method
    form: Mapping[str, str]
    files: Mapping[str, bytes]
    chat_id: int | None
    is_group: bool
    at_ms: int
    charged: bool = False
    effect: bool = False
    message_id: int | None = None
    items: int = 1
    left: int = 0
    paid: int = 0
    slow_ms: int = 0
    fault: Fault | None = None
    ruling: Ruling = field(default_factory=lambda: Ruling(None))
    client_bug: str | None = None
    description: str = ""

    @property
    def wants_to_pay(self) -> bool:
        """Whether it asks to be let through beyond what is free."""
        return self.form.get("allow_paid_broadcast") == "true"

    @property
    def charge(self) -> Charge | None:
        """What it counts against, if anything."""
        match self.method.cost:
            case Cost.CHAT | Cost.SEND:
                is_send = self.method.cost is Cost.SEND
                return Charge(
                    self.bot.id,
                    self.chat_id,
                    self.is_group,
                    items=self.items,
                    is_paid=self.wants_to_pay and self.bot.stars_tenths >= self.items,
                    slow_ms=self.slow_ms if is_send else 0,
                )
            case Cost.BOT:
                return Charge(self.bot.id, None, is_group=False)
            case Cost.FREE | Cost.READ:
                return None


def said_in(form: Mapping[str, str]) -> str:
    """The words of a call, by which a plan may name it."""
    return form.get("text", form.get("caption", ""))


class Telegram:
    """A whole Telegram: bots, people, limits, faults, and the truth about what happened."""

    def __init__(
        self,
        clock: Clock,
        *,
        limits: LimitRules = TELEGRAM,
        chances: faults.Chances | None = None,
        seed: int = 0,
    ) -> None:
        self.clock = clock
        self.limiter = Limiter(limits)
        self.state = State(clock, self.limiter, seed)
        self.people = People(self.state)
        self.faults = FaultPlan(chances)
        self.guard = Guard()
        # False: nobody answers at Telegram's address.
        self.reachable = True

    @property
    def ledger(self) -> Ledger:
        """The truth so far."""
        return self.state.ledger

    def bot(self, token: str, *, username: str = "", first_name: str = "") -> Bot:
        """Make a bot known, or find it."""
        return self.state.add_bot(token, username, first_name)

    def release(self) -> None:
        """Let every hanging call have its answer."""
        for silence in self.state.silences:
            silence.release()
        self.state.silences.clear()
        self.state.tell("released")

    # Calls

    def call(
        self,
        token: str,
        method: str,
        form: Mapping[str, str],
        files: Mapping[str, bytes] | None = None,
    ) -> Reply:
        """Judge and carry out one call of the Bot API."""
        if _TOKEN.fullmatch(token) is None:
            return refuse(404, "Not Found")
        bot = self.state.bots.get(int(token.partition(":")[0]))
        if bot is None or bot.token != token or bot.revoked:
            return refuse(401, "Unauthorized")
        known = METHODS.get(method.lower())
        if known is None:
            return self._unknown(bot, method, form)
        chat_id = self._chat_id(form)
        visit = _Visit(
            bot=bot,
            method=known,
            form=form,
            files=files or {},
            chat_id=chat_id,
            is_group=chat_id in self.state.chats and "business_connection_id" not in form,
            at_ms=self.clock.now_ms(),
            slow_ms=self._slow_ms(bot, chat_id),
        )
        reply = self._judge(visit)
        self._remember(visit, reply)
        self._write_down(visit, reply)
        return reply

    def download(self, token: str, path: str) -> bytes | None:
        """The content of a file, for the bot that has this token; None for anybody else."""
        bots = self.state.bots.values()
        is_known = any(bot.token == token and not bot.revoked for bot in bots)
        return downloaded(path, self.state) if is_known else None

    def _slow_ms(self, bot: Bot, chat_id: int | None) -> int:
        chat = None if chat_id is None else self.state.chats.get(chat_id)
        if chat is None or chat.standing(bot.id) is not Standing.MEMBER:
            return 0
        return chat.slow_s * 1000

    def _remember(self, visit: _Visit, reply: Reply) -> None:
        """What is sent and not yet answered stands in the server's own way."""
        is_unsent = reply.hold_ms > 0 or reply.silence is not None
        if is_unsent and visit.method.cost is Cost.SEND and visit.charged:
            scope = Scope(visit.bot.id, visit.chat_id)
            until_ms = visit.at_ms + reply.hold_ms
            self.guard.took(scope, visit.items, until_ms=until_ms, silence=reply.silence)

    def _judge(self, visit: _Visit) -> Reply:
        charge = visit.charge
        if charge is not None and visit.method.cost is Cost.SEND:
            scope = Scope(visit.bot.id, visit.chat_id)
            if self.guard.refuses(scope, visit.at_ms):
                return self._guarded(visit)
        if charge is not None:
            ignored = self.limiter.ignored(charge, visit.at_ms)
            if ignored is not None:
                visit.ruling = ignored
                return self._flooded(visit, ignored)
        visit.fault = self.faults.take(
            Target(visit.bot.id, visit.method.name, visit.chat_id, said_in(visit.form))
        )
        if visit.fault is None:
            return self._carry_out(visit)
        reply = self._meet(visit, visit.fault)
        if reply.status != HTTPStatus.OK:
            visit.description = description_in(reply)
        return reply

    def _carry_out(
        self, visit: _Visit, *, half: faults.HalfAlbum | None = None, unnumbered: bool = False
    ) -> Reply:
        try:
            args = forms.read(visit.method.name, visit.form, visit.files)
            visit.items = visit.method.count(args)
            refusal = self._admit(visit)
            if refusal is not None:
                return refusal
            call = Call(self.state, visit.bot, args, visit.files, half, unnumbered)
            result = visit.method.handle(call)
        except Refused as refused:
            visit.description = refused.description
            visit.client_bug = refused.description if refused.client_bug else None
            return refuse(refused.code, refused.description, refused.parameters)
        visit.effect = visit.method.cost is not Cost.READ
        visit.message_id, visit.left = result.message_id, result.left
        visit.paid = visit.ruling.paid_items
        visit.bot.stars_tenths -= visit.paid
        if result.hidden_by is not None:
            visit.description = result.hidden_by.description
            return refuse(result.hidden_by.code, visit.description)
        return replace(accept(result.value, result.description), waiting=result.waiting)

    def _admit(self, visit: _Visit) -> Reply | None:
        """Count a call against the limits; what it is told when they don't let it in."""
        charge = visit.charge
        if charge is None:
            return None
        if visit.wants_to_pay and not charge.is_paid:
            above = self.limiter.above_free(charge, visit.at_ms)
            if above:
                # The server tries to charge for seconds, and reports no more than this.
                return self._exhausted(visit, 1)
        visit.ruling = self.limiter.admit(charge, visit.at_ms)
        if visit.ruling.flood is not None:
            return self._flooded(visit, visit.ruling)
        visit.charged = True
        return None

    def _guarded(self, visit: _Visit) -> Reply:
        visit.description = f"Too Many Requests: retry after {faults.GUARD_S}"
        return replace(flooded(faults.GUARD_S), hold_ms=faults.GUARD_MS)

    def _exhausted(self, visit: _Visit, wait_s: int) -> Reply:
        hold_ms = faults.EXHAUSTED_MS[wait_s]
        visit.description = f"Too Many Requests: retry after {wait_s}"
        return replace(flooded(wait_s), hold_ms=hold_ms)

    def _flooded(self, visit: _Visit, ruling: Ruling) -> Reply:
        assert ruling.flood is not None
        left_s = max(1, -(-(ruling.flood.until_ms - visit.at_ms) // 1000))
        visit.description = f"Too Many Requests: retry after {left_s}"
        self.state.tell(
            "flood", visit.bot.id, ruling.flood.scope.chat_id, until_ms=ruling.flood.until_ms
        )
        return flooded(left_s)

    # Faults

    def _meet(self, visit: _Visit, fault: Fault) -> Reply:
        if isinstance(fault, faults.Refusing):
            return self._refused(visit, fault)
        return self._lost(visit, fault)

    def _refused(self, visit: _Visit, fault: faults.Refusing) -> Reply:
        match fault:
            case faults.Flood():
                return self._order(visit, fault)
            case faults.BareFlood(form=form):
                return bare_flood(form)
            case faults.HiddenFlood(retry_after_s=wait_s):
                self._order(visit, faults.Flood(wait_s))
                return hidden_flood(wait_s, is_wrapped=visit.method.is_multiple)
            case faults.SiblingFlood(retry_after_s=wait_s, within_ms=within_ms):
                reply = self._order(visit, faults.Flood(wait_s))
                assert visit.ruling.flood is not None
                self.limiter.order_siblings(visit.ruling.flood, visit.at_ms + within_ms)
                return reply
            case faults.Guard():
                return self._guarded(visit)
            case faults.Exhausted(retry_after_s=wait_s):
                return self._exhausted(visit, wait_s)
            case faults.Refusal(code=code, description=description, parameters=parameters):
                return refuse(code, description, parameters)
            case _:
                assert_never(fault)

    def _lost(self, visit: _Visit, fault: faults.Losing) -> Reply:
        match fault:
            case faults.Hold(ms=ms):
                return replace(self._carry_out(visit), hold_ms=ms)
            case faults.Cut(acceptance=acceptance, reset=reset):
                ending = Ending.RESET if reset else Ending.CUT
                return replace(self._reached(visit, acceptance), ending=ending)
            case faults.Hang(acceptance=acceptance):
                silence = Silence()
                self.state.silences.append(silence)
                reply = self._reached(visit, acceptance)
                return replace(reply, ending=Ending.SILENT, silence=silence)
            case faults.ServerError(acceptance=acceptance, description=description):
                self._reached(visit, acceptance)
                return refuse(500, description)
            case faults.Gateway(acceptance=acceptance, status=status):
                self._reached(visit, acceptance)
                return gateway_page(status)
            case faults.Truncated(short_of_length=short):
                reply = self._carry_out(visit)
                if short:
                    return replace(reply, ending=Ending.HALF)
                return replace(reply, body=reply.body[: len(reply.body) // 2])
            case faults.HalfAlbum(inner=inner, code=code):
                if visit.method.is_multiple:
                    return self._carry_out(visit, half=fault)
                return refuse(code, f"{HTTPStatus(code).phrase}: {inner}")
            case faults.Unnumbered():
                return self._carry_out(visit, unnumbered=True)
            case _:
                assert_never(fault)

    def _reached(self, visit: _Visit, acceptance: Acceptance) -> Reply:
        """Carry a call out, or let it get lost; what it would have been told then never comes."""
        if acceptance is Acceptance.AFTER:
            return self._carry_out(visit)
        return refuse(500, "Internal Server Error: request aborted")

    def _order(self, visit: _Visit, fault: faults.Flood) -> Reply:
        chat_id = visit.chat_id if fault.scope == "chat" else None
        scope = Scope(visit.bot.id, chat_id)
        flood = self.limiter.order(scope, fault.retry_after_s, visit.at_ms)
        visit.ruling = Ruling(flood)
        return self._flooded(visit, visit.ruling)

    # Webhooks

    def next_post(self, bot: Bot) -> Post | None:
        """Start the webhook delivery that may start now, if there is one."""
        return next_post(self.state, bot)

    def finish_post(self, bot: Bot, post: Post, outcome: Outcome) -> None:
        """Take the end of a delivery; a method named in the answer is carried out."""
        fate = settle_post(self.state, bot, post, outcome)
        if fate is Fate.ACKNOWLEDGED and isinstance(outcome, Answered):
            call = method_in_answer(outcome.body)
            if call is not None:
                self.call(bot.token, call[0], call[1])

    # The ledger

    def _unknown(self, bot: Bot, method: str, form: Mapping[str, str]) -> Reply:
        reply = refuse(404, "Not Found: method not found")
        self.ledger.append(
            Arrival(
                at_ms=self.clock.now_ms(),
                bot_id=bot.id,
                method=method,
                chat_id=self._chat_id(form),
                is_group=False,
                params=dict(form),
                charged=False,
                effect=False,
                code=404,
                description="Not Found: method not found",
                message_id=None,
                fault=None,
                early_by_ms=0,
                flood_ordered_at_ms=None,
                client_bug=f"method {method} is not in the simulator",
            )
        )
        return reply

    def _write_down(self, visit: _Visit, reply: Reply) -> None:
        answered = reply.ending is Ending.WHOLE
        files = {name: f"({len(content)} bytes)" for name, content in visit.files.items()}
        self.ledger.append(
            Arrival(
                at_ms=visit.at_ms,
                bot_id=visit.bot.id,
                method=visit.method.name,
                chat_id=visit.chat_id,
                is_group=visit.is_group,
                params={**visit.form, **files},
                charged=visit.charged,
                effect=visit.effect,
                code=reply.status if answered else None,
                description=visit.description,
                message_id=visit.message_id if visit.effect else None,
                fault=None if visit.fault is None else type(visit.fault).__name__,
                early_by_ms=visit.ruling.early_by_ms,
                flood_ordered_at_ms=visit.ruling.ordered_at_ms,
                client_bug=visit.client_bug,
                items=visit.items,
                messages_left=visit.left,
                paid_tenths=visit.paid,
            )
        )
        self.state.tell("arrival", visit.bot.id, visit.chat_id, method=visit.method.name)

    def _chat_id(self, form: Mapping[str, str]) -> int | None:
        """The chat a call speaks of, as far as one can tell before its form has been read."""
        written = form.get("chat_id", "")
        if _INTEGER.fullmatch(written):
            return int(written)
        return chat_id_in(self.state, Args(form, {})) if written.startswith("@") else None
