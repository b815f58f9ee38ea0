-- Cancelling: what somebody does not want said any more.

-- name: by_ids
-- These rows of a bot, each with how far its call got where a sender has it in hand.
select
    o.id, o.lane, o.priority, o.joined, o.state,
    case
        when o.state = 'claimed'
            then (select a.stage from attempts as a where a.outbox_id = o.id order by a.id desc limit 1)
    end as stage
from outbox as o
where o.id in (select value from json_each(:ids)) and +o.bot = :bot;

-- name: by_key
-- What one cause has left.
select
    o.id, o.lane, o.priority, o.joined, o.state,
    case
        when o.state = 'claimed'
            then (select a.stage from attempts as a where a.outbox_id = o.id order by a.id desc limit 1)
    end as stage
from outbox as o
where o.bot = :bot and o.key = :key;

-- name: joined
-- Rows that stand in lanes, from one of them on, lane by lane.
select
    o.id, o.lane, o.priority, o.joined, o.state, o.method, o.generation, o.created_at_ms,
    case
        when o.state = 'claimed'
            then (select a.stage from attempts as a where a.outbox_id = o.id order by a.id desc limit 1)
    end as stage
from outbox as o
where
    o.bot = :bot
    and o.joined = 1
    and o.state in ('queued', 'claimed')
    and (o.lane, o.priority, o.id) > (:lane, :priority, :id)
    and o.lane < :end
order by o.lane, o.priority, o.id
limit :limit;

-- name: scheduled
-- Rows that have not joined their lanes yet, from one of them on, lane by lane.
select
    o.id, o.lane, o.priority, o.joined, o.state, o.method, o.generation, o.created_at_ms, null as stage
from outbox as o
where
    o.bot = :bot
    and o.joined = 0
    and o.state = 'queued'
    and o.lane >= :lane
    and (o.lane, o.id) > (:lane, :id)
    and o.lane < :end
order by o.lane, o.id
limit :limit;

-- name: ask
-- Rows in a sender's hand are to end instead of being stamped, or of being tried again.
update outbox
set cancel_asked = coalesce(cancel_asked, :reason)
where id in (select value from json_each(:ids)) and state = 'claimed';
