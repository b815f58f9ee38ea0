"""Telling Telegram where to post: compared first, set once, nothing dropped unasked."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from sender.transport import Address, TransportOptions, open_transport
from sender.webhook import Wanted, WebhookDesk, WebhookInfo, differences
from storage.clock import SystemClock
from storage.errors import TelegramRefused, TelegramUnreachable
from storage.secret import Secret, Token
from tests.live.house import LiveBot, made_up_bot
from tests.simulator.run import RunningHere, simulator_here

WANTED = Wanted("https://bot.example.org/telegram/main", Secret("s3cret-of-the-webhook"))


@dataclass(frozen=True, slots=True)
class Desk:
    """A bot's webhook desk before a simulated Telegram."""

    desk: WebhookDesk
    sim: RunningHere
    bot: LiveBot


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    """A bot that has no webhook yet."""
    bot = made_up_bot()
    async with simulator_here() as sim, open_transport(_OPTIONS, SystemClock()) as transport:
        await sim.control.add_bot(bot.token)
        address = Address(sim.api_url, Token(bot.token))
        yield Desk(WebhookDesk(transport, address), sim, bot)


_OPTIONS = TransportOptions(read_timeout_s=30, connections_max=4)


async def test_a_webhook_that_was_set_is_not_set_again(at: Desk) -> None:
    before = await at.desk.info()
    assert differences(before, WANTED, fingerprint=None)
    await at.desk.set(WANTED)
    after = await at.desk.info()
    assert after.url == WANTED.url
    assert differences(after, WANTED, fingerprint=WANTED.fingerprint) == ()


async def test_what_waits_at_telegram_is_kept_unless_it_was_to_be_dropped(at: Desk) -> None:
    ada = await at.sim.control.add_user("Ada")
    await at.sim.control.says(ada.id, "hello", bot=at.bot.id)
    await at.desk.delete()
    assert (await at.desk.info()).pending_update_count == 1
    await at.desk.delete(drop_pending=True)
    assert (await at.desk.info()).pending_update_count == 0


@pytest.mark.parametrize(
    ("info", "fingerprint", "words"),
    [
        (WebhookInfo(url="https://other.example.org"), WANTED.fingerprint, "another one"),
        (WebhookInfo(url=WANTED.url), None, "secret"),
        (WebhookInfo(url=WANTED.url), "0123", "secret"),
        (WebhookInfo(url=WANTED.url, max_connections=3), WANTED.fingerprint, "3 connections"),
        (WebhookInfo(url=WANTED.url, allowed_updates=("poll",)), WANTED.fingerprint, "kinds"),
    ],
)
def test_every_difference_is_told(info: WebhookInfo, fingerprint: str | None, words: str) -> None:
    (found,) = differences(info, WANTED, fingerprint=fingerprint)
    assert words in found


async def test_the_kinds_that_are_wanted_are_set_and_compared(at: Desk) -> None:
    wanted = replace(WANTED, kinds=("message", "chat_member"))
    await at.desk.set(wanted)
    info = await at.desk.info()
    assert differences(info, wanted, fingerprint=wanted.fingerprint) == ()
    (found,) = differences(info, WANTED, fingerprint=WANTED.fingerprint)
    assert "only some kinds" in found
    other = replace(WANTED, kinds=("message",))
    (found,) = differences(info, other, fingerprint=other.fingerprint)
    assert "other kinds" in found


def test_the_fingerprint_does_not_tell_the_secret() -> None:
    assert WANTED.secret.reveal() not in WANTED.fingerprint
    assert WANTED.secret.reveal() not in repr(WANTED)


async def test_a_refusal_is_told_with_telegrams_words(at: Desk) -> None:
    await at.sim.control.revoke(at.bot.id)
    with pytest.raises(TelegramRefused, match="401 Unauthorized"):
        await at.desk.info()


async def test_an_outage_is_told_without_the_token(at: Desk) -> None:
    await at.sim.control.goes_down()
    with pytest.raises(TelegramUnreachable, match="getWebhookInfo: unconnected") as raised:
        await at.desk.info()
    assert at.bot.token not in str(raised.value)
