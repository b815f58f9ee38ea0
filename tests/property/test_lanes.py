"""Whatever happens to rows, in whatever order, the lanes say what the rows say."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storage import cancelling, claims, lanes, outbox, pauses, review, withdrawals
from storage.carriers import RawConnection
from storage.claims import Claim
from storage.database import Tx, connect
from storage.lifecycle import OutboxId, OutboxState, Priority, Withdrawal
from storage.migrate import migrate
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

CHATS = st.sampled_from([1, 2, -3])
PRIORITIES = st.sampled_from(list(Priority))


def mark_sent(tx: Tx, claimed: claims.Claim, *, lane_due_ms: int) -> None:
    claims.mark_sent(tx, [claims.Accepted(claimed, 1, lane_due_ms)])


class Lanes(RuleBasedStateMachine):
    """Random enqueues, claims and endings over three chats and both priorities."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.clock = VirtualClock()
        path = Path(self.folder.name) / "lanes.db"
        migrate(path, self.clock)
        self.raw: RawConnection = connect(path)
        self.raw.execute("pragma synchronous = off")
        self.claims: list[Claim] = []
        self.number = 0

    def teardown(self) -> None:
        self.raw.close()
        self.folder.cleanup()

    @property
    def tx(self) -> Tx:
        return Tx(self.raw, self.clock.now_ms())

    @rule(chat=CHATS, priority=PRIORITIES, key=st.sampled_from([None, "k1", "k2"]))
    def enqueue(self, chat: int, priority: Priority, key: str | None) -> None:
        self.number += 1
        outgoing = call(
            f"n{self.number}",
            chat_id=chat,
            priority=priority,
            supersede_key=key,
            expires_at_ms=self.clock.now_ms() + 10_000,
        )
        outbox.enqueue(self.tx, BOT, outgoing)

    @rule(chat=CHATS, wait_ms=st.integers(1, 5_000))
    def schedule(self, chat: int, wait_ms: int) -> None:
        self.number += 1
        later = self.clock.now_ms() + wait_ms
        outbox.enqueue(self.tx, BOT, call(f"n{self.number}", chat_id=chat, not_before_ms=later))

    @rule(priority=PRIORITIES)
    def claim(self, priority: Priority) -> None:
        for item in claims.heads(self.tx, BOT, priority, limit=1):
            self.claims += claims.claim(self.tx, [item], 1)

    @precondition(lambda self: self.claims)
    @rule(how=st.sampled_from(["sent", "requeue", "hold", "dead"]), wait_ms=st.integers(0, 3_000))
    def settle(self, how: str, wait_ms: int) -> None:
        claimed = self.claims.pop(0)
        due_ms = self.clock.now_ms() + wait_ms
        endings: dict[str, Callable[[Tx, Claim], object]] = {
            "sent": partial(mark_sent, lane_due_ms=due_ms),
            "requeue": partial(claims.requeue, due_ms=due_ms, spend_attempt=True, reason="r"),
            "hold": partial(claims.hold, state=OutboxState.UNCERTAIN, reason="r"),
            "dead": partial(claims.end, state=OutboxState.DEAD, reason="r"),
        }
        endings[how](self.tx, claimed)

    @rule(decision=st.sampled_from(list(review.Decision)))
    def decide(self, decision: review.Decision) -> None:
        for held in review.held(self.tx, limit=1):
            review.resolve(self.tx, held.id, decision, by="ada")

    @rule()
    def revive(self) -> None:
        for dead in review.dead_list(self.tx, limit=1):
            review.requeue(self.tx, dead.id)

    @rule(ms=st.integers(1, 8_000))
    def time_passes(self, ms: int) -> None:
        self.clock.advance_ms(ms)
        outbox.join_scheduled(self.tx, BOT)
        outbox.expire(self.tx, BOT)

    @rule(chat=CHATS)
    def cancel(self, chat: int) -> None:
        outbox.cancel_lane(self.tx, BOT, f"c:{chat}", reason="r")

    @rule(chat=CHATS, row=st.integers(1, 30))
    def cancel_as_a_person(self, chat: int, row: int) -> None:
        cancelling.by_ids(self.tx, BOT, [OutboxId(row)], reason="r")
        if row % 5 == 0:
            cancelling.by_lane(self.tx, BOT, f"c:{chat}", reason="r")

    @rule(priority=PRIORITIES)
    def step_out(self, priority: Priority) -> None:
        held = review.held(self.tx, limit=1)
        for head in claims.heads(self.tx, BOT, priority, limit=1) if held else ():
            lanes.step_out(self.tx, BOT, head.id, waits_for=held[0].id, reason="r")

    @rule(chat=CHATS)
    def pause_and_resume(self, chat: int) -> None:
        pauses.pause(self.tx, BOT, f"c:{chat}", reason="r", by_whom="ada")
        pauses.resume(self.tx, BOT, f"c:{chat}")

    @rule(chat=CHATS)
    def a_person_answers(self, chat: int) -> None:
        now_ms, what = self.clock.now_ms() + 1, Withdrawal.PERSON_ANSWERED
        withdrawals.note(self.tx, BOT, f"c:{chat}", what, at_ms=now_ms)

    @rule(old=CHATS, new=CHATS)
    def move(self, old: int, new: int) -> None:
        if old != new and not self.claims:
            outbox.move_lane(self.tx, BOT, f"c:{old}", new_lane=f"c:{new}", chat_id=new)

    @invariant()
    def each_lane_names_its_oldest_row(self) -> None:
        before = self._lanes()
        self.raw.execute("begin")
        lanes.rebuild(self.tx, BOT)
        rebuilt = self._lanes()
        self.raw.execute("rollback")
        assert before == rebuilt, json.dumps([before, rebuilt])

    def _lanes(self) -> list[tuple[str, str, int, int]]:
        rows = self.raw.execute("select * from lanes order by lane, priority").fetchall()
        return [(row["lane"], row["priority"], row["head_id"], row["claimed"]) for row in rows]


TestLanes = Lanes.TestCase
TestLanes.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
