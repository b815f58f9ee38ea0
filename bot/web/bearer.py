"""Tell who bears the API's token: the one secret by which programs and operators are let in.

Compared as bytes and in constant time; told twice, it is not told.
"""

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request

from bot.web.head import is_one_of

ASK: Final[Mapping[str, str]] = {"www-authenticate": "Bearer"}
"""What a 401 says to whoever bears none."""


def bears(request: Request, token: bytes | None) -> bool:
    """Tell whether the request bears this token; nothing bears one that is not set."""
    told = request.headers.getlist("authorization")
    if token is None or len(told) != 1:
        return False
    scheme, _, given = told[0].partition(" ")
    return scheme.lower() == "bearer" and is_one_of(given.strip().encode("latin-1"), (token,))
