-- How calls ended, for those who wait to hear of it.

-- name: named
-- The rows of one cause.
select id, digest, method, placeholder
from outbox
where bot = :bot and key = :key;

-- name: among
-- Those of these rows that have ended or are held, with what their last attempts were told.
select
    o.id, o.method, o.state, o.result, o.reason,
    a.code, a.description, a.wait_ms
from json_each(:ids) as looked
inner join outbox as o on o.id = looked.value
left join attempts as a on a.id = (select max(id) from attempts where outbox_id = o.id)
where o.state not in ('queued', 'claimed');
