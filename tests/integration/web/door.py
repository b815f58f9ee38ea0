"""The web role in this test's own event loop, reached over a real socket on loopback.

Put together by its own composition root; only the configuration is the test's.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bot.settings import WebSettings, load_web
from bot.web.app import run_web
from storage.carriers import Row
from storage.clock import SystemClock
from storage.database import connect
from storage.settings import ServiceEnvironment
from tests.live.process import free_port, until

SECRET = "the-secret-of-main"
OLDER_SECRET = "the-older-secret"
API_TOKEN = "a-bearer-token-of-the-api"
HEADER = "X-Telegram-Bot-Api-Secret-Token"
SETTINGS = """\
state_dir = "state"
[web]
port = {port}
disk_free_min_bytes = {disk}
{web}
[bots.main]
token_file = "unread"
[bots.main.limits]
paid_per_second = 100
stars_budget = 10
[bots.other]
token_file = "unread"
"""


@dataclass(frozen=True, slots=True)
class Door:
    """A door that is open: its address, and the file behind it."""

    url: str
    port: int
    state: Path
    stop: asyncio.Event
    http: httpx.AsyncClient

    @property
    def database_path(self) -> Path:
        """Where the database is."""
        return self.state / "ferryman.db"

    async def post(
        self,
        body: bytes,
        *,
        bot: str = "main",
        secret: str | None = SECRET,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        """Deliver as Telegram does."""
        told = {"Content-Type": "application/json", **(headers or {})}
        if secret is not None:
            told[HEADER] = secret
        return await self.http.post(f"/telegram/{bot}", content=body, headers=told)

    def rows(self, sql: str = "select * from inbox order by id") -> list[Row]:
        """What the database holds, as another process sees it."""
        connection = connect(self.database_path)
        try:
            return connection.execute(sql, {}).fetchall()
        finally:
            connection.close()

    def counts(self) -> tuple[int, int]:
        """How many updates are in the inbox, and how many in quarantine."""
        states = [row["state"] for row in self.rows()]
        quarantined = states.count("quarantined")
        return len(states) - quarantined, quarantined


def update(update_id: int, text: str = "hello", chat_id: int = 7) -> bytes:
    """A message, as Telegram would post it."""
    person = {"id": chat_id, "first_name": "Ada"}
    message = {
        "message_id": update_id,
        "from": {**person, "is_bot": False},
        "chat": {**person, "type": "private"},
        "date": 1_790_000_000,
        "text": text,
    }
    return posted({"update_id": update_id, "message": message})


def posted(content: dict[str, Any]) -> bytes:
    """Compact JSON, all in ASCII: Telegram's form."""
    return json.dumps(content, separators=(",", ":")).encode()


def settings(
    folder: Path, *, web: str = "", port: int = 0, api: bool = False, disk: int = 0
) -> WebSettings:
    """What the role is given; `web` are further lines of its table, `disk` bytes to be free."""
    path = folder / "ferryman.toml"
    path.write_text(SETTINGS.format(port=port, web=web, disk=disk), encoding="utf-8")
    environ = {
        "FERRYMAN_BOTS__MAIN__SECRET": f"{SECRET}\n{OLDER_SECRET}",
        "FERRYMAN_BOTS__OTHER__SECRET": "the-secret-of-other",
    }
    if api:
        environ["FERRYMAN_WEB__API_TOKEN"] = API_TOKEN
    return load_web(path, environ)


@asynccontextmanager
async def open_door(
    folder: Path,
    *,
    web: str = "",
    api: bool = False,
    disk: int = 0,
    service: ServiceEnvironment | None = None,
    transport: httpx.AsyncHTTPTransport | None = None,
) -> AsyncIterator[Door]:
    """Run the web role for a block, reachable from its beginning to its end."""
    port = free_port()
    given = settings(folder, web=web, port=port, api=api, disk=disk)
    if service is not None:
        given = WebSettings(given.settings, given.secrets, given.api_token, service)
    stop = asyncio.Event()
    role = asyncio.create_task(run_web(given, clock=SystemClock(), stop=stop))
    url = f"http://127.0.0.1:{port}"
    client = httpx.AsyncClient(base_url=url, trust_env=False, transport=transport, timeout=20)
    async with client as http:
        door = Door(url, port, given.settings.state_dir, stop, http)

        async def is_reached() -> bool:
            if role.done():
                role.result()
            try:
                return (await http.get("/livez")).status_code == httpx.codes.OK
            except httpx.TransportError:
                return False

        try:
            await until(is_reached, within_ms=10_000, what="the door is open")
            yield door
        finally:
            stop.set()
            await role
