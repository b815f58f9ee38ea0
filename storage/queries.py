"""Load the named statements of `storage/sql/*.sql`.

A statement is written as `-- name: claim`, one sentence of purpose in comment lines, then the SQL.
Its full name is the file's and its own: `outbox.claim`. The name is the same as that of the Python
function which runs it. Nothing here builds SQL: what is run is what stands in the file.
"""

from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType

_MARK = "-- name: "
_SCHEMA_FILE = "schema.sql"


def _statements(topic: str, text: str) -> Iterator[tuple[str, str]]:
    for block in text.split(_MARK)[1:]:
        name, _, rest = block.partition("\n")
        sql = "\n".join(line for line in rest.splitlines() if not line.startswith("--")).strip()
        if not sql:
            raise ValueError(f"statement {topic}.{name.strip()} is empty")
        yield f"{topic}.{name.strip()}", sql.rstrip(";")


def load() -> Mapping[str, str]:
    """Read every named statement of the package.

    Raises ValueError when a name stands twice or a statement is empty.
    """
    found: dict[str, str] = {}
    folder = resources.files("storage") / "sql"
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if not entry.name.endswith(".sql") or entry.name == _SCHEMA_FILE:
            continue
        for name, sql in _statements(
            entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")
        ):
            if name in found:
                raise ValueError(f"statement {name} stands twice")
            found[name] = sql
    return MappingProxyType(found)


STATEMENTS: Mapping[str, str] = load()
"""Every statement by its full name."""
