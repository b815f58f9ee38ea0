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
