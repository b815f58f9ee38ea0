-- Bots: which token's bot a configured name stands for.

-- name: bind
-- A name is used for the first time.
insert into bots (name, bot_id, bound_at_ms)
values (:name, :bot_id, :now_ms)
on conflict do nothing;

-- name: by_name
-- The bot behind a name.
select name, bot_id, me, webhook_fingerprint, bound_at_ms
from bots
where name = :name;

-- name: by_id
-- The name of a bot.
select name
from bots
where bot_id = :bot_id;

-- name: set_me
-- Remember what Telegram says that the bot is.
update bots
set me = :me
where name = :name;

-- name: set_webhook_fingerprint
-- Remember with which secret the webhook was set.
update bots
set webhook_fingerprint = :fingerprint
where name = :name;
