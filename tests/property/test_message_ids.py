"""Whatever becomes of messages, a call that names them is made with their own ids or not at all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qsl

from hypothesis import given, settings
from hypothesis import strategies as st

from sender.calls import Call, Unsayable, render
from sender.examining import Examiner, Sayable
from storage import claims, message_ids, outbox, retention, review
from storage.carriers import RawConnection
from storage.claims import AttemptEnd, Claim
from storage.database import Tx, connect
from storage.lifecycle import AttemptStage, OutboxId, OutboxState, Priority
from storage.migrate import migrate
from storage.outgoing import Outgoing
from storage.retention import Kept
from storage.review import Decision
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

DAY_MS = 86_400_000
KEPT = Kept(inbox_days=1, outbox_days=1, placeholders_days=3650)
ANSWERED = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=5, status=200)
CHATS = st.sampled_from([7, 8])
PICKS = st.integers(0, 10_000)
MANY = st.lists(PICKS, min_size=1, max_size=4)
OUTCOMES = st.sampled_from(["sent"] * 4 + ["put off", "dead", "doubt"])
DECISIONS = st.sampled_from([Decision.RESEND, Decision.DROP, Decision.SENT])
EDITS = st.sampled_from(["editMessageText", "pinChatMessage"])
LISTS = st.sampled_from(["delete", "copy"])


@dataclass
class Told:
    """A message as a handler knows it, and what Telegram's ledger says of it."""

    placeholder: int
    row: OutboxId
    place: int
    made: int | None = None


Step = tuple[str, dict[str, object]]


