-- The whole schema, as the migrations make it; a test compares the two. Read it to learn what is remembered.

create table bots (
    name text primary key,
    bot_id integer not null unique,
    me text,
    webhook_fingerprint text,
    bound_at_ms integer not null
) strict;

create table leases (
    name text primary key,
    epoch integer not null check (epoch > 0),
    owner text,
    lease_until_ms integer not null,
    boot_id text not null default '',
    until_boot_ms integer not null default 0
) strict;

create table heartbeats (
    owner text primary key,
    role text not null check (role in ('web', 'worker', 'sender')),
    started_at_ms integer not null,
    beat_at_ms integer not null,
    state text not null check (state in ('starting', 'ready', 'standby', 'draining')),
    facts text not null default '{}'
) strict;

create table inbox (
    id integer primary key autoincrement,
    bot text not null,
    update_id integer,
    kind text not null,
    chat_lane text,
    user_lane text,
    body blob not null,
    state text not null check (state in ('received', 'claimed', 'done', 'dead', 'quarantined')),
    claims integer not null default 0 check (claims >= 0),
    claim_epoch integer,
    not_before_ms integer not null default 0,
    received_at_ms integer not null,
    claimed_at_ms integer,
    finished_at_ms integer,
    reason text,
    trace text,
    forgotten integer not null default 0 check (forgotten in (0, 1)),
    requeued_at_ms integer,
    check ((update_id is null) = (state = 'quarantined')),
    check ((state = 'claimed') = (claim_epoch is not null)),
    check ((state in ('done', 'dead', 'quarantined')) = (finished_at_ms is not null)),
    check (state not in ('dead', 'quarantined') or reason is not null)
) strict;

create unique index inbox_identity on inbox (bot, update_id) where update_id is not null;
create index inbox_waiting on inbox (bot, id) where state = 'received';
create index inbox_running on inbox (bot, claim_epoch) where state = 'claimed';
create index inbox_given_up on inbox (id) where state in ('dead', 'quarantined');
create index inbox_kept on inbox (finished_at_ms) where state = 'done' and forgotten = 0;

create table outbox (
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
    inbox_id integer,
    follows integer check (follows < 0),
    awaited integer not null default 0 check (awaited in (0, 1)),
    tell text not null default '' check (tell in ('', 'failures', 'all')),
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

-- Rows whose end the bot has still to be told of; telling sets `tell` back.
create index outbox_to_tell on outbox (bot, id)
where
    (tell = 'all' and state not in ('queued', 'claimed'))
    or (tell = 'failures' and state = 'dead');

-- One row for each lane with something to say: the head of the lane, and when it may be looked at again.
-- A claim reads only lanes that are due, so its cost does not grow with what waits behind them.
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

create table attempts (
    id integer primary key autoincrement,
    outbox_id integer not null,
    bot text not null,
    lane text not null,
    chat_id integer,
    method text not null,
    priority text not null,
    epoch integer not null,
    stage text not null check (
        stage in (
            'claimed', 'stamped', 'unconnected', 'body_incomplete',
            'body_complete', 'answered', 'abandoned', 'handed_back'
        )
    ),
    claimed_at_ms integer not null,
    stamped_at_ms integer,
    ended_at_ms integer,
    duration_ms integer,
    status integer,
    code integer,
    description text,
    wait_ms integer,
    verdict text,
    channel text not null default 'telegram',
    items integer not null default 1 check (items > 0),
    items_told text,
    request_id text,
    check (stage != 'stamped' or stamped_at_ms is not null),
    check ((stage in ('claimed', 'stamped')) = (ended_at_ms is null))
) strict;

create index attempts_of_row on attempts (outbox_id, id);
create index attempts_recent on attempts (bot, stamped_at_ms) where stamped_at_ms is not null;
create index attempts_refused on attempts (bot, id)
where verdict is not null and verdict != 'sent';

create table cooldowns (
    bot text not null,
    scope text not null,
    until_ms integer not null,
    wait_ms integer not null check (wait_ms >= 0),
    boot_id text not null,
    until_boot_ms integer not null,
    set_at_ms integer not null,
    reason text not null,
    inferred integer not null default 0 check (inferred in (0, 1)),
    primary key (bot, scope)
) strict, without rowid;

create table chats (
    bot text not null,
    chat_id integer not null,
    kind text not null,
    first_seen_ms integer not null,
    last_seen_ms integer not null,
    opted_out_at_ms integer,
    unreachable_at_ms integer,
    unreachable_reason text,
    moved_to integer,
    primary key (bot, chat_id),
    check ((unreachable_at_ms is null) = (unreachable_reason is null))
) strict, without rowid;

create table turn_state (
    bot text not null,
    scope text not null,
    data blob not null,
    changed_at_ms integer not null,
    primary key (bot, scope)
) strict, without rowid;

-- Keyboards by age: the only memories that are ever forgotten by themselves.
create index turn_state_keyboards on turn_state (changed_at_ms)
where scope >= 'keyboard:' and scope < 'keyboard;';

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

-- The contents of files, each once, under the folder of blobs; a row stands for a file that is whole.
create table blobs (
    sha256 text primary key check (length(sha256) = 64),
    size_bytes integer not null check (size_bytes >= 0),
    kept_at_ms integer not null
) strict, without rowid;

create index blobs_age on blobs (kept_at_ms);

-- Which files go with a call: the part of its form, and what it is called there.
create table outbox_files (
    outbox_id integer not null,
    part text not null,
    filename text not null,
    mime text not null,
    sha256 text not null,
    primary key (outbox_id, part)
) strict, without rowid;

create index outbox_files_of_blob on outbox_files (sha256);

-- What Telegram calls a file that a bot has uploaded already. A file_id is worth something to that bot alone.
create table file_ids (
    bot text not null,
    sha256 text not null,
    kind text not null,
    filename text not null,
    file_id text not null,
    kept_at_ms integer not null,
    primary key (bot, sha256, kind, filename)
) strict, without rowid;

create index file_ids_age on file_ids (kept_at_ms);

-- What became of placeholders whose rows are forgotten: handlers may remember them for longer.
create table message_ids (
    bot text not null,
    placeholder integer not null check (placeholder < 0),
    message_id integer not null,
    chat_id integer,
    kept_at_ms integer not null,
    primary key (bot, placeholder)
) strict, without rowid;

create index message_ids_age on message_ids (kept_at_ms);

-- What a handler wished to be called for later: at a moment, or again and again by a rule.
create table reminders (
    id integer primary key autoincrement,
    bot text not null,
    name text,
    callback text not null,
    data blob,
    chat_id integer,
    user_id integer,
    due_ms integer not null,
    rule text,
    late_ms_max integer check (late_ms_max >= 0),
    elapses integer not null check (elapses in (0, 1)),
    created_at_ms integer not null
) strict;

create index reminders_due on reminders (bot, due_ms);
create unique index reminders_named on reminders (bot, name) where name is not null;
create index reminders_elapsing on reminders (bot, created_at_ms) where elapses = 1;
