-- Evidence: what can be known of a doubtful call without asking the chat's people.

-- name: before
-- What Telegram accepted for a chat just before a call left, among the bot's calls of that time.
select subquery.outbox_id as id, o.method, o.message_id, subquery.stamped_at_ms as at_ms
from (
    select outbox_id, lane, verdict, stamped_at_ms
    from attempts
    where bot = :bot and stamped_at_ms < :at_ms
    order by stamped_at_ms desc
    limit :looked
) as subquery
inner join outbox as o on o.id = subquery.outbox_id
where subquery.lane = :lane and subquery.verdict = 'sent'
order by subquery.stamped_at_ms desc
limit :limit;

-- name: after
-- What Telegram accepted for a chat just after a call left, among the bot's calls of that time.
select subquery.outbox_id as id, o.method, o.message_id, subquery.stamped_at_ms as at_ms
from (
    select outbox_id, lane, verdict, stamped_at_ms
    from attempts
    where bot = :bot and stamped_at_ms > :at_ms
    order by stamped_at_ms
    limit :looked
) as subquery
inner join outbox as o on o.id = subquery.outbox_id
where subquery.lane = :lane and subquery.verdict = 'sent'
order by subquery.stamped_at_ms
limit :limit;

-- name: spoken
-- When a chat was last heard of after a call, among the latest updates.
select max(received_at_ms) as at_ms
from (
    select bot, chat_lane, received_at_ms
    from inbox
    order by id desc
    limit :looked
)
where bot = :bot and chat_lane = :lane and received_at_ms > :at_ms;

-- name: row
-- How many messages a call carries, and how many calls wait for the decision about it.
select
    items,
    (
        select count(*) from outbox as child
        where child.waits_for = :id and child.state = 'queued' and child.waits_for is not null
    ) as waiting
from outbox
where id = :id;
