-- Leases: who owns a bot in a role. The epoch only grows; it fences what an earlier owner may still try to write.

-- name: current
-- The lease as it stands.
select name, epoch, owner, lease_until_ms, boot_id, until_boot_ms
from leases
where name = :name;

-- name: take
-- Become the owner, under the next epoch.
insert into leases (name, epoch, owner, lease_until_ms, boot_id, until_boot_ms)
values (:name, 1, :owner, :lease_until_ms, :boot_id, :until_boot_ms)
on conflict (name) do update
set
    epoch = epoch + 1,
    owner = excluded.owner,
    lease_until_ms = excluded.lease_until_ms,
    boot_id = excluded.boot_id,
    until_boot_ms = excluded.until_boot_ms
returning epoch;

-- name: renew
-- Stay the owner.
update leases
set lease_until_ms = :lease_until_ms, boot_id = :boot_id, until_boot_ms = :until_boot_ms
where name = :name and epoch = :epoch and owner is not null;

-- name: release
-- Give the lease up, so that the next owner need not wait for its end.
update leases
set owner = null, lease_until_ms = 0
where name = :name and epoch = :epoch;

-- name: held
-- Tell whether this epoch is still the lease's.
select 1 as held
from leases
where name = :name and epoch = :epoch and owner is not null;

-- name: owners
-- Who holds the leases whose names begin alike.
select name, owner
from leases
where name >= :from and name < :below and owner is not null;
