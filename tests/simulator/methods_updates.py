"""getUpdates, setWebhook, deleteWebhook, getWebhookInfo: the two ways to get updates.

Sources: telegram.md §1.5-1.10, §3.3 (21-24).
"""

import json
import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from tests.simulator.ledger import Delivery
from tests.simulator.methods import Call, Result
from tests.simulator.state import Bot, State, Webhook
from tests.simulator.updates import KINDS
from tests.simulator.wire import JsonObject, Refused, Reply, Waiting, accept, bad_request, refuse

CONNECTIONS_DEFAULT, CONNECTIONS_MAX = 40, 100
SET_WEBHOOK_EVERY_MS = 1_000
SECRET_MAX = 256
UPDATES_MAX = 100
POLL_S_MAX = 50

_ENDED_BY = {
    "getUpdates": "other getUpdates request; make sure that only one bot instance is running",
    "setWebhook": "setWebhook request",
}
_SECRET = re.compile(r"[A-Za-z0-9_-]*")


def get_updates(call: Call) -> Result:
    """Hand out what waits; the offset confirms everything before it."""
    state, bot, args = call.state, call.bot, call.args
    if bot.webhook is not None:
        raise Refused(
            409,
            "can't use getUpdates method while webhook is active; "
            "use deleteWebhook to delete the webhook first",
        )
    _end_poll(state, bot, "getUpdates")
    _choose_kinds(call)
    _confirm(state, bot, args.integer("offset"))
    limit = args.integer("limit", UPDATES_MAX)
    limit = limit if 1 <= limit <= UPDATES_MAX else UPDATES_MAX
    found = _hand_out(state, bot, limit)
    poll_ms = max(0, min(args.integer("timeout"), POLL_S_MAX)) * 1000
    if found or poll_ms == 0:
        return Result(found)
    return Result(waiting=_Poll(state, bot, limit, bot.poll).until(state.clock.now_ms() + poll_ms))


@dataclass(frozen=True, slots=True)
class _Poll:
    """A long poll under way; `ticket` tells whether another call has ended it."""

    state: State
    bot: Bot
    limit: int
    ticket: int

    def until(self, until_ms: int) -> Waiting:
        return Waiting(until_ms, lambda: self._again(until_ms))

    def _again(self, until_ms: int) -> Reply:
        if self.bot.poll != self.ticket:
            return refuse(409, f"Conflict: terminated by {_ENDED_BY[self.bot.poll_ended_by]}")
        found = _hand_out(self.state, self.bot, self.limit)
        if found or self.state.clock.now_ms() >= until_ms:
            return accept(found)
        return replace(accept([]), waiting=self.until(until_ms))


def _hand_out(state: State, bot: Bot, limit: int) -> list[object]:
    """The oldest waiting updates; they stay until an offset confirms them."""
    state.sweep(bot)
    now_ms = state.clock.now_ms()
    updates: list[object] = []
    for update in bot.deliverer.pending[:limit]:
        update.attempts += 1
        state.ledger.append(
            Delivery(
                at_ms=now_ms,
                ended_at_ms=now_ms,
                bot_id=bot.id,
                update_id=update.update_id,
                attempt=update.attempts,
                status=200,
                error=None,
            )
        )
        updates.append(json.loads(update.body))
    return updates


def _end_poll(state: State, bot: Bot, by: str) -> None:
    """End the long poll that may be running for this bot: there is only one at a time."""
    bot.poll += 1
    bot.poll_ended_by = by
    state.tell("poll", bot.id)


def set_webhook(call: Call) -> Result:
    """Have updates posted to an address; the same words again change nothing."""
    state, bot, args = call.state, call.bot, call.args
    url = args.text("url")
    if not url:
        return delete_webhook(call)
    now_ms = state.clock.now_ms()
    if now_ms < bot.set_webhook_again_ms:
        raise Refused(429, "Too Many Requests: retry after 1", parameters={"retry_after": 1})
    bot.set_webhook_again_ms = now_ms + SET_WEBHOOK_EVERY_MS
    wanted = _webhook(call, url)
    drops = args.flag("drop_pending_updates")
    if wanted == bot.webhook and not drops and wanted.certificate is None:
        return Result(description="Webhook is already set")
    _choose_kinds(call)
    _end_poll(state, bot, "setWebhook")
    if drops:
        state.drop_pending(bot)
    bot.webhook = wanted
    bot.last_error_s, bot.last_error = None, ""
    bot.deliverer.open(wanted.max_connections, now_ms)
    state.tell("webhook", bot.id)
    return Result(description="Webhook was set")


def delete_webhook(call: Call) -> Result:
    """Go back to getUpdates; what waits stays unless it is to be dropped."""
    state, bot = call.state, call.bot
    if call.args.flag("drop_pending_updates"):
        state.drop_pending(bot)
    if bot.webhook is None:
        return Result(description="Webhook is already deleted")
    forget_webhook(state, bot)
    return Result(description="Webhook was deleted")


def forget_webhook(state: State, bot: Bot) -> None:
    """Stop posting."""
    bot.webhook = None
    bot.last_error_s, bot.last_error = None, ""
    bot.deliverer.close()
    state.tell("webhook", bot.id)


def webhook_info(state: State, bot: Bot) -> JsonObject:
    """Telegram's `WebhookInfo`; the last error stays until the webhook is set or deleted."""
    state.sweep(bot)
    webhook = bot.webhook
    shown: JsonObject = {
        "url": webhook.url if webhook else "",
        "has_custom_certificate": webhook is not None and webhook.certificate is not None,
        "pending_update_count": len(bot.deliverer.pending),
    }
    if webhook is not None:
        shown["max_connections"] = webhook.max_connections
        if webhook.ip_address:
            shown["ip_address"] = webhook.ip_address
    if bot.last_error_s is not None:
        shown["last_error_date"] = bot.last_error_s
        shown["last_error_message"] = bot.last_error
    if bot.allowed is not None:
        shown["allowed_updates"] = list(bot.allowed)
    return shown


def get_webhook_info(call: Call) -> Result:
    """How the webhook is doing."""
    return Result(webhook_info(call.state, call.bot))


def _webhook(call: Call, url: str) -> Webhook:
    args = call.args
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    secret = args.text("secret_token")
    if len(secret) > SECRET_MAX:
        raise bad_request("secret token is too long")
    if _SECRET.fullmatch(secret) is None:
        raise bad_request("secret token contains unallowed characters")
    connections = args.integer("max_connections", CONNECTIONS_DEFAULT)
    return Webhook(
        url=url,
        max_connections=max(1, min(connections, CONNECTIONS_MAX)),
        secret_token=secret,
        ip_address=args.text("ip_address"),
        allowed=_kinds(call),
        certificate=call.files.get("certificate"),
    )


def _choose_kinds(call: Call) -> None:
    call.bot.allowed = _kinds(call)


def _kinds(call: Call) -> tuple[str, ...] | None:
    """Kinds the bot wants from now on: left out, as before; nothing recognised, the default."""
    asked = call.args.items("allowed_updates")
    if asked is None:
        return call.bot.allowed
    return tuple(name for name in KINDS if name in asked) or None


def _confirm(state: State, bot: Bot, offset: int) -> None:
    pending = [update.update_id for update in bot.deliverer.pending]
    if offset < 0:
        confirmed = pending[:offset]
    else:
        confirmed = [update_id for update_id in pending if update_id < offset]
    for update_id in confirmed:
        bot.deliverer.forget(update_id)
    state.end_updates(bot, confirmed, "confirmed")
