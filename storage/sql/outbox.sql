-- The outbox: calls to make. Rows that wait or are claimed stand in lanes; a lane's head is the only one that may go.

-- name: enqueue
-- Leave a call; the same key with the same content inserts nothing.
insert into outbox (
    bot, key, digest, channel, method, params, items, lane, chat_id, priority, on_uncertain, joined,
    not_before_ms, expires_at_ms, supersede_key, coalesce_key, source_lane, source_message_id,
    cancel_on_edit, generation, caused_at_ms, fallback, placeholder, attempts_max, created_at_ms
)
values (
    :bot, :key, :digest, :channel, :method, :params, :items, :lane, :chat_id, :priority,
    :on_uncertain, :joined, :not_before_ms, :expires_at_ms, :supersede_key, :coalesce_key,
    :source_lane, :source_message_id, :cancel_on_edit, :generation, :caused_at_ms, :fallback,
    :placeholder, :attempts_max, :now_ms
)
on conflict (bot, key, digest) do nothing;

-- name: by_key
-- The rows of one cause.
select id, digest, state
from outbox
where bot = :bot and key = :key;

-- name: give_up_placeholder
-- A row whose call was replaced no longer stands for the message.
update outbox
set placeholder = null
where bot = :bot and placeholder = :placeholder;

-- name: set_placeholder
-- Name the message that a row outside of any turn will become.
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

-- name: join_lane
-- Put a row's lane up for the sender, unless it is there already.
insert into lanes (bot, lane, priority, head_id, due_ms)
values (:bot, :lane, :priority, :id, :due_ms)
on conflict (bot, lane, priority) do update
set
    due_ms = case when excluded.head_id < head_id then excluded.due_ms else due_ms end,
    head_id = min(head_id, excluded.head_id);

-- name: join_scheduled
-- Let rows whose time has come join their lanes.
update outbox
set joined = 1
where bot = :bot and joined = 0 and state = 'queued' and not_before_ms <= :now_ms
returning id, lane, priority;

-- name: heads
-- The lanes that are due, each with its head, as long as nothing of the same chat is in flight.
select
    o.id, o.bot, o.key, o.channel, o.method, o.params, o.items, o.lane, o.chat_id, o.priority,
    o.on_uncertain, o.attempts, o.attempts_max, o.due_ms, o.expires_at_ms, o.created_at_ms,
    o.placeholder, o.source_lane, o.source_message_id, o.cancel_on_edit, o.generation,
    o.caused_at_ms, o.fallback
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

-- name: next_due
-- The next moment to come at which a lane may be looked at.
select min(due_ms) as due_ms
from lanes
where bot = :bot and priority = :priority and claimed = 0 and due_ms > :now_ms;

-- name: next_scheduled
-- The next moment at which a scheduled row joins its lane.
select min(not_before_ms) as due_ms
from outbox
where bot = :bot and joined = 0 and state = 'queued';

-- name: defer
-- Look at this lane again no sooner than this.
update lanes
set due_ms = :due_ms
where bot = :bot and lane = :lane and priority = :priority;

-- name: claim
-- Take the heads of lanes.
update outbox
set state = 'claimed', claim_epoch = :epoch
where id in (select value from json_each(:ids)) and state = 'queued' and joined = 1;

-- name: claim_lanes
-- Lanes with a claimed head wait.
update lanes
set claimed = 1
where (bot, lane, priority) in (
    select o.bot, o.lane, o.priority
    from json_each(:ids) as taken
    inner join outbox as o on o.id = taken.value
);

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
    and attempts.epoch = claims.value ->> 1;

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
    attempts = attempts + 1
from json_each(:accepted) as accepted
where
    outbox.id = accepted.value ->> 0
    and outbox.state = 'claimed'
    and outbox.claim_epoch = accepted.value ->> 1;

