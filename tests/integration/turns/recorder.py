"""A server on loopback that writes down what it decodes of each call, whoever has posted it.

Forms are decoded by aiohttp's server, not by us. Each call is answered as if all were well, with a
result of the type that the Bot API tells for its method.
"""

import itertools
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import BodyPartReader, web

_RETURNS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = json.loads(
    (resources.files("tests") / "data" / "botapi" / "methods-10.2.json").read_text("utf-8")
)
_ATTACHED: Final = re.compile(r"attach://(\w+)")
_USER: Final = {"id": 5, "is_bot": False, "first_name": "Ann"}
_CHAT: Final = {"id": 7, "type": "private", "first_name": "Ann"}
_RESULTS: Final[Mapping[str, object]] = {
    "Boolean": True,
    "String": "https://t.me/+abc",
    "ChatInviteLink": {
        "invite_link": "https://t.me/+abc",
        "creator": _USER,
        "creates_join_request": False,
        "is_primary": False,
        "is_revoked": False,
    },
    "ForumTopic": {"message_thread_id": 3, "name": "t", "icon_color": 7322096},
    "Story": {"id": 3, "chat": _CHAT},
    "SentWebAppMessage": {"inline_message_id": "i"},
    "SentGuestMessage": {"inline_message_id": "i"},
    "PreparedInlineMessage": {"id": "p", "expiration_date": 1},
    "PreparedKeyboardButton": {"id": "p"},
    "File": {"file_id": "f", "file_unique_id": "u"},
    "Poll": {
        "id": "p",
        "question": "?",
        "options": [],
        "total_voter_count": 0,
        "is_closed": True,
        "is_anonymous": True,
        "type": "regular",
        "allows_multiple_answers": False,
        "allows_revoting": False,
        "members_only": False,
    },
}


@dataclass(frozen=True, slots=True)
class File:
    """A file as it came: the part's name, the title and the type that it was given."""

    part: str
    title: str
    mime: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """A call as a server reads it. The names of attached files, which are chance, are numbers."""

    method: str
    fields: Sequence[tuple[str, str]]
    files: Sequence[File] = ()


class Recorder:
    """The server, while it serves. `posted`: what has come for each token, in order."""

    def __init__(self) -> None:
        self.port = 0
        self.posted: dict[str, list[Decoded]] = {}
        self._numbers = itertools.count(4001)

    @property
    def url(self) -> str:
        """Where it listens, as an address of the Bot API."""
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.Response:
        """Write a call down and accept it."""
        method = request.match_info["method"]
        token = request.match_info["token"]
        if method == "getMe":
            me = {"id": int(token.partition(":")[0]), "is_bot": True, "first_name": "Ferry"}
            return _ok({**me, "username": "ferry_bot"})
        call = await _decoded(method, request)
        self.posted.setdefault(token, []).append(call)
        return _ok(self._result(call))

    def _result(self, call: Decoded) -> object:
        form = dict(call.fields)
        match _RETURNS[call.method]["returns"]:
            case ["Array of Message"]:
                return [self._message() for _ in json.loads(form["media"])]
            case ["Array of MessageId"]:
                return [self._message_id() for _ in json.loads(form["message_ids"])]
            case ["Message", *_]:
                return self._message()
            case ["MessageId"]:
                return self._message_id()
            case [told]:
                return _RESULTS[told]
            case _:
                return True

    def _message_id(self) -> Mapping[str, Any]:
        return {"message_id": next(self._numbers)}

    def _message(self) -> Mapping[str, Any]:
        return {**self._message_id(), "date": 1, "chat": _CHAT}


async def _decoded(method: str, request: web.Request) -> Decoded:
    if not request.content_type.startswith("multipart/"):
        body = await request.text()
        return Decoded(method, parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body)))
    fields: list[tuple[str, str]] = []
    files: list[File] = []
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        content = bytes(await part.read())
        if part.filename is None:
            fields.append((part.name or "", content.decode()))
        else:
            mime = part.headers.get("Content-Type", "")
            files.append(File(part.name or "", part.filename, mime, content))
    return _numbered(Decoded(method, fields, files))


def _numbered(call: Decoded) -> Decoded:
    """The same with its attached files numbered in the order in which the fields name them."""
    named = _ATTACHED.findall(" ".join(text for _, text in call.fields))
    numbers = {name: f"file{number}" for number, name in enumerate(dict.fromkeys(named))}
    brought = {file.part for file in call.files}
    assert numbers.keys() <= brought, "a field names a file that did not come"

    def numbered(text: str) -> str:
        return _ATTACHED.sub(lambda found: f"attach://{numbers[found[1]]}", text)

    return Decoded(
        call.method,
        [(name, numbered(text)) for name, text in call.fields],
        # Their order means nothing to a server.
        sorted(
            (
                File(numbers.get(file.part, file.part), file.title, file.mime, file.content)
                for file in call.files
            ),
            key=lambda file: (file.part, file.content),
        ),
    )


def _ok(result: object) -> web.Response:
    return web.json_response({"ok": True, "result": result})


@asynccontextmanager
async def recording() -> AsyncIterator[Recorder]:
    """A recorder for a block."""
    recorder = Recorder()
    application = web.Application(client_max_size=1 << 24)
    application.router.add_post("/bot{token}/{method}", recorder.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        recorder.port = runner.addresses[0][1]
        yield recorder
    finally:
        await runner.cleanup()
