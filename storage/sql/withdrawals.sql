-- Withdrawals: what has happened in a chat that takes the reason away from what waits there.

-- name: note
-- Remember it; of the same thing noted twice the later moment stays, unless a wrong clock set it into the future.
insert into withdrawals (bot, lane, what, subject, at_ms)
values (:bot, :lane, :what, :subject, :at_ms)
on conflict (bot, lane, what, subject) do update
set at_ms = case when at_ms > :now_ms then excluded.at_ms else max(at_ms, excluded.at_ms) end;

-- name: joined
-- The first rows that stand in a lane, with what decides whether their reason is gone.
select
    o.id, o.method, o.lane, o.priority, o.joined, o.state, o.generation, o.created_at_ms, o.caused_at_ms,
    o.source_lane, o.source_message_id, o.cancel_on_edit,
    case
        when o.state = 'claimed'
            then (select a.stage from attempts as a where a.outbox_id = o.id order by a.id desc limit 1)
    end as stage
from outbox as o
where o.bot = :bot and o.lane = :lane and o.joined = 1 and o.state in ('queued', 'claimed')
order by o.priority, o.id
limit :limit;

-- name: scheduled
-- The first rows that have not joined their lane yet, with what decides whether their reason is gone.
select
    o.id, o.method, o.lane, o.priority, o.joined, o.state, o.generation, o.created_at_ms, o.caused_at_ms,
    o.source_lane, o.source_message_id, o.cancel_on_edit, null as stage
from outbox as o
where o.bot = :bot and o.lane = :lane and o.joined = 0 and o.state = 'queued'
order by o.id
limit :limit;

-- name: prune
-- Forget what was noted long ago, where nothing waits in its lane any more.
delete from withdrawals
where (bot, lane, what, subject) in (
    select w.bot, w.lane, w.what, w.subject
    from withdrawals as w
    where
        w.at_ms < :before_ms
        and not exists (
            select 1 from outbox as o
            where o.bot = w.bot and o.lane = w.lane and o.joined = 1 and o.state in ('queued', 'claimed')
        )
        and not exists (
            select 1 from outbox as o
            where o.bot = w.bot and o.lane = w.lane and o.joined = 0 and o.state = 'queued'
        )
    order by w.at_ms
    limit :limit
);
