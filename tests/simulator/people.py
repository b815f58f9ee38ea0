"""What people do at Telegram, and the updates by which bots learn of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.simulator.chats import Chat, ChatType, Conversation, Message, Standing, User
from tests.simulator.entities import Formatted, found_in
from tests.simulator.newcomers import introduce
from tests.simulator.state import (
    CHECKOUT_WINDOW_MS,
    INLINE_WINDOW_MS,
    Bot,
    Query,
    State,
)
from tests.simulator.wire import JsonObject

FIRST_USER_ID = 5_000_001
# As Telegram numbers them: groups below zero, supergroups and channels with the prefix -100.
FIRST_GROUP_ID = -4_000_001
FIRST_SUPERGROUP_ID = -1_002_000_000_001
# Where everybody lives who has something shipped.
ADDRESS: JsonObject = {
    "country_code": "DE",
    "state": "",
    "city": "Kiel",
    "street_line1": "Quay 1",
    "street_line2": "",
    "post_code": "24103",
}


class Impossible(Exception):
    """A person tried what Telegram does not let them do."""


@dataclass(frozen=True, slots=True)
class Said:
    """A person's message and the updates that tell of it."""

    message: Message
    update_ids: tuple[int, ...]


class People:
    """Acts of people; each raises Impossible or KeyError when it cannot be done."""

    def __init__(self, state: State) -> None:
        self._state = state

    # Who there is

    def add_user(
        self,
        first_name: str,
        *,
        user_id: int | None = None,
        username: str | None = None,
        language_code: str | None = None,
    ) -> User:
        """Make a person; one already known by that id stays as they are."""
        users = self._state.users
        chosen = user_id if user_id is not None else max([FIRST_USER_ID - 1, *users]) + 1
        return users.setdefault(chosen, User(chosen, first_name, username, language_code))

    def add_chat(
        self,
        kind: ChatType,
        title: str,
        *,
        chat_id: int | None = None,
        users: tuple[int, ...] = (),
        bots: tuple[int, ...] = (),
    ) -> Chat:
        """Make a group, supergroup or channel; its first user is its creator."""
        chat = Chat(self._chat_id(kind, chat_id), kind, title)
        self._state.chats[chat.id] = chat
        for user_id in users:
            chat.standings[user_id] = Standing.MEMBER if chat.standings else Standing.CREATOR
        for bot_id in bots:
            is_channel = kind is ChatType.CHANNEL
            standing = Standing.ADMINISTRATOR if is_channel else Standing.MEMBER
            chat.standings[bot_id] = standing
        return chat

    # Messages

    def says(
        self,
        user_id: int,
        text: str,
        *,
        bot_id: int | None = None,
        chat_id: int | None = None,
        reply_to: int | None = None,
        shows: JsonObject | None = None,
    ) -> Said:
        """Write to a bot in private, or into a group; writing to a blocked bot unblocks it.

        `shows`: what the message is besides its words, such as a photo; then they are its caption.
        """
        user = self._active(user_id)
        content = Formatted(text, found_in(text)).trimmed()
        if not content.text and not shows:
            raise Impossible("a message has a text")
        bot, conversation, shown = self._where(user, bot_id, chat_id)
        if bot is not None:
            if user_id in bot.blocked_by:
                self.unblocks(user_id, bot_id=bot.id)
            bot.met.add(user_id)
        message = conversation.keep(
            Message(
                message_id=self._state.next_message_id(bot, conversation),
                date_s=self._state.now_s(),
                chat=shown,
                sender=user.to_json(),
                content=content,
                is_caption=bool(shows),
                reply_to=None if reply_to is None else conversation.find(reply_to),
                extra=dict(shows or {}),
            )
        )
        said = self._publish("message", message, bot, chat_id)
        self._show("message", message, bot, chat_id)
        return said

    def edits(
        self,
        user_id: int,
        message_id: int,
        text: str,
        *,
        bot_id: int | None = None,
        chat_id: int | None = None,
    ) -> Said:
        """Change a message of one's own."""
        bot, message = self._own(user_id, message_id, bot_id, chat_id)
        message.content = Formatted(text, found_in(text)).trimmed()
        message.edit_date_s = self._state.now_s()
        self._show("edited", message, bot, chat_id)
        return self._publish("edited_message", message, bot, chat_id)

    def deletes(
        self,
        user_id: int,
        message_id: int,
        *,
        bot_id: int | None = None,
        chat_id: int | None = None,
    ) -> None:
        """Take a message away; bots are not told, but can no longer quote it."""
        bot, conversation, _ = self._where(self._active(user_id), bot_id, chat_id)
        message = conversation.find(message_id)
        if message is None:
            raise Impossible(f"no message {message_id}")
        message.deleted = True
        self._show("deleted", message, bot, chat_id)

    def presses(
        self, user_id: int, message_id: int, data: str, *, bot_id: int, chat_id: int | None = None
    ) -> Query:
        """Press a button of an inline keyboard."""
        state = self._state
        user, bot = self._active(user_id), state.bots[bot_id]
        _, conversation, shown = self._where(user, bot_id, chat_id)
        message = conversation.find(message_id)
        buttons = [] if message is None else [button for row in message.keyboard for button in row]
        if message is None or data not in [button.get("callback_data") for button in buttons]:
            raise Impossible(f"message {message_id} has no button with this data")
        place = shown["id"]
        assert isinstance(place, int)
        query = Query(
            str(state.dice.randint(10**17, 10**18)),
            bot_id,
            user_id,
            place,
            message_id,
            state.clock.now_ms(),
            data,
        )
        state.queries[query.id] = query
        payload: JsonObject = {
            "id": query.id,
            "from": user.to_json(),
            "message": message.to_json(),
            "chat_instance": str(abs(place) * 7919),
            "data": data,
        }
        state.publish(bot, "callback_query", payload)
        state.tell("pressed", bot_id, place, callback_query_id=query.id, message_id=message_id)
        return query

    def asks_inline(self, user_id: int, text: str, *, bot_id: int) -> Query:
        """Write `@bot text` anywhere: an inline query."""
        query = self._question("inline_query", user_id, bot_id, INLINE_WINDOW_MS)
        self._ask(query, {"query": text, "offset": ""})
        return query

    def checks_out(self, user_id: int, payload: str, *, bot_id: int) -> Query:
        """Press the last button before paying: a pre-checkout query."""
        query = self._question("pre_checkout_query", user_id, bot_id, CHECKOUT_WINDOW_MS)
        query.data = payload
        self._ask(query, {**self._offer(bot_id, payload), "invoice_payload": payload})
        return query

    def asks_shipping(self, user_id: int, payload: str, *, bot_id: int) -> Query:
        """Give an address for what is to be shipped: a shipping query."""
        query = self._question("shipping_query", user_id, bot_id, CHECKOUT_WINDOW_MS)
        self._ask(query, {"invoice_payload": payload, "shipping_address": ADDRESS})
        return query

    def pays(self, query_id: str) -> Said:
        """Pay what the bot has confirmed; it is told by a message in the private chat."""
        query = self._state.queries[query_id]
        if query.kind != "pre_checkout_query" or not (query.answer or {}).get("ok"):
            raise Impossible(f"the bot has not confirmed {query_id}")
        if query.paid:
            raise Impossible(f"{query_id} is paid already")
        query.paid = True
        user = self._active(query.user_id)
        payment = {
            **self._offer(query.bot_id, query.data),
            "invoice_payload": query.data,
            "telegram_payment_charge_id": f"sim-{query_id}",
            "provider_payment_charge_id": f"sim-{query_id}",
        }
        bot, conversation, shown = self._where(user, query.bot_id, None)
        message = conversation.keep(
            Message(
                message_id=self._state.next_message_id(bot, conversation),
                date_s=self._state.now_s(),
                chat=shown,
                sender=user.to_json(),
                extra={"successful_payment": payment},
            )
        )
        self._show("message", message, bot, None)
        return self._publish("message", message, bot, None)

    def stops_generation(self, user_id: int, draft_id: int, *, bot_id: int) -> None:
        """Stop a text that a bot is writing before one's eyes."""
        user, bot = self._active(user_id), self._state.bots[bot_id]
        if self._state.drafts.pop((bot_id, user_id, draft_id), None) is None:
            raise Impossible(f"no draft {draft_id} is being written")
        payload: JsonObject = {"chat": user.as_chat(), "draft_id": draft_id}
        self._state.publish(bot, "stopped_message_generation", payload)

    # Standing

    def slows(self, user_id: int, seconds: int, *, chat_id: int) -> None:
        """Put a supergroup into slow mode; it does not hold its administrators back."""
        chat = self._state.chats[chat_id]
        if chat.standing(self._active(user_id).id) is not Standing.CREATOR:
            raise Impossible(f"only its creator can slow {chat.title} down")
        if chat.type is not ChatType.SUPERGROUP:
            raise Impossible(f"{chat.title} is no supergroup")
        chat.slow_s = seconds

    def opens_topics(self, user_id: int, *, chat_id: int) -> None:
        """Turn a supergroup into a forum."""
        chat = self._state.chats[chat_id]
        if chat.standing(self._active(user_id).id) is not Standing.CREATOR:
            raise Impossible(f"only its creator can open topics in {chat.title}")
        if chat.type is not ChatType.SUPERGROUP:
            raise Impossible(f"{chat.title} is no supergroup")
        chat.is_forum = True

    def blocks(self, user_id: int, *, bot_id: int) -> None:
        """Stop a bot."""
        bot, user = self._state.bots[bot_id], self._active(user_id)
        bot.blocked_by.add(user_id)
        self._member_update(bot, user, user.as_chat(), Standing.MEMBER, Standing.KICKED)

    def unblocks(self, user_id: int, *, bot_id: int) -> None:
        """Let it write again."""
        bot, user = self._state.bots[bot_id], self._active(user_id)
        bot.blocked_by.discard(user_id)
        self._member_update(bot, user, user.as_chat(), Standing.KICKED, Standing.MEMBER)

    def deactivates(self, user_id: int) -> None:
        """Delete one's account; nobody is told."""
        self._state.users[user_id].deactivated = True

    def adds_bot(self, user_id: int, *, bot_id: int, chat_id: int) -> None:
        """Bring a bot into a group."""
        self._restand(user_id, bot_id, chat_id, Standing.MEMBER)

    def kicks_bot(self, user_id: int, *, bot_id: int, chat_id: int) -> None:
        """Throw a bot out of a group."""
        self._restand(user_id, bot_id, chat_id, Standing.KICKED)

    def upgrades(self, user_id: int, *, chat_id: int) -> Chat:
        """Turn a group into a supergroup: another id, and a service message on both sides."""
        old, user = self._state.chats[chat_id], self._active(user_id)
        if old.type is not ChatType.GROUP or old.migrated_to is not None:
            raise Impossible(f"{chat_id} is no group that could become a supergroup")
        new = self.add_chat(ChatType.SUPERGROUP, old.title)
        new.standings = dict(old.standings)
        old.migrated_to = new.id
        self._service(old, user, {"migrate_to_chat_id": new.id})
        self._service(new, user, {"migrate_from_chat_id": old.id})
        return new

    def dissolves(self, user_id: int, *, chat_id: int) -> None:
        """Delete a group for everybody; bots are not told."""
        chat = self._state.chats[chat_id]
        if chat.standing(self._active(user_id).id) is not Standing.CREATOR:
            raise Impossible(f"only its creator can delete {chat.title}")
        chat.deleted = True

    # Anything else

    def inject(self, bot_id: int, update: Mapping[str, object], *, keep_id: bool = False) -> int:
        """Queue an update from elsewhere as it is, its world made known; the update's id.

        Whether the bot wants its kind is not asked: what waits already arrives all the same.
        """
        state, bot = self._state, self._state.bots[bot_id]
        parts = {name: value for name, value in update.items() if name != "update_id"}
        for kind, payload in parts.items():
            if isinstance(payload, dict):
                introduce(state, bot, kind, payload)
        update_id = update.get("update_id") if keep_id else state.take_update_id(bot)
        if not isinstance(update_id, int) or isinstance(update_id, bool):
            raise Impossible("an update that keeps its id has one")
        if update_id in bot.archive:
            raise Impossible(f"update {update_id} exists already")
        return state.queue(bot, update_id, parts)

    # Inside

    def _offer(self, bot_id: int, payload: str) -> JsonObject:
        """What an order costs; one that no invoice tells of costs a Star."""
        return self._state.offers.get((bot_id, payload), {"currency": "XTR", "total_amount": 1})

    def _question(self, kind: str, user_id: int, bot_id: int, window_ms: int) -> Query:
        state = self._state
        query = Query(
            str(state.dice.randint(10**17, 10**18)),
            bot_id,
            self._active(user_id).id,
            None,
            None,
            state.clock.now_ms(),
            kind=kind,
            window_ms=window_ms,
        )
        state.queries[query.id] = query
        return query

    def _ask(self, query: Query, shown: JsonObject) -> None:
        user = self._active(query.user_id)
        payload = {"id": query.id, "from": user.to_json(), **shown}
        self._state.publish(self._state.bots[query.bot_id], query.kind, payload)

    def _active(self, user_id: int) -> User:
        user = self._state.users[user_id]
        if user.deactivated:
            raise Impossible(f"{user.first_name} has deleted their account")
        return user

    def _where(
        self, user: User, bot_id: int | None, chat_id: int | None
    ) -> tuple[Bot | None, Conversation, JsonObject]:
        if chat_id is None or chat_id == user.id:
            if bot_id is None:
                raise Impossible("a private chat needs a bot")
            bot = self._state.bots[bot_id]
            return bot, self._state.conversation(bot.id, user.id), user.as_chat()
        chat = self._state.chats[chat_id]
        if chat.migrated_to is not None or chat.deleted:
            raise Impossible(f"{chat.title} is no more; {chat.migrated_to or 'nothing'} is instead")
        return None, self._state.conversation(0, chat.id), chat.to_json()

    def _own(
        self, user_id: int, message_id: int, bot_id: int | None, chat_id: int | None
    ) -> tuple[Bot | None, Message]:
        bot, conversation, _ = self._where(self._active(user_id), bot_id, chat_id)
        message = conversation.find(message_id)
        if message is None or (message.sender or {}).get("id") != user_id:
            raise Impossible(f"message {message_id} is not theirs")
        return bot, message

    def _audience(self, bot: Bot | None, chat_id: int | None) -> list[Bot]:
        if bot is not None:
            return [bot]
        assert chat_id is not None
        here = (Standing.MEMBER, Standing.ADMINISTRATOR)
        chat = self._state.chats[chat_id]
        return [bot for bot in self._state.bots.values() if chat.standing(bot.id) in here]

    def _publish(self, kind: str, message: Message, bot: Bot | None, chat_id: int | None) -> Said:
        shown = message.to_json()
        ids = [
            (each.id, update_id)
            for each in self._audience(bot, chat_id)
            if (update_id := self._state.publish(each, kind, shown)) is not None
        ]
        message.update_ids = tuple(ids)
        return Said(message, tuple(update_id for _, update_id in ids))

    def _show(self, kind: str, message: Message, bot: Bot | None, chat_id: int | None) -> None:
        place = message.chat["id"]
        assert isinstance(place, int)
        for each in self._audience(bot, chat_id):
            self._state.show(kind, each.id, place, message)

    def _restand(self, user_id: int, bot_id: int, chat_id: int, standing: Standing) -> None:
        bot, chat = self._state.bots[bot_id], self._state.chats[chat_id]
        before = chat.standing(bot_id) or Standing.LEFT
        chat.standings[bot_id] = standing
        self._member_update(bot, self._active(user_id), chat.to_json(), before, standing)

    def _member_update(
        self, bot: Bot, user: User, chat: JsonObject, old: Standing, new: Standing
    ) -> None:
        self._state.publish(
            bot,
            "my_chat_member",
            {
                "chat": chat,
                "from": user.to_json(),
                "date": self._state.now_s(),
                "old_chat_member": _member(bot, old),
                "new_chat_member": _member(bot, new),
            },
        )
        place = chat["id"]
        assert isinstance(place, int)
        self._state.tell("standing", bot.id, place, standing=str(new))

    def _service(self, chat: Chat, user: User, extra: JsonObject) -> None:
        conversation = self._state.conversation(0, chat.id)
        message = conversation.keep(
            Message(
                message_id=self._state.next_message_id(None, conversation),
                date_s=self._state.now_s(),
                chat=chat.to_json(),
                sender=user.to_json(),
                extra=extra,
            )
        )
        self._publish("message", message, None, chat.id)
        self._show("message", message, None, chat.id)

    def _chat_id(self, kind: ChatType, chosen: int | None) -> int:
        taken = self._state.chats
        first = FIRST_GROUP_ID if kind is ChatType.GROUP else FIRST_SUPERGROUP_ID
        if chosen is None:
            chosen = first
            while chosen in taken:
                chosen -= 1
        if chosen in taken:
            raise Impossible(f"chat {chosen} exists already")
        return chosen


def _member(bot: Bot, standing: Standing) -> JsonObject:
    """Telegram's `ChatMember` for a bot."""
    shown: JsonObject = {"user": bot.to_json(), "status": str(standing)}
    if standing is Standing.KICKED:
        shown["until_date"] = 0
    return shown
