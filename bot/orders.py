"""Understand what a program asks for, as far as its shape tells: the body of the API as data.

One module for the API and the command line, so that both say the same of the same fault. Strict,
and silent about what it was given: an error names a field and what was expected there, and quotes
nothing that could be somebody's words.
"""

import difflib
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bot.parameters import Json, Problem, is_encodable
from storage.errors import FerrymanError
from storage.outgoing import TELEGRAM

KEY_CHARS_MAX: Final = 200
SUPERSEDE_CHARS_MAX: Final = 128
TTL_S_MAX: Final = 365 * 24 * 60 * 60

# 1973 in milliseconds, or the year 5138 in seconds: below it somebody took the wrong unit.
_MOMENT_MS_MIN: Final = 100_000_000_000
_MOMENT_MS_MAX: Final = 253_402_300_799_999
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?(?P<zone>[Zz]|[+-]\d\d:\d\d)?"
)
_EXPECTED_MOMENT: Final = (
    "expected a moment such as 2026-08-24T18:00:00+02:00, or milliseconds since 1970 in UTC"
)
_WORD: Final = re.compile(r"[A-Za-z_]{1,40}")
# Pydantic's words for what a program gave, and ours.
_OUR_WORDS: Final = (
    ("^String should have", "expected a string with"),
    ("a valid dictionary", "an object"),
    ("a valid ", "a "),
    ("^expected (less|greater)", r"expected a number \1"),
)


class Unacceptable(FerrymanError):
    """What was asked for can't be left as a row."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


def _moment_ms(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(_EXPECTED_MOMENT)  # noqa: TRY004 - pydantic collects ValueError only
    if isinstance(value, int):
        if 0 <= value < _MOMENT_MS_MIN:
            raise ValueError(
                "expected milliseconds since 1970 in UTC, found what looks like seconds"
            )
        if not 0 <= value <= _MOMENT_MS_MAX:
            raise ValueError(_EXPECTED_MOMENT)
        return value
    found = _MOMENT.fullmatch(value)
    if found is None:
        raise ValueError(_EXPECTED_MOMENT)
    if found["zone"] is None:
        raise ValueError("expected a moment with its time zone, such as Z or +02:00 at its end")
    try:
        at_ms = int(datetime.fromisoformat(value.upper()).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise ValueError(_EXPECTED_MOMENT) from None
    if at_ms < 0:
        raise ValueError(_EXPECTED_MOMENT)
    return at_ms


def _name(text: str) -> str:
    if not text.isprintable() or text != text.strip() or not is_encodable(text):
        raise ValueError("expected printable characters, with no space at either end")
    return text


_Moment = Annotated[int, BeforeValidator(_moment_ms)]
_Key = Annotated[str, Field(min_length=1, max_length=KEY_CHARS_MAX), AfterValidator(_name)]
_Supersede = Annotated[
    str, Field(min_length=1, max_length=SUPERSEDE_CHARS_MAX), AfterValidator(_name)
]


class Order(BaseModel):
    """One call that a program asks for; what is left out is as configured.

    `params` are the Bot API's, as JSON. `not_before` and `expires_at` are moments in UTC
    milliseconds once read; `ttl_s` is counted from when the call may first be made. `key` names
    the cause: the same key is never two calls.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )

    bot: str
    method: str
    params: dict[str, object]
    priority: Annotated[Literal["interactive", "bulk", "paid"], Field(alias="class")] = (
        "interactive"
    )
    not_before: _Moment | None = None
    expires_at: _Moment | None = None
    ttl_s: Annotated[float, Field(gt=0, le=TTL_S_MAX)] | None = None
    supersede: _Supersede | None = None
    key: _Key | None = None
    on_uncertain: Literal["hold", "resend", "drop"] | None = None
    channel: str = TELEGRAM


def read_order(given: Json) -> Order:
    """Understand what was asked for, as far as its shape tells.

    Raises Unacceptable with every problem.
    """
    if not isinstance(given, dict):
        raise Unacceptable([Problem("body", "expected a JSON object")])
    try:
        return Order.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise Unacceptable(
            [_problem(each["type"], each["msg"], each["loc"]) for each in found]
        ) from None


def _problem(kind: str, message: str, place: tuple[int | str, ...]) -> Problem:
    field = ".".join(str(part) for part in place[:1])
    if kind == "extra_forbidden":
        known = [each.alias or name for name, each in Order.model_fields.items()]
        shown = field if _WORD.fullmatch(field) else "body"
        return Problem(shown, unknown("field", field, known))
    if kind == "missing":
        return Problem(field, "expected a value, as there is no default")
    words = message.removeprefix("Value error, ").replace("Input should be", "expected")
    for theirs, ours in _OUR_WORDS:
        words = re.sub(theirs, ours, words)
    return Problem(field, words)


def unknown(kind: str, word: str, known: Collection[str]) -> str:
    """Say that a word is unknown, and which one was probably meant."""
    near = difflib.get_close_matches(word, known, n=1)
    shown = f"unknown {kind} {word}" if _WORD.fullmatch(word) else f"unknown {kind}"
    if near:
        return f"{shown}; did you mean {near[0]}?"
    return f"{shown}; expected one of: {', '.join(known)}" if len(known) < 20 else shown  # noqa: PLR2004 - more is no help
