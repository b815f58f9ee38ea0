"""`ferryman webhook`: tell Telegram where to post updates, or no more, and see what it knows.

Compares first and sets once, as setting anew makes Telegram deliver twice what is under way. Which
secret was set is remembered as a fingerprint in the database, because Telegram does not tell. What
waits at Telegram is dropped only if `--drop-pending` says so.
"""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bot.cli.ground import bots_of, config_of, schema_of, settings_of, visit
from bot.cli.migrate import bring_forward
from bot.cli.output import Outcome, say, say_json, say_outcomes
from bot.cli.parser import EXIT_FAILED, Commands, Parser, add_json
from bot.cli.text import counted, facts, moment, or_dash, printable, since
from storage import bots
from storage import settings as configuration
from storage.clock import SystemClock
from storage.database import Database, Tx
from storage.errors import (
    ConfigurationError,
    Fault,
    TelegramRefused,
    TelegramUnreachable,
)
from storage.lifecycle import BotName
from storage.settings import Secret, Settings, Token, Where
from storage.telemetry import redact

if TYPE_CHECKING:
    from sender.webhook import WebhookDesk, WebhookInfo

_SECOND_MS = 1_000


@dataclass(frozen=True, slots=True)
class Post:
    """One bot's webhook as it should be; `secret` None where it is not compared."""

    bot: BotName
    token: Token
    url: str
    secret: Secret | None
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """One bot's webhook as Telegram has it, or why that could not be learnt."""

    bot: str
    error: str | None = None
    url: str = ""
    wanted_url: str = ""
    differences: Sequence[str] = ()
    updates_waiting_at_telegram: int = 0
    last_error_at_ms: int | None = None
    last_error: str | None = None
    max_connections: int | None = None
    ip_address: str | None = None


def add(commands: Commands) -> None:
    """Add the three actions."""
    group = commands.group(
        "webhook", purpose="Tell Telegram where to post updates, or see what it knows."
    )
    setting = group.add(
        "set",
        _set,
        purpose="Have updates posted to web.public_url; does nothing where they already are.",
    )
    _add_bots(setting)
    _add_drop_pending(setting)
    seeing = group.add(
        "info", _info, purpose="Show what Telegram knows, and what differs from the configuration."
    )
    _add_bots(seeing)
    add_json(seeing)
    deleting = group.add(
        "delete", _delete, purpose="Have no updates posted any more; they wait at Telegram."
    )
    _add_bots(deleting)
    _add_drop_pending(deleting)


def _add_bots(parser: Parser) -> None:
    parser.add_argument("bots", metavar="BOT", nargs="*", help="only these bots (otherwise all)")


def _add_drop_pending(parser: Parser) -> None:
    parser.add_argument(
        "--drop-pending",
        action="store_true",
        help="also throw away the updates that wait at Telegram: they are lost",
    )


def _set(given: Namespace) -> int:
    config = config_of(given)
    settings = configuration.load(config)
    posts = _compared(config, settings, given.bots)
    bring_forward(settings)
    act = partial(_set_one, drop_pending=given.drop_pending)
    return say_outcomes(asyncio.run(_each(settings, posts, act)))


def set_for(config: Where | None, bot: BotName, kinds: Sequence[str]) -> Sequence[Outcome]:
    """Have one bot's updates of these kinds posted here, as a script's `run_webhook` wants it.

    Raises ConfigurationError, also when web.public_url is not set.
    """
    settings = configuration.load(config)
    (post,) = _compared(config, settings, [bot])
    bring_forward(settings)
    act = partial(_set_one, drop_pending=False)
    return asyncio.run(_each(settings, [replace(post, kinds=tuple(kinds))], act))


def _delete(given: Namespace) -> int:
    settings = settings_of(given)
    act = partial(_delete_one, drop_pending=given.drop_pending)
    return say_outcomes(asyncio.run(_each(settings, _uncompared(given), act)))


def _info(given: Namespace) -> int:
    settings = settings_of(given)
    is_compared = bool(settings.web.public_url)
    posts = _compared(config_of(given), settings, given.bots) if is_compared else _uncompared(given)
    found = asyncio.run(_look(settings, posts))
    if given.json:
        say_json({"bots": found})
    else:
        say(as_lines(found, SystemClock().now_ms()))
    return EXIT_FAILED if any(seen.error for seen in found) else 0


def _uncompared(given: Namespace) -> Sequence[Post]:
    """The bots alone, where it does not matter what their webhooks should be."""
    from sender.settings import load_sender

    sender = load_sender(config_of(given))
    redact.register(sender.secret_values())
    return [
        Post(name, sender.tokens[name], "", None) for name in bots_of(sender.settings, given.bots)
    ]


def _compared(config: Where | None, settings: Settings, named: Sequence[str]) -> Sequence[Post]:
    """What each bot's webhook should be.

    Raises ConfigurationError, also when web.public_url is not set.
    """
    from sender.settings import load_webhook

    faults: list[Fault] = []
    if not settings.web.public_url:
        expected = 'expected the address that Telegram is to post to: "https://bot.example.org"'
        faults.append(Fault("web.public_url", "missing", expected))
    try:
        wanted = load_webhook(config)
    except ConfigurationError as error:
        raise ConfigurationError([*faults, *error.faults]) from error
    if faults:
        raise ConfigurationError(faults)
    redact.register(wanted.secret_values())
    return [
        Post(
            name,
            wanted.tokens[name],
            f"{settings.web.public_url}/telegram/{name}",
            wanted.secrets[name][0],
        )
        for name in bots_of(settings, named)
    ]


Act = Callable[["WebhookDesk", Post, Database | None], Awaitable[str]]


