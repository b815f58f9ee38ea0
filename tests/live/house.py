"""The house on loopback: web, worker and sender as real processes, told where Telegram is.

Everything lives in one fresh folder: configuration, secrets, state and logs. The database is read
through the product's own reports.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

import httpx

from storage import heartbeats
from storage.clock import SystemClock
from storage.database import Tx, opened
from storage.heartbeats import RoleState
from storage.migrate import migrate
from tests.live.process import LiveProcess, free_port

T = TypeVar("T")
Role = Literal["web", "worker", "sender"]
ROLES: tuple[Role, ...] = ("web", "worker", "sender")


@dataclass(frozen=True, slots=True)
class LiveBot:
    """A bot of this house: its name, token and webhook secret are made up."""

    name: str
    id: int
    token: str
    secret: str
    handlers: str = "bot.handlers:register"


def made_up_bot(name: str = "main", number: int = 1, handlers: str = "") -> LiveBot:
    """A bot with a token of the right shape."""
    bot_id = 7_000_000_000 + number
    return LiveBot(
        name=name,
        id=bot_id,
        token=f"{bot_id}:AA{secrets.token_hex(17)}",
        secret=secrets.token_hex(16),
        handlers=handlers or "bot.handlers:register",
    )


def script_environment(token: str, telegram_url: str, folder: Path) -> dict[str, str]:
    """What a script finds in its environment; none of it is Ferryman's."""
    return {"BOT_TOKEN": token, "BOT_API": telegram_url, "BOT_FOLDER": str(folder)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a house is to be like.

    `settings` are further lines of the configuration file, `environment` further variables.
    `script`: what the worker runs (`ferryman exec --worker`), instead of the bots' handlers.
    """

    folder: Path
    telegram_url: str
    bots: tuple[LiveBot, ...] = field(default_factory=lambda: (made_up_bot(),))
    settings: str = ""
    log_level: str = "INFO"
    environment: Mapping[str, str] = field(default_factory=dict)
    script: Path | None = None


class House:
    """Real processes of Ferryman around one state directory."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.port = free_port()
        self.state = plan.folder / "state"
        self.config = plan.folder / "ferryman.toml"
        self.running: dict[str, LiveProcess] = {}
        self._write_configuration()

    @property
    def url(self) -> str:
        """Where web listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database_path(self) -> Path:
        """The database file."""
        return self.state / "ferryman.db"

    def words(self, role: str, *more: str) -> list[str]:
        """The words that start a role, or all of them (`run`), in a Python of its own."""
        config = ["--config", str(self.config)]
        if role == "worker" and self.plan.script is not None:
            return ["-m", "bot", "exec", *more, *config, "--worker", str(self.plan.script)]
        return ["-m", "bot", role, *more, *config]

    def log_of(self, role: str) -> Path:
        """Where a role's log goes, over all its lives."""
        return self.plan.folder / f"{role}.log"

    def _write_configuration(self) -> None:
        folder = self.plan.folder
        (folder / "secrets").mkdir(parents=True, exist_ok=True)
        lines = [
            f'state_dir = "{self.state}"',
            f'log_level = "{self.plan.log_level}"',
            "[web]",
            'host = "127.0.0.1"',
            f"port = {self.port}",
            f'public_url = "{self.url}"',
            "[telegram]",
            f'base_url = "{self.plan.telegram_url}"',
        ]
        for bot in self.plan.bots:
            for kind, value in (("token", bot.token), ("secret", bot.secret)):
                file = folder / "secrets" / f"{bot.name}.{kind}"
                file.write_text(value + "\n", encoding="ascii")
                file.chmod(0o600)
            lines += [
                f"[bots.{bot.name}]",
                f'token_file = "secrets/{bot.name}.token"',
                f'secret_file = "secrets/{bot.name}.secret"',
                f'handlers = "{bot.handlers}"',
            ]
        self.config.write_text("\n".join([*lines, self.plan.settings]) + "\n", encoding="utf-8")

    async def start(self, *roles: Role, failpoint: str = "") -> None:
        """Start roles and wait until each is ready; at `failpoint` they kill themselves."""
        await asyncio.gather(*(self._start(role, failpoint) for role in roles or ROLES))

    async def _start(self, role: Role, failpoint: str) -> None:
        environment = dict(self.plan.environment)
        if failpoint:
            environment["FERRYMAN_TESTING__FAILPOINT"] = failpoint
        process = await LiveProcess.start(
            role,
            self.words(role),
            log=self.log_of(role),
            environment=environment,
        )
        self.running[role] = process
        await process.ready(self._web_ready if role == "web" else lambda: self._beating(process))

    async def _web_ready(self) -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False) as http:
                return (await http.get(f"{self.url}/readyz")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    async def _beating(self, process: LiveProcess) -> bool:
        if not self.database_path.exists():
            return False
        owner = f"{process.name}.{process.pid}."
        beats = await self.read(heartbeats.everyone)
        return any(beat.owner.startswith(owner) and beat.state is RoleState.READY for beat in beats)

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Read the house's database, in one transaction."""
        clock = SystemClock()
        migrate(self.database_path, clock)
        async with opened(self.database_path, clock) as database:
            return await database.read(work)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Write into the house's database, as another process would."""
        async with opened(self.database_path, SystemClock()) as database:
            return await database.write(work)

    async def command(self, *words: str) -> tuple[int, str]:
        """Run a `ferryman` command to its end; its return code and all it printed."""
        log = self.plan.folder / "command.log"
        log.unlink(missing_ok=True)
        process = await LiveProcess.start(
            " ".join(words), ["-m", "bot", *words, "--config", str(self.config)], log=log
        )
        code = await process.ended(within_s=60)
        return code, log.read_text(encoding="utf-8")

    async def kill(self, role: Role) -> None:
        """SIGKILL."""
        await self.running.pop(role).kill()

    async def stop(self, *roles: Role) -> dict[str, int]:
        """End roles in good order; their return codes."""
        names = [role for role in roles or ROLES if role in self.running]
        codes = await asyncio.gather(*(self.running.pop(name).stop() for name in names))
        return dict(zip(names, codes, strict=True))

    async def close(self) -> None:
        """Leave no process behind."""
        for process in self.running.values():
            await process.kill()
        self.running.clear()


@asynccontextmanager
async def house(plan: Plan) -> AsyncIterator[House]:
    """A house that is closed whatever happens; nothing is started yet."""
    built = House(plan)
    try:
        yield built
    finally:
        await built.close()
