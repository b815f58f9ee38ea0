"""`ferryman check`: every fault of the set-up with its key, or a summary of what would run.

Looks at what a role would meet at its start, the secrets' files and the handlers included, and
changes nothing. A secret is never shown, nor the name of a file that might be one.
"""

import asyncio
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bot.cli.ground import config_of, schema_of
from bot.cli.output import say, say_json
from bot.cli.parser import EXIT_FAILED, Commands, add_json, unknown
from bot.cli.text import counted, facts, table
from storage.database import library_version, require_sound_sqlite
from storage.errors import AffectedSqlite, ConfigurationError, Fault, StorageError, Usage
from storage.lifecycle import BotName
from storage.migrate import migrations
from storage.settings import Limits, Reading, Settings, Token
from storage.telemetry import describe

ROLES: Final = ("web", "worker", "sender")


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration without faults, and what belongs to it. `schema`: None without a database."""

    settings: Settings
    tokens: Mapping[BotName, Token]
    schema: int | None


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "check", _check, purpose="Explain every fault of the set-up, or sum up what would run."
    )
    parser.add_argument(
        "roles",
        metavar="ROLE",
        nargs="*",
        help="check only what this role needs: web, worker or sender (otherwise all)",
    )
    parser.add_argument(
        "--polling", action="store_true", help="check for `run --polling`, without webhook secrets"
    )
    add_json(parser)


def _check(given: Namespace) -> int:
    roles = given.roles or ROLES
    for role in roles:
        if role not in ROLES:
            raise Usage(unknown("role", role, ROLES))
    try:
        setup = examine(config_of(given), roles, polling=given.polling)
    except ConfigurationError as error:
        return _say_faults(error.faults, as_json=given.json)
    if given.json:
        say_json(as_document(setup))
    else:
        say(as_lines(setup))
    return 0


def _say_faults(faults: Sequence[Fault], *, as_json: bool) -> int:
    if as_json:
        say_json({"ok": False, "faults": faults})
    else:
        say([f"{counted(len(faults), 'fault')}:", *(f"  {fault}" for fault in faults)])
    return EXIT_FAILED


def examine(config: Path | None, roles: Sequence[str], *, polling: bool) -> Setup:
    """Look at everything that these roles need.

    Raises ConfigurationError with all faults: those of the configuration, or else those of what it
    names.
    """
    reading = Reading(config)
    if "web" in roles:
        if not polling:
            reading.webhook_secrets()
        reading.api_token()
    tokens = reading.tokens() if {"worker", "sender"} & set(roles) else {}
    if "sender" in roles:
        reading.channel_tokens()
    settings = reading.finish()
    faults = [*_sqlite_faults(settings), *_state_faults(settings)]
    if "worker" in roles:
        faults += _handlers_faults(settings)
    if "sender" in roles:
        faults += _guard_faults(settings)
    schema = None
    if not faults:
        try:
            schema = asyncio.run(schema_of(settings))
        except StorageError as error:
            told = str(error).removeprefix(f"state_dir = {settings.state_dir}: ")
            faults.append(Fault("state_dir", str(settings.state_dir), told.replace("\n", " ")))
    if faults:
        raise ConfigurationError(faults)
    return Setup(settings, tokens, schema)


def _sqlite_faults(settings: Settings) -> Iterator[Fault]:
    try:
        require_sound_sqlite(accept_affected=settings.storage.accept_affected_sqlite)
    except AffectedSqlite as error:
        version = ".".join(str(part) for part in library_version())
        yield Fault("storage.accept_affected_sqlite", f"SQLite {version}", str(error))


def _state_faults(settings: Settings) -> Iterator[Fault]:
    place = settings.state_dir
    try:
        while not place.exists() and place != place.parent:
            place = place.parent
    except OSError as error:
        yield Fault("state_dir", str(place), f"expected a directory, found: {error.strerror}")
        return
    if not place.is_dir():
        yield Fault("state_dir", str(place), "expected a directory, found something else")
    elif not os.access(place, os.W_OK | os.X_OK):
        yield Fault(
            "state_dir",
            str(place),
            "expected a directory that this user can write to; give it write access, or set "
            "state_dir (FERRYMAN_STATE_DIR) to another one",
        )


def _handlers_faults(settings: Settings) -> Iterator[Fault]:
    """Import each bot's handlers as the worker does; their module may raise anything."""
    from bot.turns.loading import load_handlers

    for name, bot in settings.bots.items():
        try:
            load_handlers(BotName(name), bot.handlers)
        except ConfigurationError as error:
            yield from error.faults
        except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's module
            yield Fault(f"bots.{name}.handlers", bot.handlers, _unimportable(error))


