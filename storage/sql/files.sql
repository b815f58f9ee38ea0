-- Files that go with calls: their contents, where they go, and what Telegram calls them.

-- name: keep_blob
-- A content is in the store; one that is there already is needed from now on.
insert into blobs (sha256, size_bytes, kept_at_ms)
values (:content, :size_bytes, :now_ms)
on conflict (sha256) do update set kept_at_ms = excluded.kept_at_ms;

-- name: attach
-- A file goes with a call.
insert into outbox_files (outbox_id, part, filename, mime, sha256)
values (:outbox_id, :part, :filename, :mime, :content);

-- name: of_rows
-- The files of these rows; whether a call that named one by its file_id was refused for that.
select
    f.outbox_id, f.part, f.filename, f.mime, f.sha256, b.size_bytes,
    exists (
        select 1 from attempts as a
        where a.outbox_id = f.outbox_id and a.verdict = 'outdated'
    ) as is_outdated
from json_each(:ids) as wanted
inner join outbox_files as f on f.outbox_id = wanted.value
left join blobs as b on b.sha256 = f.sha256;

-- name: known
-- What Telegram calls these files of a bot; each is sought, however many a bot has.
select f.sha256, f.kind, f.filename, f.file_id
from json_each(:files) as wanted
cross join file_ids as f
where
    f.bot = :bot
    and f.sha256 = wanted.value ->> 0
    and f.kind = wanted.value ->> 1
    and f.filename = wanted.value ->> 2;

-- name: learn
-- Telegram has named a file.
insert into file_ids (bot, sha256, kind, filename, file_id, kept_at_ms)
values (:bot, :content, :kind, :filename, :file_id, :now_ms)
on conflict (bot, sha256, kind, filename)
do update set file_id = excluded.file_id, kept_at_ms = excluded.kept_at_ms;

-- name: forget
-- Telegram does not know a file by this name any more.
delete from file_ids
where
    bot = :bot
    and sha256 = :content
    and kind = :kind
    and filename = :filename
    and file_id = :file_id;

-- name: release
-- Rows that were sent, or are forgotten, need their files no more.
delete from outbox_files
where outbox_id in (select value from json_each(:ids));

-- name: aged
-- Contents that were kept a while ago, from one of them on, and whether no row needs them.
select
    b.sha256, b.kept_at_ms,
    not exists (select 1 from outbox_files as f where f.sha256 = b.sha256) as is_free
from blobs as b
where (b.kept_at_ms, b.sha256) > (:after_ms, :after) and b.kept_at_ms < :before_ms
order by b.kept_at_ms, b.sha256
limit :limit;

-- name: forget_blobs
-- Forget those of these contents that no row needs, and that nobody has kept since.
delete from blobs
where
    sha256 in (select value from json_each(:hashes))
    and kept_at_ms < :before_ms
    and not exists (select 1 from outbox_files as f where f.sha256 = blobs.sha256)
returning sha256;

-- name: kept
-- Which of these contents have a row.
select b.sha256
from json_each(:hashes) as wanted
inner join blobs as b on b.sha256 = wanted.value;

-- name: prune_ids
-- Forget the oldest names: Telegram may not know them any more.
delete from file_ids
where (bot, sha256, kind, filename) in (
    select bot, sha256, kind, filename from file_ids
    where kept_at_ms < :before_ms
    order by kept_at_ms
    limit :limit
);
