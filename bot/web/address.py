"""Tell whose request this is, and whether it comes from where updates may come from.

Pure. Over TCP uvicorn has already put the right address into the request: of the peers it is told
to trust it believes X-Forwarded-For, from the right, up to the first address that is not trusted.
Over a Unix socket there is no peer address and that header would be believed from its left end,
which anybody can write; there, and only there, the one header that the proxy overwrites is read.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.requests import Request

from storage.options import Network

REAL_IP_HEADER = "x-real-ip"
FORWARDING_HEADERS = (
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    REAL_IP_HEADER,
)
"""A request that has one of these came through a proxy, wherever its socket comes from."""


def client_address(request: Request) -> str | None:
    """The address the request was sent from, or None when nobody credible says."""
    if request.client is not None:
        return request.client.host
    told = request.headers.getlist(REAL_IP_HEADER)
    return told[0].strip() if len(told) == 1 else None


def is_allowed(address: str | None, networks: Sequence[Network]) -> bool:
    """Tell whether the address lies in one of the networks; without networks anybody may come."""
    if not networks:
        return True
    parsed = _parse(address) if address else None
    return parsed is not None and any(parsed in network for network in networks)


def is_direct_from_loopback(request: Request) -> bool:
    """Tell whether somebody on this machine asks, and not a proxy for somebody elsewhere.

    A Unix socket counts as elsewhere: it is there for a proxy. The name that was asked for must be
    this machine's own too, since a web page from anywhere may give its own name our address and
    have the reader's browser ask in its place.
    """
    if request.client is None or any(name in request.headers for name in FORWARDING_HEADERS):
        return False
    # nginx adds no header unless it is told to, but then it speaks a version that no browser does.
    if request.scope["http_version"] == "1.0":
        return False
    return _is_loopback(request.client.host) and _is_loopback(_host_name(request))


def _host_name(request: Request) -> str:
    host = request.headers.get("host", "")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    parsed = _parse(name)
    return parsed is not None and parsed.is_loopback


@lru_cache(maxsize=1024)
def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    # A socket that listens on IPv6 shows an IPv4 peer in this form.
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed
