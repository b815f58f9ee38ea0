-- The drop-in: files, answers that somebody waits for, ends that the bot is told of, reminders.

-- Which update a call is due to, which message must have been sent before it, who wants to hear of it.
-- What `alter table outbox add column` would do to the table's definition, done at once for all of them: since the
-- table is strict, SQLite would check each of its rows anew for each column, two minutes for a million rows.
-- Rows are not touched by it; those without a column have its default (SQLite, "ALTER TABLE ADD COLUMN").
pragma writable_schema = on;

update sqlite_schema
set sql = replace(
    sql,
    'seen_at_ms integer,',
    'seen_at_ms integer,
    inbox_id integer,
    follows integer check (follows < 0),
    awaited integer not null default 0 check (awaited in (0, 1)),
    tell text not null default '''' check (tell in ('''', ''failures'', ''all'')),'
)
where type = 'table' and name = 'outbox';

-- When a person let a dead update be handled again: what is said of it then is not old.
update sqlite_schema
set sql = replace(
    sql,
    'check (forgotten in (0, 1)),',
    'check (forgotten in (0, 1)),
    requeued_at_ms integer,'
)
where type = 'table' and name = 'inbox';

pragma writable_schema = reset;

-- Rows whose end the bot has still to be told of; telling sets `tell` back.
create index outbox_to_tell on outbox (bot, id)
where
    (tell = 'all' and state not in ('queued', 'claimed'))
    or (tell = 'failures' and state = 'dead');

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

-- Keyboards by age: the only memories that are ever forgotten by themselves.
create index turn_state_keyboards on turn_state (changed_at_ms)
where scope >= 'keyboard:' and scope < 'keyboard;';
