"""Our reading of markup and the simulator's agree, and no text loses anything when it is cut."""

import html
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from storage.markup.cutting import cut
from storage.markup.entities import Entity, Formatted, MarkupError, Units
from storage.markup.html import parse_html
from storage.markup.markdown import parse_markdown
from storage.markup.markdown_v2 import parse_markdown_v2
from tests.simulator.entities import Entity as SimulatedEntity
from tests.simulator.entities import Formatted as Simulated
from tests.simulator.entities import Unparsable
from tests.simulator.html_text import parse_html as simulated_html
from tests.simulator.markdown_text import parse_markdown as simulated_markdown

# A part of joiners alone shows nothing, and is dropped.
JOINER = "\u200d"

Shape = tuple[str, list[tuple[str, int, int]]]

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
words = st.text("ab é🏟\n👨‍👩<>&.\\", max_size=4)
tags = st.sampled_from(
    [
        *("<b>", "</b>", "<i>", "</i>", "</a>", "</>", "<pre>", "</pre>", "<code>", "</code>"),
        *('<code class="language-py">', "<tg-spoiler>", "</tg-spoiler>", "</span>", "&lt;"),
        *('<span class="tg-spoiler">', "<blockquote>", "<blockquote expandable>", "&#128512;"),
        *("</blockquote>", '<a href="https://a.b/c?x=1&amp;y=2">', '<tg-emoji emoji-id="5">'),
        *("</tg-emoji>", "&amp;", "&nbsp;", "é", "🏟", " ", "<u>", "</u>"),
    ]
)
# Of quotes, and of marks inside code, the simulator knows less than Telegram's own tests.
marks = st.sampled_from(
    [
        "*",
        "_",
        "__",
        "~",
        "||",
        "[",
        "](https://a.b/c)",
        "\\.",
        "\n",
        "a",
        "é",
        "🏟",
        " ",
        ".",
        "`c`",
    ]
)


def shape_of(entities: Sequence[Entity] | Sequence[SimulatedEntity]) -> list[tuple[str, int, int]]:
    """Kind and place of each; of two at the same place neither is before the other."""
    return sorted((each.type, each.offset, each.length) for each in entities)


def simulated(parse: Callable[[str], Simulated], text: str) -> Shape | str:
    """What the simulator makes of a text: its shape, or its words for a fault."""
    try:
        found = parse(text)
    except Unparsable as error:
        return str(error)
    return found.text, shape_of(found.entities)


def ours(parse: Callable[[str], Formatted], text: str) -> Shape | str:
    """What we make of it."""
    try:
        found = parse(text)
    except MarkupError as error:
        return error.why
    return found.text, shape_of(found.entities)


@given(st.lists(tags | words.map(html.escape), max_size=9).map("".join))
def test_html_is_read_as_the_simulator_reads_it(text: str) -> None:
    assert ours(parse_html, text) == simulated(simulated_html, text)


@given(st.lists(marks, max_size=9).map("".join))
def test_markdown_is_read_as_the_simulator_reads_it(text: str) -> None:
    assert ours(parse_markdown_v2, text) == simulated(simulated_markdown, text)


@given(anything)
def test_an_escaped_text_is_itself(text: str) -> None:
    escaped = "".join(f"\\{char}" if 0 < ord(char) < 127 else char for char in text)
    assert parse_markdown_v2(escaped).text == text
    assert parse_html(html.escape(text, quote=False)).text == text


def place_of_fault(parse: Callable[[str], Formatted], text: str) -> int:
    """The byte that a fault names, 0 when there is none."""
    try:
        parse(text)
    except MarkupError as error:
        return error.offset
    return 0


@given(st.text(max_size=60), st.sampled_from([parse_html, parse_markdown, parse_markdown_v2]))
def test_whatever_is_given_is_read_or_refused_with_a_place_in_it(
    text: str, parse: Callable[[str], Formatted]
) -> None:
    assert 0 <= place_of_fault(parse, text) <= len(text.encode("utf-8", "surrogatepass"))


@st.composite
def formatted(draw: st.DrawFn) -> Formatted:
    text = draw(st.text("ab \n🏟é\u0301👨‍👩\U0001f1eb", max_size=120))
    size = Units(text).of(len(text))
    kinds = st.sampled_from(["bold", "pre", "text_link"])
    spans = draw(st.lists(st.tuples(kinds, st.integers(0, size), st.integers(0, size)), max_size=4))
    units = Units(text)
    return Formatted(
        text,
        tuple(
            Entity(kind, min(start, end), abs(end - start))
            for kind, start, end in spans
            if not units.splits(start) and not units.splits(end)
        ),
    )


def marked(part: Formatted) -> list[tuple[str, frozenset[str]]]:
    """Each character that shows, with the kinds of entity over it."""
    units = Units(part.text)
    return [
        (
            char,
            frozenset(
                each.type for each in part.entities if each.offset <= units.of(at) < each.end
            ),
        )
        for at, char in enumerate(part.text)
        if not char.isspace()
    ]


@given(formatted(), st.integers(2, 30))
def test_a_cut_loses_no_character_that_shows_and_no_mark_over_one(
    whole: Formatted, limit: int
) -> None:
    parts = cut(whole, limit)
    assert all(1 <= len(part.text) <= limit for part in parts)
    kept = [each for part in parts for each in marked(part)]
    assert [each for each in marked(whole) if each[0] != JOINER] == [
        each for each in kept if each[0] != JOINER
    ]
