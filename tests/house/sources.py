"""Our own source files, parsed once, and what a rule over them is.

A rule that cannot fail proves nothing, so each brings a planted breach that it must report and a
twin that it must pass; the tests beside the rules see to both. Reads files and changes none.
"""

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("bot", "sender", "storage")
OWN = (*PRODUCT, "tests")


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path from the root, with slashes, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """The file, parsed."""
        return parsed(self.text)

    @property
    def is_product(self) -> bool:
        """Whether the file is shipped."""
        return self.path.split("/", 1)[0] in PRODUCT


@cache
def parsed(text: str) -> ast.Module:
    """Parse a file's text once, however many rules ask."""
    return ast.parse(text)


@cache
def own_sources() -> tuple[Source, ...]:
    """Every Python file of ours, by path; the captured data under tests/data is not ours."""
    files = (
        path.relative_to(ROOT)
        for package in OWN
        for path in (ROOT / package).rglob("*.py")
        if "__pycache__" not in path.parts
    )
    return tuple(
        Source(file.as_posix(), (ROOT / file).read_text(encoding="utf-8"))
        for file in sorted(files)
        if not file.is_relative_to("tests/data")
    )


Find = Callable[[Source], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that no file of ours may do.

    `find` yields a line for each breach. `breach` and `twin` are (path, text) of two files: the
    first must be reported, the second, as like it as is allowed, must not.
    """

    name: str
    find: Find
    breach: tuple[str, str]
    twin: tuple[str, str]

    def holds(self) -> None:
        """Fail, with every breach, unless each of our files keeps this rule."""
        breaches = self._breaches(own_sources())
        assert not breaches, "\n" + "\n".join(breaches)

    def is_seen_to_fail(self) -> None:
        """Fail unless this rule reports its planted breach, and nothing but that."""
        assert self._breaches((Source(*self.breach),)), "a check that cannot fail proves nothing"
        assert self._breaches((Source(*self.twin),)) == [], "this would be allowed"

    def _breaches(self, sources: tuple[Source, ...]) -> list[str]:
        return [f"{source.path}:{found}" for source in sources for found in self.find(source)]


def texts(source: Source) -> Iterator[ast.Constant]:
    """Yield every string in the code that is not a docstring, those inside f-strings too."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(source.tree):
        match node:
            case ast.Constant(value=str()) if id(node) not in docstrings:
                yield node


def comments(source: Source) -> Iterator[tuple[int, str]]:
    """Yield every comment with the number of its line."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Yield what is imported, as `module` or `module.name`, with the number of its line."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def dotted(node: ast.expr) -> str:
    """Spell an expression such as `a.b.c`; anything else in it is spelt `?`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case _:
            return "?"
