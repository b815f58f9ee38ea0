"""What a text counts as, whether anything shows, and where it may be cut."""

import pytest

from storage.markup.cutting import cut
from storage.markup.entities import Entity, Formatted
from storage.markup.measuring import count, misplaced, passes_at, shows

FAMILY = "👨‍👩‍👧"
FLAG = "🇫🇷"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("a", 1),
        ("🏟", 1),
        (" \n\ta b\t\n ", 3),
        ("a\rb\u202ec\u0333", 3),
        ("é" * 4096, 4096),
        (FAMILY, 5),
    ],
)
def test_a_text_counts_in_code_points_without_what_the_server_drops(text: str, length: int) -> None:
    assert count(text) == length


@pytest.mark.parametrize("text", ["a", "ㅤ", "\u200bx", "·"])
def test_one_character_that_shows_is_a_text(text: str) -> None:
    assert shows(text)


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u200d", "\u2800", "\ufeff\xa0", "\0"])
def test_nothing_that_shows_is_no_text(text: str) -> None:
    assert not shows(text)


def test_the_place_where_a_limit_is_passed_is_told_in_bytes() -> None:
    assert passes_at("éa", 1) == 2
    assert passes_at("  é\ra", 1) == 5


@pytest.mark.parametrize(
    ("entities", "words"),
    [
        ([(0, 3)], None),
        ([(0, 3), (0, 1), (1, 2)], None),
        ([(2, 0), (9, 0)], None),
        ([(0, 4)], "Entity beginning at UTF-16 offset 0 ends after the end of the text"),
        ([(4, 1)], "Entity begins after the end of the text at UTF-16 offset 4"),
        ([(-1, 1)], "Receive an entity with incorrect offset -1"),
        ([(0, 2_000_000)], "Receive an entity with incorrect length 2000000"),
        ([(2, 1)], "Entity begins in a middle of a UTF-16 symbol at byte offset 5"),
        ([(0, 2)], "Entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol"),
        # The server drops one of these before it looks.
        ([(0, 2), (1, 9)], None),
    ],
)
def test_an_entity_out_of_place_is_told_in_telegrams_words(
    entities: list[tuple[int, int]], words: str | None
) -> None:
    found = misplaced(Formatted("a🏟", tuple(Entity("bold", *each) for each in entities)))
    assert found == words if words is None else str(found).startswith(words)


def test_what_telegram_finds_by_itself_is_never_out_of_place() -> None:
    assert misplaced(Formatted("a", (Entity("url", 5, 9),))) is None


def texts(text: str, limit: int) -> list[str]:
    return [part.text for part in cut(Formatted(text), limit)]


def test_a_text_is_cut_at_the_best_place_that_leaves_a_part_half_full() -> None:
    assert texts("one two\n\nthree\nfour five", 17) == ["one two\n\nthree", "four five"]
    assert texts("one two three\n\nfour\nfive six", 20) == ["one two three", "four\nfive six"]
    assert texts("aaaa\n\nbb\ncc dd", 10) == ["aaaa\n\nbb", "cc dd"]
    assert texts("aaaa aaaa\nb", 10) == ["aaaa aaaa", "b"]
    assert texts("a bbbbbbbbbb", 10) == ["a bbbbbbbb", "bb"]


def test_a_cut_goes_through_no_sign() -> None:
    assert texts("aa" + FAMILY + "b", 5) == ["aa", FAMILY, "b"]
    assert texts(FLAG * 3, 3) == [FLAG, FLAG, FLAG]
    assert texts("abe\u0301f", 3) == ["ab", "e\u0301f"]
    assert texts("ab👍🏽", 3) == ["ab", "👍🏽"]


def test_a_sign_longer_than_a_part_is_cut_all_the_same() -> None:
    assert "".join(texts("e" + "\u0301" * 9, 4)) == "e" + "\u0301" * 9


def test_an_entity_goes_on_in_the_next_part() -> None:
    bold = Entity("bold", 2, 7)
    link = Entity("text_link", 0, 11, (("url", "https://a.b"),))
    parts = cut(Formatted("🏟 aa bb cc d", (link, bold)), 6)
    assert parts == (
        Formatted("🏟 aa", (Entity("text_link", 0, 5, link.extra), Entity("bold", 2, 3))),
        Formatted("bb cc", (Entity("text_link", 0, 5, link.extra), Entity("bold", 0, 3))),
        Formatted("d"),
    )


def test_a_custom_emoji_is_not_cut_in_two() -> None:
    emoji = Entity("custom_emoji", 3, 3, (("custom_emoji_id", "5"),))
    parts = cut(Formatted("abcdefg", (emoji,)), 4)
    assert [part.text for part in parts] == ["abc", "defg"]
    assert parts[1].entities == (Entity("custom_emoji", 0, 3, emoji.extra),)


def test_indentation_after_a_cut_is_kept_and_blank_parts_are_not_sent() -> None:
    assert texts("aaaa\n  bb", 6) == ["aaaa", "  bb"]
    assert texts("aaaa" + " " * 50 + "b", 6) == ["aaaa", "b"]
    assert texts(" \n ", 2) == []
