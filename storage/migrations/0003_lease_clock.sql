-- A lease ends by the clock that nobody sets, too: who holds one and lives must not lose it to a step of the wall clock.

alter table leases add column boot_id text not null default '';
alter table leases add column until_boot_ms integer not null default 0;
