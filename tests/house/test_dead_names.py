"""Nothing in the product is dead: no function, class or constant, no module, no statement of SQL.

By words: whatever is defined must be named somewhere besides its definition. That is a coarse net,
which a common word slips through, but what it catches has no reader at all.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.house.sources import ROOT, Source, imports, own_sources

_STATEMENT = re.compile(r"^-- name: (\w+)", re.MULTILINE)


def defined(source: Source) -> Iterator[tuple[int, str]]:
    """Yield each name that a file defines at its top, with the number of its line."""
    for node in source.tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield node.lineno, name
            case _:
                pass


def dead_names(sources: Sequence[Source], elsewhere: str = "") -> list[str]:
    """List what the product defines and nothing names; `elsewhere` is text that may name it."""
    texts = [source.text for source in sources] + [elsewhere]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    return [
        f"{source.path}:{line}: nothing uses {name}"
        for source in sources
        if source.is_product
        for line, name in defined(source)
        if words[name] < 2 and not name.startswith("__")
    ]


def dead_modules(sources: Sequence[Source], elsewhere: str = "") -> list[str]:
    """List the product's modules that nothing imports, or names as `elsewhere` does."""
    imported = {name for source in sources for _, name in imports(source)}
    imported |= {name.rpartition(".")[0] for name in imported}
    modules = {
        source.path.removesuffix(".py").replace("/", "."): source.path
        for source in sources
        if source.is_product and not source.path.endswith(("/__init__.py", "/__main__.py"))
    }
    named = {module for module in modules if f'"{module}' in elsewhere}
    return [
        f"{path}: nothing imports it" for m, path in modules.items() if m not in imported | named
    ]


def statements() -> list[str]:
    """List the full name of every statement of SQL: that of its file, a dot, its own."""
    return [
        f"{file.stem}.{name}"
        for file in sorted((ROOT / "storage" / "sql").glob("*.sql"))
        for name in _STATEMENT.findall(file.read_text(encoding="utf-8"))
    ]


def configuration() -> str:
    """Return the text in which the command names what it starts."""
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_name_of_the_product_is_used() -> None:
    dead = dead_names(own_sources(), configuration())
    assert not dead, "\n" + "\n".join(dead)


def test_a_dead_name_is_seen() -> None:
    alive = Source("bot/alive.py", "def used(): ...\nused()\n")
    dead = Source("bot/dead.py", "LIMIT = 3\n")
    assert dead_names([alive, dead]) == ["bot/dead.py:1: nothing uses LIMIT"]
    assert dead_names([alive, dead], "LIMIT") == []


def test_every_module_of_the_product_is_imported() -> None:
    dead = dead_modules(own_sources(), configuration())
    assert not dead, "\n" + "\n".join(dead)


def test_a_dead_module_is_seen() -> None:
    """One that is imported whole, or for a name in it, is alive."""
    sources = [Source("bot/a.py", "import bot.b\nfrom bot.c import d\n")]
    sources += [Source(f"bot/{name}.py", "") for name in "bcd"]
    assert dead_modules(sources, '"bot.a:main"') == ["bot/d.py: nothing imports it"]


def test_every_statement_is_used() -> None:
    """By its full name, as `tx.run("outbox.claim")` has it."""
    product = "".join(source.text for source in own_sources() if source.is_product)
    assert len(statements()) > 10
    assert [name for name in statements() if f'"{name}"' not in product] == []
