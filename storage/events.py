"""Every event that a log may hold: a contract with whoever reads logs, dashboards and alerts.

Pure data. An event carries ids, counts, states and times, never what a user wrote and never a
secret; `bot` and `error` (an exception, told as type and place) may go with any. What happens for
each message when all is well is `debug`, so that a busy house stays quiet; what somebody should
look at is `warning`; what stops something is `error`.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

COMMON_FIELDS: Final = frozenset({"bot", "error"})


@dataclass(frozen=True, slots=True)
class Event:
    """What one event means, how loud it is, and what it may carry."""

    level: int
    fields: frozenset[str]
    meaning: str


# Name, level and fields in one line, the meaning in the next.
_TABLE: Final = """
# The life of a role.
role.starting info version pid
    settings are read, the role begins
role.ready info address owner schema
    the role does its work from now on
role.stopping info signal
    asked to stop: nothing new is begun
role.stopped info duration_ms
    the role has ended in order
role.failed error reason
    the role can't go on and ends
drain.report info finished handed_back uncertain duration_ms
    what became of the work in flight when the role stopped
settings.fault error key source expected
    one thing wrong with the configuration
notify.failed warning state errno
    the service manager could not be told
doorbell.swept debug name
    the bell of a dead process was removed
task.failed error task
    a background task ended by an exception

# Updates coming in.
web.duplicate debug update_id
    delivered again; nothing stored, answered with 200
web.refused warning reason status count
    turned away: not from Telegram as far as we can tell, or no call that a program may leave
web.unstored warning reason count
    updates, or calls of programs, that could not be stored, answered with 503
web.slow warning count worst_ms
    answers that took longer than their budget
polling.started info offset
    updates are fetched from Telegram instead of received
polling.failed warning reason wait_ms
    fetching updates failed; it is tried again

# Turns.
adoption.ignored warning setting reason
    what an application's author configured does not apply here
inbox.quarantined warning inbox_id update_id reason
    authentic, but no update we can read; kept raw
inbox.claimed debug inbox_id update_id kind claims waited_ms
    a worker takes its turn
inbox.done debug inbox_id update_id rows duration_ms
    the turn has committed
inbox.buried error inbox_id update_id kind reason claims
    given up: a dead letter, which can be requeued
inbox.released info inbox_id count reason
    handed back before its turn was over
inbox.rescued warning count epoch
    claimed by a worker that is gone; handled again
inbox.requeued info inbox_id
    a dead letter was revived by a person
turn.failed error inbox_id update_id kind phase reason
    a handler raised; nothing of its turn is kept
turn.timed_out error inbox_id update_id kind timeout_s
    a handler hung and was cancelled
turn.retried warning inbox_id update_id claims reason wait_ms
    failed in passing; the turn is taken again
turn.conflicted info inbox_id update_id kind count
    another turn was faster with the bot_data that this one had read; it runs again from nothing
memory.unkept warning kind key
    a value of this name can't be written: it lives in memory only, and is told once
memory.overwritten warning count
    a job, a late task or the process wrote over bot_data that was changed since it had read it
memory.imported info users chats keys conversations keyboards left_out
    what the bot's own persistence remembered was taken over
turn.unparsed warning inbox_id update_id kind reason
    python-telegram-bot can't read this update
delivery.told debug outbox_id rows
    the bot's own code was told how a call ended
delivery.untold error outbox_id reason
    the bot's own code failed at being told how a call ended; it is not told again
delivery.no_update warning outbox_id
    how a call ended is told without the update that caused it: nobody can read that any more
reminder.fired debug reminder_id late_ms rows
    a reminder's callback was called
reminder.skipped warning reminder_id late_ms
    a reminder came later than it allows, and was left out
reminder.failed error reminder_id reason
    a reminder's callback, or an error handler about it, failed; this occurrence is over
reminder.retried warning reminder_id wait_ms
    a reminder's callback failed in passing; it is called again
reminder.unreadable error reminder_id
    a reminder's callback or data is not known to this release; it is kept for the next worker
reminder.redated info count
    the wall clock was set back; what counts time that passes was dated anew
keys.digest_changed warning key method outbox_id
    a turn that ran again says something else than before: a new row
worker.failed error reason
    the worker's loop ended by an exception
telegram.read_failed warning method reason code wait_ms
    a read from Telegram failed

# Calls going out.
outbox.enqueued debug outbox_id method lane priority fresh
    a call was left for the sender
outbox.superseded info outbox_id by_outbox_id count
    a newer call made it pointless; never sent
outbox.expired info outbox_id count late_ms
    its time was over before it could be sent
outbox.answer_late debug outbox_id method late_ms instead attempt_id status code description \
    duration_ms
    a query could not be answered any more; dropped, or said as a message instead
outbox.stepped_out info outbox_id waits_for
    refers to a message that may not exist; it waits until somebody has decided about that
guard.failed warning outbox_id reason wait_ms
    the application's guard could not say whether a row may go; it is put off
guard.slow warning duration_ms
    the application's guard held the database up
