"""All that the simulated Telegram knows, and the few acts everything else is made of.

The methods of the Bot API and the acts of people work on this; neither knows the other.
"""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tests.simulator.chats import Chat, Conversation, Message, User
from tests.simulator.clock import Clock
from tests.simulator.deliverer import Deliverer, DeliveryRules, Pending
from tests.simulator.keyboards import Keyboard
from tests.simulator.ledger import Ledger, UpdateEnded, UpdateMade
from tests.simulator.limits import Limiter
from tests.simulator.updates import expires_at_ms, kind_of, queue_of, wanted
from tests.simulator.wire import JsonObject, Silence, encode

UPDATE_ID_MAX = 2_000_000_000
FIRST_UPDATE_IDS = (2_000_001, 1_000_000_000)

# Undocumented; about 15 s were measured, 20 s failed (telegram.md §2.6).
CALLBACK_WINDOW_MS = 15_000
# The same: users say five to ten seconds.
INLINE_WINDOW_MS = 10_000
# Documented (answerPreCheckoutQuery).
CHECKOUT_WINDOW_MS = 10_000


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where a bot wants its updates."""

    url: str
    max_connections: int
    secret_token: str
    ip_address: str
    allowed: tuple[str, ...] | None
    certificate: bytes | None = None


@dataclass(slots=True, eq=False)
class Bot:
    """A bot and what belongs to it alone."""

    id: int
    token: str
    username: str
    first_name: str
    deliverer: Deliverer
    next_update_id: int
    revoked: bool = False
    # People who have written to it, and those of them who block it.
    met: set[int] = field(default_factory=set)
    blocked_by: set[int] = field(default_factory=set)
    last_message_id: int = 0
    # What it can pay for broadcasts with, in tenths of a Star.
    stars_tenths: int = 0
    webhook: Webhook | None = None
    # Kept for getUpdates and the next webhook alike; None is the default set.
    allowed: tuple[str, ...] | None = None
    set_webhook_again_ms: int = 0
    last_error_s: int | None = None
    last_error: str = ""
    # Raised by whoever ends a running long poll, with the reason.
    poll: int = 0
    poll_ended_by: str = ""
    # What its menu shows, by audience.
    commands: dict[str, list[JsonObject]] = field(default_factory=dict)
    # Bodies of all updates ever made, for a delivery that is repeated on purpose.
    archive: dict[int, Pending] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """Telegram's `User` for a bot."""
        return {
            "id": self.id,
            "is_bot": True,
            "first_name": self.first_name,
            "username": self.username,
        }


@dataclass(slots=True, eq=False)
class Query:
    """A button press, or another question of a person, that waits for its answer."""

    id: str
    bot_id: int
    user_id: int
    chat_id: int | None
    message_id: int | None
    pressed_at_ms: int
    data: str = ""
    answer: JsonObject | None = None
    kind: str = "callback_query"
    window_ms: int = CALLBACK_WINDOW_MS
    paid: bool = False

    def waits(self, now_ms: int) -> bool:
        """Say whether an answer would still be taken."""
        return self.answer is None and now_ms <= self.pressed_at_ms + self.window_ms


@dataclass(frozen=True, slots=True)
class Told:
    """Something that a person in front of the chat page can see."""

    kind: str
    bot_id: int | None
    chat_id: int | None
    data: JsonObject


