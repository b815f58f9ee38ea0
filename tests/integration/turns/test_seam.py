"""What a handler may count on: answers that are made up, keys, wishes by group, reads that wait."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from telegram import InputMediaPhoto, Message, MessageId, Update
from telegram.error import BadRequest, RetryAfter
from telegram.ext import (
    ApplicationHandlerStop,
    CallbackQueryHandler,
    CommandHandler,
    MessageHandler,
    filters,
)

from bot.turns.application import TurnApplication
from bot.turns.turn import Phase, update_cause
from bot.turns.wishes import Send, flush
from storage import cooldowns
from storage.clock import deadline_in
from storage.lifecycle import InboxState
from tests.integration.turns.stand import BOT, Context, Stand, press, standing, until
from tests.integration.turns.test_capture import AnyBot, Saying, say_once


async def answers(saying: Saying, folder: Path) -> tuple[Any, list[dict[str, Any]]]:
    """What a handler is answered, and the rows that it leaves."""
    told: list[Any] = []

    async def say(bot: AnyBot) -> None:
        told.append(await saying(bot))

    async with standing(folder, say_once(say)) as stand:
        await stand.hears("go")
        return told[0], [dict(row) for row in stand.whole()]


async def test_an_album_is_answered_with_a_message_for_each_item(tmp_path: Path) -> None:
    media = [InputMediaPhoto("one", caption="<b>first</b>", parse_mode="HTML")]
    media.append(InputMediaPhoto("two"))
    told, (row,) = await answers(lambda bot: bot.send_media_group(7, media), tmp_path)
    first = update_cause(row["inbox_id"], Phase.HANDLERS).placeholder_of(0)
    assert [message.message_id for message in told] == [first, first - 1]
    assert (told[0].caption, told[0].caption_entities[0].type) == ("first", "bold")
    assert (row["placeholder"], row["items"], row["awaited"]) == (first, 2, 0)


async def test_copies_and_forwards_are_answered_with_ids(tmp_path: Path) -> None:
    async def say(bot: AnyBot) -> tuple[Any, Any, Any]:
        return (
            await bot.copy_message(7, -5, 33),
            await bot.copy_messages(7, -5, [33, 34]),
            await bot.send_message(7, "last"),
        )

    (one, many, last), _ = await answers(say, tmp_path)
    assert isinstance(one, MessageId)
    ids = [one.message_id, *(each.message_id for each in many), last.message_id]
    assert ids == [ids[0] - place for place in range(4)]


async def test_a_message_reads_as_telegram_would_show_it(tmp_path: Path) -> None:
    saying: Saying = lambda bot: bot.send_message(  # noqa: E731  # as its siblings
        7, "<b>bold</b> &amp; plain", parse_mode="HTML", protect_content=True
    )
    told, _ = await answers(saying, tmp_path)
    assert (told.text, told.entities[0].type, told.has_protected_content) == (
        "bold & plain",
        "bold",
        True,
    )


async def test_a_place_and_a_contact_are_shown_as_they_were_sent(tmp_path: Path) -> None:
    async def say(bot: AnyBot) -> tuple[Message, Message, Message]:
        return (
            await bot.send_location(7, 52.5, 13.25),
            await bot.send_venue(7, 1.5, 2.5, "Pier", "Quay 1"),
            await bot.send_contact(7, "+49", "Ann"),
        )

    (location, venue, contact), _ = await answers(say, tmp_path)
    assert location.location is not None
    assert location.location.latitude == 52.5
    assert venue.venue is not None
    assert (venue.venue.title, venue.venue.location.longitude) == ("Pier", 2.5)
    assert contact.contact is not None
    assert contact.contact.first_name == "Ann"


async def test_of_a_picture_nothing_is_made_up(tmp_path: Path) -> None:
    told, (row,) = await answers(lambda bot: bot.send_photo(7, "file", caption="c"), tmp_path)
    assert (told.caption, told.photo) == ("c", ())
    assert json.loads(row["params"])["photo"] == "file"


async def test_an_edit_of_the_pressed_message_keeps_what_it_does_not_change(
    tmp_path: Path,
) -> None:
    told: list[Message] = []

    async def edit(update: Update, context: Context) -> None:
        query = update.callback_query
        assert query is not None
        told.append(await query.edit_message_reply_markup())  # type: ignore[arg-type]  # no inline message

    def register(application: TurnApplication) -> None:
        application.add_handler(CallbackQueryHandler(edit))

    async with standing(tmp_path, register) as stand:
        await stand.handle(await stand.receive(callback_query=press("x")))
        assert told[0].text == "What would you like?"
        assert told[0].reply_markup is None
        assert told[0].edit_date is not None


async def test_settings_of_the_bot_have_a_lane_of_their_own(tmp_path: Path) -> None:
    told, (row,) = await answers(lambda bot: bot.set_my_name("Ferry"), tmp_path)
    assert told is True
    assert (row["lane"], row["chat_id"]) == ("m:", None)


async def test_a_key_makes_a_call_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    told: list[int] = []

    async def say(bot: AnyBot) -> None:
        wish = Send(key="order:5")
        told.append((await bot.send_message(7, "ordered", rate_limit_args=wish)).message_id)
        told.append((await bot.send_message(7, "ordered", rate_limit_args=wish)).message_id)

    async with standing(tmp_path, say_once(say)) as stand:
        await stand.hears("go")
        await stand.hears("go on", user=8)
        (row,) = await stand.shown()
        assert row["key"] == "key:order:5"
        assert set(told) == {row["placeholder"]}, "whoever asked can refer to it"


async def test_another_call_under_the_same_key_is_an_error_in_the_handler(tmp_path: Path) -> None:
    caught: list[str] = []

    async def say(bot: AnyBot) -> None:
        for text in ("one", "two"):
            try:
                await bot.send_message(7, text, rate_limit_args=Send(key="k"))
            except BadRequest as error:
                caught.append(str(error))

    async with standing(tmp_path, say_once(say)) as stand:
        await stand.hears("go")
        assert await stand.texts() == ["one"]
        await stand.hears("go")
        assert len(caught) == 2
        assert "'key:k' stands for another sendMessage already" in caught[0]


async def test_two_turns_that_ask_for_one_key_at_once_agree_on_its_message(tmp_path: Path) -> None:
    gate = asyncio.Event()
    told: dict[int, list[int]] = {7: [], 8: []}

    async def say(update: Update, context: Context) -> None:
        assert update.effective_user is not None
        message = await context.bot.send_message(9, "same", rate_limit_args=Send(key="k"))
        told[update.effective_user.id].append(message.message_id)
        if update.effective_user.id == 8 and len(told[8]) == 1:
            await gate.wait()

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, say))

    async with standing(tmp_path, register) as stand:
        slow = await stand.says("go", user=8)
        handling = asyncio.ensure_future(stand.handle(slow))
        await until(lambda: bool(told[8]))
        await stand.hears("go", user=7)
        gate.set()
        await handling
        assert (await stand.record(slow)).state is InboxState.RECEIVED, "it runs once more"
        await stand.handle(slow)
        assert (await stand.record(slow)).state is InboxState.DONE
        (row,) = await stand.shown()
        assert told[7] == [row["placeholder"]]
        assert told[8][1] == row["placeholder"] != told[8][0]


async def test_a_call_is_put_off_to_its_moment_and_lives_from_then_on(tmp_path: Path) -> None:
    at = datetime(2099, 1, 1, tzinfo=UTC)

    async def say(bot: AnyBot) -> None:
        await bot.send_message(7, "happy new year", rate_limit_args=Send(not_before=at))
        wish = Send(not_before=timedelta(minutes=5), expires_in=60)
        await bot.send_message(7, "soon", rate_limit_args=wish)

    async with standing(tmp_path, say_once(say)) as stand:
        await stand.hears("go")
        now_ms = stand.clock.now_ms()
        later, soon = stand.whole()
        assert later["not_before_ms"] == int(at.timestamp()) * 1000
        assert later["expires_at_ms"] == later["not_before_ms"] + 3_600_000
        assert soon["not_before_ms"] == now_ms + 300_000
        assert soon["expires_at_ms"] == now_ms + 360_000


async def test_a_text_that_is_too_long_goes_out_in_parts_of_which_each_follows_the_other(
    tmp_path: Path,
) -> None:
    saying: Saying = lambda bot: bot.send_message(  # noqa: E731  # as its siblings
        7, "word " * 1200, rate_limit_args=Send(split=True)
    )
    told, rows = await answers(saying, tmp_path)
    assert len(rows) == 2
    assert rows[1]["follows"] == rows[0]["placeholder"]
    assert told.message_id == rows[1]["placeholder"]


async def test_what_is_flushed_is_on_disk_before_the_turn_ends_and_survives_its_failure(
    tmp_path: Path,
) -> None:
    seen: list[list[str]] = []

    async with standing(tmp_path, lambda _: None) as stand:

        async def work(update: Update, context: Context) -> None:
            await context.bot.send_message(7, "working")
            await context.flush()
            seen.append(await stand.texts())
            await flush()
            await context.bot.send_message(7, "done")
            raise ValueError

        stand.application.add_handler(MessageHandler(filters.TEXT, work))
        await stand.hears("go")
        assert seen == [["working"]]
        assert await stand.texts() == ["working"]
        assert stand.rings == ["sender"]


async def test_a_handler_that_takes_long_is_heard_meanwhile_and_a_second_run_says_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.running.FLUSH_EVERY_S", 0.02)
    runs: list[str] = []
    gate = asyncio.Event()

    async def work(update: Update, context: Context) -> None:
        runs.append("run")
        await context.bot.send_message(7, "working")
        await gate.wait()
        await context.bot.send_message(7, "done")
        if len(runs) == 1:
            raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, work))

    async with standing(tmp_path, register, retries=1) as stand:
        update = await stand.says("go")
        handling = asyncio.ensure_future(stand.handle(update))
        async with asyncio.timeout(5):
            while await stand.texts() != ["working"]:
                pass
        gate.set()
        await handling
        assert (await stand.record(update)).state is InboxState.RECEIVED
        await stand.handle(update)
        assert await stand.texts() == ["working", "done"]
        assert len(runs) == 2


def grouped(application: TurnApplication) -> None:
    """Handlers of three groups, one of which has a wish."""

    async def plain(update: Update, context: Context) -> None:
        await context.bot.send_message(7, "plain")

    async def news(update: Update, context: Context) -> None:
        await context.bot.send_message(7, "news")
        await context.bot.send_message(7, "now", rate_limit_args=Send(urgency="interactive"))
        context.application.create_task(context.bot.send_message(7, "from a task"))

    async def last(update: Update, context: Context) -> None:
        await context.bot.send_message(7, "last")
        raise ApplicationHandlerStop

    application.add_handler(MessageHandler(filters.TEXT, last), group=9)
    application.add_handler(MessageHandler(filters.TEXT, plain))
    application.add_handler(CommandHandler("never", plain), group=5)
    application.add_handler(MessageHandler(filters.TEXT, news), group=5)
    application.send_defaults(5, Send(urgency="bulk", expires_in=60))


async def test_a_group_of_handlers_has_wishes_of_its_own(tmp_path: Path) -> None:
    async with standing(tmp_path, grouped) as stand:
        await stand.hears("go")
        now_ms = stand.clock.now_ms()
        told = {
            json.loads(row["params"])["text"]: (row["priority"], row["expires_at_ms"] - now_ms)
            for row in stand.whole()
        }
        assert told == {
            "plain": ("interactive", 3_600_000),
            "news": ("bulk", 60_000),
            "now": ("interactive", 60_000),
            "from a task": ("bulk", 60_000),
            "last": ("interactive", 3_600_000),
        }
        with pytest.raises(ValueError, match="key names one call"):
            stand.application.send_defaults(5, Send(key="k"))


async def cool(stand: Stand, wait_ms: int, scope: str = cooldowns.BOT_SCOPE) -> None:
    """The bot was ordered to wait."""
    deadline = deadline_in(wait_ms, stand.clock)
    await stand.db.write(lambda tx: cooldowns.merge(tx, BOT, scope, deadline, reason="a flood"))


@pytest.mark.parametrize("scope", [cooldowns.BOT_SCOPE, cooldowns.INFERRED_SCOPE])
async def test_a_read_waits_for_a_short_cooldown_to_end(scope: str, tmp_path: Path) -> None:
    counted: list[int] = []

    async def ask(bot: AnyBot) -> None:
        counted.append(await bot.get_chat_member_count(-5))

    async with standing(tmp_path, say_once(ask)) as stand:
        stand.telegram.answers["getChatMemberCount"] = (200, 12)
        await cool(stand, 2_000, scope)
        handling = asyncio.ensure_future(stand.hears("go"))
        await until(lambda: stand.clock.next_due_ms() is not None)
        assert stand.telegram.asked == []
        stand.clock.advance_ms(2_000)
        await handling
        assert counted == [12]


# The library warns of its own future whenever a flood is met.
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
async def test_a_read_in_a_long_cooldown_is_answered_as_telegram_answers_in_a_flood(
    tmp_path: Path,
) -> None:
    caught: list[RetryAfter] = []

    async def ask(bot: AnyBot) -> None:
        try:
            await bot.get_chat_member_count(-5)
        except RetryAfter as error:
            caught.append(error)

    async with standing(tmp_path, say_once(ask)) as stand:
        await cool(stand, 59_500)
        await cool(stand, 10_000, scope="c:7")
        await stand.hears("go")
        assert stand.telegram.asked == []
        assert caught[0].retry_after == 60
