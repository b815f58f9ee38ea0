-- The sender, complete: channels, paid broadcasts, reasons that go away, pauses, evidence of floods and of albums.

create table outbox_new (
    id integer primary key autoincrement,
    bot text not null,
    key text not null,
    digest text not null,
    channel text not null default 'telegram',
    method text not null,
    params text not null,
    items integer not null default 1 check (items > 0),
    lane text not null,
    chat_id integer,
    priority text not null check (priority in ('interactive', 'bulk', 'paid')),
    on_uncertain text not null check (on_uncertain in ('hold', 'resend', 'drop')),
    state text not null default 'queued' check (
        state in (
            'queued', 'claimed', 'uncertain', 'review',
            'sent', 'dead', 'superseded', 'expired', 'cancelled'
        )
    ),
    joined integer not null check (joined in (0, 1)),
    waits_for integer,
    not_before_ms integer not null default 0,
    due_ms integer not null default 0,
    expires_at_ms integer,
    supersede_key text,
    coalesce_key text,
    source_lane text,
    source_message_id integer,
    cancel_on_edit integer not null default 0 check (cancel_on_edit in (0, 1)),
    generation text,
    caused_at_ms integer,
    fallback text,
    placeholder integer check (placeholder < 0),
    attempts_max integer check (attempts_max > 0),
    attempts integer not null default 0 check (attempts >= 0),
    claim_epoch integer,
    cancel_asked text,
    message_id integer,
    result blob,
    reason text,
    created_at_ms integer not null,
    finished_at_ms integer,
    seen_at_ms integer,
    check ((state = 'claimed') = (claim_epoch is not null)),
    check (cancel_asked is null or state = 'claimed'),
    check ((source_lane is null) = (source_message_id is null)),
    check (joined = 1 or state not in ('claimed', 'sent', 'uncertain', 'review')),
    check (waits_for is null or joined = 0),
    check (
        (state in ('sent', 'dead', 'superseded', 'expired', 'cancelled'))
        = (finished_at_ms is not null)
    ),
    check (state not in ('uncertain', 'review', 'dead', 'cancelled') or reason is not null)
) strict;

insert into outbox_new (
    id, bot, key, digest, method, params, lane,
    chat_id, priority, on_uncertain, state, joined, not_before_ms, due_ms,
    expires_at_ms, supersede_key, placeholder, attempts_max, attempts, claim_epoch, message_id,
    reason, created_at_ms, finished_at_ms, seen_at_ms
)
select
    id, bot, key, digest, method, params, lane,
    chat_id, priority, on_uncertain, state, joined, not_before_ms, due_ms,
    expires_at_ms, supersede_key, placeholder, attempts_max, attempts, claim_epoch, message_id,
    reason, created_at_ms, finished_at_ms, seen_at_ms
from outbox;

-- Numbers are never given twice, also when the last rows have been pruned.
delete from sqlite_sequence where name = 'outbox_new';

insert into sqlite_sequence (name, seq)
select 'outbox_new', seq from sqlite_sequence where name = 'outbox';

drop table outbox;

alter table outbox_new rename to outbox;

create unique index outbox_identity on outbox (bot, key, digest);
create unique index outbox_placeholder on outbox (bot, placeholder) where placeholder is not null;
create index outbox_lane on outbox (bot, lane, priority, id)
where joined = 1 and state in ('queued', 'claimed');
create index outbox_scheduled on outbox (bot, not_before_ms)
where joined = 0 and state = 'queued' and waits_for is null;
create index outbox_stepped_out on outbox (waits_for) where state = 'queued' and waits_for is not null;
create index outbox_scheduled_lane on outbox (bot, lane) where joined = 0 and state = 'queued';
create index outbox_supersedable on outbox (bot, supersede_key)
where state = 'queued' and supersede_key is not null;
create index outbox_coalescing on outbox (bot, coalesce_key)
where state = 'queued' and coalesce_key is not null;
create index outbox_expiring on outbox (bot, expires_at_ms)
where state = 'queued' and expires_at_ms is not null;
create index outbox_claimed on outbox (bot, claim_epoch) where state = 'claimed';
create index outbox_held on outbox (id) where state in ('uncertain', 'review');
create index outbox_given_up on outbox (id) where state = 'dead';
create index outbox_finished on outbox (finished_at_ms) where finished_at_ms is not null;

drop table lanes;

create table lanes (
    bot text not null,
    lane text not null,
    priority text not null check (priority in ('interactive', 'bulk', 'paid')),
    head_id integer not null,
    due_ms integer not null,
    claimed integer not null default 0 check (claimed in (0, 1)),
    primary key (bot, lane, priority)
) strict, without rowid;

create index lanes_due on lanes (bot, priority, due_ms, head_id) where claimed = 0;

insert into lanes (bot, lane, priority, head_id, due_ms, claimed)
select f.bot, f.lane, f.priority, f.head_id, o.due_ms, f.claimed
from (
    select bot, lane, priority, min(id) as head_id, max(state = 'claimed') as claimed
    from outbox
    where joined = 1 and state in ('queued', 'claimed')
    group by bot, lane, priority
) as f
inner join outbox as o on f.head_id = o.id;

alter table attempts add column channel text not null default 'telegram';
alter table attempts add column items integer not null default 1 check (items > 0);
alter table attempts add column items_told text;
alter table attempts add column request_id text;

alter table cooldowns add column inferred integer not null default 0 check (inferred in (0, 1));

-- Why something waiting may not be said any more: what has happened in its chat since it was caused.
create table withdrawals (
    bot text not null,
    lane text not null,
    what text not null check (
        what in ('message_deleted', 'message_edited', 'person_answered', 'generation_stopped')
    ),
    subject text not null default '',
    at_ms integer not null,
    primary key (bot, lane, what, subject)
) strict, without rowid;

create index withdrawals_age on withdrawals (at_ms);

create table pauses (
    bot text not null,
    scope text not null,
    reason text not null,
    by_whom text not null,
    at_ms integer not null,
    until_ms integer,
    primary key (bot, scope)
) strict, without rowid;

-- Every flood, with what each policy would have had the whole bot wait for it: the choice can be judged.
create table floods (
    id integer primary key autoincrement,
    bot text not null,
    at_ms integer not null,
    lane text not null,
    method text not null,
    priority text not null,
    wait_ms integer not null check (wait_ms >= 0),
    hint text not null,
    chosen text not null check (chosen in ('adaptive', 'bot', 'chat')),
    adaptive_ms integer not null,
    bot_ms integer not null,
    chat_ms integer not null
) strict;

create index floods_of_bot on floods (bot, at_ms);

create table learned_rates (
    bot text primary key,
    bulk_per_second real not null check (bulk_per_second > 0),
    changed_at_ms integer not null,
    reason text not null
) strict;

create table limit_changes (
    id integer primary key autoincrement,
    bot text not null,
    at_ms integer not null,
    source text not null,
    before text not null,
    after text not null
) strict;

create table paid_spending (
    bot text primary key,
    tenths integer not null check (tenths >= 0),
    changed_at_ms integer not null
) strict;

-- What an update said is forgotten before that it came: by then only its digest is kept.
alter table inbox add column forgotten integer not null default 0 check (forgotten in (0, 1));

drop index inbox_finished;

create index inbox_kept on inbox (finished_at_ms) where state = 'done' and forgotten = 0;
