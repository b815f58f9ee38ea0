-- The outbox: calls to make, until a sender has them in hand.

-- name: enqueue
-- Leave a call; the same key with the same content inserts nothing.
insert into outbox (
    bot, key, digest, channel, method, params, items, lane, chat_id, priority, on_uncertain, joined,
    not_before_ms, expires_at_ms, supersede_key, coalesce_key, source_lane, source_message_id,
    cancel_on_edit, generation, caused_at_ms, fallback, placeholder, attempts_max, inbox_id, follows,
    awaited, tell, created_at_ms
)
values (
    :bot, :key, :digest, :channel, :method, :params, :items, :lane, :chat_id, :priority,
    :on_uncertain, :joined, :not_before_ms, :expires_at_ms, :supersede_key, :coalesce_key,
    :source_lane, :source_message_id, :cancel_on_edit, :generation, :caused_at_ms, :fallback,
    :placeholder, :attempts_max, :inbox_id, :follows, :awaited, :tell, :now_ms
)
on conflict (bot, key, digest) do nothing;

-- name: by_key
-- The rows of one cause.
select id, digest, state, placeholder
from outbox
where bot = :bot and key = :key;

-- name: give_up_placeholders
-- Rows whose calls were replaced no longer stand for these messages, whole albums neither.
update outbox
set placeholder = null
where id in (
    select id from outbox
    where bot = :bot and placeholder between :last and :first
    union all
    select id from (
        select id, placeholder, items from outbox
        where bot = :bot and placeholder > :first
        order by placeholder
        limit 1
    )
    where placeholder - items < :first
);

-- name: set_placeholder
-- Name the message, or the first of those, that a row will become.
update outbox
set placeholder = :placeholder
where id = :id;

-- name: supersede
-- End the queued rows that a newer one with the same supersede key makes pointless.
update outbox
set state = 'superseded', finished_at_ms = :now_ms, reason = 'a newer one takes its place'
where
    bot = :bot
    and supersede_key = :supersede_key
    and state = 'queued'
    and supersede_key is not null
    and id < :id
returning id, lane, priority, joined;

-- name: join_scheduled
-- Let rows whose time has come join their lanes, the earliest first, some of them at once.
update outbox
set joined = 1
where id in (
    select id from outbox
    where
        bot = :bot
        and joined = 0
        and state = 'queued'
        and waits_for is null
        and not_before_ms <= :now_ms
    order by not_before_ms, id
    limit :limit
)
returning id, lane, priority;

-- name: next_due
-- The next moment to come at which a lane may be looked at.
select min(due_ms) as due_ms
from lanes
where bot = :bot and priority = :priority and claimed = 0 and due_ms > :now_ms;

-- name: next_scheduled
-- The next moment at which a scheduled row joins its lane.
select min(not_before_ms) as due_ms
from outbox
where bot = :bot and joined = 0 and state = 'queued' and waits_for is null;

-- name: expiring
-- Rows that wait although their time is over.
select id, lane, priority, joined, key, fallback, caused_at_ms
from outbox
where bot = :bot and state = 'queued' and expires_at_ms is not null and expires_at_ms <= :now_ms
order by expires_at_ms
limit :limit;

-- name: cancel_lane
-- End every row of a chat that still waits in its lanes.
update outbox
set state = 'cancelled', finished_at_ms = :now_ms, reason = :reason
where
    bot = :bot
    and lane = :lane
    and joined = 1
    and state in ('queued', 'claimed')
    and +state = 'queued'
returning id, lane, priority, joined;

-- name: coalesce
-- End the queued edits of one message that a newer one makes pointless.
update outbox
set state = 'superseded', finished_at_ms = :now_ms, reason = 'a newer edit takes its place'
where
    bot = :bot
    and coalesce_key in (select value from json_each(:keys))
    and coalesce_key is not null
    and state = 'queued'
    and id < :id
returning id, lane, priority, joined;

-- name: move
-- Address the rows of a chat that has moved, which stand in its lanes, to its new id.
update outbox
set lane = :to_lane, chat_id = :chat_id, params = json_set(params, '$.chat_id', cast(:chat_id as text))
where bot = :bot and lane = :lane and joined = 1 and state in ('queued', 'claimed');

-- name: move_scheduled
-- The same for those that have not joined its lanes yet.
update outbox
set lane = :to_lane, chat_id = :chat_id, params = json_set(params, '$.chat_id', cast(:chat_id as text))
where bot = :bot and lane = :lane and joined = 0 and state = 'queued';

-- name: show
-- One row, whole.
select
    id, bot, key, digest, method, params, lane, chat_id, priority, on_uncertain, state, joined,
    not_before_ms, due_ms, expires_at_ms, supersede_key, placeholder, attempts_max, attempts,
    message_id, reason, created_at_ms, finished_at_ms, seen_at_ms
from outbox
where id = :id;

-- name: attempts
-- Every attempt of one row, with its evidence.
select
    id, stage, epoch, claimed_at_ms, stamped_at_ms, ended_at_ms, duration_ms, status, code,
    description, wait_ms, verdict, items_told, request_id
from attempts
where outbox_id = :id
order by id;

-- name: queue
-- Rows that wait or are in hand, lane by lane.
select
    id, bot, method, chat_id, lane, priority, state, not_before_ms, due_ms, expires_at_ms,
    attempts, reason, created_at_ms
from outbox
where bot = :bot and joined = 1 and state in ('queued', 'claimed')
order by lane, priority, id
limit :limit;

-- name: queue_outside
-- Rows that have left their lanes until it is decided about another one.
select
    id, bot, method, chat_id, lane, priority, state, not_before_ms, due_ms, expires_at_ms,
    attempts, reason, created_at_ms
from outbox
where state = 'queued' and waits_for is not null and +bot = :bot
order by waits_for, id
limit :limit;

-- name: to_prune
-- Rows that ended long ago, a few at a time. Held rows have no end and stay.
select id, items
from outbox
where finished_at_ms < :before_ms and state not in ('uncertain', 'review')
order by finished_at_ms
limit :limit;

-- name: prune_attempts
-- Forget the attempts of rows that are about to be forgotten.
delete from attempts
where outbox_id in (select value from json_each(:ids));

-- name: prune
-- Forget rows.
delete from outbox
where id in (select value from json_each(:ids));
