"""The typed way for tests and the demo to drive a running simulator.

    async with simulator_process() as running:     # run.py; `running.control` is one of these
        sim = running.control                      # or: Control(control_url, token=…)

World   add_bot(token) -> BotView · add_user(first_name) -> UserView
        add_chat(kind, title) -> ChatView
        stars(bot, tenths)
People  says edits deletes presses asks_inline checks_out asks_shipping pays
        stops_generation blocks unblocks deactivates adds_bot kicks_bot slows opens_topics
        upgrades dissolves
        (a chat left out means the private chat of user and bot)
Bot API inject(bot, update) · redeliver(bot, update_id)
        webhook(bot) -> what getWebhookInfo would tell
Faults  arm(fault, method=…, bot=…, chat=…, contains=…, times=…) · plan(Rule) for `skip`
        chances(seed, table) · heal() · release() (ends every Hang) · goes_down() · comes_back()
        limits("telegram" | "strict" | "generous" | "off", chat_burst=…)
Truth   ledger() -> Ledger (all queries of ledger.py work on it)
        conversation(bot, chat) -> [MessageView]
Waiting wait_messages(bot, chat, count) · wait_arrivals(method, count) · wait_idle(bot)
        wait_end(bot, update_id) · wait_deliveries(bot, update_id, count)
        wait_answered(callback_query_id)
        each raises TimeoutError after `timeout_s`

Ids: `bot` is the bot's numeric id (the part of its token before the colon), `user` and `chat` are
Telegram's ids. Faults are the values of faults.py: `await sim.arm(Flood(3), method="sendMessage")`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

import httpx

from tests.simulator import faults
from tests.simulator.ledger import Arrival, Delivery, Ledger
from tests.simulator.wire import JsonObject

# The server answers a wait itself; the client only has to outlast it.
WAIT_MARGIN_S = 10.0


class ControlError(Exception):
    """The simulator could not do what was asked; the text says why."""


@dataclass(frozen=True, slots=True)
class BotView:
    """A bot as the simulator knows it."""

    id: int
    token: str
    username: str


@dataclass(frozen=True, slots=True)
class UserView:
    """A person."""

    id: int
    first_name: str
    username: str | None


@dataclass(frozen=True, slots=True)
class ChatView:
    """A group, supergroup or channel."""

    id: int
    type: str
    title: str


@dataclass(frozen=True, slots=True)
class Button:
    """One button of an inline keyboard."""

    text: str
    data: str | None
    url: str | None


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as it stands in a chat now."""

    message_id: int
    from_id: int | None
    from_bot: bool
    text: str
    date_s: int
    edit_date_s: int | None
    deleted: bool
    reply_to: int | None
    buttons: tuple[tuple[Button, ...], ...]
    # What it is besides words: a photo, a poll, an invoice.
    shows: JsonObject


@dataclass(frozen=True, slots=True)
class Said:
    """What an act of a person produced: the message, and the updates that tell bots of it."""

    message_id: int
    update_ids: tuple[int, ...]


