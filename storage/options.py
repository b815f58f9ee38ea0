"""Every key of the configuration: its meaning, its limits and its default.

Pure: no file, no environment. Strict and closed, so that a misspelt key or a number in quotes is a
fault instead of a default nobody asked for. Secrets are not here: only the names of the files they
are kept in. What is read from where is `storage/settings.py`'s.
"""

import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from storage.lifecycle import OnUncertain
from storage.outgoing import TELEGRAM

Network = IPv4Network | IPv6Network

# https://core.telegram.org/bots/webhooks: where Telegram's webhook calls come from.
TELEGRAM_NETWORKS = ("149.154.160.0/20", "91.108.4.0/22")
BOT_NAME = re.compile(r"[a-z][a-z0-9_-]*")
# The server absorbs floods by holding a call for up to 8 s: who gives up early makes duplicates.
READ_TIMEOUT_S_MIN = 30
_HANDLERS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_DAY_S = 24 * 60 * 60


def _networks(value: object) -> object:
    """Read a list of CIDR networks and plain addresses."""
    if not isinstance(value, list | tuple):
        # Pydantic collects ValueError only.
        raise ValueError('expected a list of networks such as "10.0.0.0/8"')  # noqa: TRY004  # as said above
    return tuple(_network(item) for item in value)


def _allowed_networks(value: object) -> object:
    """Read networks, and the preset "telegram", alone or among them."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        return _networks(items)
    texts: list[object] = []
    for item in items:
        texts.extend(TELEGRAM_NETWORKS if item == "telegram" else (item,))
    return _networks(texts)


def _network(text: object) -> Network:
    if isinstance(text, IPv4Network | IPv6Network):
        return text
    if isinstance(text, str):
        try:
            return ip_network(text)
        except ValueError:
            pass
    raise ValueError('expected networks such as "10.0.0.0/8", with no bits set beyond the prefix')


def _matches(pattern: re.Pattern[str], expected: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(expected)
        return text

    return check


def _guard(text: str) -> str:
    return text and _matches(_HANDLERS, 'expected "module:callable"')(text)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _public_url(text: str) -> str:
    """Telegram posts over TLS only; plain HTTP is for a server on this machine that plays it."""
    expected = 'expected an address such as "https://bot.example.org", or "" for none'
    if not text:
        return text
    host = _host_of(text, expected)
    if urlsplit(text).scheme == "http" and not _is_loopback(host):
        raise ValueError("expected https: plain http is accepted for loopback hosts only")
    return text.rstrip("/")


def _base_url(text: str) -> str:
    _host_of(text, 'expected an address such as "https://api.telegram.org"')
    return text.rstrip("/")


def _service_url(text: str) -> str:
    """A token goes with every call, so it may go over TLS only, or stay on this machine."""
    host = _host_of(text, 'expected an address such as "https://service.example.org/v1"')
    if urlsplit(text).scheme == "http" and not _is_loopback(host):
        raise ValueError("expected https: plain http is accepted for loopback hosts only")
    return text.rstrip("/")


def _host_of(url: str, expected: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError(expected) from None
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in {"http", "https"} or not host or not is_plain:
        raise ValueError(expected)
    return host


def _channel_name(name: str) -> str:
    if name == TELEGRAM:
        raise ValueError("expected another name: [telegram] is configured on its own")
    return name


def _to_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Count = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[int, Field(ge=1, le=365 * _DAY_S)]
Days = Annotated[int, Field(ge=1, le=3650)]
UserIds = Annotated[tuple[Count, ...], BeforeValidator(_to_tuple)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
Name = Annotated[
    str,
    AfterValidator(
        _matches(BOT_NAME, "expected a name of a-z, 0-9, _ and -, beginning with a letter")
    ),
]


ChannelName = Annotated[Name, AfterValidator(_channel_name)]


class Section(BaseModel):
    """A table of the configuration: closed, frozen, strict, and silent about what it was given."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class WebOptions(Section):
    """`[web]`: the door from the internet."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0 lets the system choose."""
    socket_path: str = ""
    """A Unix socket to listen on instead of host and port."""
    public_url: Annotated[str, AfterValidator(_public_url)] = ""
    """Telegram posts to <public_url>/telegram/<bot name>."""
    trusted_proxies: Networks = (IPv4Network("127.0.0.1"),)
    """Peers whose X-Forwarded-For is believed."""
    allowed_networks: Annotated[tuple[Network, ...], BeforeValidator(_allowed_networks)] = ()
    """Where updates may come from; empty = anywhere, "telegram" = Telegram's published ranges."""
    api_token_file: str = ""
    """Bearer token of the HTTP API and of the status page from afar; empty = off."""
    inbox_depth_max: Count = 100_000
    """More unhandled updates than this, and new ones are answered with 503."""
    disk_free_min_bytes: Annotated[int, Field(ge=0)] = 512 << 20
    """Less free disk than this, and updates are answered with 503: SQLite needs room to finish."""


