"""The simulator as a server on loopback: the Bot API on one port, control and page on another.

Two ports, because an outage of Telegram closes the first while the test goes on at the second.
"""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from tests.simulator.bot_door import bot_app
from tests.simulator.clock import Clock, RealClock
from tests.simulator.control_door import ControlDoor
from tests.simulator.control_verbs import World
from tests.simulator.courier import Couriers
from tests.simulator.http_post import HttpPoster
from tests.simulator.limits import TELEGRAM, LimitRules
from tests.simulator.listening import LOOPBACK, Port
from tests.simulator.model import Telegram


class Server:
    """Serves one Telegram while it is open as a context."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        limits: LimitRules = TELEGRAM,
        port: int = 0,
        control_port: int = 0,
        control_token: str = "",
        seed: int = 0,
    ) -> None:
        self.telegram = Telegram(clock or RealClock(), limits=limits, seed=seed)
        self.control_token = control_token
        self._poster = HttpPoster()
        self.couriers = Couriers(self.telegram, self._poster)
        self._bots = Port(bot_app(self.telegram), port)
        door = ControlDoor(
            World(self.telegram, self.couriers), control_token, self.go_down, self.come_back
        )
        self._control = Port(door.app(), control_port)
        self._stack = AsyncExitStack()

    @property
    def api_url(self) -> str:
        """The `base_url` of the Bot API."""
        return f"http://{LOOPBACK}:{self._bots.number}"

    @property
    def control_url(self) -> str:
        """Where control.py and people connect to."""
        return f"http://{LOOPBACK}:{self._control.number}"

    @property
    def page_url(self) -> str:
        """The chat page."""
        return f"{self.control_url}/" + (
            f"#token={self.control_token}" if self.control_token else ""
        )

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._poster)
            await stack.enter_async_context(self.couriers)
            for port in (self._bots, self._control):
                await port.open()
                stack.push_async_callback(port.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.telegram.release()
        await self._stack.aclose()

    async def go_down(self) -> None:
        """Close the Bot API's port and cut every connection."""
        self.telegram.reachable = False
        await self._bots.close()

    async def come_back(self) -> None:
        """Open the Bot API's port again."""
        await self._bots.open()
        self.telegram.reachable = True
