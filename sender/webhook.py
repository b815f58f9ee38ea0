"""Tell Telegram where to post a bot's updates, and learn what it makes of that.

Compares first and sets once: setting a webhook anew, even to the same address with another secret,
lets Telegram post again what is in flight. What waits at Telegram is never dropped unless that was
asked for by name. Telegram does not say which secret is set, so a fingerprint of it is remembered.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, ValidationError

from sender.answer import Stage, envelope_of
from sender.calls import Call
from sender.transport import Address, Transport
from storage.errors import TelegramRefused, TelegramUnreachable
from storage.secret import Secret

# Telegram's own default (Bot API, setWebhook): that many updates may be on their way at once.
CONNECTIONS_MAX = 40
_FINGERPRINT_CHARS = 16


class WebhookInfo(BaseModel):
    """What Telegram knows of a webhook (Bot API, WebhookInfo). Times are UTC seconds.

    `pending_update_count` counts the updates that wait at Telegram to be delivered to us; it is not
    our queue. `last_error_date` stays when deliveries succeed again: only its advance is news.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    url: str = ""
    pending_update_count: int = 0
    ip_address: str | None = None
    last_error_date: int | None = None
    last_error_message: str | None = None
    last_synchronization_error_date: int | None = None
    max_connections: int | None = None
    allowed_updates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a bot's webhook should be: where, with which secret, everything else as by default.

    `kinds`: the kinds of updates that are wanted; none named means Telegram's default.
    """

    url: str
    secret: Secret
    kinds: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Tells this secret from another one without telling it."""
        told = hashlib.sha256(self.secret.reveal().encode("ascii")).hexdigest()
        return told[:_FINGERPRINT_CHARS]


def differences(info: WebhookInfo, wanted: Wanted, *, fingerprint: str | None) -> tuple[str, ...]:
    """What is not as wanted; nothing when there is nothing to set.

    `fingerprint` is that of the secret set last, None when none is remembered.
    """
    found = []
    if info.url != wanted.url:
        found.append("the address is another one" if info.url else "no webhook is set")
    if fingerprint != wanted.fingerprint:
        found.append("the secret is another one, or was not set from here")
    if info.max_connections not in (None, CONNECTIONS_MAX):
        found.append(f"{info.max_connections} connections instead of {CONNECTIONS_MAX}")
    if {*info.allowed_updates} != {*wanted.kinds}:
        kinds = "other kinds" if wanted.kinds else "only some kinds"
        found.append(f"{kinds} of updates are delivered")
    return tuple(found)


class WebhookDesk:
    """What can be asked and ordered about one bot's webhook."""

    def __init__(self, transport: Transport, address: Address) -> None:
        self._transport = transport
        self._address = address

    async def info(self) -> WebhookInfo:
        """What Telegram knows of the webhook now.

        Raises TelegramRefused and TelegramUnreachable.
        """
        result = await self._ask("getWebhookInfo", {})
        try:
            return WebhookInfo.model_validate(result)
        except ValidationError as error:
            raise TelegramRefused("getWebhookInfo: the answer is not Telegram's") from error

    async def set(self, wanted: Wanted, *, drop_pending: bool = False) -> None:
        """Have updates posted as wanted.

        Raises TelegramRefused and TelegramUnreachable.
        """
        fields = {
            "url": wanted.url,
            "secret_token": wanted.secret.reveal(),
            "max_connections": str(CONNECTIONS_MAX),
            # The empty list stands for Telegram's default set, which later kinds will join.
            "allowed_updates": json.dumps(wanted.kinds),
        }
        await self._ask("setWebhook", fields | _dropping(drop_pending=drop_pending))

    async def delete(self, *, drop_pending: bool = False) -> None:
        """Have no updates posted any more; they wait at Telegram, for a day.

        Raises TelegramRefused and TelegramUnreachable.
        """
        await self._ask("deleteWebhook", _dropping(drop_pending=drop_pending))

    async def _ask(self, method: str, fields: Mapping[str, str]) -> object:
        call = Call(method, urlencode(fields).encode("ascii"))
        answer = await self._transport.call(self._address, call)
        if answer.stage is not Stage.ANSWERED:
            raise TelegramUnreachable(f"{method}: {answer.stage} ({answer.fault})")
        envelope = envelope_of(answer.body)
        if envelope is None:
            raise TelegramUnreachable(
                f"{method}: status {answer.status}, and an answer that is not Telegram's"
            )
        if not envelope.ok:
            raise TelegramRefused(f"{method}: {envelope.error_code} {envelope.description}")
        return envelope.result


def _dropping(*, drop_pending: bool) -> dict[str, str]:
    return {"drop_pending_updates": json.dumps(drop_pending)} if drop_pending else {}