class TelegramOptions(Section):
    """`[telegram]`: where the Bot API is."""

    base_url: Annotated[str, AfterValidator(_base_url)] = "https://api.telegram.org"


# https://core.telegram.org/bots/faq: paid broadcasts reach up to 1000 messages a second.
PAID_PER_SECOND_MAX = 1_000
PaidRate = Annotated[int, Field(ge=0, le=PAID_PER_SECOND_MAX)]
Stars = Annotated[int, Field(ge=0, le=1_000_000_000)]


class Limits(Section):
    """`[limits]`: what one bot may send. In any T seconds at most burst + rate x T.

    An album costs as many messages as it carries. SIGHUP has the sender read this table again.
    """

    chat_per_second: Rate = 1.0
    chat_burst: Count = 1
    group_per_minute: Count = 20
    bot_per_second: Rate = 30.0
    bulk_per_second: Rate = 25.0
    paid_per_second: PaidRate = 0
    """Ceiling of calls with allow_paid_broadcast, which pass no other limit of the bot; 0 = off."""
    stars_budget: Stars = 0
    """Whole Stars that paid calls of this bot may cost in all; 0 = none, so that nothing paid goes.
    Each message counts as a tenth; once it is spent, paid calls wait until it is raised."""
    flood_scope: Literal["adaptive", "bot", "chat"] = "adaptive"
    """How much of the bot a 429 stops, as Telegram does not say."""


class LimitsOverride(Section):
    """`[bots.NAME.limits]`: the same keys for one bot; the rest is as in `[limits]`."""

    chat_per_second: Rate | None = None
    chat_burst: Count | None = None
    group_per_minute: Count | None = None
    bot_per_second: Rate | None = None
    bulk_per_second: Rate | None = None
    paid_per_second: PaidRate | None = None
    stars_budget: Stars | None = None
    flood_scope: Literal["adaptive", "bot", "chat"] | None = None


class BotOptions(Section):
    """`[bots.NAME]`: one bot."""

    token_file: str = ""
    secret_file: str = ""
    """X-Telegram-Bot-Api-Secret-Token; two lines while it is being changed, the newer one first."""
    admins: UserIds = ()
    """Owners, by numeric user id."""
    operators: UserIds = ()
    viewers: UserIds = ()
    handlers: Annotated[str, AfterValidator(_matches(_HANDLERS, 'expected "module:callable"'))] = (
        "bot.handlers:register"
    )
    """An importable callable that takes the PTB Application."""
    limits: LimitsOverride = LimitsOverride()


class ChannelOptions(Section):
    """`[channels.NAME]`: a service beside Telegram that a bot's rows may be posted to."""

    contract: Literal["coded"]
    """How its answers are read: "coded" = errors with a code of their own and no wait."""
    base_url: Annotated[str, AfterValidator(_service_url)]
    """Calls are posted to <base_url>/<method>."""
    token_file: str = ""
    """Its bearer token."""


class PoolOptions(Section):
    """`[pools.NAME]`: bots that may each do a job, and the chats they do it in."""

    bots: Annotated[tuple[Name, ...], BeforeValidator(_to_tuple), Field(min_length=1)]
    chats: Annotated[tuple[int, ...], BeforeValidator(_to_tuple), Field(min_length=1)]


