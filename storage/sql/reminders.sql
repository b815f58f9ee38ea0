-- Reminders: what handlers wished to be called for at another time.

-- name: keep
-- Remember to call; the number of what is kept.
insert into reminders (
    bot, name, callback, data, chat_id, user_id, due_ms, rule, late_ms_max, elapses, created_at_ms
)
values (
    :bot, :name, :callback, :data, :chat_id, :user_id, :due_ms, :rule, :late_ms_max, :elapses, :now_ms
);

-- name: named
-- The reminder of a name.
select
    id, name, callback, data, chat_id, user_id, due_ms, rule, late_ms_max, elapses, created_at_ms
from reminders
where bot = :bot and name = :name and name is not null;

-- name: forget
-- Forget the reminder of a name.
delete from reminders
where bot = :bot and name = :name and name is not null;

-- name: due
-- Reminders whose moment has come, the earliest first.
select id, chat_id, user_id
from reminders
where bot = :bot and due_ms <= :now_ms
order by due_ms, id
limit :limit;

-- name: show
-- One reminder, whole.
select
    id, name, callback, data, chat_id, user_id, due_ms, rule, late_ms_max, elapses, created_at_ms
from reminders
where id = :id and bot = :bot;

-- name: end
-- A reminder is over.
delete from reminders
where id = :id and bot = :bot;

-- name: ahead
-- Whether a reminder that counts what passes was kept at a moment that has yet to come.
select 1 as found
from reminders
where bot = :bot and elapses = 1 and created_at_ms > :now_ms
limit 1;

-- name: redate
-- After the clock was set back, what counts what passes waits no longer than it was to wait.
update reminders
set due_ms = :now_ms + max(0, due_ms - created_at_ms), created_at_ms = :now_ms
where bot = :bot and elapses = 1 and created_at_ms > :now_ms;
