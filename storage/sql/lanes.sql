-- Lanes: one row for each with something to say, with its head and when it may be looked at.

-- name: join
-- Put a row's lane up for the sender, unless it is there already.
insert into lanes (bot, lane, priority, head_id, due_ms)
values (:bot, :lane, :priority, :id, :due_ms)
on conflict (bot, lane, priority) do update
set
    due_ms = case when excluded.head_id < head_id then excluded.due_ms else due_ms end,
    head_id = min(head_id, excluded.head_id);

-- name: defer
-- Look at this lane again no sooner than this.
update lanes
set due_ms = :due_ms
where bot = :bot and lane = :lane and priority = :priority;

-- name: hold_claimed
-- Lanes with a claimed head wait.
update lanes
set claimed = 1
where (bot, lane, priority) in (
    select o.bot, o.lane, o.priority
    from json_each(:ids) as taken
    inner join outbox as o on o.id = taken.value
);

-- name: look_again
-- Of a bot's lanes that were put off, each waits no longer than its head does.
update lanes
set due_ms = coalesce((select o.due_ms from outbox as o where o.id = lanes.head_id), due_ms)
where bot = :bot and due_ms > :now_ms;

-- name: head
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

-- name: due
-- When this lane may be looked at again.
select due_ms
from lanes
where bot = :bot and lane = :lane and priority = :priority;

-- name: set_head
-- The next row becomes the head of its lane; a claimed lane stays so.
update lanes
set head_id = :head_id, due_ms = :due_ms
where bot = :bot and lane = :lane and priority = :priority;

-- name: close
-- Nothing is left to say in this lane.
delete from lanes
where bot = :bot and lane = :lane and priority = :priority;

-- name: close_all
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

-- name: reopen
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

-- name: drop
-- Forget all lanes of a bot, to be made anew from its rows.
delete from lanes
where bot = :bot;

-- name: rebuild
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

-- name: step_out
-- A row leaves its lane until it is decided about another one.
update outbox
set joined = 0, waits_for = :waits_for, reason = :reason
where id = :id and state = 'queued' and joined = 1
returning lane, priority;

-- name: step_in
-- It is decided about rows: what waited for them stands in its lane again.
update outbox
set joined = 1, waits_for = null, reason = null
where
    waits_for in (select value from json_each(:decided))
    and state = 'queued'
    and waits_for is not null
returning id, bot, lane, priority;