class Control:
    """A client of the control interface; one per event loop."""

    def __init__(self, control_url: str, *, token: str = "") -> None:
        self._token = token
        self._http = httpx.AsyncClient(
            base_url=control_url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(30.0),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # The world

    async def add_bot(self, token: str, *, username: str = "", first_name: str = "") -> BotView:
        """Register a bot by its token (`<digits>:<secret>`); repeating it changes nothing."""
        made = await self._ask("add_bot", token=token, username=username, first_name=first_name)
        return BotView(made["id"], made["token"], made["username"])

    async def revoke(self, bot: int) -> None:
        """Let the bot's token be refused with 401 from now on."""
        await self._ask("revoke", bot=bot)

    async def stars(self, bot: int, tenths: int) -> None:
        """Give a bot what it can pay for broadcasts with, in tenths of a Star."""
        await self._ask("stars", bot=bot, tenths=tenths)

    async def add_user(
        self,
        first_name: str,
        *,
        user: int | None = None,
        username: str | None = None,
        language_code: str | None = None,
    ) -> UserView:
        """Register a person; the id is chosen when not given."""
        made = await self._ask(
            "add_user",
            id=user,
            first_name=first_name,
            username=username,
            language_code=language_code,
        )
        return UserView(made["id"], made["first_name"], made.get("username"))

    async def add_chat(
        self,
        kind: str,
        title: str,
        *,
        chat: int | None = None,
        users: tuple[int, ...] = (),
        bots: tuple[int, ...] = (),
    ) -> ChatView:
        """Register a `group`, `supergroup` or `channel`; its first user is its creator."""
        made = await self._ask(
            "add_chat", type=kind, title=title, id=chat, users=list(users), bots=list(bots)
        )
        return ChatView(made["id"], made["type"], made["title"])

    # People

    async def says(
        self,
        user: int,
        text: str,
        *,
        bot: int | None = None,
        chat: int | None = None,
        reply_to: int | None = None,
        shows: JsonObject | None = None,
    ) -> Said:
        """A person writes to a bot in private (`bot`) or into a group (`chat`).

        `shows`: what the message is besides its words: `{"photo": [...]}`, `{"document": {...}}`.
        """
        told = await self._ask(
            "says", user=user, text=text, bot=bot, chat=chat, reply_to=reply_to, shows=shows
        )
        return _said(told)

    async def edits(
        self,
        user: int,
        message_id: int,
        text: str,
        *,
        bot: int | None = None,
        chat: int | None = None,
    ) -> Said:
        """A person edits a message of their own."""
        return _said(
            await self._ask(
                "edits", user=user, message_id=message_id, text=text, bot=bot, chat=chat
            )
        )

    async def deletes(
        self, user: int, message_id: int, *, bot: int | None = None, chat: int | None = None
    ) -> None:
        """A person deletes a message; bots are not told."""
        await self._ask("deletes", user=user, message_id=message_id, bot=bot, chat=chat)

    async def presses(
        self,
        user: int,
        message_id: int,
        data: str,
        *,
        bot: int,
        chat: int | None = None,
    ) -> str:
        """A person presses the button that carries `data`; the id of the callback query."""
        pressed = await self._ask(
            "presses", user=user, message_id=message_id, data=data, bot=bot, chat=chat
        )
        return str(pressed["callback_query_id"])

    async def asks_inline(self, user: int, text: str, *, bot: int) -> str:
        """A person asks the bot from another chat; the id of the inline query."""
        asked = await self._ask("asks_inline", user=user, text=text, bot=bot)
        return str(asked["query_id"])

    async def checks_out(self, user: int, payload: str, *, bot: int) -> str:
        """A person is about to pay; the id of the pre-checkout query."""
        asked = await self._ask("checks_out", user=user, payload=payload, bot=bot)
        return str(asked["query_id"])

    async def asks_shipping(self, user: int, payload: str, *, bot: int) -> str:
        """A person says where to ship what they buy; the id of the shipping query."""
        asked = await self._ask("asks_shipping", user=user, payload=payload, bot=bot)
        return str(asked["query_id"])

    async def pays(self, query: str) -> Said:
        """A person pays, once their pre-checkout query was answered with ok."""
        return _said(await self._ask("pays", query=query))

    async def stops_generation(self, user: int, draft_id: int, *, bot: int) -> None:
        """A person stops a text that the bot is writing before their eyes."""
        await self._ask("stops_generation", user=user, draft_id=draft_id, bot=bot)

    async def slows(self, user: int, seconds: int, *, chat: int) -> None:
        """A creator puts a supergroup into slow mode; 0 ends it."""
        await self._ask("slows", user=user, seconds=seconds, chat=chat)

    async def opens_topics(self, user: int, *, chat: int) -> None:
        """A creator turns a supergroup into a forum."""
        await self._ask("opens_topics", user=user, chat=chat)

    async def blocks(self, user: int, *, bot: int) -> None:
        """A person blocks a bot."""
        await self._ask("blocks", user=user, bot=bot)

    async def unblocks(self, user: int, *, bot: int) -> None:
        """A person lets a bot write again."""
        await self._ask("unblocks", user=user, bot=bot)

    async def deactivates(self, user: int) -> None:
        """A person deletes their account."""
        await self._ask("deactivates", user=user)

    async def adds_bot(self, user: int, *, bot: int, chat: int) -> None:
        """A person brings a bot into a group."""
        await self._ask("adds_bot", user=user, bot=bot, chat=chat)

    async def kicks_bot(self, user: int, *, bot: int, chat: int) -> None:
        """A person throws a bot out of a group."""
        await self._ask("kicks_bot", user=user, bot=bot, chat=chat)

    async def upgrades(self, user: int, *, chat: int) -> ChatView:
        """A person turns a group into a supergroup, which has another id."""
        made = await self._ask("upgrades", user=user, chat=chat)
        return ChatView(made["id"], made["type"], made["title"])

    async def dissolves(self, user: int, *, chat: int) -> None:
        """A creator deletes their group."""
        await self._ask("dissolves", user=user, chat=chat)

    # Updates and webhooks

    async def inject(self, bot: int, update: Mapping[str, object], *, keep_id: bool = False) -> int:
        """Queue any update as it is; its chats and people are made known. The update's id.

        With `keep_id` the update keeps its own `update_id`; else it gets the next one.
        """
        made = await self._ask("inject", bot=bot, update=dict(update), keep_id=keep_id)
        return int(made["update_id"])

    async def redeliver(self, bot: int, update_id: int) -> None:
        """Post an update again that was already acknowledged."""
        await self._ask("redeliver", bot=bot, update_id=update_id)

    async def webhook(self, bot: int) -> JsonObject:
        """What getWebhookInfo would tell, without a call in the ledger."""
        return dict(await self._ask("webhook", bot=bot))

    async def delivery(
        self,
        *,
        delay_scale: float | None = None,
        answer_timeout_ms: int | None = None,
        single_after_ms: int | None = None,
    ) -> None:
        """Change how webhooks are served; `delay_scale` 0.05 makes the backoff 20 times shorter."""
        await self._ask(
            "delivery",
            delay_scale=delay_scale,
            answer_timeout_ms=answer_timeout_ms,
            single_after_ms=single_after_ms,
        )

    # Faults and limits

    async def arm(
        self,
        fault: faults.Fault,
        *,
        method: str | None = None,
        bot: int | None = None,
        chat: int | None = None,
        contains: str | None = None,
        times: int | None = 1,
    ) -> None:
        """Let the next matching calls meet `fault`; `times=None`: all of them."""
        await self.plan(
            faults.Rule(
                fault=fault,
                method=method,
                bot_id=bot,
                chat_id=chat,
                contains=contains,
                times=times,
            )
        )

    async def plan(self, rule: faults.Rule) -> None:
        """Add a rule to the plan of faults; rules are asked in the order of their adding."""
        words = asdict(rule) | {"fault": faults.to_json(rule.fault)}
        await self._ask("arm", **words)

    async def chances(self, seed: int, table: Sequence[tuple[float, faults.Fault]]) -> None:
        """Let each call that changes a chat meet a fault by chance, as often as its share says.

        Planned faults come first; `heal` ends this too.
        """
        shares = [(share, faults.to_json(fault)) for share, fault in table]
        await self._ask("chances", seed=seed, table=shares)

    async def heal(self) -> None:
        """Forget every planned fault; floods already ordered run on."""
        await self._ask("heal")

    async def release(self) -> None:
        """Let every hanging call have its answer."""
        await self._ask("release")

    async def limits(self, preset: str, **changes: float | None) -> None:
        """Put other limits in force: a preset, with single rules of limits.LimitRules changed."""
        await self._ask("limits", preset=preset, changes=changes)

    async def goes_down(self) -> None:
        """Let the Bot API's port refuse connections, and cut those that stand."""
        await self._ask("goes_down")

    async def comes_back(self) -> None:
        """Let the Bot API be reached again, at the same port."""
        await self._ask("comes_back")

    # The truth

    async def ledger(self) -> Ledger:
        """Everything that happened so far."""
        told = await self._ask("ledger")
        return Ledger.revive(told["entries"])

    async def conversation(self, bot: int, chat: int) -> list[MessageView]:
        """All messages of one chat as they stand, the bot's and the people's."""
        told = await self._ask("conversation", bot=bot, chat=chat)
        return [_message(line) for line in told["messages"]]

    # Waiting

    async def wait_messages(
        self, bot: int, chat: int, count: int, *, timeout_s: float = 10.0
    ) -> list[MessageView]:
        """Wait until the bot has left `count` messages in the chat; these messages."""
        await self._wait("messages", timeout_s, bot=bot, chat=chat, count=count)
        return [each for each in await self.conversation(bot, chat) if each.from_bot]

    async def wait_arrivals(
        self, method: str, count: int, *, chat: int | None = None, timeout_s: float = 10.0
    ) -> list[Arrival]:
        """Wait until `count` calls of `method` have arrived (in that chat); these calls."""
        await self._wait("arrivals", timeout_s, method=method, chat=chat, count=count)
        return (await self.ledger()).arrivals(method, chat)

    async def wait_end(self, bot: int, update_id: int, *, timeout_s: float = 10.0) -> None:
        """Wait until one update has left Telegram's queue."""
        await self._wait("end", timeout_s, bot=bot, update_id=update_id)

    async def wait_deliveries(
        self, bot: int, update_id: int, count: int, *, timeout_s: float = 10.0
    ) -> list[Delivery]:
        """Wait until `count` attempts to deliver one update have ended; these attempts."""
        await self._wait("deliveries", timeout_s, bot=bot, update_id=update_id, count=count)
        return (await self.ledger()).deliveries(bot, update_id)

    async def wait_idle(self, bot: int, *, timeout_s: float = 10.0) -> None:
        """Wait until no update waits for its bot."""
        await self._wait("idle", timeout_s, bot=bot)

    async def wait_answered(self, callback_query_id: str, *, timeout_s: float = 10.0) -> JsonObject:
        """Wait until a button press is answered; `{"text": …, "show_alert": …}`."""
        return await self._wait("answered", timeout_s, callback_query_id=callback_query_id)

    async def _wait(self, condition: str, timeout_s: float, **terms: object) -> JsonObject:
        told = await self._ask(
            "wait",
            _patience_s=timeout_s + WAIT_MARGIN_S,
            condition=condition,
            timeout_ms=round(timeout_s * 1000),
            terms=terms,
        )
        if not told["met"]:
            raise TimeoutError(f"{condition} {terms}: {told['seen']}")
        return dict(told["seen"])

    async def _ask(self, verb: str, *, _patience_s: float = 30.0, **words: object) -> Any:  # noqa: ANN401  # the answers are our own, shaped by the verb
        response = await self._http.post(f"/_sim/{verb}", json=words, timeout=_patience_s)
        told = response.json()
        if response.status_code != httpx.codes.OK:
            raise ControlError(f"{verb}: {told.get('error', response.status_code)}")
        return told


def _said(told: Mapping[str, Any]) -> Said:
    return Said(told["message_id"], tuple(told["update_ids"]))


def _message(line: Mapping[str, Any]) -> MessageView:
    return MessageView(
        message_id=line["message_id"],
        from_id=line["from_id"],
        from_bot=line["from_bot"],
        text=line["text"],
        date_s=line["date_s"],
        edit_date_s=line["edit_date_s"],
        deleted=line["deleted"],
        reply_to=line["reply_to"],
        buttons=tuple(
            tuple(Button(b["text"], b.get("callback_data"), b.get("url")) for b in row)
            for row in line["buttons"]
        ),
        shows=line["extra"],
    )
