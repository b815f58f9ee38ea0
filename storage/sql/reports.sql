-- Reports: what operators ask, answered from one moment, without a user's words.

-- name: bots
-- Every bot that was ever used here.
select name, bot_id
from bots
order by name;

-- name: inbox_waiting
-- How many updates of a bot wait, and since when the oldest does.
select count(*) as waiting, min(received_at_ms) as oldest_ms
from inbox
where bot = :bot and state = 'received';

-- name: inbox_running
-- How many turns of a bot run.
select count(*) as running
from inbox
where bot = :bot and state = 'claimed';

-- name: inbox_given_up
-- How many updates were given up or quarantined.
select
    count(*) filter (where state = 'dead') as dead,
    count(*) filter (where state = 'quarantined') as quarantined
from inbox
where state in ('dead', 'quarantined') and bot = :bot;

-- name: outbox_waiting
-- How many rows of a bot wait or are in hand, and since when the oldest does.
select priority, state, count(*) as waiting, min(created_at_ms) as oldest_ms
from outbox
where bot = :bot and joined = 1 and state in ('queued', 'claimed')
group by priority, state;

-- name: outbox_scheduled
-- How many rows of a bot wait for their time.
select count(*) as scheduled, min(not_before_ms) as next_ms
from outbox
where bot = :bot and joined = 0 and state = 'queued' and waits_for is null;

-- name: outbox_outside
-- How many rows of a bot have left their lanes until it is decided about another one.
select count(*) as outside
from outbox
where state = 'queued' and waits_for is not null and +bot = :bot;

-- name: outbox_held
-- How many rows of a bot wait for a person.
select
    count(*) filter (where state = 'uncertain') as uncertain,
    count(*) filter (where state = 'review') as review
from outbox
where state in ('uncertain', 'review') and bot = :bot;

-- name: outbox_ended
-- How the rows of a bot ended since a moment.
select state, count(*) as ended
from outbox
where finished_at_ms >= :since_ms and bot = :bot
group by state;

-- name: refusals
-- The latest answers of Telegram that were not a yes.
select
    id, outbox_id, bot, method, chat_id, stage, ended_at_ms, duration_ms, status, code, description,
    wait_ms, verdict
from attempts
where verdict is not null and verdict != 'sent' and bot = :bot
order by id desc
limit :limit;

-- name: schema
-- The schema that the file has.
select max(number) as number
from migrations;

-- name: updates
-- How every update of a bot ended, for a comparison with what Telegram saw.
select id, update_id, state
from inbox
where bot = :bot and update_id is not null
order by id;

-- name: rows
-- How every row of a bot ended, for a comparison with what Telegram saw.
select id, method, chat_id, message_id, state
from outbox
where bot = :bot
order by id;
