-- Pauses: what people have stopped for a while, and why.

-- name: pause
-- Stop a scope, or change why and for how long it is stopped.
insert into pauses (bot, scope, reason, by_whom, at_ms, until_ms)
values (:bot, :scope, :reason, :by_whom, :now_ms, :until_ms)
on conflict (bot, scope) do update
set
    reason = excluded.reason, by_whom = excluded.by_whom, at_ms = excluded.at_ms,
    until_ms = excluded.until_ms;

-- name: resume
-- Let a scope go on.
delete from pauses
where bot = :bot and scope = :scope;

-- name: move
-- A chat has another lane, which may be paused already.
update or ignore pauses
set scope = :to_scope
where bot = :bot and scope = :scope;

-- name: among
-- Those of some scopes that are paused now.
select scope, reason, by_whom, at_ms, until_ms
from pauses
where
    bot = :bot
    and scope in (select value from json_each(:scopes))
    and (until_ms is null or until_ms > :now_ms);

-- name: of_bot
-- All that is paused of a bot now.
select scope, reason, by_whom, at_ms, until_ms
from pauses
where bot = :bot and (until_ms is null or until_ms > :now_ms)
order by scope;

-- name: prune
-- Forget pauses that were over long ago.
delete from pauses
where until_ms < :before_ms;
