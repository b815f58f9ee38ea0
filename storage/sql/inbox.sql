-- The inbox: updates as they came, until their turn has committed.

-- name: receive
-- Store an update once; a redelivery of the same id inserts nothing.
insert into inbox (bot, update_id, kind, chat_lane, user_lane, body, state, received_at_ms)
values (:bot, :update_id, :kind, :chat_lane, :user_lane, :body, 'received', :now_ms)
on conflict (bot, update_id) where update_id is not null do nothing;

-- name: receive_all
-- Store many updates, each once, in the order in which they are given.
insert into inbox (bot, update_id, kind, chat_lane, user_lane, body, state, received_at_ms)
select
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
    substr(:bodies, value ->> 5, value ->> 6), 'received', :now_ms
from json_each(:updates)
where true
on conflict (bot, update_id) where update_id is not null do nothing;

-- name: same
-- Find the update that was stored under this id, to tell a redelivery from another update.
select id, body, forgotten
from inbox
where bot = :bot and update_id = :update_id;

-- name: same_quarantined
-- Find these bytes in quarantine, so that a poison that is sent again and again is kept once.
select id
from inbox
where state in ('dead', 'quarantined') and state = 'quarantined' and bot = :bot and body = :body
limit 1;

-- name: quarantine
-- Keep the raw bytes of something authentic that is no update.
insert into inbox (
    bot, update_id, kind, chat_lane, user_lane, body, state, received_at_ms, finished_at_ms, reason
)
values (:bot, null, '', null, null, :body, 'quarantined', :now_ms, :now_ms, :reason);

-- name: pending
-- The oldest updates that wait for a turn, without their bodies.
select id, chat_lane, user_lane, not_before_ms
from inbox
where bot = :bot and state = 'received' and id > :after_id
order by id
limit :limit;

-- name: claim
-- Take one waiting update for a turn.
update inbox
set state = 'claimed', claims = claims + 1, claim_epoch = :epoch, claimed_at_ms = :now_ms
where id = :id and state = 'received'
returning
    id, bot, update_id, kind, body, claims, received_at_ms,
    coalesce(requeued_at_ms, received_at_ms) as meant_at_ms;

-- name: finish
-- The turn commits: the update is done.
update inbox
set state = 'done', claim_epoch = null, finished_at_ms = :now_ms
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: bury
-- Give the update up, with the reason.
update inbox
set state = 'dead', claim_epoch = null, finished_at_ms = :now_ms, reason = :reason, trace = :trace
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: release
-- Give a claimed update back, to be taken again at its old place.
update inbox
set state = 'received', claim_epoch = null, claims = claims - :refund, not_before_ms = :not_before_ms
where id = :id and state = 'claimed' and claim_epoch = :epoch;

-- name: rescue
-- Free what a worker that is gone had claimed.
update inbox
set state = 'received', claim_epoch = null
where bot = :bot and state = 'claimed' and claim_epoch < :epoch;

-- name: requeue
-- An operator revives a dead update.
update inbox
set
    state = 'received',
    claims = 0,
    not_before_ms = 0,
    finished_at_ms = null,
    reason = null,
    trace = null,
    requeued_at_ms = :now_ms
where id = :id and state = 'dead';

-- name: depth
-- How many updates wait, counted no further than the limit.
select count(*) as depth
from (select 1 from inbox where bot = :bot and state = 'received' limit :limit);

-- name: show
-- One update, whole.
select
    id, bot, update_id, kind, chat_lane, user_lane, body, state, claims,
    received_at_ms, claimed_at_ms, finished_at_ms, reason, trace
from inbox
where id = :id;

-- name: dead_list
-- What was given up, newest first, without bodies.
select id, bot, update_id, kind, state, claims, received_at_ms, finished_at_ms, reason
from inbox
where
    state in ('dead', 'quarantined')
    and (:bot is null or bot = :bot)
    and (:kind is null or kind = :kind)
    and (:reason is null or instr(lower(reason), :reason))
    and (:since_ms is null or finished_at_ms >= :since_ms)
    and (:before_ms is null or finished_at_ms < :before_ms)
order by id desc
limit :limit;

-- name: dead_among
-- The numbers of dead updates after one, in order.
select id
from inbox
where
    state in ('dead', 'quarantined')
    and state = 'dead'
    and id > :after_id
    and (:bot is null or bot = :bot)
    and (:kind is null or kind = :kind)
    and (:reason is null or instr(lower(reason), :reason))
    and (:since_ms is null or finished_at_ms >= :since_ms)
    and (:before_ms is null or finished_at_ms < :before_ms)
order by id
limit :limit;

-- name: to_forget
-- Updates whose work ended long ago, a few at a time. Dead letters stay until a person has dealt with them.
select id, body
from inbox
where state = 'done' and forgotten = 0 and finished_at_ms < :before_ms
order by finished_at_ms
limit :limit;

-- name: forget
-- Of what an update said only a digest is kept, to know it again by.
update inbox
set body = :digest, chat_lane = null, user_lane = null, forgotten = 1
where id = :id;

-- name: newest
-- The number of the last update.
select max(id) as id
from inbox;

-- name: prune
-- Forget that updates ever came, a few at a time; the newest ones stay known.
delete from inbox
where id in (
    select id from inbox
    where id <= :through_id and state = 'done' and forgotten = 1
    order by id
    limit :limit
);
