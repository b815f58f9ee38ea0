"""The command `ferryman`: understand the words, carry out the command, put failures plainly.

What a person gets to see of a failure is its message if it is one of ours (`storage/errors.py`),
and otherwise its type and place: a message of somebody else's may quote a user or hold a secret.
Importing this module loads no role; each is loaded by the command that runs it.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from bot.cli import (
    answered,
    cancel,
    check,
    dead,
    exec,  # noqa: A004  # it is called so
    floods,
    migrate,
    pause,
    queue,
    review,
    roles,
    send,
    show,
    status,
    webhook,
)
from bot.cli.output import say_failure, version
from bot.cli.parser import EXIT_FAILED, Commands, Parser, add_config, parse
from storage import telemetry
from storage.errors import FerrymanError
from storage.settings import service_environment
from storage.telemetry import describe

EXIT_INTERRUPTED: Final = 130
"""What a shell reports of a command that Ctrl-C ended."""

_EPILOG: Final = """\
examples:
  ferryman check --config ferryman.toml    is everything set up, and what would run
  ferryman run --config ferryman.toml      all three roles in one process
  ferryman run --polling                   the same where Telegram can't reach this machine
  ferryman exec bot.py                     a python-telegram-bot script, unchanged
  ferryman webhook set                     tell Telegram where to post updates
  ferryman status                          what waits, what cools, what needs a person
  ferryman send --bot main --chat 5 --text "Backup done" --key backup-2026-08-24
  ferryman cancel --chat 5 --dry-run       how much of what waits would be cancelled
  ferryman pause --bulk --for 2h --reason "too loud"
  ferryman review resolve c34 resend       decide about a call that may have been sent
  ferryman dead requeue u12                handle an update once more

Each key of the configuration may also be given as FERRYMAN_SECTION__KEY.
Exit codes: 0 done, 1 failed, 2 the command was not understood.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command line and give its exit code: 0 done, 1 failed, 2 not understood."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        given = parse(parser(), sys.argv[1:] if argv is None else argv)
        # A role opens its own log over this one.
        telemetry.setup("cli", "WARNING", no_color=service_environment().no_color)
        code: int = given.run(given)
        sys.stdout.flush()
        return code
    except FerrymanError as error:
        say_failure(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _leave_reader()
        return EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - its message may quote a user: type and place
        print(f"ferryman: unexpected failure: {describe(error)}", file=sys.stderr)
        return EXIT_FAILED


def parser() -> Parser:
    """The grammar of all commands."""
    root = Parser(
        prog="ferryman",
        description="A production runtime for Telegram bots: nothing lost, nothing doubled.",
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.set_defaults(parser=root)
    root.add_argument("--version", action="version", version=f"ferryman {version()}")
    add_config(root, default=None)
    commands = Commands(root)
    looking = (status, queue, floods, show)
    acting = (send, cancel, answered, pause, review, dead)
    for group in (roles, exec, check, migrate, webhook, *looking, *acting):
        group.add(commands)
    return root


def _leave_reader() -> None:
    """Whoever read our output has gone, as `head` does; nothing more may be written to it."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
