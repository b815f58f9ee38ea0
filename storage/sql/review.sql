-- Held rows and dead letters: what waits for a person.

-- name: held
-- Rows that wait for a person, oldest first, each with its last attempt.
select
    o.id, o.bot, o.method, o.chat_id, o.lane, o.state, o.reason, o.created_at_ms, o.attempts,
    a.id as attempt_id, a.stage, a.status, a.code, a.description, a.duration_ms, a.stamped_at_ms,
    a.wait_ms
from outbox as o
left join attempts as a on a.id = (select max(id) from attempts where outbox_id = o.id)
where o.state in ('uncertain', 'review') and (:id is null or o.id = :id)
order by o.id
limit :limit;

-- name: mark_seen
-- A person has seen this row.
update outbox
set seen_at_ms = coalesce(seen_at_ms, :now_ms)
where id = :id;

-- name: settle
-- A person ends a held row: it was sent, or is given up.
update outbox
set
    state = :state, finished_at_ms = :now_ms, reason = :reason,
    message_id = coalesce(:message_id, message_id), seen_at_ms = coalesce(seen_at_ms, :now_ms)
where id = :id and state in ('uncertain', 'review')
returning bot;

-- name: resend
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
where
    state = 'dead'
    and (:bot is null or bot = :bot)
    and (:kind is null or method = :kind)
    and (:reason is null or instr(lower(reason), :reason))
    and (:since_ms is null or finished_at_ms >= :since_ms)
    and (:before_ms is null or finished_at_ms < :before_ms)
order by id desc
limit :limit;

-- name: dead_among
-- The numbers of dead calls after one, in order.
select id
from outbox
where
    state = 'dead'
    and id > :after_id
    and (:bot is null or bot = :bot)
    and (:kind is null or method = :kind)
    and (:reason is null or instr(lower(reason), :reason))
    and (:since_ms is null or finished_at_ms >= :since_ms)
    and (:before_ms is null or finished_at_ms < :before_ms)
order by id
limit :limit;
