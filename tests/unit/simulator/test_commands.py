"""A bot's menu: each audience and language has its own commands."""

import pytest

from tests.unit.simulator.conftest import Town

START = {"command": "start", "description": "Begin"}


def test_each_audience_has_its_own_commands(town: Town) -> None:
    chat = {"type": "chat", "chat_id": town.ada}
    town.call("setMyCommands", commands=[START])
    town.call("setMyCommands", commands=[{**START, "description": "Beginne"}], language_code="de")
    assert town.call("getMyCommands") == [START]
    assert town.call("getMyCommands", scope={"type": "default"}) == [START]
    assert town.call("getMyCommands", language_code="de")[0]["description"] == "Beginne"
    assert town.call("getMyCommands", scope=chat) == []
    town.call("deleteMyCommands")
    town.call("deleteMyCommands", scope=chat)
    assert town.call("getMyCommands") == []


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        ({**START, "command": "Start"}, "400 Bad Request: BOT_COMMAND_INVALID"),
        ({**START, "command": "s" * 33}, "400 Bad Request: BOT_COMMAND_INVALID"),
        ({**START, "description": ""}, "400 Bad Request: BOT_COMMAND_DESCRIPTION_INVALID"),
    ],
)
def test_a_command_that_cannot_be_one_is_refused(
    town: Town, command: dict[str, str], refusal: str
) -> None:
    town.call("setMyCommands", commands=[START])
    assert town.refusal("setMyCommands", commands=[command]) == refusal
    assert town.call("getMyCommands") == [START]
