-- Placeholders: the messages that rows have made, while the rows are there and after.

-- name: owner
-- The row that stands for a placeholder: it owns its own number and as many below as it makes messages.
select
    id, bot, state, method, chat_id, placeholder, items, message_id,
    case when items > 1 then params end as params,
    case when items > 1 then result end as result,
    case
        when state in ('uncertain', 'review') then id
        when state = 'queued' then coalesce(waits_for, id)
    end as doubt
from outbox
where bot = :bot and placeholder >= :placeholder
order by placeholder
limit 1;

-- name: kept
-- The message behind a placeholder whose row is forgotten.
select message_id, chat_id
from message_ids
where bot = :bot and placeholder = :placeholder;

-- name: to_keep
-- Of these rows, which are about to be forgotten, those that made messages somebody may refer to.
select
    o.id, o.bot, o.method, o.chat_id, o.placeholder, o.items, o.message_id,
    case when o.items > 1 then o.params end as params,
    case when o.items > 1 then o.result end as result
from json_each(:ids) as forgotten
inner join outbox as o on o.id = forgotten.value
where o.placeholder is not null and o.state = 'sent';

-- name: keep
-- Remember which message a placeholder stood for; what it stood for before counts no more.
insert into message_ids (bot, placeholder, message_id, chat_id, kept_at_ms)
values (:bot, :placeholder, :message_id, :chat_id, :now_ms)
on conflict (bot, placeholder) do update
set message_id = excluded.message_id, chat_id = excluded.chat_id, kept_at_ms = excluded.kept_at_ms;

-- name: prune
-- Forget the longest kept, a few at a time.
delete from message_ids
where (bot, placeholder) in (
    select bot, placeholder from message_ids
    where kept_at_ms < :before_ms
    order by kept_at_ms
    limit :limit
);