async def _each(settings: Settings, posts: Sequence[Post], act: Act) -> Sequence[Outcome]:
    """Do the same for each bot, one after the other; one that fails does not stop the next."""
    outcomes = []
    async with _desks(settings) as desk_of, _memory(settings) as database:
        for post in posts:
            try:
                told = await act(desk_of(post.token), post, database)
            except (TelegramRefused, TelegramUnreachable) as error:
                outcomes.append(Outcome(f"{post.bot}: {error}", is_done=False))
            else:
                outcomes.append(Outcome(f"{post.bot}: {told}", is_done=True))
    return outcomes


async def _set_one(
    desk: "WebhookDesk", post: Post, database: Database | None, *, drop_pending: bool
) -> str:
    from sender.webhook import Wanted, differences

    assert database is not None, "the database was brought forward"
    assert post.secret is not None, "what is set was compared"
    bound = await database.write(partial(bots.bind, name=post.bot, bot_id=post.token.bot_id))
    wanted = Wanted(post.url, post.secret, post.kinds)
    info = await desk.info()
    found = differences(info, wanted, fingerprint=bound.webhook_fingerprint)
    if not found and not drop_pending:
        return f"nothing to do, Telegram posts to {post.url}; {_waiting(info.pending_update_count)}"
    await desk.set(wanted, drop_pending=drop_pending)
    await database.write(partial(_remember, post.bot, wanted.fingerprint))
    why = f" ({'; '.join(found)})" if found else ""
    waiting = (
        _dropped(info.pending_update_count) if drop_pending else _waiting(info.pending_update_count)
    )
    return f"set{why}, Telegram posts to {post.url}; {waiting}"


async def _delete_one(
    desk: "WebhookDesk", post: Post, database: Database | None, *, drop_pending: bool
) -> str:
    info = await desk.info()
    if not info.url and not drop_pending:
        return f"nothing to do, no webhook is set; {_waiting(info.pending_update_count)}"
    await desk.delete(drop_pending=drop_pending)
    if database is not None:
        await database.write(partial(_remember, post.bot, None))
    count = info.pending_update_count
    return f"deleted; {_dropped(count) if drop_pending else _waiting(count)}"


async def _remembered(bot: BotName, database: Database | None) -> str | None:
    if database is None:
        return None
    bound = await database.read(partial(bots.show, name=bot))
    return None if bound is None else bound.webhook_fingerprint


def _remember(bot: BotName, fingerprint: str | None, tx: Tx) -> None:
    bots.set_webhook_fingerprint(tx, bot, fingerprint)


async def _look(settings: Settings, posts: Sequence[Post]) -> Sequence[Seen]:
    seen = []
    async with _desks(settings) as desk_of, _memory(settings) as database:
        for post in posts:
            try:
                info = await desk_of(post.token).info()
            except (TelegramRefused, TelegramUnreachable) as error:
                seen.append(Seen(post.bot, error=str(error)))
            else:
                seen.append(_seen(post, info, await _remembered(post.bot, database)))
    return seen


def _seen(post: Post, info: "WebhookInfo", fingerprint: str | None) -> Seen:
    from sender.webhook import Wanted, differences

    found: Sequence[str] = ()
    if post.secret is not None:
        found = differences(info, Wanted(post.url, post.secret), fingerprint=fingerprint)
    failed_at_s = info.last_error_date
    return Seen(
        bot=post.bot,
        url=info.url,
        wanted_url=post.url,
        differences=found,
        updates_waiting_at_telegram=info.pending_update_count,
        last_error_at_ms=None if failed_at_s is None else failed_at_s * _SECOND_MS,
        last_error=info.last_error_message,
        max_connections=info.max_connections,
        ip_address=info.ip_address,
    )


def as_lines(found: Sequence[Seen], now_ms: int) -> Iterator[str]:
    """What Telegram knows, for a person."""
    for seen in found:
        yield seen.bot
        yield from (f"  {line}" for line in facts(_facts(seen, now_ms)))
        if seen.error is None:
            yield f"  {_waiting(seen.updates_waiting_at_telegram)}"


def _facts(seen: Seen, now_ms: int) -> Iterator[tuple[str, str]]:
    if seen.error is not None:
        yield "not known", printable(seen.error)
        return
    yield "posts to", or_dash(seen.url)
    if seen.wanted_url:
        yield "wanted", seen.wanted_url
        yield "differs", "; ".join(seen.differences) or "in nothing"
    yield "connections", or_dash(seen.max_connections)
    yield "address", or_dash(seen.ip_address)
    if seen.last_error_at_ms is not None:
        ago = f"{moment(seen.last_error_at_ms)}, {since(seen.last_error_at_ms, now_ms)} ago"
        yield "last failure", f"{ago}: {or_dash(seen.last_error)}"


def _waiting(count: int) -> str:
    told = counted(count, "update")
    return f"{told} waiting at Telegram to be delivered to us (not our queue)"


def _dropped(count: int) -> str:
    return f"{counted(count, 'update')} that waited at Telegram dropped"


@asynccontextmanager
async def _desks(settings: Settings) -> AsyncIterator[Callable[[Token], "WebhookDesk"]]:
    """A way to each bot's webhook."""
    from sender.transport import Address, TransportOptions, open_transport
    from sender.webhook import WebhookDesk

    options = TransportOptions(read_timeout_s=settings.delivery.read_timeout_s, connections_max=1)
    async with open_transport(options, SystemClock()) as transport:
        yield lambda token: WebhookDesk(transport, Address(settings.telegram.base_url, token))


@asynccontextmanager
async def _memory(settings: Settings) -> AsyncIterator[Database | None]:
    """The database, which remembers what was set; None where there is none yet."""
    if await schema_of(settings) is None:
        yield None
    else:
        async with visit(settings) as database:
            yield database
