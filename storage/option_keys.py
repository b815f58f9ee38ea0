"""The configuration's keys as names: where one stands, what it holds, what is wrong with its value.

Pure: it reads no file and no environment. It may never put a value into words that could be a
secret, as its words are printed and logged.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, cast, get_args, get_origin

from pydantic import BaseModel

from storage.options import Settings

PREFIX: Final = "FERRYMAN_"
# Looks like a secret that somebody put where something else belongs.
_SUSPECT = re.compile(r"\d+(:|%3A)[\w-]{20,}|[\w-]{32,}", re.ASCII | re.IGNORECASE)
_SHOWN_CHARS_MAX: Final = 40

Key = tuple[str, ...]


def is_secret(key: Key) -> bool:
    """Tell whether a key holds a secret, and so may be given by the environment or a file only."""
    match key:
        case ("bots", _, "token" | "secret") | ("channels", _, "token") | ("web", "api_token"):
            return True
        case _:
            return False


def lines_of(text: str) -> Iterator[tuple[Key, int]]:
    """Tell at which line each plainly written table and key begins: good enough to find it."""
    table: Key = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([\w.\-\" ]+)\]", line):
            table = _dotted(header[1])
            yield table, number
        elif assignment := re.match(r"\s*([\w.\-\" ]+?)\s*=", line):
            yield table + _dotted(assignment[1]), number


def _dotted(text: str) -> Key:
    return tuple(part.strip().strip('"') for part in text.split("."))


def say_key(key: Key) -> str:
    """The key with dots, a part that may be a secret hidden."""
    return ".".join("(hidden)" if _SUSPECT.search(part) else part for part in key)


def variable_of(key: Key) -> str:
    """The environment variable that may give this key."""
    return PREFIX + "__".join(key).upper().replace("-", "_")


def keys_of(values: Mapping[str, object], above: Key = ()) -> Iterator[Key]:
    """Every table and key of a nested table, the outer ones first."""
    for name, value in values.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from keys_of(cast("dict[str, object]", value), (*above, name))


def kind_of(key: Key) -> object:
    """The type of what a key holds: a model, an annotation, or None where there is no such key."""
    kind: object = Settings
    for part in key:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(part)
            kind = None if field is None else field.annotation
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
        else:
            return None
    return kind


def parse_variable(text: str, key: Key) -> object:
    """Read a variable: text where text is wanted, else JSON, else text for validation to judge."""
    kind = kind_of(key)
    wanted = kind if isinstance(kind, type) else str if _is_choice(kind) else None
    if wanted is not None and issubclass(wanted, str | Path | Enum):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_choice(kind: object) -> bool:
    return any(isinstance(choice, str) for choice in get_args(kind))


def say_expected(fault: str, message: str, key: Key, found: object) -> str:
    """Say what was expected of a key; `fault` and `message` are Pydantic's type and text."""
    if fault == "extra_forbidden":
        return _unknown(key)
    if fault == "too_short":
        return "expected at least one"
    if fault == "missing":
        return "expected a value, as there is no default"
    if fault == "model_type":
        return "expected a table"
    words = message.removeprefix("Value error, ").replace("Input should be", "expected")
    words = re.sub("^expected (less|greater)", r"expected a number \1", words)
    return words + _shown(key, found)


def _unknown(key: Key) -> str:
    if is_secret(key):
        return f"expected {key[-1]}_file, or {variable_of(key)}: no secret belongs into this file"
    kind = kind_of(key[:-1])
    known: list[str] = []
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        known = list(kind.model_fields)
    near = difflib.get_close_matches(key[-1], known, n=1)
    if near:
        return f"expected a known key; did you mean {near[0]}?"
    return f"expected a known key: {', '.join(known)}" if known else "expected a known key"


def _shown(key: Key, found: object) -> str:
    """The value, if it can be no secret."""
    if isinstance(found, bool | int | float):
        return f", not {json.dumps(found)}"
    is_named = key[-1].endswith(("_file", "_url")) if key else False
    if not isinstance(found, str) or is_named or len(found) > _SHOWN_CHARS_MAX:
        return ""
    return "" if _SUSPECT.search(found) else f", not {json.dumps(found)}"
