"""The web role, put together: the door, the API, health, the page, and the server of them all.

Loads neither python-telegram-bot nor a way to Telegram, and holds no bot's token: this is the
process that the internet talks to.
"""

import asyncio
import contextlib
import gc
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from starlette.applications import Starlette
from starlette.routing import Route

from bot.producing import terms_of
from bot.settings import WebSettings
from bot.web.api import Api, Means
from bot.web.backpressure import BackPressure, Marks
from bot.web.dashboard.page import StatusPage
from bot.web.health import ROLE, Health
from bot.web.intake import Intake
from bot.web.listening import address_of, listening
from bot.web.meter import Meter
from bot.web.pulse import Pulse
from bot.web.server import Server
from bot.web.webhook import Door, Webhook
from storage.clock import Clock, SystemDice
from storage.database import Database, opened, require_sound_sqlite
from storage.doorbell import Doorbell
from storage.errors import StorageError
from storage.failpoint import Failpoints
from storage.heartbeats import RoleState
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.notify import Notifier
from storage.telemetry import event

_WORKER: Final = "worker"
_SENDER: Final = "sender"
_YOUNG_OBJECTS: Final = 20_000


def build_app(webhook: Webhook, api: Api, health: Health, status: StatusPage) -> Starlette:
    """All routes. Nothing redirects: Telegram follows no redirect, not even one to a slash."""
    app = Starlette(
        debug=False,
        routes=[
            Route("/telegram/{bot}", webhook.receive, methods=["POST"]),
            *api.routes(),
            Route("/livez", health.livez, methods=["GET"]),
            Route("/readyz", health.readyz, methods=["GET"]),
            *status.routes(),
        ],
    )
    app.router.redirect_slashes = False
    return app


async def run_web(settings: WebSettings, *, clock: Clock, stop: asyncio.Event) -> None:
    """Serve until `stop` is set; what is under way then is finished, within 20 s.

    Raises ConfigurationError for an address that can't be listened on, and StorageError for a
    database that can't be used.
    """
    house = settings.settings
    require_sound_sqlite(accept_affected=house.storage.accept_affected_sqlite)
    with listening(house.web, settings.service) as sockets:
        failpoints = Failpoints(house.testing.failpoint)
        migrate(house.database_path, clock, failpoints=failpoints)
        async with opened(house.database_path, clock, failpoints=failpoints) as database:
            bell = Doorbell(house.state_dir, ROLE)
            try:
                await _Role(settings, database, clock, bell).serve(sockets, stop)
            finally:
                bell.close()


class _Role:
    """The parts, and how they begin and end together."""

    def __init__(
        self, settings: WebSettings, database: Database, clock: Clock, bell: Doorbell
    ) -> None:
        house = settings.settings
        bots = [BotName(name) for name in house.bots]
        self._clock = clock
        self._bell = bell
        self._failpoints = database.failpoints
        self._notifier = Notifier(settings.service, clock)
        self._meter = Meter()
        self._backpressure = BackPressure(
            database,
            house.state_dir,
            bots,
            Marks(house.web.inbox_depth_max, house.web.disk_free_min_bytes),
        )
        self._health = Health(
            database, clock, self._backpressure, owner=bell.name, facts=self._facts
        )
        self._pulse = Pulse(
            self._backpressure, self._health, self._meter, clock=clock, notifier=self._notifier
        )
        webhook = Webhook(
            Intake(database, clock, database.failpoints),
            Door(_secrets(settings), house.web.allowed_networks),
            self._backpressure,
            meter=self._meter,
            clock=clock,
            on_stored=self._stored,
        )
        token = None if settings.api_token is None else settings.api_token.reveal().encode()
        api = Api(
            Means(
                database,
                clock,
                SystemDice(),
                self._backpressure,
                self._meter,
                on_left=partial(bell.ring, _SENDER),
            ),
            terms_of(house),
            token=token,
        )
        status = StatusPage(database, bots, clock, token=token, ack_times=self._meter.ack_times)
        self._server = Server(
            build_app(webhook, api, self._health, status),
            trusted_proxies=house.web.trusted_proxies if house.web.allowed_networks else None,
            on_started=self._started,
        )
        self._addresses: list[str] = []
        self._stopped_at_ms = 0
        self._acks_at_stop = 0

    async def serve(self, sockets: Sequence[socket.socket], stop: asyncio.Event) -> None:
        """Begin with a commit that proves the database, then answer until stopped."""
        await self._health.prove()
        await self._backpressure.look()
        self._addresses = [address_of(listener) for listener in sockets]
        _spare_the_collector()
        async with asyncio.TaskGroup() as group:
            pulse = group.create_task(self._pulse.run(), name="web-pulse")
            see_off = group.create_task(self._see_off(stop), name="web-see-off")
            await self._server.serve(sockets=list(sockets))
            pulse.cancel()
            see_off.cancel()
        await self._end()

    async def _started(self) -> None:
        self._health.enter(RoleState.READY)
        await self._health.beat()
        self._notifier.ready()
        address = ", ".join(self._addresses)
        self._notifier.status(f"listens on {address}")
        event("role.ready", address=address, owner=self._bell.name)

    def _stored(self) -> None:
        """Updates are on disk, and Telegram has been answered."""
        self._failpoints.reach("web.answered")
        self._bell.ring(_WORKER)

    async def _see_off(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._health.enter(RoleState.DRAINING)
        self._notifier.stopping()
        self._stopped_at_ms = self._clock.monotonic_ms()
        self._acks_at_stop = self._meter.ack_times().count
        self._server.stop()

    async def _end(self) -> None:
        """Tell what became of the work in flight. None is ever handed back: Telegram has it yet."""
        self._meter.report()
        event(
            "drain.report",
            finished=self._meter.ack_times().count - self._acks_at_stop,
            handed_back=0,
            uncertain=0,
            duration_ms=self._clock.monotonic_ms() - self._stopped_at_ms,
        )
        # A database that fails now takes nothing with it: the heartbeat falls silent by itself.
        with contextlib.suppress(StorageError):
            await self._health.leave()

    def _facts(self) -> Mapping[str, int | str]:
        times = self._meter.ack_times()
        return {"acks": times.count, "ack_p50_ms": times.p50_ms, "ack_p99_ms": times.p99_ms}


def _spare_the_collector() -> None:
    """Keep Python's cycle collector out of the way of the 200.

    What was imported lives as long as the process; looked through again and again, it made every
    thousandth answer wait for 12 ms. And forty updates under way are more young objects than the
    collector waits for by default, so that it ran for each batch and found nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)


def _secrets(settings: WebSettings) -> dict[BotName, tuple[bytes, ...]]:
    return {
        bot: tuple(secret.reveal().encode() for secret in secrets)
        for bot, secrets in settings.secrets.items()
    }
