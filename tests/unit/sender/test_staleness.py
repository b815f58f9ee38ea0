"""Whether what waits is still worth saying: every reason of the design, a line each."""

from dataclasses import replace
from typing import Any

import pytest

from sender.staleness import Cancelled, Expired, Keep, Staleness, Superseded, judge
from storage.claims import OutboxItem, Standing
from storage.lifecycle import BotName, OnUncertain, OutboxId, Priority, Withdrawal
from storage.withdrawals import REASONS

NOW_MS = 1_000_000
MADE_MS = 500_000
CAUSED_MS = 400_000
ROW = OutboxItem(
    id=OutboxId(1),
    bot=BotName("main"),
    method="sendMessage",
    params={},
    lane="c:7",
    chat_id=7,
    priority=Priority.INTERACTIVE,
    on_uncertain=OnUncertain.HOLD,
    attempts=0,
    attempts_max=None,
    due_ms=0,
    expires_at_ms=None,
    created_at_ms=MADE_MS,
    placeholder=None,
    caused_at_ms=CAUSED_MS,
)
DELETED = Cancelled(REASONS[Withdrawal.MESSAGE_DELETED])
EDITED = Cancelled(REASONS[Withdrawal.MESSAGE_EDITED])
STOPPED = Cancelled(REASONS[Withdrawal.GENERATION_STOPPED])
ANSWERED = Cancelled(REASONS[Withdrawal.PERSON_ANSWERED])
CLOSED = Cancelled("its chat can't be reached")
OPTED_OUT = Cancelled("the user wants no broadcasts")


@pytest.mark.parametrize(
    ("row", "standing", "expected"),
    [
        ({}, {}, Keep()),
        ({"expires_at_ms": NOW_MS + 1}, {}, Keep()),
        ({"expires_at_ms": NOW_MS}, {}, Expired(0)),
        ({"expires_at_ms": NOW_MS - 7}, {}, Expired(7)),
        ({}, {"has_newer": True}, Superseded()),
        ({}, {"deleted_at_ms": 0}, DELETED),
        ({}, {"edited_at_ms": CAUSED_MS + 1}, Keep()),
        ({"cancel_on_edit": True}, {"edited_at_ms": CAUSED_MS + 1}, EDITED),
        ({"cancel_on_edit": True}, {"edited_at_ms": CAUSED_MS}, Keep()),
        ({}, {"stopped_at_ms": CAUSED_MS + 1}, STOPPED),
        ({}, {"stopped_at_ms": CAUSED_MS}, Keep()),
        ({}, {"answered_at_ms": CAUSED_MS + 1}, ANSWERED),
        ({}, {"answered_at_ms": CAUSED_MS}, Keep()),
        ({"caused_at_ms": None}, {"answered_at_ms": MADE_MS}, Keep()),
        ({"caused_at_ms": None}, {"answered_at_ms": MADE_MS + 1}, ANSWERED),
        ({"priority": Priority.BULK}, {"answered_at_ms": CAUSED_MS + 1}, ANSWERED),
        # A clock that was ahead has noted it: a chat must not be mute until then.
        ({}, {"answered_at_ms": NOW_MS + 1}, Keep()),
        ({"method": "deleteMessage"}, {"answered_at_ms": CAUSED_MS + 1}, Keep()),
        ({}, {"unreachable_at_ms": MADE_MS - 1}, Keep()),
        ({}, {"unreachable_at_ms": MADE_MS}, CLOSED),
        ({"priority": Priority.BULK}, {"unreachable_at_ms": MADE_MS - 1}, CLOSED),
        ({"priority": Priority.PAID}, {"unreachable_at_ms": MADE_MS - 1}, CLOSED),
        ({}, {"opted_out_at_ms": MADE_MS + 1}, Keep()),
        ({"priority": Priority.BULK}, {"opted_out_at_ms": MADE_MS - 1}, OPTED_OUT),
        ({"priority": Priority.PAID}, {"opted_out_at_ms": MADE_MS + 1}, OPTED_OUT),
    ],
)
def test_a_row_is_judged_by_what_has_happened_since(
    row: dict[str, Any], standing: dict[str, Any], expected: Staleness
) -> None:
    assert judge(replace(ROW, **row), Standing(**standing), NOW_MS) == expected


def test_a_row_whose_parent_never_was_is_cancelled_for_that() -> None:
    assert judge(ROW, Standing(), NOW_MS, "it was not sent") == Cancelled("it was not sent")


def test_what_is_over_is_over_whatever_else_has_happened() -> None:
    """One end has one reason: the most certain one."""
    over = replace(ROW, expires_at_ms=NOW_MS)
    assert judge(over, Standing(has_newer=True, deleted_at_ms=1), NOW_MS, "lost") == Expired(0)
    assert judge(ROW, Standing(has_newer=True, deleted_at_ms=1), NOW_MS, "lost") == Superseded()
