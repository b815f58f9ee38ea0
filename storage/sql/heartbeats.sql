-- Heartbeats: which processes are at work, and how they are.

-- name: beat
-- A process says that it is there, and in which state.
insert into heartbeats (owner, role, started_at_ms, beat_at_ms, state, facts)
values (:owner, :role, :now_ms, :now_ms, :state, :facts)
on conflict (owner) do update
set beat_at_ms = :now_ms, state = excluded.state, facts = excluded.facts;

-- name: leave
-- A process has ended in good order.
delete from heartbeats
where owner = :owner;

-- name: all
-- Every process that was heard of lately.
select owner, role, started_at_ms, beat_at_ms, state, facts
from heartbeats
order by role, owner;

-- name: prune
-- Forget processes that were not heard of for long, and silent ones whose role another one serves.
delete from heartbeats
where
    beat_at_ms < :before_ms
    or (role = :role and owner != :owner and beat_at_ms < :silent_before_ms);
