"""Markup is read as Telegram's own server reads it: its own tests, and its words for faults."""

import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import pytest

from storage.markup.entities import Entity, Formatted, MarkupError
from storage.markup.html import parse_html
from storage.markup.links import is_link
from storage.markup.markdown import parse_markdown
from storage.markup.markdown_v2 import parse_markdown_v2
from storage.markup.reading import entities_of, read

Case = dict[str, Any]


def cases(name: str) -> list[Case]:
    file = resources.files("tests") / "data" / "markup" / f"{name}.json"
    found: list[Case] = json.loads(file.read_text("utf-8"))
    return found


def outcome(parse: Callable[[str], Formatted], text: str) -> Case:
    """What became of a text, as far as the cases tell it."""
    try:
        formatted = parse(text)
    except MarkupError as error:
        return {"given": text, "error": error.why}
    entities = [told(each.to_json()) for each in formatted.entities]
    return {"given": text, "text": formatted.text, "entities": entities}


def told(entity: dict[str, object]) -> dict[str, object]:
    """An entity without what the server rewrites: its address, and what a date is to look like."""
    kind = "text_link" if entity["type"] == "text_mention" else entity["type"]
    rewritten = ("url", "id", "date_time_format")
    return {**{k: v for k, v in entity.items() if k not in rewritten}, "type": kind}


def expected(case: Case) -> Case:
    if "error" in case:
        return case
    return {**case, "entities": [told(each) for each in case["entities"]]}


@pytest.mark.parametrize("case", cases("html"), ids=lambda case: ascii(case["given"])[:60])
def test_html_is_read_as_in_telegrams_own_tests(case: Case) -> None:
    assert outcome(parse_html, case["given"]) == expected(case)


@pytest.mark.parametrize("case", cases("markdown-v2"), ids=lambda case: ascii(case["given"])[:60])
def test_markdown_is_read_as_in_telegrams_own_tests(case: Case) -> None:
    assert outcome(parse_markdown_v2, case["given"]) == expected(case)


@pytest.mark.parametrize("char", [chr(code) for code in range(1, 126)])
def test_every_reserved_character_of_markdown_must_be_escaped(char: str) -> None:
    if char in "]()#+-=|{}.!":
        why = f"Character '{char}' is reserved and must be escaped with the preceding '\\'"
        assert outcome(parse_markdown_v2, char)["error"] == why
    elif char not in "_*[~`>\\":
        assert parse_markdown_v2(char) == Formatted(char)
    assert parse_markdown_v2(f"\\{char}") == Formatted(char)


@pytest.mark.parametrize(
    ("given", "text", "entities"),
    [
        ("a *b* _c_ `d`", "a b c d", [("bold", 2, 1), ("italic", 4, 1), ("code", 6, 1)]),
        ("*a_b*", "a_b", [("bold", 0, 3)]),
        ("\\*a\\_ \\. [", None, "Can't find end of the entity starting at byte offset 9"),
        ("é*", None, "Can't find end of the entity starting at byte offset 2"),
        ("```py\nx``y```", "x``y", [("pre", 0, 4)]),
        ("``` x```", " x", [("pre", 0, 2)]),
        ("[🏟](https://a.b)!", "🏟!", [("text_link", 0, 2)]),
        ("[a](b)", "a", []),
        ("[a](https://a.b", "a", [("text_link", 0, 1)]),
        ("[](https://a.b)", "(https://a.b)", []),
        ("**__", "", []),
    ],
)
def test_the_first_markdown_nests_nothing_and_has_one_fault(
    given: str, text: str | None, entities: list[tuple[str, int, int]] | str
) -> None:
    found = outcome(parse_markdown, given)
    if text is None:
        assert found["error"] == entities
    else:
        assert found["text"] == text
        assert [(each["type"], each["offset"], each["length"]) for each in found["entities"]] == (
            entities
        )


def test_an_error_always_names_the_byte() -> None:
    with pytest.raises(MarkupError) as caught:
        parse_html("🏟<b>x")
    assert caught.value.offset == 4
    assert str(caught.value).endswith('"b" (at byte offset 4)')
    with pytest.raises(MarkupError) as caught:
        parse_markdown_v2("é a.")
    assert caught.value.offset == 4


def test_a_whole_link_is_kept_and_what_is_none_is_dropped() -> None:
    formatted = parse_html('<a href="https://a.b/?x=1&amp;y=2">z</a><a href="no link">n</a>')
    assert formatted == Formatted(
        "zn", (Entity("text_link", 0, 1, (("url", "https://a.b/?x=1&y=2"),)),)
    )


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("https://a.b", True),
        ("a.b/c?d#e", True),
        ("HTTP://A.B:443", True),
        ("http://[::1]/", True),
        ("tg://user?id=5", True),
        ("TG:resolve?domain=x", True),
        ("ton://abc", True),
        ("tonsite://a.ton", True),
        ("user:pw@a.b", True),
        ("", False),
        ("localhost", False),
        ("ftp://a.b", False),
        ("http://a.b:0", False),
        ("http://a.b:65536", False),
        ("http://a b.c", False),
        ("http://a.%zz", False),
        ("http://[::x]/", False),
        ("tg://http://a.b", False),
        ("tg://a.b", False),
        (".", False),
    ],
)
def test_an_address_is_a_link_where_telegram_makes_one_of_it(url: str, *, is_one: bool) -> None:
    assert is_link(url) is is_one


def test_a_parse_mode_goes_before_entities_in_any_case() -> None:
    bold = Entity("bold", 0, 1)
    assert read("<i>a</i>", "html", (bold,)) == Formatted("a", (Entity("italic", 0, 1),))
    assert read("<i>", "None", (bold,)) == Formatted("<i>", (bold,))
    assert read("", "nonsense") == Formatted("")
    with pytest.raises(MarkupError, match="Unsupported parse_mode"):
        read("a", "nonsense")
    with pytest.raises(MarkupError, match="Can't parse entities: Unsupported start tag"):
        read("<x>", "HTML")


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(MarkupError) as caught:
        read("é\ud83d", "")
    assert caught.value.offset == 2


def test_entities_of_a_call_keep_their_other_fields() -> None:
    given = [{"type": "pre", "offset": 0, "length": 2, "language": "py"}]
    found = entities_of(given)
    assert found is not None
    assert [each.to_json() for each in found] == given
    assert entities_of([{"type": "pre"}]) is None
    assert entities_of("text") is None
