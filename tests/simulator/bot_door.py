"""The Bot API over HTTP: `/bot<token>/<method>` and `/file/bot<token>/<file_path>`.

A call is carried out when its whole body has been read, and whoever hangs up afterwards undoes
nothing: so it is at Telegram (telegram.md §4.1).
"""

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.simulator.acting import act_out
from tests.simulator.form_bodies import BadBody, read_body
from tests.simulator.listening import cut, transport_of, while_they_listen
from tests.simulator.model import Telegram
from tests.simulator.wire import Ending, Reply, refuse

_PLAIN = {"Content-Type": "application/octet-stream"}


class BotDoor:
    """The endpoint of every method."""

    def __init__(self, telegram: Telegram) -> None:
        self._telegram = telegram

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one call and act out its reply."""
        request = Request(scope, receive)
        try:
            reply = await self._reply(request)
        except ClientDisconnect:
            return
        if reply is not None:
            await _travel(reply, scope, receive, send)

    async def _reply(self, request: Request) -> Reply | None:
        body = await request.body()
        params = request.path_params
        try:
            form, files = read_body(
                request.headers.get("Content-Type", ""), body, request.scope["query_string"]
            )
        except (BadBody, UnicodeDecodeError) as trouble:
            return refuse(400, f"Bad Request: {trouble}")
        reply = self._telegram.call(params["token"], params["method"], form, files)
        if reply.waiting is None and reply.hold_ms == 0 and reply.silence is None:
            return reply
        return await while_they_listen(request, act_out(self._telegram, reply))


async def _travel(reply: Reply, scope: Scope, receive: Receive, send: Send) -> None:
    if reply.ending in (Ending.CUT, Ending.RESET):
        cut(transport_of(scope), reset=reply.ending is Ending.RESET)
        await _closed(receive)
        return
    headers = {**reply.headers, "Content-Length": str(len(reply.body)), "Server": "nginx/1.18.0"}
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        }
    )
    if reply.ending is Ending.HALF:
        half = reply.body[: len(reply.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        transport_of(scope).close()
        await _closed(receive)
        return
    await send({"type": "http.response.body", "body": reply.body})


async def _closed(receive: Receive) -> None:
    """Wait until the server has noticed, so that it does not answer in our place."""
    while (await receive())["type"] != "http.disconnect":
        pass


class FileDoor:
    """Where files are downloaded whose path `getFile` has told."""

    def __init__(self, telegram: Telegram) -> None:
        self._telegram = telegram

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give one file."""
        params = Request(scope, receive).path_params
        content = self._telegram.download(params["token"], params["path"])
        reply = refuse(404, "Not Found") if content is None else Reply(200, content, _PLAIN)
        await _travel(reply, scope, receive, send)


class _Nothing:
    """Every other address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _travel(refuse(404, "Not Found"), scope, receive, send)


def bot_app(telegram: Telegram) -> ASGIApp:
    """The application behind the Bot API's port."""
    return Starlette(
        routes=[
            Route("/bot{token}/{method}", BotDoor(telegram)),
            Route("/file/bot{token}/{path:path}", FileDoor(telegram)),
            Route("/{anything:path}", _Nothing()),
        ]
    )
