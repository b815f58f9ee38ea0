"""Everything that can be asked of the simulator over its control port, one function for each verb.

`control.py` is the client and the documentation. Words come as JSON and are checked by pydantic:
this is an edge, and a mistyped test should fail where it is wrong.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from tests.simulator import faults
from tests.simulator.chats import ChatType
from tests.simulator.courier import Couriers
from tests.simulator.limits import PRESETS
from tests.simulator.methods_updates import webhook_info
from tests.simulator.model import Telegram
from tests.simulator.people import Impossible, Said
from tests.simulator.state import Bot
from tests.simulator.views import bot_view, chat_view, conversation_view, user_view
from tests.simulator.wire import JsonObject


@dataclass(frozen=True, slots=True)
class World:
    """What verbs work on."""

    telegram: Telegram
    couriers: Couriers

    def bot(self, bot_id: int) -> Bot:
        """A bot that must exist."""
        return self.telegram.state.bots[bot_id]


class Words(BaseModel):
    """Nothing but what a verb knows."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _AddBot(Words):
    token: str
    username: str = ""
    first_name: str = ""


class _Bot(Words):
    bot: int


class _AddUser(Words):
    id: int | None = None
    first_name: str
    username: str | None = None
    language_code: str | None = None


class _AddChat(Words):
    id: int | None = None
    type: str
    title: str
    users: list[int] = []
    bots: list[int] = []


class _Says(Words):
    user: int
    text: str
    bot: int | None = None
    chat: int | None = None
    reply_to: int | None = None
    shows: dict[str, object] | None = None


class _Edits(Words):
    user: int
    message_id: int
    text: str
    bot: int | None = None
    chat: int | None = None


class _Deletes(Words):
    user: int
    message_id: int
    bot: int | None = None
    chat: int | None = None


class _Presses(Words):
    user: int
    message_id: int
    data: str
    bot: int
    chat: int | None = None


class _AsksInline(Words):
    user: int
    text: str
    bot: int


class _ChecksOut(Words):
    user: int
    payload: str
    bot: int


class _Pays(Words):
    query: str


class _StopsGeneration(Words):
    user: int
    draft_id: int
    bot: int


class _Slows(Words):
    user: int
    seconds: int
    chat: int


class _Stars(Words):
    bot: int
    tenths: int


class _UserAndBot(Words):
    user: int
    bot: int


class _User(Words):
    user: int


class _BotInChat(Words):
    user: int
    bot: int
    chat: int


class _UserInChat(Words):
    user: int
    chat: int


class _Inject(Words):
    bot: int
    update: dict[str, object]
    keep_id: bool = False


class _Update(Words):
    bot: int
    update_id: int


class _Delivery(Words):
    delay_scale: float | None = None
    answer_timeout_ms: int | None = None
    single_after_ms: int | None = None


class _Arm(Words):
    fault: dict[str, object]
    method: str | None = None
    bot_id: int | None = None
    chat_id: int | None = None
    contains: str | None = None
    skip: int = 0
    times: int | None = 1


class _Chances(Words):
    seed: int
    table: list[tuple[float, dict[str, object]]]


class _Limits(Words):
    preset: str
    changes: dict[str, float | int | None] = {}


class _Conversation(Words):
    bot: int
    chat: int


class _Nothing(Words):
    pass


def add_bot(world: World, words: _AddBot) -> JsonObject:
    """Make a bot known."""
    return bot_view(
        world.telegram.bot(words.token, username=words.username, first_name=words.first_name)
    )


def revoke(world: World, words: _Bot) -> JsonObject:
    """Take a bot's token away."""
    world.bot(words.bot).revoked = True
    return {}


def add_user(world: World, words: _AddUser) -> JsonObject:
    """Make a person."""
    user = world.telegram.people.add_user(
        words.first_name,
        user_id=words.id,
        username=words.username,
        language_code=words.language_code,
    )
    world.telegram.state.tell("people")
    return user_view(user)


def add_chat(world: World, words: _AddChat) -> JsonObject:
    """Make a group."""
    chat = world.telegram.people.add_chat(
        ChatType(words.type),
        words.title,
        chat_id=words.id,
        users=tuple(words.users),
        bots=tuple(words.bots),
    )
    world.telegram.state.tell("people")
    return chat_view(chat)


def who(world: World, _: _Nothing) -> JsonObject:
    """Who there is."""
    state = world.telegram.state
    return {
        "bots": [bot_view(bot) for bot in state.bots.values()],
        "users": [user_view(user) for user in state.users.values()],
        "chats": [chat_view(chat) for chat in state.chats.values()],
    }


