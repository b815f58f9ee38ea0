-- Redating: our own waits, after somebody has set the machine's wall clock back.

-- name: newest
-- When a process was last heard of: a moment that lies in no future unless the clock was set back.
select max(beat_at_ms) as newest_ms
from heartbeats;

-- name: rows
-- What waits to be tried again waits as long as it was to; what is scheduled keeps its moment.
update outbox
set due_ms = max(not_before_ms, due_ms - :by_ms)
where id in (select head_id from lanes where due_ms > :now_ms) and due_ms > :now_ms;

-- name: lanes
-- The same for the lanes, by their heads.
update lanes
set due_ms = coalesce(
    (select max(o.not_before_ms, lanes.due_ms - :by_ms) from outbox as o where o.id = lanes.head_id),
    due_ms
)
where due_ms > :now_ms;

-- name: leases
-- No lease lasts longer than one is given for.
update leases
set lease_until_ms = lease_until_ms - :by_ms
where lease_until_ms > :latest_ms;

-- name: beats
-- Nobody was heard of in the future.
update heartbeats
set beat_at_ms = :now_ms
where beat_at_ms > :now_ms;
