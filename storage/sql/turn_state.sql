-- Turn state: what handlers remember, by user, chat and conversation.

-- name: load
-- What is remembered in one scope.
select data
from turn_state
where bot = :bot and scope = :scope;

-- name: save
-- Remember this in a scope.
insert into turn_state (bot, scope, data, changed_at_ms)
values (:bot, :scope, :data, :now_ms)
on conflict (bot, scope) do update
set data = excluded.data, changed_at_ms = excluded.changed_at_ms;

-- name: forget
-- Remember nothing in a scope.
delete from turn_state
where bot = :bot and scope = :scope;

-- name: with_prefix
-- Everything that is remembered in scopes of one kind.
select scope, data
from turn_state
where bot = :bot and scope >= :first and scope < :last;

-- name: load_aged
-- What is remembered in one scope, and since when.
select data, changed_at_ms
from turn_state
where bot = :bot and scope = :scope;

-- name: any
-- One scope in which anything is remembered.
select scope
from turn_state
where bot = :bot
limit 1;

-- name: forget_keyboards
-- Forget a bot's keyboards that were shown, or pressed, before then.
delete from turn_state
where bot = :bot and scope >= 'keyboard:' and scope < 'keyboard;' and changed_at_ms < :before_ms;

-- name: prune_keyboards
-- Forget the keyboards that nobody has pressed for long, a few at a time.
delete from turn_state
where (bot, scope) in (
    select bot, scope
    from turn_state
    where scope >= 'keyboard:' and scope < 'keyboard;' and changed_at_ms < :before_ms
    order by changed_at_ms
    limit :limit
);
