"""Who kills a house's roles at random moments, and starts each anew at once."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.crash.living import Living
from tests.live.house import ROLES, Role

DOUBLE_SHARE: Final = 0.2
LIFE_MS_MAX: Final = 1_500
RECOVERY_MS_MAX: Final = 700


@dataclass(slots=True)
class Reaper:
    """Kills roles at random moments, and starts each anew at once.

    Some are killed again while they recover from the kill before.
    """

    living: Living
    dice: random.Random
    kills_max: int
    roles: Sequence[Role] = ROLES
    life_ms_max: int = LIFE_MS_MAX
    kills: Counter[Role] = field(default_factory=Counter)
    in_recovery: int = 0

    async def run(self) -> None:
        """All roles at once, until there were kills enough."""
        async with asyncio.TaskGroup() as group:
            for role in self.roles:
                group.create_task(self._reap(role, random.Random(self.dice.random())))

    async def _reap(self, role: Role, dice: random.Random) -> None:
        clock = self.living.clock
        while self.kills.total() < self.kills_max:
            process = await self.living.start(role)
            if self.kills[role] and dice.random() < DOUBLE_SHARE:
                self.in_recovery += 1
                await clock.sleep_ms(dice.randint(0, RECOVERY_MS_MAX))
            else:
                await self.living.ready(process)
                await clock.sleep_ms(dice.randint(0, self.life_ms_max))
            assert process.returncode is None, f"{role} ended by itself:\n{process.tail()}"
            await process.kill()
            self.kills[role] += 1
