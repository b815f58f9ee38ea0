-- Chats: whom each bot has met, and whether it may and can write to them.

-- name: seen
-- A chat has been heard of.
insert into chats (bot, chat_id, kind, first_seen_ms, last_seen_ms)
values (:bot, :chat_id, :kind, :now_ms, :now_ms)
on conflict (bot, chat_id) do update
set kind = excluded.kind, last_seen_ms = excluded.last_seen_ms
where last_seen_ms < :now_ms - :refresh_ms or kind != excluded.kind;

-- name: revive
-- A chat that could not be reached has been heard of since. A loss in the future tells of a clock that was wrong.
update chats
set unreachable_at_ms = null, unreachable_reason = null
where
    bot = :bot
    and chat_id = :chat_id
    and (unreachable_at_ms <= :heard_at_ms or unreachable_at_ms > :now_ms);

-- name: mark_unreachable
-- A chat can't be written to any more.
insert into chats (bot, chat_id, kind, first_seen_ms, last_seen_ms, unreachable_at_ms, unreachable_reason)
values (:bot, :chat_id, 'unknown', :now_ms, :now_ms, :now_ms, :reason)
on conflict (bot, chat_id) do update
set unreachable_at_ms = :now_ms, unreachable_reason = :reason;

-- name: opt_out
-- A user does not want broadcasts.
insert into chats (bot, chat_id, kind, first_seen_ms, last_seen_ms, opted_out_at_ms)
values (:bot, :chat_id, 'private', :now_ms, :now_ms, :now_ms)
on conflict (bot, chat_id) do update
set opted_out_at_ms = coalesce(opted_out_at_ms, :now_ms);

-- name: opt_in
-- A user wants broadcasts again.
update chats
set opted_out_at_ms = null
where bot = :bot and chat_id = :chat_id and opted_out_at_ms is not null;

-- name: moved
-- A group has become a supergroup with another id.
update chats
set moved_to = :moved_to
where bot = :bot and chat_id = :chat_id;

-- name: show
-- What is known of one chat.
select
    bot, chat_id, kind, first_seen_ms, last_seen_ms, opted_out_at_ms, unreachable_at_ms,
    unreachable_reason, moved_to
from chats
where bot = :bot and chat_id = :chat_id;
