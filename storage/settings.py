"""The configuration, as read: one TOML file, overlaid by the environment.

Every key may also be given as FERRYMAN_SECTION__KEY. All faults are collected, each with its key
and its source, and none shows a secret. Secrets come from files or from the environment, never from
the configuration file, which ends in version control and in backups. A role asks only for the
secrets it needs (`bot/settings.py`, `sender/settings.py`).

Besides those two this is the only module that may read the environment.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from storage import failpoint
from storage.errors import ConfigurationError, Fault
from storage.lifecycle import BotName
from storage.option_keys import (
    PREFIX,
    Key,
    is_secret,
    keys_of,
    lines_of,
    parse_variable,
    say_expected,
    say_key,
    variable_of,
)
from storage.options import BotOptions, Limits, Settings
from storage.secret import Secret, Token

__all__ = [
    "BotOptions",
    "Limits",
    "NoFile",
    "Reading",
    "Secret",
    "ServiceEnvironment",
    "Settings",
    "Token",
    "Where",
    "has_config_variable",
    "load",
    "service_environment",
]

CONFIG_VARIABLE: Final = "FERRYMAN_CONFIG"
SCRIPT_TOKEN: Final = ("bots", "main", "token")
"""The key that a script's own token stands for where there is no configuration file."""
SECRET_FILE_BYTES_MAX: Final = 64 << 10
# Two while a secret is being changed: Telegram may still post with the older one.
WEBHOOK_SECRETS_MAX: Final = 2
_TOKEN = re.compile(r"(\d+):[\w-]{30,}", re.ASCII)
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_BEARER_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{8,}")
_API_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,}")


@dataclass(frozen=True, slots=True)
class NoFile:
    """A bot that is configured by its own script and the environment: there is no file.

    Paths are relative to `folder`. `token` is the bot's as its script has it and `base_url` the
    address of its Bot API, "" where the script names none; what the environment says goes before.
    """

    folder: Path
    token: Secret
    base_url: str = ""


Where = Path | NoFile
"""Where the configuration is."""


@dataclass(frozen=True, slots=True)
class ServiceEnvironment:
    """What the service manager and the terminal say through the environment."""

    notify_socket: str = ""
    watchdog_usec: int = 0
    watchdog_pid: int = 0
    listen_fds: int = 0
    listen_pid: int = 0
    credentials_directory: str = ""
    no_color: str = ""


def service_environment(environ: Mapping[str, str] | None = None) -> ServiceEnvironment:
    """Read what systemd and the terminal pass; what is no number counts as not given."""
    given = os.environ if environ is None else environ

    def number(name: str) -> int:
        text = given.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() else 0

    return ServiceEnvironment(
        notify_socket=given.get("NOTIFY_SOCKET", ""),
        watchdog_usec=number("WATCHDOG_USEC"),
        watchdog_pid=number("WATCHDOG_PID"),
        listen_fds=number("LISTEN_FDS"),
        listen_pid=number("LISTEN_PID"),
        credentials_directory=given.get("CREDENTIALS_DIRECTORY", ""),
        no_color=given.get("NO_COLOR", ""),
    )