def _guard_faults(settings: Settings) -> Iterator[Fault]:
    """Import the guard as the sender does; its module may raise anything."""
    from sender.guards import KEY, load_guard

    named = settings.delivery.guard
    try:
        load_guard(named)
    except ConfigurationError as error:
        yield from error.faults
    except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody else's module
        yield Fault(KEY, named, _unimportable(error))


def _unimportable(error: BaseException) -> str:
    told = f": {error}" if isinstance(error, ImportError | SyntaxError) else ""
    return f"expected a module that can be imported, found {describe(error)}{told}"


def as_document(setup: Setup) -> dict[str, Any]:
    """What would run, for a program."""
    settings = setup.settings
    return {
        "ok": True,
        "faults": [],
        "state_dir": str(settings.state_dir),
        "schema": setup.schema,
        "listens": _listens(settings),
        "public_url": settings.web.public_url,
        "telegram": settings.telegram.base_url,
        "channels": {
            name: {"contract": channel.contract, "base_url": channel.base_url}
            for name, channel in settings.channels.items()
        },
        "bots": [
            {
                "name": name,
                "bot_id": _bot_id(setup, name),
                "handlers": bot.handlers,
                "limits": settings.limits_for(name).model_dump(),
            }
            for name, bot in settings.bots.items()
        ],
    }


def as_lines(setup: Setup) -> Iterator[str]:
    """What would run, for a person."""
    settings = setup.settings
    yield "All is well. This would run:"
    yield ""
    yield from facts(
        [
            ("state", f"{settings.state_dir} ({_schema(setup)})"),
            ("web", f"listens on {_listens(settings)}"),
            ("webhook", _webhook(settings)),
            ("telegram", settings.telegram.base_url),
            ("delivery", _delivery(settings)),
            *(
                (f"channel {name}", f"{channel.base_url}, contract {channel.contract}")
                for name, channel in settings.channels.items()
            ),
        ]
    )
    yield ""
    rows = [
        (name, str(_bot_id(setup, name) or "-"), bot.handlers, _limits(settings.limits_for(name)))
        for name, bot in settings.bots.items()
    ]
    yield from table(("BOT", "ID", "HANDLERS", "LIMITS"), rows)


def _bot_id(setup: Setup, name: str) -> int | None:
    token = setup.tokens.get(BotName(name))
    return None if token is None else token.bot_id


def _schema(setup: Setup) -> str:
    known = len(migrations())
    if setup.schema is None:
        return "no database yet; the first start makes it"
    if setup.schema < known:
        return f"schema {setup.schema}; the next start brings it to {known}"
    return f"schema {setup.schema}"


def _listens(settings: Settings) -> str:
    web = settings.web
    if web.socket_path:
        return web.socket_path
    host = f"[{web.host}]" if ":" in web.host else web.host
    return f"{host}:{web.port}"


def _webhook(settings: Settings) -> str:
    if not settings.web.public_url:
        return "none: web.public_url is not set, so only `ferryman run --polling` gets updates"
    return f"Telegram posts to {settings.web.public_url}/telegram/<bot>"


def _delivery(settings: Settings) -> str:
    delivery = settings.delivery
    return (
        f"replies live {delivery.reply_ttl_s} s, at most {delivery.attempts_max} attempts, "
        f"if uncertain: {delivery.on_uncertain}"
    )


def _limits(limits: Limits) -> str:
    return (
        f"chat {limits.chat_per_second:g}/s (burst {limits.chat_burst}), "
        f"group {limits.group_per_minute}/min, bot {limits.bot_per_second:g}/s, "
        f"bulk {limits.bulk_per_second:g}/s"
    )
