-- Rows in a sender's hand: taken from the heads of lanes, stamped, settled by what was answered.

-- name: heads
-- The lanes that are due, each with its head, as long as nothing of the same chat is in flight.
select
    o.id, o.bot, o.key, o.channel, o.method, o.params, o.items, o.lane, o.chat_id, o.priority,
    o.on_uncertain, o.attempts, o.attempts_max, o.due_ms, o.expires_at_ms, o.created_at_ms,
    o.placeholder, o.source_lane, o.source_message_id, o.cancel_on_edit, o.generation,
    o.caused_at_ms, o.fallback, o.follows,
    o.awaited = 1 or o.tell != '' as is_heard
from lanes as l
inner join outbox as o on l.head_id = o.id
where
    l.bot = :bot
    and l.priority = :priority
    and l.claimed = 0
    and l.due_ms <= :now_ms
    and not exists (
        select 1 from lanes as sibling
        where sibling.bot = l.bot and sibling.lane = l.lane and sibling.claimed = 1
    )
order by l.due_ms, l.head_id
limit :limit;

-- name: answer_heads
-- The due answers to queries, sought by the names of their lanes; they live for seconds, so they are few.
select
    o.id, o.bot, o.key, o.channel, o.method, o.params, o.items, o.lane, o.chat_id, o.priority,
    o.on_uncertain, o.attempts, o.attempts_max, o.due_ms, o.expires_at_ms, o.created_at_ms,
    o.placeholder, o.source_lane, o.source_message_id, o.cancel_on_edit, o.generation,
    o.caused_at_ms, o.fallback, o.follows,
    o.awaited = 1 or o.tell != '' as is_heard
from lanes as l
inner join outbox as o on l.head_id = o.id
where
    l.bot = :bot
    and l.lane >= 'q:'
    and l.lane < 'q;'
    and l.claimed = 0
    and l.due_ms <= :now_ms
order by l.due_ms, l.head_id
limit :limit;

-- name: other_heads
-- The same of the lanes of other channels than Telegram's, which are sought by their names.
select
    o.id, o.bot, o.key, o.channel, o.method, o.params, o.items, o.lane, o.chat_id, o.priority,
    o.on_uncertain, o.attempts, o.attempts_max, o.due_ms, o.expires_at_ms, o.created_at_ms,
    o.placeholder, o.source_lane, o.source_message_id, o.cancel_on_edit, o.generation,
    o.caused_at_ms, o.fallback, o.follows,
    o.awaited = 1 or o.tell != '' as is_heard
from lanes as l
inner join outbox as o on l.head_id = o.id
where
    l.bot = :bot
    and l.lane >= 'x:'
    and l.lane < 'x;'
    and +l.priority = :priority
    and +l.claimed = 0
    and +l.due_ms <= :now_ms
    and not exists (
        select 1 from lanes as sibling
        where sibling.bot = l.bot and sibling.lane = l.lane and sibling.claimed = 1
    )
order by l.due_ms, l.head_id
limit :limit;

-- name: standings
-- What has happened that may take away the reasons for these rows.
select
    o.id,
    exists (
        select 1 from outbox as newer
        where
            newer.bot = o.bot
            and newer.supersede_key = o.supersede_key
            and newer.supersede_key is not null
            and newer.state = 'queued'
            and newer.id > o.id
    )
    or exists (
        select 1 from outbox as newer
        where
            newer.bot = o.bot
            and newer.coalesce_key = o.coalesce_key
            and newer.coalesce_key is not null
            and newer.state = 'queued'
            and newer.id > o.id
    ) as has_newer,
    deleted.at_ms as deleted_at_ms,
    edited.at_ms as edited_at_ms,
    stopped.at_ms as stopped_at_ms,
    answered.at_ms as answered_at_ms,
    chat.unreachable_at_ms,
    chat.opted_out_at_ms
from json_each(:ids) as looked
inner join outbox as o on o.id = looked.value
left join withdrawals as deleted
    on
        deleted.bot = o.bot
        and deleted.lane = o.source_lane
        and deleted.what = 'message_deleted'
        and deleted.subject = cast(o.source_message_id as text)
left join withdrawals as edited
    on
        edited.bot = o.bot
        and edited.lane = o.source_lane
        and edited.what = 'message_edited'
        and edited.subject = cast(o.source_message_id as text)
left join withdrawals as stopped
    on
        stopped.bot = o.bot
        and stopped.lane = o.lane
        and stopped.what = 'generation_stopped'
        and stopped.subject = o.generation
left join withdrawals as answered
    on
        answered.bot = o.bot
        and answered.lane = o.lane
        and answered.what = 'person_answered'
        and answered.subject = ''
left join chats as chat
    on chat.bot = o.bot and chat.chat_id = o.chat_id and o.lane = 'c:' || o.chat_id;

-- name: put_off
-- Leave a row where it is for a while, and say why.
update outbox
set due_ms = :due_ms, reason = :reason
where id = :id and state = 'queued';

