"""`python -m tests.simulator`: a Telegram on loopback, with a page to chat on.

Prints one JSON line with its addresses when it is ready, and serves until SIGINT or SIGTERM.
"""

import argparse
import asyncio
import json
import os
import signal
import sys

import uvloop

from tests.simulator.limits import PRESETS
from tests.simulator.server import Server


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the Bot API; 0: any")
    parser.add_argument("--control-port", type=int, default=0, help="of control and page; 0: any")
    parser.add_argument("--control-token", default="", help="asked of whoever uses the latter")
    parser.add_argument("--limits", choices=sorted(PRESETS), default="telegram")
    parser.add_argument("--seed", type=int, default=0, help="of ids and random delays")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end with the parent")
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    if arguments.until_stdin_closes:
        parent = sys.stdin.fileno()
        loop.add_reader(parent, lambda: None if os.read(parent, 64) else stop.set())
    async with Server(
        limits=PRESETS[arguments.limits],
        port=arguments.port,
        control_port=arguments.control_port,
        control_token=arguments.control_token,
        seed=arguments.seed,
    ) as server:
        at = {
            "api_url": server.api_url,
            "control_url": server.control_url,
            "page_url": server.page_url,
        }
        print(json.dumps(at), flush=True)
        await stop.wait()


def main() -> None:
    """Serve until told to stop."""
    uvloop.run(_serve(_arguments()))


if __name__ == "__main__":
    main()
