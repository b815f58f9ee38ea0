"""Which memories an update touches."""

from typing import Any

import pytest
from telegram import Update
from telegram.ext import CommandHandler, ConversationHandler, Job, MessageHandler, filters

from bot.turns.scopes import (
    Place,
    Scopes,
    key_of,
    persistent_conversations,
    scopes_of,
    scopes_of_job,
)
from tests.integration.turns.stand import message, press


async def nothing(update: Update, context: object) -> None:
    """Do nothing."""


async def later(context: object) -> None:
    """Do nothing, as a job."""


def conversation(
    name: str, *, per_chat: bool = True, per_user: bool = True, per_message: bool = False
) -> ConversationHandler[Any]:
    return ConversationHandler(
        [CommandHandler("go", nothing)],
        {},
        [],
        name=name,
        persistent=True,
        per_chat=per_chat,
        per_user=per_user,
        per_message=per_message,
    )


def parsed(**content: object) -> Update:
    return Update.de_json({"update_id": 1, **content}, None)


def test_an_update_touches_its_user_and_its_chat() -> None:
    update = parsed(message=message("hi", user=7, chat=-100))
    assert scopes_of(update, []).names() == ["user:7", "chat:-100"]


def test_an_update_of_nobody_touches_nothing() -> None:
    assert scopes_of(parsed(a_kind_of_tomorrow={}), []) == Scopes()


def test_a_group_that_moves_touches_both_its_chats() -> None:
    """Handlers move the memory over when they are told."""
    moving = message("", chat=-5) | {"migrate_to_chat_id": -1005}
    del moving["text"]
    assert scopes_of(parsed(message=moving), []).chats == (-5, -1005)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, (-100, 7)),
        ({"per_chat": False}, (7,)),
        ({"per_user": False}, (-100,)),
    ],
)
def test_a_conversation_is_kept_under_the_librarys_own_key(
    options: dict[str, bool], key: tuple[int, ...]
) -> None:
    handler = conversation("order", **options)
    update = parsed(message=message("hi", user=7, chat=-100))
    assert key_of(handler, update) == handler._get_key(update) == key
    assert scopes_of(update, [handler]).places == (Place("order", key),)


# The library advises against what this test must do.
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBUserWarning")
def test_a_conversation_about_a_message_is_kept_under_that_message() -> None:
    handler = conversation("menu", per_message=True)
    pressed = parsed(callback_query=press("x", user=7, message_id=90))
    assert key_of(handler, pressed) == handler._get_key(pressed) == (7, 7, 90)
    assert key_of(handler, parsed(message=message("hi"))) is None


def test_nested_conversations_are_found_and_forgetful_ones_are_not() -> None:
    inner = conversation("inner")
    outer: ConversationHandler[Any] = ConversationHandler(
        [CommandHandler("go", nothing)],
        {1: [inner], 2: [MessageHandler(filters.TEXT, nothing)]},
        [],
        name="outer",
        persistent=True,
    )
    forgetful: ConversationHandler[Any] = ConversationHandler([], {}, [], name="forgetful")
    found = persistent_conversations({0: [outer], 1: [forgetful]})
    assert [handler.name for handler in found] == ["outer", "inner"]


def test_a_job_touches_the_user_and_chat_it_names() -> None:
    job: Job[Any] = Job(later, chat_id=-100, user_id=7)
    assert scopes_of_job(job, []).names() == ["user:7", "chat:-100"]


def test_the_timer_of_a_conversation_touches_what_its_update_touched() -> None:
    class Timer:
        update = parsed(message=message("hi", user=7, chat=-100))

    job: Job[Any] = Job(later, data=Timer())
    handler = conversation("order")
    assert scopes_of_job(job, [handler]).places == (Place("order", (-100, 7)),)