-- name: claim
-- Take the heads of lanes.
update outbox
set state = 'claimed', claim_epoch = :epoch
where id in (select value from json_each(:ids)) and state = 'queued' and joined = 1;

-- name: open_attempts
-- Begin the record of one attempt for each row, before anything leaves, in the order in which they are given.
insert into attempts (
    outbox_id, bot, lane, chat_id, channel, method, items, priority, epoch, stage, claimed_at_ms
)
select
    o.id, o.bot, o.lane, o.chat_id, o.channel, o.method, o.items, o.priority, :epoch, 'claimed', :now_ms
from json_each(:ids) as taken
inner join outbox as o on o.id = taken.value
order by taken.key;

-- name: stamp
-- From here on these calls may leave at any moment.
update attempts
set stage = 'stamped', stamped_at_ms = :now_ms
from json_each(:claims) as claims
where
    attempts.id = claims.value ->> 0
    and attempts.stage = 'claimed'
    and attempts.epoch = claims.value ->> 1
    and not exists (
        select 1 from outbox as o
        where o.id = attempts.outbox_id and o.cancel_asked is not null
    )
returning outbox_id;

-- name: close_attempts
-- Record how attempts ended, with their evidence.
update attempts
set
    stage = closing.value ->> 1,
    verdict = closing.value ->> 2,
    duration_ms = closing.value ->> 3,
    status = closing.value ->> 4,
    code = closing.value ->> 5,
    description = closing.value ->> 6,
    wait_ms = closing.value ->> 7,
    items_told = closing.value ->> 8,
    request_id = closing.value ->> 9,
    ended_at_ms = :now_ms
from json_each(:ends) as closing
where attempts.id = closing.value ->> 0;

-- name: mark_sent
-- Telegram accepted them.
update outbox
set
    state = 'sent',
    claim_epoch = null,
    cancel_asked = null,
    finished_at_ms = :now_ms,
    message_id = accepted.value ->> 2,
    reason = accepted.value ->> 3,
    result = cast(accepted.value ->> 4 as blob),
    attempts = attempts + 1
from json_each(:accepted) as accepted
where
    outbox.id = accepted.value ->> 0
    and outbox.state = 'claimed'
    and outbox.claim_epoch = accepted.value ->> 1;

-- name: requeue
-- Give a claimed row back to the head of its lane, or end it where that was asked.
update outbox
set
    state = case when cancel_asked is null then 'queued' else 'cancelled' end,
    finished_at_ms = case when cancel_asked is null then null else :now_ms end,
    reason = coalesce(cancel_asked, :reason),
    cancel_asked = null,
    claim_epoch = null,
    due_ms = :due_ms,
    attempts = attempts + :spent
where id = :id and state = 'claimed' and claim_epoch = :epoch
returning state, reason;

-- name: hold
-- Take a claimed row out of its lane, for a person to decide.
update outbox
set state = :state, claim_epoch = null, cancel_asked = null, reason = :reason, attempts = attempts + :spent
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: end
-- End a claimed row: dead, expired, superseded or cancelled.
update outbox
set
    state = :state, claim_epoch = null, cancel_asked = null, finished_at_ms = :now_ms, reason = :reason,
    attempts = attempts + :spent
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: claimed_before
-- What an earlier owner had in hand, with its last attempt.
select
    o.id, o.bot, o.key, o.channel, o.method, o.params, o.items, o.lane, o.chat_id, o.priority,
    o.on_uncertain, o.attempts, o.attempts_max, o.due_ms, o.expires_at_ms, o.created_at_ms,
    o.placeholder, o.source_lane, o.source_message_id, o.cancel_on_edit, o.generation,
    o.caused_at_ms, o.fallback, o.follows,
    o.awaited = 1 or o.tell != '' as is_heard,
    a.id as attempt_id, a.stage, o.claim_epoch
from outbox as o
inner join attempts as a on a.id = (select max(id) from attempts where outbox_id = o.id)
where o.bot = :bot and o.state = 'claimed' and o.claim_epoch < :epoch
order by o.id;

-- name: recent_attempts
-- The calls that left or ended lately: what Telegram's windows still count.
select
    lane, chat_id, method, items, priority, stamped_at_ms, ended_at_ms,
    stage = 'abandoned' as is_abandoned
from attempts
where
    bot = :bot
    and stamped_at_ms >= :since_ms - :longest_ms
    and coalesce(ended_at_ms, stamped_at_ms) >= :since_ms
    and stage not in ('unconnected', 'body_incomplete', 'handed_back')
order by stamped_at_ms;

-- name: lane
-- The lane in which a row stands now.
select lane
from outbox
where id = :id;

-- name: accept_late
-- A row in doubt was accepted after all: its answer reached a sender that had lost it meanwhile.
update outbox
set
    state = 'sent',
    finished_at_ms = :now_ms,
    message_id = :message_id,
    result = :result,
    reason = :reason
where
    id = :id
    and state = 'uncertain'
    and not exists (select 1 from attempts as newer where newer.outbox_id = :id and newer.id > :attempt_id);