def load(path: Where | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """The configuration without any secret.

    `path` is what `--config` said, `environ` the process's environment unless given.
    Raises ConfigurationError with all faults.
    """
    return Reading(path, environ).finish()


def has_config_variable(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the environment names a configuration file."""
    return bool((os.environ if environ is None else environ).get(CONFIG_VARIABLE))


class Reading:
    """One reading of the configuration: ask for what is wanted, then `finish` tells all faults.

    Secrets are read from the values as given, so that a fault elsewhere does not hide theirs.
    """

    def __init__(self, path: Where | None, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._faults: list[Fault] = []
        self._sources: dict[Key, str] = {}
        self._secret_variables: dict[Key, str] = {}
        self._folder = Path()
        self._by_script: set[str] = set()
        self._path = None if isinstance(path, NoFile) else self._find(path)
        self._values = self._read_file()
        if isinstance(path, NoFile):
            self._take_script(path)
        self._overlay()
        self._settings = self._validate()

    def finish(self) -> Settings:
        """The settings, or ConfigurationError with every fault found so far."""
        if self._faults or self._settings is None:
            raise ConfigurationError(self._faults)
        return self._settings

    def tokens(self) -> dict[BotName, Token]:
        """Each bot's token; two bots may not share one."""
        tokens: dict[BotName, Token] = {}
        owners: dict[int, str] = {}
        for name in self._names("bots"):
            key = ("bots", name, "token")
            text = self._secret(key, is_required=True)
            if text is None:
                continue
            if not _TOKEN.fullmatch(text):
                self._fault(key, "expected a bot's token: digits, a colon, 30 characters or more")
                continue
            token = Token(text)
            owner = owners.setdefault(token.bot_id, name)
            if owner != name:
                self._fault(key, f"expected the token of another bot than bots.{owner} has")
            tokens[BotName(name)] = token
        return tokens

    def webhook_secrets(self) -> dict[BotName, tuple[Secret, ...]]:
        """Each bot's webhook secrets, the newest first: two while they are being changed."""
        secrets: dict[BotName, tuple[Secret, ...]] = {}
        for name in self._names("bots"):
            key = ("bots", name, "secret")
            text = self._secret(key, is_required=True)
            if text is None:
                continue
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if len(lines) > WEBHOOK_SECRETS_MAX or not all(map(_WEBHOOK_SECRET.fullmatch, lines)):
                self._fault(key, "expected one or two lines, each 1 to 256 of A-Z, a-z, 0-9, _, -")
                continue
            secrets[BotName(name)] = tuple(Secret(line) for line in lines)
        return secrets

    def channel_tokens(self) -> dict[str, Secret]:
        """Each channel's bearer token."""
        tokens: dict[str, Secret] = {}
        for name in self._names("channels"):
            key = ("channels", name, "token")
            text = self._secret(key, is_required=True)
            if text is None:
                continue
            if not _BEARER_TOKEN.fullmatch(text):
                self._fault(key, "expected 8 or more characters of A-Z, a-z, 0-9 and ._~+/=-")
                continue
            tokens[name] = Secret(text)
        return tokens

    def api_token(self) -> Secret | None:
        """The HTTP API's bearer token; None turns the API off."""
        key = ("web", "api_token")
        text = self._secret(key, is_required=False)
        if text is None:
            return None
        if not _API_TOKEN.fullmatch(text):
            self._fault(key, "expected 16 or more characters of A-Z, a-z, 0-9 and ._~+/=-")
            return None
        return Secret(text)

    def _fault(self, key: Key, expected: str, source: str | None = None) -> None:
        self._faults.append(Fault(say_key(key), source or self._source(key), expected))

    def _source(self, key: Key) -> str:
        """Where a key was read, or else the innermost table around it."""
        if is_secret(key) and key not in self._sources:
            key = _file_key(key)
        for length in range(len(key), 0, -1):
            if key[:length] in self._sources:
                return self._sources[key[:length]]
        return "missing"

    def _find(self, path: Path | None) -> Path | None:
        if path is not None:
            return path
        if self._environ.get(CONFIG_VARIABLE):
            return Path(self._environ[CONFIG_VARIABLE])
        self._fault(
            ("config",),
            f"expected a configuration file, by --config PATH or {CONFIG_VARIABLE}; "
            "the smallest has a table [bots.main] with token_file and secret_file",
        )
        return None

    def _take_script(self, script: NoFile) -> None:
        """Take what a script says of its bot for what the environment does not say."""
        self._folder = script.folder
        given = {SCRIPT_TOKEN: script.token.reveal(), ("telegram", "base_url"): script.base_url}
        for key, value in given.items():
            if value and variable_of(key) not in self._environ:
                self._environ[variable_of(key)] = value
                self._by_script.add(variable_of(key))

    def _read_file(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        self._folder = self._path.resolve().parent
        try:
            text = self._path.read_bytes().decode()
            values = tomllib.loads(text)
        except OSError as error:
            self._fault(
                ("config",), f"expected a readable file, found: {error.strerror}", str(self._path)
            )
            return {}
        except UnicodeDecodeError:
            self._fault(("config",), "expected a file in UTF-8", str(self._path))
            return {}
        except tomllib.TOMLDecodeError as error:
            self._fault(("config",), f"expected valid TOML, found: {error}", str(self._path))
            return {}
        for key, line in lines_of(text):
            self._sources.setdefault(key, f"{self._path}:{line}")
        for key in keys_of(values):
            self._sources.setdefault(key, str(self._path))
        return values

    def _overlay(self) -> None:
        """Lay the environment over the file; a table first, then what is inside it."""
        for variable in sorted(self._environ, key=lambda name: (name.count("__"), name)):
            if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE:
                continue
            key = self._key_of(variable)
            is_scripts = variable in self._by_script
            self._note(
                key, "the script's own" if is_scripts else f"environment variable {variable}"
            )
            if is_secret(key):
                self._secret_variables[key] = variable
                # A bot may be given by the environment alone.
                _table_at(self._values, key[:-1])
            else:
                table = _table_at(self._values, key[:-1])
                table[key[-1]] = parse_variable(self._environ[variable], key)

    def _note(self, key: Key, source: str) -> None:
        """Remember that all of this key was given here, and so were the tables it made."""
        for below in [known for known in self._sources if known[: len(key)] == key]:
            del self._sources[below]
        self._sources[key] = source
        for length in range(1, len(key)):
            self._sources.setdefault(key[:length], source)

    def _key_of(self, variable: str) -> Key:
        """BOTS__MAIN_BOT__TOKEN is bots.main-bot.token if there is such a bot: no shell has '-'."""
        parts = variable.removeprefix(PREFIX).lower().split("__")
        table = self._values.get(parts[0])
        if len(parts) > 1 and parts[0] in {"bots", "channels", "pools"} and isinstance(table, dict):
            names = {name.replace("-", "_"): name for name in table}
            parts[1] = names.get(parts[1], parts[1])
        return tuple(parts)

    def _validate(self) -> Settings | None:
        if self._faults:
            return None
        try:
            settings = Settings.model_validate(self._values)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_context=False):
                key = tuple(str(part) for part in detail["loc"] if part != "[key]")
                self._fault(key, say_expected(detail["type"], detail["msg"], key, detail["input"]))
            return None
        self._check(settings)
        state_dir = self._folder / settings.state_dir.expanduser()
        return settings.model_copy(update={"state_dir": state_dir})

    def _check(self, settings: Settings) -> None:
        """Look for what no single value can tell."""
        if not settings.bots:
            self._fault(("bots",), "expected at least one bot, in a table such as [bots.main]")
        for name, pool in settings.pools.items():
            for bot in pool.bots:
                if bot not in settings.bots:
                    self._fault(("pools", name, "bots"), "expected names of bots in [bots]")
        for name in settings.bots:
            limits = settings.limits_for(name)
            if limits.paid_per_second and not limits.stars_budget:
                self._fault(
                    ("bots", name, "limits", "stars_budget"),
                    "expected a number of Stars, here or in [limits], where paid_per_second is one",
                )
        try:
            failpoint.parse(settings.testing.failpoint)
        except ValueError as error:
            self._fault(("testing", "failpoint"), str(error))

    def _names(self, section: str) -> list[str]:
        tables = self._values.get(section)
        if not isinstance(tables, dict):
            return []
        return [name for name, table in tables.items() if isinstance(table, dict)]

    def _secret(self, key: Key, *, is_required: bool) -> str | None:
        """The text of a secret: the environment's, else that of its file."""
        if key in self._secret_variables:
            text = self._environ[self._secret_variables[key]].strip()
            if not text:
                self._fault(key, "expected a secret, found it empty")
            return text or None
        file_key = _file_key(key)
        table: Any = self._values
        for part in key[:-1]:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        file = table.get(file_key[-1], "") if isinstance(table, dict) else ""
        if not isinstance(file, str):
            return None
        if file:
            return self._read_secret_file(file_key, file)
        if is_required:
            table_name = ".".join(key[:-1])
            expected = f"expected {file_key[-1]} in [{table_name}], or {variable_of(key)}"
            self._fault(key, expected, source="missing")
        return None

    def _read_secret_file(self, key: Key, file: str) -> str | None:
        # The name is not shown: it may be the secret itself, put into the wrong key.
        try:
            with self._secret_path(file).open("rb") as opened:
                content = opened.read(SECRET_FILE_BYTES_MAX + 1)
            text = content.decode().strip()
        except FileNotFoundError:
            self._fault(
                key,
                "expected the name of a file in $CREDENTIALS_DIRECTORY or beside the configuration "
                "file; there is none of this name",
            )
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "no text in UTF-8"
            self._fault(key, f"expected a readable file, found: {why}")
            return None
        if not text or len(content) > SECRET_FILE_BYTES_MAX:
            found = "too large" if text else "empty"
            self._fault(key, f"expected a file with a secret, found it {found}")
            return None
        return text

    def _secret_path(self, file: str) -> Path:
        directory = self._environ.get("CREDENTIALS_DIRECTORY", "")
        if directory and (Path(directory) / file).exists():
            return Path(directory) / file
        return self._folder / Path(file).expanduser()


def _file_key(key: Key) -> Key:
    return (*key[:-1], f"{key[-1]}_file")


def _table_at(values: dict[str, Any], key: Key) -> dict[str, Any]:
    """The table of this key, made where it is missing.

    Where something else stands in its place, what is put into the table returned is lost; that
    there should be a table is the validation's to say.
    """
    table = values
    for part in key:
        inner = table.setdefault(part, {})
        table = inner if isinstance(inner, dict) else {}
    return table
