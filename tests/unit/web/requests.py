"""Requests as Starlette hands them to a route, made from what matters of them."""

from starlette.requests import Request


def asked(client: str | None = "127.0.0.1", *headers: tuple[str, str]) -> Request:
    """A GET for the root, from this address, with these headers beside `Host`."""
    told = [("host", "localhost:8080"), *headers]
    if any(name == "host" for name, _ in headers):
        told = list(headers)
    return Request(
        {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "client": None if client is None else (client, 4711),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in told],
        }
    )
