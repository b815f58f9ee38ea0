"""Which bot and which chat a command is about, in the same words for every command."""

import re
from argparse import ArgumentTypeError
from typing import Final

from bot.cli.parser import Parser

_CHAT: Final = re.compile(r"-?[0-9]{1,18}|@\w{1,64}", re.ASCII)


def add_bot(parser: Parser) -> None:
    """Accept `--bot NAME`."""
    parser.add_argument("--bot", metavar="NAME", help="the bot; needed where there are several")


def add_chat(parser: Parser) -> None:
    """Accept `--chat CHAT` and `--business CONNECTION`."""
    parser.add_argument(
        "--chat",
        metavar="CHAT",
        type=chat,
        help="its number, or its @name",
    )
    add_business(parser)


def add_business(parser: Parser) -> None:
    """Accept `--business CONNECTION`."""
    parser.add_argument(
        "--business",
        metavar="CONNECTION",
        help="the chat is one of this business connection",
    )


def chat(text: str) -> str:
    """A chat as the command line names it."""
    if not _CHAT.fullmatch(text):
        raise ArgumentTypeError("expected the number of a chat, or its @name")
    return text
