"""Every transaction of a role has a name, and with it two moments at which a test has it killed.

A commit that nobody can kill at is one whose recovery nobody has seen. By the shape of the call: on
a database, or on the sender's tools, which name what they write by its operation.
"""

import ast
from collections.abc import Iterator, Sequence

from storage.failpoint import COMMITS
from tests.house.sources import Source, dotted, own_sources

_ROLES = ("bot/turns/", "bot/web/", "sender/")
_WRITES = {"write", "join", "run"}
_DATABASES = {"db", "_db", "database", "_database"}
_TOOLS = {"tools", "_tools"}
# Written by the ground itself, wherever they are asked for.
_OF_THE_GROUND = {"sender.checkpoint", "storage.migrate"}


def _written(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """Yield every call that writes, with what it writes to: also one that is only handed on."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        callee = node.args[0] if dotted(node.func) == "partial" and node.args else node.func
        if isinstance(callee, ast.Attribute) and callee.attr in _WRITES:
            yield node, dotted(callee.value).rpartition(".")[2]


def _point(call: ast.Call) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == "point"), None)


def nameless(sources: Sequence[Source]) -> list[str]:
    """List the transactions of roles that have no name."""
    return [
        f"{source.path}:{call.lineno}: a transaction without a point"
        for source in sources
        if source.path.startswith(_ROLES)
        for call, receiver in _written(source)
        if receiver in _DATABASES and _point(call) is None
    ]


def named(sources: Sequence[Source]) -> set[str]:
    """Collect the names that roles write under."""
    points = set()
    for source in sources:
        if not source.path.startswith(_ROLES):
            continue
        for node in ast.walk(source.tree):
            match node:
                case ast.keyword(arg="point", value=ast.Constant(value=str(point))):
                    points.add(point)
                case _:
                    pass
        for call, receiver in _written(source):
            match call.args:
                case [ast.Constant(value=str(operation)), *_] if receiver in _TOOLS:
                    points.add(f"sender.{operation.replace(' ', '_')}")
                case _:
                    pass
    return points


def test_every_transaction_of_a_role_has_a_name() -> None:
    found = nameless(own_sources())
    assert not found, "\n" + "\n".join(found)


def test_a_nameless_transaction_is_seen() -> None:
    texts = [
        "await self._db.write(work)\n",
        "again(partial(self.db.join, work, item))\n",
        "await database.run('inbox.x', {})\n",
    ]
    for text in texts:
        assert nameless([Source("sender/new.py", text)])
        assert nameless([Source("bot/cli/new.py", text)]) == []
    assert nameless([Source("sender/new.py", "await db.write(work, point='sender.x')\n")]) == []


def unarmed(sources: Sequence[Source]) -> list[str]:
    """List the databases of roles, and the migrations before them, that nobody can kill at."""
    return [
        f"{source.path}:{node.lineno}: {dotted(node.func)} without failpoints"
        for source in sources
        if source.path.startswith(_ROLES)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and dotted(node.func) in {"opened", "open_database", "migrate"}
        and not any(each.arg == "failpoints" for each in node.keywords)
    ]


def test_every_role_opens_its_database_with_its_failpoints() -> None:
    found = unarmed(own_sources())
    assert not found, "\n" + "\n".join(found)


def test_a_database_that_nobody_can_kill_at_is_seen() -> None:
    assert unarmed([Source("sender/new.py", "async with opened(path, clock) as db: ...\n")])
    armed = "async with opened(path, clock, failpoints=failpoints) as db: ...\n"
    assert unarmed([Source("sender/new.py", armed)]) == []


def test_what_is_written_and_what_can_be_killed_at_are_the_same() -> None:
    known = {f"{role}.{name}" for role, names in COMMITS.items() for name in names}
    assert named(own_sources()) | _OF_THE_GROUND == known
