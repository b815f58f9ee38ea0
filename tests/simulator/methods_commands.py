"""The commands that a bot shows in its menu, by audience and language.

Which of them a person would see is not asked. Source: Bot API 10.2.
"""

import json
import re

from tests.simulator.forms import Args, bug
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, bad_request

COMMANDS_MAX = 100
DESCRIPTION_MAX = 256
_NAME = re.compile(r"[a-z0-9_]{1,32}")


def set_my_commands(call: Call) -> Result:
    """Put the commands of an audience in place of those before."""
    given = call.args.items("commands") or []
    if len(given) > COMMANDS_MAX:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    call.bot.commands[_audience(call.args)] = [_command(each) for each in given]
    return Result()


def get_my_commands(call: Call) -> Result:
    """Tell the commands of one audience, none where none were set for just that one."""
    return Result(call.bot.commands.get(_audience(call.args), []))


def delete_my_commands(call: Call) -> Result:
    """Take the commands of an audience away, whether there are any or not."""
    call.bot.commands.pop(_audience(call.args), None)
    return Result()


def _audience(args: Args) -> str:
    scope = args.mapping("scope") or {"type": "default"}
    return json.dumps([scope, args.text("language_code")], sort_keys=True)


def _command(given: object) -> JsonObject:
    if not isinstance(given, dict):
        raise bug("can't parse BotCommand: expected an Object")
    name, description = given.get("command"), given.get("description")
    if not isinstance(name, str) or not isinstance(description, str):
        raise bug("can't parse BotCommand: expected a command and a description")
    if not _NAME.fullmatch(name):
        raise bad_request("BOT_COMMAND_INVALID")
    if not 1 <= len(description) <= DESCRIPTION_MAX:
        raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": name, "description": description}
