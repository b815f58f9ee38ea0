"""Whatever bytes come, the envelope is read or refused, and what is stored is what came."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage.envelope import UPDATE_ID_MAX, Envelope, Unreadable, read_envelope

KINDS = ("message", "callback_query", "poll", "tomorrow", "my words")
NAMES = ("id", "chat", "from", "user", "message", "voter_chat", "poll_id", "business_connection_id")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner),
    max_leaves=20,
)
updates = st.fixed_dictionaries(
    {"update_id": st.integers(1, UPDATE_ID_MAX)},
    optional=dict.fromkeys(KINDS, anything),
)


@given(st.binary(max_size=300) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_make_it_raise(body: bytes) -> None:
    assert isinstance(read_envelope(body), Envelope | Unreadable)


@given(anything, anything)
def test_no_json_makes_it_raise(first: object, second: object) -> None:
    for content in (first, {"update_id": first}, {"update_id": 1, "message": second}):
        assert isinstance(read_envelope(json.dumps(content).encode()), Envelope | Unreadable)


@given(updates)
def test_a_usable_id_is_always_kept(update: dict[str, Any]) -> None:
    """Whatever else is in it: lanes may be missing, the update may not."""
    found = read_envelope(json.dumps(update).encode())
    assert isinstance(found, Envelope)
    assert found.update_id == update["update_id"]
    assert found.kind.isascii()
    assert found.kind.isidentifier()


@given(st.integers() | st.booleans() | st.floats() | st.text() | st.none())
def test_an_id_is_an_integer_in_range_or_none(update_id: object) -> None:
    found = read_envelope(json.dumps({"update_id": update_id}).encode())
    is_usable = type(update_id) is int and 1 <= update_id <= UPDATE_ID_MAX
    assert isinstance(found, Envelope) is is_usable
