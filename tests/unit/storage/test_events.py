"""The registry of events, and the product's use of it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from storage import events
from storage.events import EVENTS

ROOT = Path(__file__).parents[3]


def _logged() -> Iterator[tuple[str, str, set[str]]]:
    """Every `event("name", ...)` in the product: where, its name, its fields."""
    for floor in ("bot", "sender", "storage"):
        for file in sorted((ROOT / floor).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Name(id="event") | ast.Attribute(attr="event"),
                        args=[ast.Constant(value=str(name))],
                        keywords=keywords,
                    ):
                        place = f"{file.relative_to(ROOT)}:{node.lineno}"
                        yield place, name, {word.arg for word in keywords if word.arg}
                    case _:
                        pass


def test_the_registry_is_well_formed() -> None:
    heads = [
        line.split()[0]
        for line in events._TABLE.splitlines()
        if line and not line.startswith(("#", " "))
    ]
    assert len(heads) == len(set(heads)) == len(EVENTS)
    for name, known in EVENTS.items():
        assert name.count(".") == 1, name
        assert known.meaning, name
        assert not known.fields & {"ts", "level", "event", "role", "text", "body"}, name


def test_every_event_logged_is_registered_with_its_fields() -> None:
    """Also on the paths that no test walks."""
    logged = list(_logged())
    assert logged
    for place, name, fields in logged:
        assert name in EVENTS, place
        assert fields <= EVENTS[name].fields, place