class Placeholders:
    """Random messages, albums, copies and what names them; random ends; random forgetting."""

    def __init__(self) -> None:
        self.folder = TemporaryDirectory()
        self.clock = VirtualClock()
        path = Path(self.folder.name) / "ids.db"
        migrate(path, self.clock)
        self.raw: RawConnection = connect(path)
        self.raw.execute("pragma synchronous = off")
        self.told: list[Told] = []
        self.held: list[OutboxId] = []
        self.named: dict[OutboxId, Sequence[Told | int]] = {}
        self.number = 0
        self.message_id = 1_000
        self.next_placeholder = -1

    def close(self) -> None:
        self.raw.close()
        self.folder.cleanup()

    @property
    def tx(self) -> Tx:
        return Tx(self.raw, self.clock.now_ms())

    def pick(self, number: int) -> Told:
        """One of the messages that handlers know; a first one is said if there is none."""
        if not self.told:
            self.message(7, free=False)
        return self.told[number % len(self.told)]

    def leave(self, outgoing: Outgoing, named: Sequence[Told | int], *, free: bool = False) -> None:
        """Leave a call; what it makes is known to its handler from now on."""
        makes = outgoing.method.startswith(("send", "copy"))
        if not makes:
            row = outbox.enqueue(self.tx, BOT, outgoing).id
        elif free:
            left = outbox.enqueue_free(self.tx, BOT, outgoing)
            row, first = left.id, left.placeholder
            assert first is not None
            self.hand_out(row, first, outgoing.items)
        else:
            first = self.next_placeholder
            self.next_placeholder -= outgoing.items
            row = outbox.enqueue(self.tx, BOT, replace(outgoing, placeholder=first)).id
            self.hand_out(row, first, outgoing.items)
        self.named[row] = named

    def hand_out(self, row: OutboxId, first: int, items: int) -> None:
        self.told += [Told(first - place, row, place) for place in range(items)]

    def key(self) -> str:
        self.number += 1
        return f"n{self.number}"

    def message(self, chat: int, *, free: bool) -> None:
        self.leave(call(self.key(), chat_id=chat), (), free=free)

    def album(self, chat: int, items: int, *, free: bool) -> None:
        self.leave(
            call(self.key(), chat_id=chat, method="sendMediaGroup", items=items), (), free=free
        )

    def name_one(self, chat: int, pick: int, method: str) -> None:
        parent = self.pick(pick)
        params = {"chat_id": str(chat), "message_id": str(parent.placeholder)}
        self.leave(call(self.key(), chat_id=chat, method=method, params=params), [parent])

    def reply(self, chat: int, pick: int) -> None:
        parent = self.pick(pick)
        reply = json.dumps({"message_id": parent.placeholder, "chat_id": 9, "quote": "-5"})
        params = {"chat_id": str(chat), "text": "-5", "reply_parameters": reply}
        self.leave(call(self.key(), chat_id=chat, params=params), [parent])

    def follow(self, chat: int, pick: int) -> None:
        self.leave(call(self.key(), chat_id=chat, follows=self.pick(pick).placeholder), ())

    def name_many(self, chat: int, picks: list[int], method: str, *, real: bool) -> None:
        parents: list[Told | int] = [self.pick(pick) for pick in picks]
        named = [*parents, 3] if real else parents
        listed = json.dumps([each if isinstance(each, int) else each.placeholder for each in named])
        params = {"chat_id": str(chat), "from_chat_id": "9", "message_ids": listed}
        items = len(named) if method == "copy" else 1
        outgoing = call(self.key(), chat_id=chat, method=f"{method}Messages", params=params)
        self.leave(replace(outgoing, items=items), named)

    def send(self, outcome: str, *, skip: bool) -> None:
        """Let the sender's own examination pick what may go, make the call, and settle it."""
        heads = claims.heads(self.tx, BOT, Priority.INTERACTIVE, limit=9)
        examiner = Examiner(self.tx, BOT, self.clock, None)
        examiner.prepare(heads)
        for item in heads:
            sayable = examiner.examine(item)
            if isinstance(sayable, Sayable) and sayable.wait_ms == 0:
                [claim] = claims.claim(self.tx, [item], 1)
                made = render(item.method, item.params, sayable.message_ids)
                self.check_form(claim, made)
                self.settle(claim, outcome, skip=skip)
                return

    def check_form(self, claim: Claim, made: Call | Unsayable) -> None:
        """What leaves names just the messages that the ledger knows, and no other number."""
        assert isinstance(made, Call), made
        expected = [
            each if isinstance(each, int) else each.made for each in self.named[claim.item.id]
        ]
        assert _ids_in(made) == [each for each in expected if each is not None]
        is_list = "message_ids" in claim.item.params
        assert is_list or None not in expected, "a message that is not there has no calls"

    def settle(self, claim: Claim, outcome: str, *, skip: bool) -> None:
        row = claim.item.id
        claims.close_attempts(self.tx, [(claim, ANSWERED)])
        match outcome:
            case "dead":
                claims.end(self.tx, claim, OutboxState.DEAD, reason="refused")
            case "doubt":
                claims.hold(self.tx, claim, OutboxState.UNCERTAIN, reason="no answer")
                self.held.append(row)
            case _:
                self.accept(claim, put_off=outcome == "put off", skip=skip)

    def accept(self, claim: Claim, *, put_off: bool, skip: bool) -> None:
        """Telegram makes a message of each item that it got, or of all but one."""
        row, is_copy = claim.item.id, claim.item.method == "copyMessages"
        mine = [each for each in self.told if each.row == row]
        if is_copy:
            named = self.named[row]
            mine = [
                each
                for each, parent in zip(mine, named, strict=True)
                if isinstance(parent, int) or parent.made is not None
            ]
        ids: list[int] = []
        for _ in mine:
            self.message_id += 1
            ids.append(self.message_id)
        if put_off and ids:
            ids[-1] = 0
        lost = is_copy and skip and len(ids) > 1
        if lost:
            ids.pop()
        for each, message_id in zip(mine, ids, strict=not lost):
            each.made = None if lost else message_id or None
        result: object = [{"message_id": each} for each in ids] if claim.item.items > 1 else True
        body = json.dumps({"ok": True, "result": result}).encode()
        first = next((each for each in ids if each), None)
        claims.mark_sent(self.tx, [claims.Accepted(claim, first, result=body)])

    def decide(self, decision: Decision) -> None:
        if self.held:
            review.resolve(self.tx, self.held.pop(0), decision, by="ada")

    def forget(self, days: int) -> None:
        self.clock.advance_ms(days * DAY_MS)
        retention.prune(self.tx, KEPT, self.clock)

    def each_placeholder_stands_for_what_the_ledger_says(self) -> None:
        for each in self.told:
            found = message_ids.resolve(self.tx, BOT, each.placeholder)
            assert (None if found is None else found.message_id) == each.made, each


def _ids_in(made: Call) -> list[int]:
    """Every message that a posted form names, in order."""
    form = dict(parse_qsl(made.body.decode()))
    ids = [int(form["message_id"])] if "message_id" in form else []
    ids += json.loads(form.get("message_ids", "[]"))
    reply = json.loads(form.get("reply_parameters", "{}"))
    return ids + ([reply["message_id"]] if reply else [])


def step(name: str, **arguments: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    """One thing that happens, by the name of what carries it out."""
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


SENDS = step("send", outcome=OUTCOMES, skip=st.booleans())
STEPS = st.one_of(
    step("message", chat=CHATS, free=st.booleans()),
    step("album", chat=CHATS, items=st.integers(2, 4), free=st.booleans()),
    step("name_one", chat=CHATS, pick=PICKS, method=EDITS),
    step("name_many", chat=CHATS, picks=MANY, real=st.booleans(), method=LISTS),
    step("reply", chat=CHATS, pick=PICKS),
    step("follow", chat=CHATS, pick=PICKS),
    step("decide", decision=DECISIONS),
    step("forget", days=st.integers(0, 3)),
    *[SENDS] * 6,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=20, max_size=60))
def test_a_call_names_the_messages_that_were_made_and_no_other(steps: list[Step]) -> None:
    world = Placeholders()
    try:
        for name, arguments in steps:
            getattr(world, name)(**arguments)
            world.each_placeholder_stands_for_what_the_ledger_says()
    finally:
        world.close()
