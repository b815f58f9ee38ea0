"""Calls whose answers handlers wait for: through the sender and back, whole."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.error import BadRequest, Forbidden, TelegramError, TimedOut
from telegram.ext import MessageHandler, filters

from bot.turns.wishes import Send
from storage import inbox, outbox
from storage.lifecycle import InboxState
from tests.integration.sender.stub import Cut, refusal
from tests.integration.turns.both import accepted, both, message_of, only
from tests.integration.turns.stand import BOT, Context, Register, standing

Asking = Callable[[Any], Awaitable[Any]]
WAIT = Send(wait=True)
POLL = {
    "id": "p1",
    "question": "?",
    "options": [{"persistent_id": name, "text": name, "voter_count": 0} for name in ("a", "b")],
    "total_voter_count": 0,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
    "allows_revoting": True,
    "members_only": False,
}


def asking(ask: Asking, told: list[Any]) -> Register:
    """A handler that notes what it is answered, or which error it meets."""

    async def handle(update: Update, context: Context) -> None:
        try:
            told.append(await ask(context.bot))
        except TimedOut:
            raise
        except TelegramError as error:
            told.append(error)

    return only(MessageHandler(filters.TEXT, handle))


async def test_a_poll_comes_back_as_telegram_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    register = asking(lambda bot: bot.send_poll(7, "?", ["a", "b"]), told)
    async with both(tmp_path, register, monkeypatch) as house:
        house.stub.will("sendPoll", accepted(message_of(poll=POLL)))
        house.start_sender()
        await house.ends(await house.hears("go"))
        assert (told[0].message_id, told[0].poll.id) == (4001, "p1")


async def test_what_was_said_before_goes_first_and_the_wish_to_wait_gives_the_real_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    async def ask(bot: Any) -> Any:  # noqa: ANN401  # a test's
        await bot.send_message(7, "first")
        return await bot.send_message(7, "second", rate_limit_args=WAIT)

    async with both(tmp_path, asking(ask, told), monkeypatch) as house:
        house.stub.will("sendMessage", accepted(message_of()), accepted(message_of(text="2nd")))
        house.start_sender()
        await house.ends(await house.hears("go"))
        assert house.stub.texts == ["first", "second"]
        assert (told[0].message_id, told[0].text) == (4001, "2nd")


@pytest.mark.parametrize(
    ("code", "description", "error"),
    [
        (403, "Forbidden: bot was blocked by the user", Forbidden),
        (400, "Bad Request: not enough rights to manage chat invite link", BadRequest),
    ],
)
async def test_a_refusal_is_raised_where_the_call_was_made(
    code: int,
    description: str,
    error: type[TelegramError],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    register = asking(lambda bot: bot.create_chat_invite_link(-1005), told)
    async with both(tmp_path, register, monkeypatch) as house:
        house.stub.will("createChatInviteLink", refusal(code, description))
        house.start_sender()
        await house.ends(await house.hears("go"))
        assert isinstance(told[0], error)
        assert str(told[0]).casefold() in description.casefold()


@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBUserWarning")
async def test_a_method_that_nobody_knows_is_made_once_and_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer than python-telegram-bot, and than our own table."""
    told: list[Any] = []
    register = asking(
        lambda bot: bot.do_api_request("do_something_new", {"chat_id": 7, "moon": [1, 2]}), told
    )
    async with both(tmp_path, register, monkeypatch) as house:
        house.stub.will("doSomethingNew", accepted({"made": "cheese"}))
        house.start_sender()
        await house.ends(await house.hears("go"))
        assert told == [{"made": "cheese"}]
        arrival = next(each for each in house.stub.arrivals if each.method == "doSomethingNew")
        assert arrival.form == {"chat_id": "7", "moon": "[1, 2]"}
        (row,) = house.rows()
        assert (row["lane"], row["on_uncertain"]) == ("c:7", "hold")


@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBUserWarning")
async def test_a_read_that_nobody_knows_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    register = asking(lambda bot: bot.do_api_request("get_moon", {"phase": 1}), told)
    async with both(tmp_path, register, monkeypatch) as house:
        house.stub.will("getMoon", accepted({"full": True}))
        await house.ends(await house.hears("go"))
        assert told == [{"full": True}]
        assert house.rows() == []


async def test_a_gift_of_which_nobody_can_tell_is_held_and_never_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    raised: list[TimedOut] = []

    async def give(update: Update, context: Context) -> None:
        runs.append("run")
        for _ in runs[1:]:
            # A run that says more than the one before, to which the gift comes later.
            await context.bot.send_message(7, "once more")
        try:
            wish = Send(on_uncertain="resend")
            await context.bot.send_gift("g1", user_id=7, rate_limit_args=wish)
        except TimedOut as error:
            raised.append(error)
            raise

    register = only(MessageHandler(filters.TEXT, give))
    async with both(tmp_path, register, monkeypatch) as house:
        house.stub.will("sendGift", Cut.AFTER_READING)
        house.start_sender()
        update = await house.hears("go")
        await house.ends(update, InboxState.DEAD)
        assert len(runs) == 1, "nobody waits for a person"
        await house.db.write(partial(inbox.requeue, update=update))
        house.bell.ring("worker")
        await house.ends(update, InboxState.DEAD)
        assert len(raised) == len(runs) == 2
        assert [each.method for each in house.stub.arrivals].count("sendGift") == 1
        (gift,) = [row for row in house.rows() if row["method"] == "sendGift"]
        assert (gift["state"], gift["attempts_max"]) == ("uncertain", 1)
        assert f"row {gift['id']} is held" in str(raised[0])


async def test_a_run_that_gave_up_waiting_finds_the_answer_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.awaiting.PATIENCE_S", 0.3)
    told: list[Any] = []
    runs: list[str] = []

    async def ask(bot: Any) -> Any:  # noqa: ANN401  # a test's
        runs.append("run")
        return await bot.send_dice(7)

    async with both(tmp_path, asking(ask, told), monkeypatch) as house:
        house.stub.will("sendDice", accepted(message_of(dice={"emoji": "🎲", "value": 6})))
        update = await house.hears("go")
        await house.ends(update, InboxState.CLAIMED)
        await house.ends(update, InboxState.RECEIVED)
        house.start_sender()
        await house.ends(update)
        assert len(runs) >= 2
        assert told[0].dice.value == 6
        assert [each.method for each in house.stub.arrivals].count("sendDice") == 1


async def test_who_waits_for_a_call_that_nobody_makes_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.awaiting.PATIENCE_S", 0.05)
    caught: list[TimedOut] = []

    async def ask(update: Update, context: Context) -> None:
        try:
            await context.bot.send_dice(7)
        except TimedOut as error:
            caught.append(error)

    register = only(MessageHandler(filters.TEXT, ask))
    async with standing(tmp_path, register) as stand:
        await stand.hears("go")
        (row,) = await stand.shown()
        assert f"row {row['id']} waits for its turn" in str(caught[0])
        assert stand.rings[0] == "sender", "it was rung before it was waited for"


async def test_what_a_person_cancels_is_an_error_that_says_so(tmp_path: Path) -> None:
    told: list[Any] = []
    register = asking(lambda bot: bot.send_dice(7), told)
    async with standing(tmp_path, register) as stand:
        handling = asyncio.ensure_future(stand.hears("go"))
        async with asyncio.timeout(5):
            while not await stand.rows():
                pass
        await stand.db.write(lambda tx: outbox.cancel_lane(tx, BOT, "c:7", reason="not now"))
        await handling
        assert isinstance(told[0], BadRequest)
        assert "cancelled (not now)" in str(told[0])
