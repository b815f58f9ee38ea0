-- Rates: what was learned of a bot's bulk rate, and who changed its limits.

-- name: learn
-- Remember the rate that floods have taught.
insert into learned_rates (bot, bulk_per_second, changed_at_ms, reason)
values (:bot, :bulk_per_second, :now_ms, :reason)
on conflict (bot) do update
set
    bulk_per_second = excluded.bulk_per_second,
    changed_at_ms = excluded.changed_at_ms,
    reason = excluded.reason;

-- name: forget
-- Forget what floods have taught.
delete from learned_rates
where bot = :bot;

-- name: learned
-- The rate that was learned of a bot.
select bulk_per_second, changed_at_ms, reason
from learned_rates
where bot = :bot;

-- name: last_change
-- The latest change of a bot's limits.
select at_ms, source, before, after
from limit_changes
where bot = :bot
order by id desc
limit 1;

-- name: record_change
-- Remember that a bot's limits were changed while it ran.
insert into limit_changes (bot, at_ms, source, before, after)
values (:bot, :now_ms, :source, :before, :after);
