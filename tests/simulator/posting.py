"""One delivery to a webhook: the request as Telegram writes it, and what its end leads to.

Sources: telegram.md §1.3 (what counts as failure), §1.8 (headers and body), §1.10 (last error).
"""

from dataclasses import dataclass

from tests.simulator.deliverer import Answered, Attempt, Broken, Fate, Outcome, Unconnected
from tests.simulator.ledger import Delivery
from tests.simulator.methods_updates import forget_webhook
from tests.simulator.state import Bot, State

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


@dataclass(frozen=True, slots=True)
class Post:
    """A request to a webhook."""

    url: str
    headers: dict[str, str]
    body: bytes
    attempt: Attempt


def next_post(state: State, bot: Bot) -> Post | None:
    """Start the delivery that may start now, if there is one."""
    if bot.webhook is None:
        return None
    state.sweep(bot)
    attempt = bot.deliverer.begin(state.clock.now_ms())
    return None if attempt is None else _post(bot, attempt)


def repeated_post(state: State, bot: Bot, update_id: int) -> Post | None:
    """A delivery beside the queue, of an update that was delivered before."""
    if bot.webhook is None or update_id not in bot.archive:
        return None
    update = bot.archive[update_id]
    update.attempts += 1
    now_ms = state.clock.now_ms()
    # A generation that never was: whatever comes of it changes nothing in the queues.
    return _post(bot, Attempt(update_id, update.attempts, update.body, now_ms, generation=-1))


def _post(bot: Bot, attempt: Attempt) -> Post:
    assert bot.webhook is not None
    headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
    if bot.webhook.secret_token:
        headers[SECRET_HEADER] = bot.webhook.secret_token
    return Post(bot.webhook.url, headers, attempt.body, attempt)


def settle_post(state: State, bot: Bot, post: Post, outcome: Outcome) -> Fate:
    """Write down how a delivery ended, and let the queues know."""
    now_ms = state.clock.now_ms()
    attempt = post.attempt
    status = outcome.status if isinstance(outcome, Answered) else None
    error = _error(outcome)
    state.ledger.append(
        Delivery(
            at_ms=attempt.started_at_ms,
            ended_at_ms=now_ms,
            bot_id=bot.id,
            update_id=attempt.update_id,
            attempt=attempt.number,
            status=status,
            error=error,
        )
    )
    fate = bot.deliverer.finish(attempt, outcome, now_ms)
    if error is not None and fate is not Fate.IGNORED:
        bot.last_error_s, bot.last_error = now_ms // 1000, error
    if fate in (Fate.ACKNOWLEDGED, Fate.EXPIRED):
        state.end_updates(bot, [attempt.update_id], str(fate))
    if bot.deliverer.gone_for_good:
        forget_webhook(state, bot)
    state.tell("delivery", bot.id, update_id=attempt.update_id, error=error, attempt=attempt.number)
    return fate


def _error(outcome: Outcome) -> str | None:
    match outcome:
        case Answered(status=status) if 200 <= status <= 299:
            return None
        case Answered(status=status, reason=reason):
            return f"Wrong response from the webhook: {status} {reason}".rstrip()
        case Broken(error=error) | Unconnected(error=error):
            return error
