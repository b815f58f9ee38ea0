"""The words of the bot that ships."""

import pytest

from bot import texts


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("When is the next one?", "departures"),
        ("what does a TICKET cost?", "fares"),
        ("Is my dog welcome", "fares"),
        ("how long does it take?", "crossing"),
    ],
)
def test_a_question_is_answered_by_the_words_in_it(question: str, topic: str) -> None:
    assert texts.answer_to(question) == texts.TOPICS[topic]


@pytest.mark.parametrize("question", ["", "?!", "Wie bitte?", "مرحبا"])
def test_what_is_not_understood_is_said(question: str) -> None:
    assert texts.answer_to(question) == texts.UNSURE


def test_every_topic_has_a_title() -> None:
    assert texts.TITLES.keys() == texts.TOPICS.keys()