def says(world: World, words: _Says) -> JsonObject:
    """A person writes."""
    return _said(
        world.telegram.people.says(
            words.user,
            words.text,
            bot_id=words.bot,
            chat_id=words.chat,
            reply_to=words.reply_to,
            shows=words.shows,
        )
    )


def edits(world: World, words: _Edits) -> JsonObject:
    """A person edits."""
    return _said(
        world.telegram.people.edits(
            words.user, words.message_id, words.text, bot_id=words.bot, chat_id=words.chat
        )
    )


def deletes(world: World, words: _Deletes) -> JsonObject:
    """A person deletes."""
    world.telegram.people.deletes(
        words.user, words.message_id, bot_id=words.bot, chat_id=words.chat
    )
    return {}


def presses(world: World, words: _Presses) -> JsonObject:
    """A person presses a button."""
    query = world.telegram.people.presses(
        words.user, words.message_id, words.data, bot_id=words.bot, chat_id=words.chat
    )
    return {"callback_query_id": query.id}


def asks_inline(world: World, words: _AsksInline) -> JsonObject:
    """A person asks the bot from another chat."""
    query = world.telegram.people.asks_inline(words.user, words.text, bot_id=words.bot)
    return {"query_id": query.id}


def checks_out(world: World, words: _ChecksOut) -> JsonObject:
    """A person is about to pay."""
    query = world.telegram.people.checks_out(words.user, words.payload, bot_id=words.bot)
    return {"query_id": query.id}


def asks_shipping(world: World, words: _ChecksOut) -> JsonObject:
    """A person says where to ship what they buy."""
    query = world.telegram.people.asks_shipping(words.user, words.payload, bot_id=words.bot)
    return {"query_id": query.id}


def pays(world: World, words: _Pays) -> JsonObject:
    """A person pays what the bot has confirmed."""
    return _said(world.telegram.people.pays(words.query))


def stops_generation(world: World, words: _StopsGeneration) -> JsonObject:
    """A person has read enough of a draft."""
    world.telegram.people.stops_generation(words.user, words.draft_id, bot_id=words.bot)
    return {}


def slows(world: World, words: _Slows) -> JsonObject:
    """A supergroup goes into slow mode."""
    world.telegram.people.slows(words.user, words.seconds, chat_id=words.chat)
    return {}


def opens_topics(world: World, words: _UserInChat) -> JsonObject:
    """A supergroup becomes a forum."""
    world.telegram.people.opens_topics(words.user, chat_id=words.chat)
    return {}


def stars(world: World, words: _Stars) -> JsonObject:
    """Give a bot what it can pay for broadcasts with."""
    world.bot(words.bot).stars_tenths = words.tenths
    return {}


def blocks(world: World, words: _UserAndBot) -> JsonObject:
    """A person blocks a bot."""
    world.telegram.people.blocks(words.user, bot_id=words.bot)
    return {}


def unblocks(world: World, words: _UserAndBot) -> JsonObject:
    """A person unblocks a bot."""
    world.telegram.people.unblocks(words.user, bot_id=words.bot)
    return {}


def deactivates(world: World, words: _User) -> JsonObject:
    """A person deletes their account."""
    world.telegram.people.deactivates(words.user)
    return {}


def adds_bot(world: World, words: _BotInChat) -> JsonObject:
    """A person brings a bot into a group."""
    world.telegram.people.adds_bot(words.user, bot_id=words.bot, chat_id=words.chat)
    return {}


def kicks_bot(world: World, words: _BotInChat) -> JsonObject:
    """A person throws a bot out."""
    world.telegram.people.kicks_bot(words.user, bot_id=words.bot, chat_id=words.chat)
    return {}


def upgrades(world: World, words: _UserInChat) -> JsonObject:
    """A group becomes a supergroup."""
    return chat_view(world.telegram.people.upgrades(words.user, chat_id=words.chat))


def dissolves(world: World, words: _UserInChat) -> JsonObject:
    """A group is deleted."""
    world.telegram.people.dissolves(words.user, chat_id=words.chat)
    return {}


def inject(world: World, words: _Inject) -> JsonObject:
    """Queue any update."""
    people = world.telegram.people
    return {"update_id": people.inject(words.bot, words.update, keep_id=words.keep_id)}