class State:
    """The world's memory."""

    def __init__(self, clock: Clock, limiter: Limiter, seed: int = 0) -> None:
        self.clock = clock
        self.limiter = limiter
        self.ledger = Ledger()
        # Chance in the world: ids and long delays; equal seeds give equal worlds.
        self.dice = random.Random(seed)
        self.delivery_rules = DeliveryRules()
        self.bots: dict[int, Bot] = {}
        self.users: dict[int, User] = {}
        self.chats: dict[int, Chat] = {}
        self.conversations: dict[tuple[int, int, str], Conversation] = {}
        self.queries: dict[str, Query] = {}
        self.inline_messages: dict[tuple[int, str], tuple[str, Keyboard]] = {}
        self.business: set[tuple[int, str]] = set()
        # What was uploaded, by the number that is part of each of its file_ids.
        self.files: dict[int, bytes] = {}
        self.silences: list[Silence] = []
        # What is for sale, by bot and payload: its currency and its price.
        self.offers: dict[tuple[int, str], JsonObject] = {}
        # Ways into a chat, by bot and chat, and each by its address.
        self.links: dict[tuple[int, int], dict[str, JsonObject]] = {}
        # Texts that are being written before somebody's eyes, by bot, chat and draft.
        self.drafts: dict[tuple[int, int, int], str] = {}
        self._listeners: list[Callable[[Told], None]] = []

    def now_s(self) -> int:
        """Now, as Telegram dates things."""
        return self.clock.now_ms() // 1000

    # Telling

    def listen(self, listener: Callable[[Told], None]) -> Callable[[], None]:
        """Call `listener` at everything that happens; call the returned function to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(
        self, kind: str, bot_id: int | None = None, chat_id: int | None = None, **data: object
    ) -> None:
        """Tell every listener."""
        told = Told(kind, bot_id, chat_id, data)
        for listener in list(self._listeners):
            listener(told)

    # Bots

    def add_bot(self, token: str, username: str, first_name: str) -> Bot:
        """Make a bot known by its token; one already known stays as it is."""
        bot_id = int(token.partition(":")[0])
        if bot_id in self.bots:
            return self.bots[bot_id]
        bot = Bot(
            id=bot_id,
            token=token,
            username=username or f"bot{bot_id}_bot",
            first_name=first_name or "Ferry",
            deliverer=Deliverer(self.dice.random, self.delivery_rules),
            next_update_id=self.dice.randint(*FIRST_UPDATE_IDS),
        )
        self.bots[bot_id] = bot
        return bot

    def set_delivery_rules(self, rules: DeliveryRules) -> None:
        """Put other delivery rules in force for every bot."""
        self.delivery_rules = rules
        for bot in self.bots.values():
            bot.deliverer.rules = rules

    # Conversations

    def conversation(self, bot_id: int, chat_id: int, connection: str = "") -> Conversation:
        """The messages of a chat as this bot knows it; groups are shared, private chats are not."""
        shared = chat_id in self.chats and not connection
        key = (0 if shared else bot_id, chat_id, connection)
        return self.conversations.setdefault(key, Conversation())

    def next_message_id(self, bot: Bot | None, conversation: Conversation) -> int:
        """An id for a new message; all private chats of one bot count together."""
        if bot is None:
            return conversation.highest_id + 1
        bot.last_message_id = max(bot.last_message_id, conversation.highest_id) + 1
        return bot.last_message_id

    def show(self, kind: str, bot_id: int, chat_id: int, message: Message) -> None:
        """Tell that a message is new, edited or deleted."""
        self.tell(kind, bot_id, chat_id, message_id=message.message_id)

    # Updates

    def publish(self, bot: Bot, kind: str, payload: JsonObject) -> int | None:
        """Queue an update for a bot; its id, or None when the bot does not want this kind."""
        if not wanted(kind, bot.allowed):
            return None
        return self.queue(bot, self.take_update_id(bot), {kind: payload})

    def queue(self, bot: Bot, update_id: int, parts: JsonObject) -> int:
        """Queue an update under an id of the caller's choice; `parts` is the rest of its body."""
        now_ms = self.clock.now_ms()
        kind, payload = kind_of(parts)
        update = Pending(
            update_id=update_id,
            kind=kind,
            queue=queue_of(kind, payload),
            body=encode({"update_id": update_id, **parts}),
            expires_at_ms=expires_at_ms(kind, payload, now_ms),
        )
        self.ledger.append(
            UpdateMade(
                at_ms=now_ms,
                bot_id=bot.id,
                update_id=update_id,
                kind=kind,
                queue=update.queue,
                expires_at_ms=update.expires_at_ms,
            )
        )
        bot.archive[update_id] = update
        if not bot.deliverer.offer(update):
            self.end_updates(bot, [update_id], "overflowed")
        self.tell("update", bot.id, None, update_id=update_id)
        return update_id

    def end_updates(self, bot: Bot, update_ids: Collection[int], end: str) -> None:
        """Write down how updates left the queue."""
        for update_id in update_ids:
            self.ledger.append(
                UpdateEnded(at_ms=self.clock.now_ms(), bot_id=bot.id, update_id=update_id, end=end)
            )
            self.tell("ended", bot.id, None, update_id=update_id, end=end)

    def sweep(self, bot: Bot) -> None:
        """Give up on the updates of a bot that have outlived themselves."""
        self.end_updates(bot, bot.deliverer.expired(self.clock.now_ms()), "expired")

    def drop_pending(self, bot: Bot) -> None:
        """Throw away everything that waits for a bot."""
        update_ids = [update.update_id for update in bot.deliverer.pending]
        for update_id in update_ids:
            bot.deliverer.forget(update_id)
        self.end_updates(bot, update_ids, "dropped")

    def take_update_id(self, bot: Bot) -> int:
        """Return the next number of a bot's updates."""
        if bot.next_update_id >= UPDATE_ID_MAX:
            # Telegram empties the queue and starts anew somewhere (telegram.md §1.6).
            self.drop_pending(bot)
            bot.next_update_id = self.dice.randint(*FIRST_UPDATE_IDS)
        bot.next_update_id += 1
        return bot.next_update_id - 1
