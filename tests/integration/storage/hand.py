"""A sender's hand in short: claim, stamp and settle as it does, without any sender."""

from storage import claims
from storage.claims import AttemptEnd, Claim
from storage.database import Tx
from storage.lifecycle import AttemptStage, OutboxState, Priority
from tests.integration.storage.calls import BOT

ANSWERED = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=5, status=200)


def claimed(tx: Tx, priority: Priority = Priority.INTERACTIVE) -> Claim:
    """Claim the first head."""
    [head, *_] = claims.heads(tx, BOT, priority, limit=1)
    return claims.claim(tx, [head], 1)[0]


def stamped(tx: Tx, priority: Priority = Priority.INTERACTIVE) -> Claim:
    """Claim the first head and stamp it."""
    claim = claimed(tx, priority)
    assert claims.stamp(tx, [claim]) == {claim.item.id}
    return claim


def sent(tx: Tx, claim: Claim, message_id: int | None = 100) -> None:
    """It was accepted."""
    claims.close_attempts(tx, [(claim, ANSWERED)])
    claims.mark_sent(tx, [claims.Accepted(claim, message_id)])


def doubted(tx: Tx, claim: Claim) -> None:
    """Nobody knows whether it arrived."""
    claims.close_attempts(tx, [(claim, AttemptEnd(AttemptStage.BODY_COMPLETE, "uncertain"))])
    claims.hold(tx, claim, OutboxState.UNCERTAIN, reason="no answer came")


def handed_back(tx: Tx, claim: Claim, due_ms: int = 0) -> str | None:
    """It was not carried out: it goes again, unless somebody has asked otherwise."""
    claims.close_attempts(tx, [(claim, AttemptEnd(AttemptStage.HANDED_BACK, None))])
    return claims.requeue(tx, claim, due_ms=due_ms, spend_attempt=False, reason="cooling")
