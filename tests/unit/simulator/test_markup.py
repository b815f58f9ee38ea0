"""Formatted text: what is left of it, where its entities lie, and the words when it breaks."""

import pytest

from tests.simulator.entities import Entity, Formatted, Unparsable, found_in, with_found
from tests.simulator.html_text import parse_html
from tests.simulator.markdown_text import parse_markdown


def entities(formatted: Formatted) -> list[tuple[str, int, int]]:
    return [(each.type, each.offset, each.length) for each in formatted.entities]


def test_html_leaves_the_text_and_marks_what_was_tagged() -> None:
    formatted = parse_html('<b>bold <i>both</i></b> &lt;3 <a href="https://x.org/?a=1&amp;b">x</a>')

    assert formatted.text == "bold both <3 x"
    assert entities(formatted) == [("bold", 0, 9), ("italic", 5, 4), ("text_link", 13, 1)]
    assert formatted.entities[2].to_json()["url"] == "https://x.org/?a=1&b"


def test_offsets_are_counted_in_utf_16() -> None:
    assert entities(parse_html("🌊🌊<b>é</b>")) == [("bold", 4, 1)]


def test_a_code_inside_a_pre_names_its_language() -> None:
    formatted = parse_html('<pre><code class="language-python">x = 1</code></pre>')
    assert [each.to_json() for each in formatted.entities] == [
        {"type": "pre", "offset": 0, "length": 5, "language": "python"}
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<b>open", 'Can\'t find end tag corresponding to start tag "b"'),
        ("é<x>", 'Unsupported start tag "x" at byte offset 2'),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("a < b", "Unclosed start tag at byte offset 2"),
    ],
)
def test_broken_html_is_told_apart(text: str, words: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse_html(text)
    assert str(caught.value) == words


def test_markdown_leaves_the_text_and_marks_what_was_marked() -> None:
    formatted = parse_markdown(
        r"*bold _both_* __under__ ~gone~ ||hid|| `a_b` [x\.y](https://x.org/\)) 1\.5"
    )

    assert formatted.text == "bold both under gone hid a_b x.y 1.5"
    assert entities(formatted) == [
        ("bold", 0, 9),
        ("italic", 5, 4),
        ("underline", 10, 5),
        ("strikethrough", 16, 4),
        ("spoiler", 21, 3),
        ("code", 25, 3),
        ("text_link", 29, 3),
    ]
    assert formatted.entities[-1].to_json()["url"] == "https://x.org/)"


def test_markdown_quotes_run_over_following_lines() -> None:
    formatted = parse_markdown(">one\n>two\nthree")
    assert formatted.text == "one\ntwo\nthree"
    assert entities(formatted) == [("blockquote", 0, 7)]


def test_markdown_blocks_may_name_their_language() -> None:
    formatted = parse_markdown("```python\nx = 1```")
    assert formatted.text == "x = 1"
    assert formatted.entities[0].to_json()["language"] == "python"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*open", "Can't find end of Bold entity at byte offset 0"),
        ("é `open", "Can't find end of Code entity at byte offset 3"),
        ("1.5", r"Character '.' is reserved and must be escaped with the preceding '\'"),
        ("[x](y", "Can't find end of a URL at byte offset 4"),
    ],
)
def test_broken_markdown_is_told_apart(text: str, words: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse_markdown(text)
    assert str(caught.value) == words


def test_trimming_moves_and_shortens_entities() -> None:
    padded = Formatted("  hi there ", (Entity("bold", 0, 4), Entity("code", 10, 1)))
    assert padded.trimmed() == Formatted("hi there", (Entity("bold", 0, 2),))


def test_commands_and_addresses_are_found_in_plain_text() -> None:
    found = found_in("🌊 /start@ferry_bot see https://x.org #river @ada and/or")
    assert [(each.type, each.offset) for each in found] == [
        ("bot_command", 3),
        ("url", 24),
        ("hashtag", 38),
        ("mention", 45),
    ]


def test_what_is_found_stays_out_of_code_and_links() -> None:
    formatted = with_found(parse_html("<b>send /help</b> <code>/not</code>"))
    assert entities(formatted) == [("bold", 0, 10), ("bot_command", 5, 5), ("code", 11, 4)]
