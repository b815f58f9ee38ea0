"""A person who has a dialogue with a bot: does what it says, and waits to see what it says.

What the bot has said so far is compared as a whole whenever the person was to see something, so
that nothing may be missing, doubled or out of order at any of these times.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, assert_never

from storage.clock import Clock
from tests.live.dialogue import (
    Act,
    Becomes,
    ChecksOut,
    Gives,
    Hears,
    Presses,
    Says,
    Sees,
    Ships,
    Steps,
    Votes,
    buttons_of,
    is_as_expected,
    line_of,
    transcript,
)
from tests.simulator.control import Control, MessageView

_LOOK_MS: Final = 50
# Longer than any job of the scripts waits.
_JOB_MS: Final = 2_000
_WONDERS_MS: Final = 4_000
# Telegram waits ten seconds for these answers; then the person sees a failure, and tries again.
_ASKED_S: Final = 11.0
_ASKED_AGAIN_MAX: Final = 5
_SHIPPING_ID: Final = 4_000_000_000


class NotSeen(AssertionError):
    """The person does not see what they should; both are in the text."""


def nothing() -> Collection[str]:
    """No message was sent again by hand."""
    return ()


@dataclass(slots=True)
class Manner:
    """How a person goes about it.

    `patience_ms`: how long they wait for what they should see. `pause_ms`: they think up to so long
    before they do anything. `is_lenient`: what can't be promised is not waited for: words of jobs
    that live in memory, and answers for which Telegram waits only seconds. `moved`: see
    dialogue.is_as_expected.
    """

    patience_ms: int = 20_000
    pause_ms: int = 0
    is_lenient: bool = False
    moved: Callable[[], Collection[str]] = nothing


@dataclass(slots=True)
class Person:
    """One person, and what they have seen so far."""

    sim: Control
    bot: int
    user: int
    clock: Clock
    manner: Manner = field(default_factory=Manner)
    dice: random.Random = field(default_factory=lambda: random.Random(1))
    expected: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    # The queries of the buttons that were pressed, each with the answer that belongs to it.
    pressed: dict[str, str] = field(default_factory=dict)
    _line_pressed: str = ""
    _vote: Votes | None = None
    _poll: int = 0
    _asked: int = 0

    async def has(self, dialogue: Steps) -> None:
        """Have a dialogue from its first step to its last. Raises NotSeen."""
        self.heard = [step.line for step in dialogue if isinstance(step, Hears)]
        is_curious = False
        for step in dialogue:
            match step:
                case Sees():
                    self.expected += step.lines
                case Becomes():
                    self._edited(step)
                case Hears() if self.manner.is_lenient:
                    await self._listens(step)
                case Hears():
                    self.expected.append(step.line)
                case _:
                    if is_curious:
                        await self.looks()
                    await self.clock.sleep_ms(self.dice.randint(0, self.manner.pause_ms))
                    await self._does(step)
            is_curious = isinstance(step, Sees | Becomes | Hears)
        await self.looks()

    async def looks(self) -> None:
        """Wait until all is there as it should be. Raises NotSeen."""
        give_up_ms = self.clock.monotonic_ms() + self.manner.patience_ms
        while not is_as_expected(await self.seen(), self.expected, self.manner.moved()):
            await self._votes_anew()
            if self.clock.monotonic_ms() > give_up_ms:
                raise NotSeen(f"expected {self.expected}\n     saw {await self.seen()}")
            await self.clock.sleep_ms(_LOOK_MS)

    async def _listens(self, step: Hears) -> None:
        """Give a job its time; afterwards it has said its words, or it is gone."""
        give_up_ms = self.clock.monotonic_ms() + _JOB_MS
        while step.line not in transcript(await self._chat()):
            if self.clock.monotonic_ms() > give_up_ms:
                return
            await self.clock.sleep_ms(_LOOK_MS)

    async def seen(self) -> list[str]:
        """What they see now; a lenient person does not count what jobs have said."""
        lines = transcript(await self._chat())
        if not self.manner.is_lenient:
            return lines
        return [line for line in lines if line not in self.heard]

    async def too_often(self) -> list[str]:
        """What jobs have said more often than they were set to."""
        said = Counter(transcript(await self._chat()))
        wished = Counter(self.heard)
        return [line for line in wished if said[line] > wished[line]]

    async def _chat(self) -> list[MessageView]:
        return await self.sim.conversation(self.bot, self.user)

    def _edited(self, step: Becomes) -> None:
        was = step.was or self._line_pressed
        place = len(self.expected) - 1 - self.expected[::-1].index(was)
        self.expected[place] = step.line

    async def _does(self, act: Act) -> None:
        match act:
            case Says(text=text):
                await self.sim.says(self.user, text, bot=self.bot)
            case Gives(shows=shows, caption=caption):
                await self.sim.says(self.user, caption, bot=self.bot, shows=shows)
            case Presses():
                await self._presses(act)
            case Votes():
                await self._votes(act)
            case Ships() | ChecksOut():
                await self._asks(act)
            case _:
                assert_never(act)

    async def _presses(self, act: Presses) -> None:
        chat = await self._chat()
        message, data = [
            (each, button.data)
            for each in chat
            for button in buttons_of(each)
            if button.text == act.label and not each.deleted
        ][-1]
        assert data is not None
        self._line_pressed = line_of(message, chat)
        query = await self.sim.presses(self.user, message.message_id, data, bot=self.bot)
        self.pressed[query] = act.toast
        if not self.manner.is_lenient:
            answer = await self.sim.wait_answered(query, timeout_s=self.manner.patience_ms / 1000)
            assert answer["text"] == act.toast, answer

    async def _votes_anew(self) -> None:
        """Answer the poll that stands where the one was that they have answered, and is gone."""
        if self._vote is None:
            return
        shown = {each.message_id: each for each in await self._chat()}
        if shown[self._poll].deleted and any(
            "poll" in each.shows and each.message_id > self._poll for each in shown.values()
        ):
            assert self.manner.is_lenient
            # They wonder; meanwhile the bot has learnt of the new poll.
            await self.clock.sleep_ms(_WONDERS_MS)
            await self._votes(self._vote)

    async def _votes(self, act: Votes) -> None:
        shown = [each for each in await self._chat() if "poll" in each.shows]
        polls = [each.shows["poll"] for each in shown]
        self._vote, self._poll = act, shown[-1].message_id
        assert isinstance(polls[-1], dict)
        who = {"id": self.user, "is_bot": False, "first_name": "Ada"}
        if act.friend:
            who |= {"id": self.user + 1_000_000, "first_name": act.friend}
        options = [polls[-1]["options"][number] for number in act.options]
        answer = {
            "poll_id": polls[-1]["id"],
            "user": who,
            "option_ids": list(act.options),
            "option_persistent_ids": [each["persistent_id"] for each in options],
        }
        await self.sim.inject(self.bot, {"poll_answer": answer})

    async def _asks(self, act: Ships | ChecksOut) -> None:
        """Ask until the answer is in time: Telegram itself tells of one that was late."""
        for _ in range(_ASKED_AGAIN_MAX):
            query = await self._ask(act)
            try:
                answer = await self.sim.wait_answered(query, timeout_s=_ASKED_S)
            except TimeoutError:
                assert self.manner.is_lenient, f"no answer to {act}"
                continue
            assert answer == {"ok": not act.refusal, "text": act.refusal}, answer
            return
        raise NotSeen(f"no answer to {act}")

    async def _ask(self, act: Ships | ChecksOut) -> str:
        if isinstance(act, ChecksOut):
            return await self.sim.checks_out(self.user, act.payload, bot=self.bot)
        self._asked += 1
        query = str(_SHIPPING_ID + self.user * 100 + self._asked)
        where = {"country_code": act.country, "state": "", "city": "Town"}
        shipping = {
            "id": query,
            "from": {"id": self.user, "is_bot": False, "first_name": "Ada"},
            "invoice_payload": act.payload,
            "shipping_address": {
                **where,
                "street_line1": "Quay 1",
                "street_line2": "",
                "post_code": "1",
            },
        }
        await self.sim.inject(self.bot, {"shipping_query": shipping})
        return query
