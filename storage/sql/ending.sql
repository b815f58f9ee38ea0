-- The end of rows that still wait.

-- name: end_queued
-- End a row that still waits: dead, expired, superseded or cancelled.
update outbox
set state = :state, finished_at_ms = :now_ms, reason = :reason
where id = :id and state = 'queued';