-- name: requeue
-- Give a claimed row back to the head of its lane.
update outbox
set state = 'queued', claim_epoch = null, cancel_asked = null, due_ms = :due_ms, attempts = attempts + :spent, reason = :reason
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: hold
-- Take a claimed row out of its lane, for a person to decide.
update outbox
set state = :state, claim_epoch = null, cancel_asked = null, reason = :reason, attempts = attempts + :spent
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: end_claimed
-- End a claimed row: dead, expired, superseded or cancelled.
update outbox
set
    state = :state, claim_epoch = null, cancel_asked = null, finished_at_ms = :now_ms, reason = :reason,
    attempts = attempts + :spent
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: end_queued
-- End a row that still waits: dead, expired, superseded or cancelled.
update outbox
set state = :state, finished_at_ms = :now_ms, reason = :reason
where id = :id and state = 'queued';

-- name: lane_head
-- The oldest row that stands in this lane.
select id, due_ms
from outbox
where
    bot = :bot
    and lane = :lane
    and priority = :priority
    and joined = 1
    and state in ('queued', 'claimed')
order by id
limit 1;

-- name: lane_due
-- When this lane may be looked at again.
select due_ms
from lanes
where bot = :bot and lane = :lane and priority = :priority;

-- name: set_head
-- The next row becomes the head of its lane; a claimed lane stays so.
update lanes
set head_id = :head_id, due_ms = :due_ms
where bot = :bot and lane = :lane and priority = :priority;

-- name: close_lane
-- Nothing is left to say in this lane.
delete from lanes
where bot = :bot and lane = :lane and priority = :priority;

-- name: close_lanes
-- Of these lanes, remove those in which nothing is left to say.
delete from lanes
where
    (bot, lane, priority) in (
        select value ->> 0, value ->> 1, value ->> 2 from json_each(:lanes)
    )
    and not exists (
        select 1 from outbox as o
        where
            o.bot = lanes.bot
            and o.lane = lanes.lane
            and o.priority = lanes.priority
            and o.joined = 1
            and o.state in ('queued', 'claimed')
    );

-- name: reopen_lanes
-- Of these lanes, whose claimed row has left the sender's hand, let each go on with its oldest row.
update lanes
set head_id = o.id, due_ms = max(o.due_ms, freed.value ->> 3), claimed = 0
from json_each(:lanes) as freed
inner join outbox as o on o.id = (
    select min(id) from outbox
    where
        bot = freed.value ->> 0
        and lane = freed.value ->> 1
        and priority = freed.value ->> 2
        and joined = 1
        and state in ('queued', 'claimed')
)
where
    lanes.bot = freed.value ->> 0
    and lanes.lane = freed.value ->> 1
    and lanes.priority = freed.value ->> 2;

-- name: expiring
-- Rows that wait although their time is over.
select id, lane, priority, joined
from outbox
where bot = :bot and state = 'queued' and expires_at_ms is not null and expires_at_ms <= :now_ms
order by expires_at_ms
limit :limit;

-- name: waiting_in_lane
-- Every row of a chat that still waits, of both priorities.
select id, lane, priority, joined
from outbox
where bot = :bot and lane = :lane and state = 'queued' and joined = 1 and state in ('queued', 'claimed')
order by priority, id
limit :limit;

-- name: claimed_before
-- What an earlier owner had in hand, with its last attempt.
select
    o.id, o.bot, o.key, o.channel, o.method, o.params, o.items, o.lane, o.chat_id, o.priority,
    o.on_uncertain, o.attempts, o.attempts_max, o.due_ms, o.expires_at_ms, o.created_at_ms,
    o.placeholder, o.source_lane, o.source_message_id, o.cancel_on_edit, o.generation,
    o.caused_at_ms, o.fallback,
    a.id as attempt_id, a.stage, o.claim_epoch
from outbox as o
inner join attempts as a on a.id = (select max(id) from attempts where outbox_id = o.id)
where o.bot = :bot and o.state = 'claimed' and o.claim_epoch < :epoch
order by o.id;

-- name: resolve
-- What became of the message behind a placeholder.
select state, message_id
from outbox
where bot = :bot and placeholder = :placeholder;

