-- Cooldowns: waits that Telegram ordered, by bot and scope. They outlive the process.

-- name: merge
-- Remember a wait; the later deadline stays. One of another boot lasts no longer than it was to.
insert into cooldowns (
    bot, scope, until_ms, wait_ms, boot_id, until_boot_ms, set_at_ms, reason, inferred
)
values (
    :bot, :scope, :until_ms, :wait_ms, :boot_id, :until_boot_ms, :now_ms, :reason, :inferred
)
on conflict (bot, scope) do update
set
    until_ms = excluded.until_ms,
    wait_ms = excluded.wait_ms,
    boot_id = excluded.boot_id,
    until_boot_ms = excluded.until_boot_ms,
    set_at_ms = excluded.set_at_ms,
    reason = excluded.reason,
    inferred = excluded.inferred
where case
    when boot_id = excluded.boot_id then excluded.until_boot_ms > until_boot_ms
    else excluded.until_ms > min(until_ms, :now_ms + wait_ms)
end;

-- name: redate
-- A wait of another boot that seems to have been ordered in the future is counted as ordered now.
update cooldowns
set
    until_ms = :now_ms + wait_ms,
    boot_id = :boot_id,
    until_boot_ms = :boot_ms + wait_ms,
    set_at_ms = :now_ms
where bot = :bot and boot_id != :boot_id and until_ms > :now_ms + wait_ms;

-- name: of_bot
-- Every wait of a bot, over or not.
select scope, until_ms, wait_ms, boot_id, until_boot_ms, set_at_ms, reason, inferred
from cooldowns
where bot = :bot;

-- name: among
-- The waits of some scopes of a bot, over or not.
select scope, until_ms, wait_ms, boot_id, until_boot_ms, set_at_ms, reason, inferred
from cooldowns
where bot = :bot and scope in (select value from json_each(:scopes));

-- name: lift
-- Forget a wait that was only inferred.
delete from cooldowns
where bot = :bot and scope = :scope and inferred = 1;

-- name: prune
-- Forget waits that were over long ago by both clocks: one of them may have been set ahead.
delete from cooldowns
where until_ms < :before_ms and (boot_id != :boot_id or until_boot_ms < :boot_ms);

-- name: move
-- A chat that has moved takes its wait along; where its new id waits already the later deadline stays.
insert into cooldowns (
    bot, scope, until_ms, wait_ms, boot_id, until_boot_ms, set_at_ms, reason, inferred
)
select bot, :new_scope, until_ms, wait_ms, boot_id, until_boot_ms, set_at_ms, reason, inferred
from cooldowns
where bot = :bot and scope = :scope
on conflict (bot, scope) do update
set
    until_ms = excluded.until_ms,
    wait_ms = excluded.wait_ms,
    boot_id = excluded.boot_id,
    until_boot_ms = excluded.until_boot_ms,
    set_at_ms = excluded.set_at_ms,
    reason = excluded.reason,
    inferred = excluded.inferred
where case
    when boot_id = excluded.boot_id then excluded.until_boot_ms > until_boot_ms
    else excluded.until_ms > until_ms
end;

-- name: forget
-- Nothing has this scope any more.
delete from cooldowns
where bot = :bot and scope = :scope;
