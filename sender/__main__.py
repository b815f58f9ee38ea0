"""`python -m sender --config PATH`: the sender role alone, without a line of the bot loaded.

Does what `ferryman sender` does, for a machine or a container that has nothing else to do. A second
signal does no harm: the first one has begun the end, which takes 20 s at most.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from sender.app import run_sender
from sender.rereading import Rereading
from sender.settings import SenderSettings, load_sender
from storage import telemetry
from storage.clock import SystemClock
from storage.errors import FerrymanError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sender until a signal; 0 when it ended in order, else 1 or 2."""
    parser = argparse.ArgumentParser(prog="sender", description="Send what the outbox holds.")
    parser.add_argument("--config", type=Path, help="the configuration file (or FERRYMAN_CONFIG)")
    given = parser.parse_args(argv)
    try:
        settings = load_sender(given.config)
        telemetry.setup(
            "sender",
            settings.settings.log_level,
            secrets=settings.secret_values(),
            no_color=settings.service.no_color,
        )
        uvloop.run(_until_signal(settings, given.config))
        # The loop has given the signals back; one more must not turn an end in order into a kill.
        for number in (*SIGNALS, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    except FerrymanError as error:
        _say(error)
        return error.exit_code
    return 0


def _say(error: FerrymanError) -> None:
    sys.stderr.write(telemetry.redact(f"sender: {error}\n"))


async def _until_signal(settings: SenderSettings, config: Path | None) -> None:
    stop, asked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, asked.set)
    rereading = Rereading(asked, lambda: load_sender(config), _say)
    await run_sender(settings, clock=SystemClock(), stop=stop, rereading=rereading)


if __name__ == "__main__":
    sys.exit(main())