-- name: recent_attempts
-- The calls that left lately: what Telegram's windows still count.
select lane, chat_id, method, items, priority, stamped_at_ms, ended_at_ms
from attempts
where bot = :bot and stamped_at_ms >= :since_ms and stage not in ('unconnected', 'body_incomplete', 'handed_back')
order by stamped_at_ms;

-- name: drop_lanes
-- Forget all lanes of a bot, to be made anew from its rows.
delete from lanes
where bot = :bot;

-- name: rebuild_lanes
-- Make the lanes of a bot anew from its rows.
insert into lanes (bot, lane, priority, head_id, due_ms, claimed)
select f.bot, f.lane, f.priority, f.head_id, o.due_ms, f.claimed
from (
    select bot, lane, priority, min(id) as head_id, max(state = 'claimed') as claimed
    from outbox
    where bot = :bot and joined = 1 and state in ('queued', 'claimed')
    group by bot, lane, priority
) as f
inner join outbox as o on f.head_id = o.id;

-- name: moving
-- The rows of a chat that has moved, which still have something to say.
select id, params
from outbox
where bot = :bot and lane = :lane and joined = 1 and state in ('queued', 'claimed')
order by id;

-- name: move
-- Address a row to the chat's new id.
update outbox
set lane = :lane, chat_id = :chat_id, params = :params
where id = :id;

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
    description, wait_ms, verdict
from attempts
where outbox_id = :id
order by id;

-- name: held
-- Rows that wait for a person, oldest first, each with its last attempt.
select
    o.id, o.bot, o.method, o.chat_id, o.lane, o.state, o.reason, o.created_at_ms, o.attempts,
    a.id as attempt_id, a.stage, a.status, a.code, a.description, a.duration_ms, a.stamped_at_ms,
    a.wait_ms
from outbox as o
left join attempts as a on a.id = (select max(id) from attempts where outbox_id = o.id)
where o.state in ('uncertain', 'review')
order by o.id
limit :limit;

-- name: mark_seen
-- A person has seen this row.
update outbox
set seen_at_ms = coalesce(seen_at_ms, :now_ms)
where id = :id;

-- name: settle_held
-- A person ends a held row: it was sent, or is given up.
update outbox
set state = :state, finished_at_ms = :now_ms, reason = :reason, seen_at_ms = coalesce(seen_at_ms, :now_ms)
where id = :id and state in ('uncertain', 'review');

-- name: resend_held
-- A person lets a held row go again, at its old place in the lane.
update outbox
set
    state = 'queued', due_ms = 0, reason = :reason, attempts = 0, expires_at_ms = :expires_at_ms,
    seen_at_ms = coalesce(seen_at_ms, :now_ms)
where id = :id and state in ('uncertain', 'review')
returning lane, priority, bot;

-- name: revive
-- An operator lets a dead row go again.
update outbox
set
    state = 'queued', due_ms = 0, reason = null, attempts = 0, finished_at_ms = null,
    expires_at_ms = :expires_at_ms
where id = :id and state = 'dead'
returning lane, priority, bot;

-- name: dead_list
-- Rows that were given up, newest first.
select id, bot, method, chat_id, lane, state, attempts, reason, created_at_ms, finished_at_ms
from outbox
where state = 'dead'
order by id desc
limit :limit;

-- name: queue
-- Rows that wait or are in hand, lane by lane.
select
    id, bot, method, chat_id, lane, priority, state, not_before_ms, due_ms, expires_at_ms,
    attempts, reason, created_at_ms
from outbox
where bot = :bot and joined = 1 and state in ('queued', 'claimed')
order by lane, priority, id
limit :limit;

-- name: prune_attempts
-- Forget the attempts of rows that ended long ago.
delete from attempts
where outbox_id in (
    select id from outbox
    where finished_at_ms < :before_ms and state not in ('uncertain', 'review')
    order by finished_at_ms
    limit :limit
);

-- name: prune
-- Forget rows that ended long ago, a few at a time. Held rows have no end and stay.
delete from outbox
where id in (
    select id from outbox
    where finished_at_ms < :before_ms and state not in ('uncertain', 'review')
    order by finished_at_ms
    limit :limit
);
