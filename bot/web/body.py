"""Read the body of a request, and never more of it than there may be."""

from typing import Final

from starlette.requests import ClientDisconnect, Request

# Telegram resends what we refuse, so a refusal is cheaper than an out-of-memory kill. Its own
# updates have at most 512 KiB (TQueue.cpp of the Bot API server), and it takes calls with at most
# 1 MiB beside their files (HttpReader.h of TDLib).
BODY_BYTES_MAX: Final = 1 << 20


async def read_body(request: Request) -> bytes | None:
    """Read the body; None as soon as it is longer than it may be, whatever was declared.

    Raises ClientDisconnect when it does not come whole.
    """
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            return None
        if not message.get("more_body", False):
            return b"".join(chunks) + chunk if chunks else chunk
        chunks.append(chunk)
