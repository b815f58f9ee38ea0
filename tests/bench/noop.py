"""The floor that no webhook of this kind can beat: a Starlette route that does nothing.

`python -m tests.bench.noop PORT`. Served by uvicorn with the same parser, loop and settings as the
web role; it looks at neither the secret nor the body, and stores nothing. Its twin under `/read/`
takes the body first, which whoever wants an update has to do.
"""

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def _nothing(request: Request) -> Response:
    return Response()


async def _read(request: Request) -> Response:
    await request.body()
    return Response()


def main() -> None:
    """Serve until stopped."""
    app = Starlette(
        routes=[
            Route("/telegram/{bot}", _nothing, methods=["POST"]),
            Route("/read/{bot}", _read, methods=["POST"]),
        ]
    )
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        access_log=False,
        log_level="warning",
        timeout_keep_alive=75,
    )


if __name__ == "__main__":
    main()
