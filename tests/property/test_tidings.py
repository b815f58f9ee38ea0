"""Whatever an update of a telling kind holds, it is stored: what it tells is never in the way."""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage import arrival
from storage.carriers import RawConnection
from storage.clock import SystemClock
from storage.database import Tx, connect
from storage.envelope import UPDATE_ID_MAX, Envelope, read_envelope
from storage.inbox import Received, Reception
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.tidings import TELLING
from tests.integration.web.replay import postings

NAMES = (
    *("id", "type", "chat", "from", "message_id", "message_ids", "draft_id", "status"),
    *("new_chat_member", "business_connection_id", "sender_business_bot", "is_from_offline"),
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner),
    max_leaves=20,
)
kinds = st.sampled_from(sorted(TELLING))


def real_contents() -> list[Mapping[str, Any]]:
    """The inside of every real update of the corpus."""
    folder = resources.files("tests") / "data" / "updates"
    texts = [file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".json")]
    updates = [entry["update"] for text in texts for entry in json.loads(text)]
    return [
        content for update in updates for content in update.values() if isinstance(content, dict)
    ]


CONTENTS = real_contents()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawConnection]:
    """An empty database, which each example leaves empty."""
    path = Path(tmp_path_factory.mktemp("tidings")) / "ferryman.db"
    migrate(path, SystemClock())
    raw = connect(path)
    yield raw
    raw.close()


def arrives(raw: RawConnection, body: bytes) -> Reception | None:
    """Store a body as the webhook does; None when it is no update."""
    envelope = read_envelope(body)
    if not isinstance(envelope, Envelope):
        return None
    raw.execute("begin", {})
    try:
        update = Received(BotName("main"), *envelope, body)
        return arrival.receive_all(Tx(raw, 1_000), [update]).receptions[0]
    finally:
        raw.execute("rollback", {})


def body_of(kind: str, content: object, update_id: int = 1) -> bytes:
    return json.dumps({"update_id": update_id, kind: content}).encode("utf-8", "surrogatepass")


one_ground = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@one_ground
@given(kind=kinds, content=anything, update_id=st.integers(1, UPDATE_ID_MAX))
def test_no_content_keeps_an_update_from_being_stored(
    ground: RawConnection, kind: str, content: object, update_id: int
) -> None:
    assert arrives(ground, body_of(kind, content, update_id)) in {Reception.STORED, None}


@one_ground
@given(kind=kinds, content=st.sampled_from(CONTENTS), name=st.sampled_from(NAMES), odd=anything)
def test_a_real_update_with_one_odd_part_is_stored(
    ground: RawConnection, kind: str, content: Mapping[str, Any], name: str, odd: object
) -> None:
    """A lone surrogate is no text, so that such a body is no update."""
    assert arrives(ground, body_of(kind, {**content, name: odd})) in {Reception.STORED, None}


@pytest.mark.parametrize("kind", sorted(TELLING))
def test_every_real_content_under_every_telling_kind_is_stored(
    ground: RawConnection, kind: str
) -> None:
    for content in CONTENTS:
        assert arrives(ground, body_of(kind, content)) is Reception.STORED


def test_every_hostile_body_under_every_telling_kind_is_stored_or_no_update(
    ground: RawConnection,
) -> None:
    stored = 0
    for posting in postings("/telegram/main", "secret"):
        body = b"".join(posting.body)
        for kind in ("", *sorted(TELLING)):
            relabelled = body.replace(b'"message":', f'"{kind}":'.encode()) if kind else body
            reception = arrives(ground, relabelled)
            assert reception in {Reception.STORED, None}, posting.name
            stored += reception is Reception.STORED
    assert stored > 100, "the corpus is relabelled, not refused"
