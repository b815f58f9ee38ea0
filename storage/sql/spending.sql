-- Spending: what paid broadcasts have cost, in tenths of a Star.

-- name: charge
-- Add to what a bot has spent.
insert into paid_spending (bot, tenths, changed_at_ms)
values (:bot, :tenths, :now_ms)
on conflict (bot) do update
set tenths = tenths + excluded.tenths, changed_at_ms = excluded.changed_at_ms;

-- name: spent
-- What a bot has spent in all.
select tenths
from paid_spending
where bot = :bot;

-- name: in_hand
-- What the paid rows in a sender's hand carry: each message may cost a tenth of a Star.
select coalesce(sum(items), 0) as tenths
from outbox
where bot = :bot and state = 'claimed' and priority = 'paid';
