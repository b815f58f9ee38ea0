"""The keeper of a house: decides held calls as a person would, after a look into the chat.

A sender that died between the call and its record leaves a call that nobody in the house can judge;
under `on_uncertain = "hold"` it waits for a person. The keeper looks whether the chat shows a
message that the house knows nothing of, and types what `ferryman review resolve` is for. May judge
nothing else, and never looks at what the house was about to say next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from storage import inbox, review
from storage.database import Tx
from storage.lifecycle import InboxId, InboxState, OutboxId, OutboxState
from storage.review import Decision
from tests.crash.books import Books, Row, read_books
from tests.crash.living import Living

_HELD: Final = frozenset({OutboxState.UNCERTAIN, OutboxState.REVIEW})
# Whose answers are the point: nobody can tell the handler the number of such a poll, so a person
# takes the one that came away, and has the bot send another.
_AWAITED: Final = frozenset({"sendPoll"})
_LOOK_MS: Final = 200


@dataclass(slots=True)
class Keeper:
    """Looks after one house, and remembers what they have decided."""

    living: Living = field(repr=False)
    found_sent: int = 0
    # The numbers of the polls that were taken away, to be sent anew.
    replaced: list[int] = field(default_factory=list)
    # How many turns were handled anew, as what they waited for had been held.
    handled_again: int = 0
    # The words of what was sent again by hand: it may stand behind what was said after it.
    sent_again: list[str] = field(default_factory=list)
    _known: set[int] = field(default_factory=set)

    async def keep(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await self.living.clock.sleep_ms(_LOOK_MS)

    async def look(self) -> bool:
        """Decide all that is held now; whether anything was."""
        books = read_books(self.living.house.database_path)
        attempts = books.attempts_of()
        held = [row for row in books.rows if row.state in _HELD]
        dead = {update.id for update in books.updates if update.state == InboxState.DEAD}
        for row in held:
            assert attempts[row.id], row
            if row.method not in _AWAITED:
                await self._decide(row, await self._came(row, books))
            elif _cause(row) in dead:
                await self._decide_awaited(row, await self._came(row, books))
        return bool(held)

    async def _came(self, row: Row, books: Books) -> Sequence[int]:
        """What stands in the chat with these words, and is nobody's."""
        assert row.chat_id is not None, row
        arrivals = (await self.living.sim.ledger()).arrivals(row.method, row.chat_id)
        known = {*self._known, *(each.message_id for each in books.rows)}
        return [
            each.message_id
            for each in arrivals
            if each.effect
            and each.message_id is not None
            and each.message_id not in known
            and _words(each.params) == _words(row.params)
        ]

    async def _decide(self, row: Row, came: Sequence[int]) -> None:
        if not came:
            self.sent_again.append(row.text)
            await self._types("review", "resolve", f"c{row.id}", "resend")
            return
        self.found_sent += 1
        self._known.add(came[0])
        number = str(came[0])
        await self._types("review", "resolve", f"c{row.id}", "sent", "--message-id", number)

    async def _decide_awaited(self, row: Row, came: Sequence[int]) -> None:
        """Have it sent again, and its turn handled again, which could not wait for the decision.

        Both at once: whoever sees the new poll may answer it before a second command was typed.
        """
        assert row.chat_id is not None
        for number in came:
            self._known.add(number)
            self.replaced.append(number)
            await self.living.sim.deletes(row.chat_id, number, bot=self.living.load.bot.id)

        def decide(tx: Tx) -> bool:
            resolved = review.resolve(tx, OutboxId(row.id), Decision.RESEND, by="the keeper")
            return resolved and inbox.requeue(tx, _cause(row))

        assert await self.living.house.write(decide)
        self.handled_again += 1

    async def _types(self, *words: str) -> None:
        code, told = await self.living.house.command(*words)
        assert code == 0, told


def _cause(row: Row) -> InboxId:
    """The update whose turn has made a call."""
    _, number, *_ = row.key.split(":")
    return InboxId(int(number))


def _words(params: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(params.get(name, "") for name in ("text", "caption", "question", "title"))
