-- Ends of calls of which the bot's own code has still to be told.

-- name: due
-- Ended rows to tell of, in the order in which they were left.
select
    o.id, o.lane, o.chat_id, o.inbox_id, i.chat_lane as update_chat_lane, i.user_lane as update_user_lane
from outbox as o
left join inbox as i on i.id = o.inbox_id and i.bot = o.bot
where
    o.bot = :bot
    and (
        (o.tell = 'all' and o.state not in ('queued', 'claimed'))
        or (o.tell = 'failures' and o.state = 'dead')
    )
order by o.id
limit :limit;

-- name: show
-- One row whose end has to be told, with the answer that decided it and the update that it was due to.
select
    o.id, o.state, o.tell, o.method, o.lane, o.chat_id, o.key, o.placeholder, o.message_id, o.reason,
    o.awaited, o.inbox_id, i.body, i.received_at_ms, a.stage, a.verdict, a.code, a.description, a.wait_ms,
    c.moved_to
from outbox as o
left join attempts as a on a.id = (select max(id) from attempts where outbox_id = o.id)
left join inbox as i on i.id = o.inbox_id and i.bot = o.bot and i.forgotten = 0
left join chats as c on c.bot = o.bot and c.chat_id = o.chat_id
where o.id = :id and o.tell != '';

-- name: settle
-- This end was told: whoever held the row for a person, its failure is told once more.
update outbox
set tell = case when :told_as in ('uncertain', 'review') then 'failures' else '' end
where id = :id;
