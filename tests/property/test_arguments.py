"""Whatever a call says is stored, rendered and read by a server unchanged."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.turns.calls import Call, Name, Occasion, Rules, row_of
from bot.turns.checks import check
from bot.turns.classes import CLASSES, CallClass
from bot.turns.splitting import split
from sender import calls
from sender.references import PLACES
from storage import outbox
from storage.carriers import RawConnection
from storage.database import Tx, connect
from storage.lifecycle import BotName, OnUncertain
from storage.migrate import migrate
from tests.simulator.arguments import METHODS, Arguments
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
RULES = Rules(reply_ttl_ms=1, bulk_ttl_ms=1, on_uncertain=OnUncertain.HOLD)
ROWS = sorted(
    name for name, found in CLASSES.items() if found not in (CallClass.READ, CallClass.REFUSED)
)
# Of a message that is not sent yet, the placeholder; of Telegram's own id, the opposite.
REAL: Mapping[int, int] = {-number: number for number in range(1, 100)}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawConnection]:
    path: Path = tmp_path_factory.mktemp("arguments") / "ferryman.db"
    migrate(path, VirtualClock())
    connection = connect(path)
    connection.execute("pragma synchronous = off")
    yield connection
    connection.close()


def form_of(arguments: Mapping[str, object]) -> dict[str, str]:
    """The form fields that python-telegram-bot makes of arguments."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in arguments.items()
    }


def without_ids(form: Mapping[str, str], message_id: int) -> dict[str, str]:
    """The same form, naming one message in its two commonest places."""
    found = dict(form)
    if "message_id" in found:
        found["message_id"] = str(message_id)
    if "reply_parameters" in found:
        reply = json.loads(found["reply_parameters"])
        found["reply_parameters"] = json.dumps({**reply, "message_id": message_id})
    return found


def read(form: Mapping[str, str]) -> dict[str, object]:
    """A form as a server reads it, whatever the spaces in its JSON."""
    return {
        name: json.loads(value) if value.startswith(("{", "[")) else value
        for name, value in form.items()
    }


@pytest.mark.parametrize("method", ROWS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dice=st.randoms(use_true_random=False), number=st.integers(1, 99))
def test_random_valid_arguments_survive_store_replay_and_resolve(
    raw: RawConnection, method: str, dice: Random, number: int
) -> None:
    form = form_of(Arguments(dice).of(method))
    said, meant = without_ids(form, -number), without_ids(form, number)
    (call,) = split(Call(method, said))
    check(call)
    tx = Tx(raw, 0)
    raw.execute("savepoint one")
    try:
        row = row_of(call, RULES, Occasion(0, 0), Name("k", -(1 << 40)))
        left = outbox.enqueue(tx, BOT, row)
        (stored,) = tx.rows("outbox.show", {"id": left.id})
        rendered = calls.render(stored["method"], json.loads(stored["params"]), REAL)
    finally:
        raw.execute("rollback to one")
        raw.execute("release one")
    assert isinstance(rendered, calls.Call), rendered
    body = parse_qsl(rendered.body.decode(), keep_blank_values=True)
    assert (rendered.method, read(dict(body))) == (method, read(meant))
    assert [name for name, _ in body] == list(meant), "in the order in which they were given"


# What JSON can hold, to the edges of what parsers keep; texts of all planes, and none of them half.
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = st.one_of(
    st.none(), st.booleans(), WORDS, st.integers(-(1 << 80), 1 << 80), st.floats(allow_nan=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
FORMS = st.dictionaries(
    WORDS.filter(lambda name: name not in PLACES), st.one_of(WORDS, VALUES), max_size=6
)


def replayed(raw: RawConnection, form: Mapping[str, str]) -> calls.Call | calls.Unsayable:
    """The call that a sender makes of a form, once it has lain in the outbox."""
    row = row_of(Call("sendSomething", form), RULES, Occasion(0, 0), Name("k"))
    raw.execute("savepoint one")
    try:
        left = outbox.enqueue(Tx(raw, 0), BOT, row)
        (stored,) = Tx(raw, 0).rows("outbox.show", {"id": left.id})
        return calls.render(stored["method"], json.loads(stored["params"]), {})
    finally:
        raw.execute("rollback to one")
        raw.execute("release one")


@given(told=FORMS)
def test_whatever_a_form_holds_arrives_to_the_letter(
    raw: RawConnection, told: Mapping[str, object]
) -> None:
    """Any order of fields, empty lists, large numbers, every plane of Unicode, whatever nesting."""
    form = form_of(told)
    rendered = replayed(raw, form)
    assert isinstance(rendered, calls.Call), rendered
    body = parse_qsl(rendered.body.decode(), keep_blank_values=True)
    assert body == list(form.items())


HALVES = st.builds(
    lambda before, half, after: before + half + after,
    WORDS,
    st.characters(categories=["Cs"]),
    WORDS,
)


@given(told=FORMS, text=HALVES)
def test_half_of_a_surrogate_pair_is_refused_and_never_replaced(
    raw: RawConnection, told: Mapping[str, object], text: str
) -> None:
    rendered = replayed(raw, form_of({**told, "text": text}))
    assert isinstance(rendered, calls.Unsayable)


@given(told=FORMS, text=HALVES)
def test_within_json_it_is_escaped_as_the_library_escapes_it(
    raw: RawConnection, told: Mapping[str, object], text: str
) -> None:
    rendered = replayed(raw, form_of({**told, "options": [text]}))
    assert isinstance(rendered, calls.Call)
    form = dict(parse_qsl(rendered.body.decode(), keep_blank_values=True))
    assert json.loads(form["options"]) == [text]


def test_every_method_of_the_bot_api_has_arguments() -> None:
    assert set(ROWS) < set(METHODS)
    for method in METHODS:
        needed = {name for name, told in METHODS[method].items() if not told.startswith("?")}
        assert needed <= set(Arguments(Random(1)).of(method))
