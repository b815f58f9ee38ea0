-- Floods: each one that was met, with what every policy would have made of it.

-- name: record
-- Remember a flood.
insert into floods (
    bot, at_ms, lane, method, priority, wait_ms, hint, chosen, adaptive_ms, bot_ms, chat_ms
)
values (
    :bot, :now_ms, :lane, :method, :priority, :wait_ms, :hint, :chosen, :adaptive_ms, :bot_ms,
    :chat_ms
);

-- name: lanes_since
-- Whose calls have drawn a flood since a moment.
select lane
from floods
where bot = :bot and at_ms >= :since_ms;

-- name: latest
-- The latest floods of a bot, newest first.
select
    id, bot, at_ms, lane, method, priority, wait_ms, hint, chosen, adaptive_ms, bot_ms, chat_ms
from floods
where bot = :bot
order by at_ms desc, id desc
limit :limit;

-- name: others
-- What became of the calls to other chats that left while a flood lasted.
select
    count(*) filter (where verdict = 'sent') as sent,
    count(*) filter (where verdict != 'sent' and wait_ms is not null) as flooded
from attempts
where bot = :bot and stamped_at_ms between :at_ms and :until_ms and lane != :lane;

-- name: prune
-- Forget floods of long ago, a few at a time.
delete from floods
where id in (select id from floods order by id limit :limit) and at_ms < :before_ms;