pause.set info scope reason until_ms by
    somebody has stopped a bot, its bulk or a chat
pause.ended info scope by
    somebody lets it go on
outbox.cancelled info outbox_id count reason
    its reason went away, or a person stopped it
outbox.claimed debug outbox_id attempt lane waited_ms
    a sender has it in hand
outbox.handed_back debug outbox_id reason
    given back before the call left; no attempt spent
outbox.sent debug outbox_id attempt method lag_ms duration_ms message_id
    Telegram accepted it
outbox.cooled info outbox_id wait_ms scope
    put back until Telegram's ordered wait is over
outbox.backed_off info outbox_id attempt wait_ms reason
    failed in passing; it goes again later
outbox.uncertain warning outbox_id attempt method reason policy
    it may have been delivered and nobody can tell; held
outbox.review warning outbox_id attempt method reason
    no rule covers the answer; held for a person
outbox.dead warning outbox_id attempt method reason code
    refused for good, or its attempts are spent
outbox.requeued info outbox_id reason
    goes again, by a person's or a policy's decision
outbox.resolved info outbox_id decision
    a person decided about a held call
outbox.accepted_late info outbox_id
    a doubt is over: its answer reached a sender that had lost the bot
outbox.rescued warning count uncertain epoch
    claimed by a sender that is gone; sorted by their stage
outbox.moved info chat_id to_chat_id count
    a group became a supergroup; its calls follow
sender.refusal warning outbox_id attempt attempt_id method chat_id stage status code \
    description wait_ms duration_ms verdict request_id
    Telegram, or something before it, said no
sender.breaker_opened warning reason wait_ms failures
    Telegram can't be reached: only a canary goes
sender.breaker_closed info duration_ms
    Telegram answers again
sender.bot_stopped error reason code
    Telegram rejects this bot's token; its sending stops
sender.failed error reason
    the drain ended by an exception
chat.unreachable info chat_id reason cancelled
    blocked, kicked or gone; its queue is cancelled
chat.revived info chat_id
    an unreachable chat wrote again
chat.opted_out info chat_id cancelled
    the user wants no broadcasts
chat.opted_in info chat_id
    the user wants broadcasts again
cooldown.set warning scope until_ms wait_ms reason
    Telegram ordered a wait; it is persisted
cooldown.lifted info scope reason
    a wait is over, or a canary showed that it was not needed
canary.sent info outbox_id lane
    one message finds out whether a wait that was only inferred is needed
rate.lowered warning bulk_per_second reason
    floods have taught the bot a lower bulk rate than the configured one
rate.raised info bulk_per_second reason
    it has been quiet for long enough to try a little more
paid.budget_spent warning reason
    paid broadcasts wait until the budget of Stars is raised
paid.check_balance warning count
    paid calls are refused as if the bot's balance of Stars did not suffice: look at it
limits.changed warning source before after
    the limits of a bot are other ones from now on, without a restart
limits.unchanged info source
    the configuration was read again and says the same about limits
settings.kept error reason
    the configuration could not be read again; nothing was changed
settings.restart_needed warning key
    this has changed too, and takes a restart to be heeded
lease.taken info name owner epoch
    this process owns the bot's work from now on
lease.waiting info name owner
    another process owns it; this one stands by
lease.lost warning name epoch
    another process has taken over
lease.released info name epoch
    given back in order
lease.handed_over info name owner
    another sender owns fewer bots: this one gives it back for the other to take
clock.set_back warning by_ms
    the machine's wall clock was set back; our own waits were dated anew
timer.missed warning timer late_ms
    a timer came too late and was left out
timer.failed error timer
    a timer's body raised

# The ground.
storage.opened info sqlite schema
    the database is open
storage.migrated info version name duration_ms
    the schema was brought forward
storage.slow warning operation duration_ms batch
    a transaction held the database for long
storage.failed error operation reason
    a transaction failed; nothing of it was kept
storage.affected_sqlite warning sqlite
    runs on an SQLite that can lose commits, as configured
storage.checkpointed debug pages duration_ms
    the log was folded into the database
retention.pruned info inbox outbox attempts files duration_ms
    finished rows older than configured were removed, and files that no row needs
bot.bound info bot_id
    a bot's name was bound to its token's numeric id

# The webhook as Telegram knows it.
webhook.set info url
    Telegram was told where to post
webhook.unchanged info url
    Telegram already knew
webhook.deleted info
    Telegram posts nowhere
webhook.trouble warning pending reason age_s
    Telegram says that it can't deliver updates to us
"""


def _events() -> Iterator[tuple[str, Event]]:
    lines = [line for line in _TABLE.splitlines() if line and not line.startswith("#")]
    for head, meaning in zip(lines[::2], lines[1::2], strict=True):
        name, level, *fields = head.split()
        number = logging.getLevelNamesMapping()[level.upper()]
        yield name, Event(number, COMMON_FIELDS.union(fields), meaning.strip())


EVENTS: Final[Mapping[str, Event]] = MappingProxyType(dict(_events()))
