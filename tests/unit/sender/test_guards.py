"""An application's guard: its word is taken as meant, and a broken one lets nothing through."""

import sys
from pathlib import Path

import pytest

from sender.guards import Intent, Word, ask, load_guard
from storage.errors import ConfigurationError
from tests.simulator.clock import VirtualClock
from tests.unit.sender.test_staleness import ROW

_SEEN: list[Intent] = []


def lets_go(intent: Intent) -> None:
    """Look, and object to nothing."""
    _SEEN.append(intent)


def objects(_: Intent) -> str:
    """Object."""
    return "not now"


def breaks(_: Intent) -> str:
    """Raise, with somebody's words."""
    raise KeyError("a user's words")


def gives(_: Intent) -> object:
    """Give what is no reason."""
    return True


async def waits(_: Intent) -> None:
    """Be written to be awaited, which nobody does."""


def test_a_guard_is_told_of_the_row() -> None:
    _SEEN.clear()
    assert ask(lets_go, ROW, VirtualClock()) == Word()
    [intent] = _SEEN
    assert (intent.outbox_id, intent.chat_id, intent.method) == (ROW.id, 7, "sendMessage")
    assert (intent.created_at_ms, intent.caused_at_ms) == (ROW.created_at_ms, ROW.caused_at_ms)


def test_a_reason_is_an_objection() -> None:
    assert ask(objects, ROW, VirtualClock()) == Word(objection="not now")


def test_a_guard_that_raises_is_told_of_by_its_type_alone() -> None:
    assert ask(breaks, ROW, VirtualClock()) == Word(failure="the guard raised KeyError")


@pytest.mark.parametrize(("guard", "kind"), [(gives, "bool"), (waits, "coroutine")])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_what_is_neither_a_reason_nor_none_is_a_failure(guard: object, kind: str) -> None:
    word = ask(guard, ROW, VirtualClock())  # type: ignore[arg-type]  # a guard that is wrong
    assert word == Word(failure=f"the guard gave {kind}, not a reason or None")


def test_how_long_a_guard_takes_is_measured() -> None:
    clock = VirtualClock()

    def dawdles(_: Intent) -> None:
        clock.advance_ms(30)

    assert ask(dawdles, ROW, clock).took_ms == 30


def test_no_guard_is_no_guard() -> None:
    assert load_guard("") is None


def test_a_guard_is_found_by_its_name() -> None:
    assert load_guard(f"{__name__}:objects") is objects


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("no_such_module_here:guard", "found none named no_such_module_here"),
        (f"{__name__}:no_such_guard", "found none named no_such_guard"),
        (f"{__name__}:ROW", "found none named ROW"),
    ],
)
def test_a_guard_that_is_not_there_is_a_fault_with_its_key(named: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=r"delivery\.guard") as caught:
        load_guard(named)
    assert told in str(caught.value)


def test_what_goes_wrong_inside_its_module_is_the_authors_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_guards.py").write_text("import a_module_that_it_misses\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ModuleNotFoundError, match="a_module_that_it_misses"):
        load_guard("broken_guards:guard")
