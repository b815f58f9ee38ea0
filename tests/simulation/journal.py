"""The journal of a world: every change of state that committed, by triggers in its database.

Triggers write with the transaction that they watch: what was rolled back is not there. It knows the
schema, and no statement of the product's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from storage.carriers import RawConnection

_TABLE: Final = """
create table world_journal (
    seq integer primary key, what text, id, bot, a, b, c, d, e, f
)
"""
_ENTRY: Final = "insert into world_journal (what, id, bot, a, b, c, d, e, f) values"
_WAIT: Final = (
    "new.scope, new.bot, new.until_boot_ms, new.boot_id, new.wait_ms, new.until_ms, new.inferred,"
    " null"
)
_ROW: Final = (
    "new.id, new.bot, old.state, new.state, coalesce(new.claim_epoch, old.claim_epoch), new.due_ms,"
    " new.cancel_asked, new.waits_for"
)
_ROW_CHANGES: Final = (
    "update on outbox when old.state is not new.state or old.lane is not new.lane"
    " or old.cancel_asked is not new.cancel_asked or old.waits_for is not new.waits_for"
)
_LEASE: Final = "new.name, null, new.epoch, new.owner, null, null, null, null"
_LEASE_CHANGES: Final = (
    "update on leases when old.epoch is not new.epoch or old.owner is not new.owner"
)
_TRY: Final = "new.id, new.bot, new.outbox_id, new.epoch, new.stage, new.verdict, new.wait_ms, null"
_PAUSE: Final = "new.scope, new.bot, new.until_ms, null, null, null, null, null"
_IN: Final = "new.id, new.bot, new.update_id, new.state, null, null, null, null"
_TRIGGERS: Final = (
    ("row+", "insert on outbox", "new.id, new.bot, new.state, null, null, null, null, null"),
    ("row", _ROW_CHANGES, _ROW),
    ("row-", "delete on outbox", "old.id, old.bot, old.state, null, null, null, null, null"),
    ("try+", "insert on attempts", _TRY),
    ("try", "update on attempts when old.stage is not new.stage", _TRY),
    ("wait", "insert on cooldowns", _WAIT),
    ("wait", "update on cooldowns", _WAIT),
    ("wait-", "delete on cooldowns", "old.scope, old.bot, null, null, null, null, null, null"),
    ("lease", "insert on leases", _LEASE),
    ("lease", _LEASE_CHANGES, _LEASE),
    ("in", "insert on inbox", _IN),
    ("in", "update on inbox when old.state is not new.state", _IN),
    ("pause", "insert on pauses", _PAUSE),
    ("pause", "update on pauses", _PAUSE),
    ("pause-", "delete on pauses", "old.scope, old.bot, null, null, null, null, null, null"),
)
_READ: Final = "select * from world_journal where seq > :seq order by seq"
_FACTS: Final = ("a", "b", "c", "d", "e", "f")


@dataclass(frozen=True, slots=True)
class Line:
    """One change that committed."""

    what: str
    id: int | str
    bot: str | None
    facts: tuple[object, ...]


def keep_journal(raw: RawConnection) -> None:
    """Have a migrated database keep its journal."""
    raw.execute(_TABLE, {})
    for number, (what, event, values) in enumerate(_TRIGGERS):
        raw.execute(
            f"create trigger world_{number} after {event} begin {_ENTRY} ('{what}', {values}); end",
            {},
        )


class Journal:
    """Reads what is new."""

    def __init__(self) -> None:
        self._seq = 0

    def news(self, raw: RawConnection) -> Iterator[Line]:
        """What has committed since the last look."""
        for row in raw.execute(_READ, {"seq": self._seq}).fetchall():
            self._seq = row["seq"]
            facts = tuple(row[name] for name in _FACTS)
            yield Line(row["what"], row["id"], row["bot"], facts)