class WorkerOptions(Section):
    """`[worker]`: the turns."""

    turn_timeout_s: Seconds = 300
    """A turn that takes longer is cancelled and its update buried."""
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    """How often a failed turn is taken again before its update is buried."""
    lanes_max: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Turns that run at once."""
    local_files: bool = False
    """Whether a string that names a file on this machine means that file; a `Path` always does."""


class DeliveryOptions(Section):
    """`[delivery]`: how long messages are worth sending, and what to do when things go wrong."""

    reply_ttl_s: Seconds = 3600
    """How long a reply is worth sending, counted from when its question came in."""
    broadcast_ttl_s: Seconds = _DAY_S
    on_uncertain: Annotated[OnUncertain, Field(strict=False)] = OnUncertain.HOLD
    """What to do with a call that may already have been carried out."""
    on_bare_flood: Literal["review"] = "review"
    """What to do with a 429 that names no usable wait: hold it for a person."""
    late_answers: Literal["drop", "message"] = "drop"
    """What to do with the answer to a pressed button that comes too late: nothing, or, in a private
    chat, to say its text as a message."""
    cancel_on_edit: bool = False
    """Whether an answer is not said when the message that it answers is edited while it waits."""
    guard: Annotated[str, AfterValidator(_guard)] = ""
    """An importable callable that may object to a row before it is sent; empty = none."""
    attempts_max: Annotated[int, Field(ge=1, le=100)] = 5
    """Failed attempts after which a message is dead; waits and floods are not attempts."""
    read_timeout_s: Annotated[int, Field(ge=READ_TIMEOUT_S_MIN, le=600)] = READ_TIMEOUT_S_MIN


class SenderOptions(Section):
    """`[sender]`: the calls."""

    in_flight_max: Annotated[int, Field(ge=1, le=1000)] = 32
    """Calls that one bot has under way at once."""


class RetentionOptions(Section):
    """`[retention]`: how long finished rows are kept; what waits for a person is never removed."""

    inbox_days: Days = 7
    outbox_days: Days = 30
    placeholders_days: Days = 400
    """How long, after its call is forgotten, a message's id is kept for handlers that remember the
    one which they were given before it was sent."""


class StorageOptions(Section):
    """`[storage]`: the database."""

    accept_affected_sqlite: bool = False
    """Run on an SQLite with the WAL-reset bug, at one's own risk."""


class TestingOptions(Section):
    """`[testing]`: for the proving ground only."""

    failpoint: str = ""
    """Where this process ends itself: `name`, or `name:3` for the third pass."""


class Settings(Section):
    """The whole configuration, without secrets."""

    state_dir: Annotated[Path, Field(strict=False)] = Path("state")
    """Database, blobs, bells, incarnation, backups; absolute once loaded."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    web: WebOptions = WebOptions()
    telegram: TelegramOptions = TelegramOptions()
    bots: dict[Name, BotOptions] = Field(default_factory=dict)
    channels: dict[ChannelName, ChannelOptions] = Field(default_factory=dict)
    pools: dict[Name, PoolOptions] = Field(default_factory=dict)
    limits: Limits = Limits()
    delivery: DeliveryOptions = DeliveryOptions()
    worker: WorkerOptions = WorkerOptions()
    sender: SenderOptions = SenderOptions()
    retention: RetentionOptions = RetentionOptions()
    storage: StorageOptions = StorageOptions()
    testing: TestingOptions = TestingOptions()

    @property
    def database_path(self) -> Path:
        """Where the database is."""
        return self.state_dir / "ferryman.db"

    @property
    def blobs_dir(self) -> Path:
        """Where the contents of files are."""
        return self.state_dir / "blobs"

    def limits_for(self, bot: str) -> Limits:
        """The limits of one bot: its own where it has them, else the house's."""
        override: dict[str, Any] = self.bots[bot].limits.model_dump(exclude_none=True)
        return self.limits.model_copy(update=override)
