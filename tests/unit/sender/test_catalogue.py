"""The catalogue of errors, row by row: whatever Telegram is known to say has one meaning for us."""

import json
from pathlib import Path
from typing import Any

import pytest

from sender.answer import Answer
from sender.botapi import classify
from sender.phrases import PHRASES, USERS_WORDS_FOLLOW, Meaning, meaning_of
from sender.verdict import Cooldown, Moved, Partial, Refused, Verdict, name_of
from tests.unit.sender.answers import answered, refused, wrapped

CATALOGUE = Path(__file__).parents[2] / "data" / "botapi-catalogue.json"
ROWS: list[dict[str, Any]] = json.loads(CATALOGUE.read_text())["rows"]

# The rows whose text decides: those of a plain 400 to a call of one item.
TEXTS = [
    row
    for row in ROWS
    if row["code"] == 400
    and (row["text"] or "").startswith("Bad Request: ")
    and row.get("items", 1) == 1
]

# What each of the catalogue's classes may become here. A closed chat is unreachable only where the
# text says that it is gone: rights may be given back. What Telegram hides a 5xx in is in doubt.
VERDICTS = {
    "LATER": {"cooldown", "transient"},
    "MSG": {"refused"},
    "FIX": {"refused"},
    "KIND": {"refused"},
    "CHAT": {"unreachable", "refused"},
    "BOT": {"fatal"},
    "MIGRATE": {"moved"},
    "DONE": {"sent"},
    "UNKNOWN": {"uncertain", "partial"},
}


def name_of_row(row: dict[str, Any]) -> str:
    said = row.get("body", row["text"])
    return f"{row['row'] or 'default'}-{row['code']}-{said[:60] or 'empty'}"


def answer_of(row: dict[str, Any], text: str | None = None) -> Answer:
    if "body" in row:
        return answered(row["code"], row["body"].encode())
    return refused(row["code"], row["text"] if text is None else text, row.get("parameters"))


def meant(row: dict[str, Any], text: str | None = None) -> Verdict:
    method = row.get("method", "sendMessage")
    return classify(answer_of(row, text), method, items=row.get("items", 1))


@pytest.mark.parametrize("row", ROWS, ids=name_of_row)
def test_each_row_of_the_catalogue_has_its_verdict(row: dict[str, Any]) -> None:
    found = meant(row)
    assert name_of(found) == row["verdict"], found
    match found:
        case Refused():
            assert (found.kind, found.code) == (row["kind"], row["code"])
        case Cooldown() | Partial():
            assert found.wait_ms == row.get("wait_ms")
        case Moved():
            assert found.new_chat_id == row["parameters"]["migrate_to_chat_id"]
        case _:
            assert "kind" not in row


@pytest.mark.parametrize("row", [row for row in ROWS if row["text"]], ids=name_of_row)
def test_letters_may_be_large_or_small(row: dict[str, Any]) -> None:
    """Libraries recapitalise descriptions, and Telegram does so itself."""
    text = row["text"]
    for spelt in (text.upper(), text.lower(), text.capitalize()):
        found, plain = meant(row, spelt), meant(row)
        assert name_of(found) == name_of(plain)
        if isinstance(found, Refused):
            assert isinstance(plain, Refused)
            assert found.kind is plain.kind


@pytest.mark.parametrize("row", TEXTS, ids=name_of_row)
def test_a_text_means_the_same_inside_the_error_of_an_item(row: dict[str, Any]) -> None:
    """Telegram wraps what an album's item met, and does not rewrite it."""
    inner = row["text"].removeprefix("Bad Request: ")
    found, plain = meant(row, wrapped(1, inner)), meant(row)
    assert name_of(found) == name_of(plain)
    if isinstance(found, Refused):
        assert isinstance(plain, Refused)
        assert found.kind is plain.kind


def test_the_catalogue_is_whole() -> None:
    assert {row["row"] for row in ROWS if row["row"]} == set(range(1, 101))
    assert {row["code"] for row in ROWS if row["row"] is None} >= {
        400,
        401,
        403,
        404,
        409,
        413,
        500,
    }


@pytest.mark.parametrize("row", ROWS, ids=name_of_row)
def test_no_verdict_contradicts_the_catalogues_class(row: dict[str, Any]) -> None:
    """Where we know better there is a note that says why."""
    assert row["verdict"] in VERDICTS[row["class"]] or row["note"]


def test_every_text_we_know_stands_in_the_catalogue_or_was_seen_elsewhere() -> None:
    """A text nobody has seen would be a guess, and one that decides over messages."""
    known = " | ".join(row["text"].lower() for row in ROWS if row["text"])
    elsewhere = {
        *("sent message was immediately deleted", "poll has already been closed"),
        *("query_id_invalid", "user_deactivated", "group is deactivated", "have no rights"),
        # Inside an album's error Telegram's inner texts stand as they are.
        *("webpage_curl_failed", "webpage_media_empty", "message_too_long", "wrong http url"),
    }
    unseen = {
        text
        for _, texts in [*PHRASES, (Meaning.CONTENT, USERS_WORDS_FOLLOW)]
        for text in texts
        if text not in known and text not in elsewhere
    }
    assert not unseen


def test_no_phrase_hides_behind_an_earlier_one_with_another_meaning() -> None:
    for meaning, texts in PHRASES:
        for text in texts:
            assert text == text.lower()
            assert meaning_of(f"Bad Request: {text.upper()} x") is meaning, text