def redeliver(world: World, words: _Update) -> JsonObject:
    """Post an update once more."""
    if not world.couriers.repeat(world.bot(words.bot), words.update_id):
        raise Impossible("no webhook is set, or no such update was ever made")
    return {}


def webhook(world: World, words: _Bot) -> JsonObject:
    """What getWebhookInfo would tell."""
    return webhook_info(world.telegram.state, world.bot(words.bot))


def delivery(world: World, words: _Delivery) -> JsonObject:
    """Change how webhooks are served."""
    changes = words.model_dump(exclude_none=True)
    world.telegram.state.set_delivery_rules(replace(world.telegram.state.delivery_rules, **changes))
    return {}


def arm(world: World, words: _Arm) -> JsonObject:
    """Plan a fault."""
    told = words.model_dump(exclude={"fault"})
    world.telegram.faults.add(faults.Rule(fault=faults.from_json(words.fault), **told))
    return {}


def chances(world: World, words: _Chances) -> JsonObject:
    """Let faults come by seeded chance."""
    table = tuple((share, faults.from_json(fault)) for share, fault in words.table)
    world.telegram.faults.chances = faults.Chances(random.Random(words.seed).random, table)
    return {}


def heal(world: World, _: _Nothing) -> JsonObject:
    """Forget every planned fault."""
    world.telegram.faults.clear()
    return {}


def release(world: World, _: _Nothing) -> JsonObject:
    """End every hang."""
    world.telegram.release()
    return {}


def limits(world: World, words: _Limits) -> JsonObject:
    """Put other limits in force."""
    rules = replace(PRESETS[words.preset], **words.changes)  # type: ignore[arg-type]  # checked below
    if not all(isinstance(getattr(rules, name), int) for name in ("chat_burst", "wait_s_min")):
        raise Impossible("chat_burst and wait_s_min are whole numbers")
    world.telegram.limiter.rules = rules
    return {}


def ledger(world: World, _: _Nothing) -> JsonObject:
    """The whole truth."""
    return {"entries": world.telegram.ledger.export()}


def conversation(world: World, words: _Conversation) -> JsonObject:
    """One chat as it stands."""
    return conversation_view(world.telegram, world.bot(words.bot), words.chat)


def _said(said: Said) -> JsonObject:
    return {"message_id": said.message.message_id, "update_ids": list(said.update_ids)}


WordsT = TypeVar("WordsT", bound=Words)
Verb = Callable[[World, bytes], JsonObject]


def _verb(words: type[WordsT], do: Callable[[World, WordsT], JsonObject]) -> Verb:
    return lambda world, body: do(world, words.model_validate_json(body or b"{}"))


VERBS: dict[str, Verb] = {
    "add_bot": _verb(_AddBot, add_bot),
    "revoke": _verb(_Bot, revoke),
    "add_user": _verb(_AddUser, add_user),
    "add_chat": _verb(_AddChat, add_chat),
    "people": _verb(_Nothing, who),
    "says": _verb(_Says, says),
    "edits": _verb(_Edits, edits),
    "deletes": _verb(_Deletes, deletes),
    "presses": _verb(_Presses, presses),
    "asks_inline": _verb(_AsksInline, asks_inline),
    "checks_out": _verb(_ChecksOut, checks_out),
    "asks_shipping": _verb(_ChecksOut, asks_shipping),
    "pays": _verb(_Pays, pays),
    "stops_generation": _verb(_StopsGeneration, stops_generation),
    "slows": _verb(_Slows, slows),
    "opens_topics": _verb(_UserInChat, opens_topics),
    "stars": _verb(_Stars, stars),
    "blocks": _verb(_UserAndBot, blocks),
    "unblocks": _verb(_UserAndBot, unblocks),
    "deactivates": _verb(_User, deactivates),
    "adds_bot": _verb(_BotInChat, adds_bot),
    "kicks_bot": _verb(_BotInChat, kicks_bot),
    "upgrades": _verb(_UserInChat, upgrades),
    "dissolves": _verb(_UserInChat, dissolves),
    "inject": _verb(_Inject, inject),
    "redeliver": _verb(_Update, redeliver),
    "webhook": _verb(_Bot, webhook),
    "delivery": _verb(_Delivery, delivery),
    "arm": _verb(_Arm, arm),
    "chances": _verb(_Chances, chances),
    "heal": _verb(_Nothing, heal),
    "release": _verb(_Nothing, release),
    "limits": _verb(_Limits, limits),
    "ledger": _verb(_Nothing, ledger),
    "conversation": _verb(_Conversation, conversation),
}
