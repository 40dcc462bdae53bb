-- Statements of the doctor that look at a server and the store's database on it; with those of
-- upkeep.sql. Each can be run by any user: who may see less gets fewer rows or NULL.

-- macro: ours
-- The schema that the store's tables are in.
(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('meta'))

-- name: server
SELECT current_setting('server_version'), current_user, pg_is_in_recovery(),
  current_setting('default_transaction_read_only') = 'on'

-- name: clock
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)

-- name: durability
-- What a session begins with: clew sets synchronous_commit on for its own, if it is off.
SELECT current_setting('fsync'), current_setting('full_page_writes'),
  (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
  current_setting('data_checksums')

-- name: replication
SELECT (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names'),
  CAST(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) AS BIGINT)

-- name: invalid_indexes
SELECT CAST(CAST(i.indexrelid AS regclass) AS TEXT)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = {{ours}} AND NOT i.indisvalid ORDER BY 1

-- name: contents
-- Messages by the counts of their conversations: to read all of them would take long.
SELECT (SELECT count(*) FROM conversation WHERE binned_at IS NULL),
  (SELECT CAST(coalesce(sum(head - base), 0) AS BIGINT) FROM conversation)

-- name: sizes
SELECT
  CAST(coalesce(sum(pg_total_relation_size(oid))
    FILTER (WHERE relname NOT IN ('search_text', 'search_mark')), 0) AS BIGINT),
  CAST(coalesce(sum(pg_total_relation_size(oid))
    FILTER (WHERE relname IN ('search_text', 'search_mark')), 0) AS BIGINT),
  pg_database_size(current_database())
FROM pg_class WHERE relnamespace = {{ours}} AND relkind = 'r'

-- name: search_behind
-- More than so many make no difference.
SELECT count(*) FROM (
  SELECT 1 FROM message WHERE id > coalesce((SELECT message FROM search_mark), 0)
  LIMIT 1000000) AS newer

-- name: connections
-- Those of the server, of the user and of the database: how many there may be (-1: no limit) and
-- are, this one left out.
SELECT CAST(current_setting('max_connections') AS INTEGER)
    - CAST(current_setting('superuser_reserved_connections') AS INTEGER)
    - CAST(coalesce(current_setting('reserved_connections', true), '0') AS INTEGER),
  count(*),
  (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
  count(*) FILTER (WHERE usename = current_user),
  (SELECT datconnlimit FROM pg_database WHERE datname = current_database()),
  count(*) FILTER (WHERE datname = current_database())
FROM pg_stat_activity
WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND pid <> pg_backend_pid()

-- name: powers
SELECT r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolreplication, r.rolbypassrls,
  pg_has_role(m.relowner, 'USAGE')
FROM pg_roles r CROSS JOIN pg_class m
WHERE r.rolname = current_user AND m.oid = to_regclass('meta')

-- name: table_rights
SELECT CAST(relname AS TEXT), has_table_privilege(oid, 'SELECT'),
  has_table_privilege(oid, 'INSERT'), has_table_privilege(oid, 'UPDATE'),
  has_table_privilege(oid, 'DELETE')
FROM pg_class
WHERE relnamespace = {{ours}} AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname

-- name: sequence_rights
SELECT CAST(relname AS TEXT), has_sequence_privilege(oid, 'USAGE') FROM pg_class
WHERE relnamespace = {{ours}} AND relkind = 'S' ORDER BY relname

-- name: long_transactions
-- Of this database and of others on the server: transaction numbers are common to all.
SELECT CAST(pid AS TEXT), coalesce(application_name, ''), coalesce(CAST(datname AS TEXT), ''),
  CAST(extract(epoch FROM clock_timestamp() - xact_start) AS BIGINT), backend_xid IS NOT NULL
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)
  AND xact_start < clock_timestamp() - interval '60 seconds'
ORDER BY xact_start

-- name: prepared_transactions
SELECT gid, CAST(database AS TEXT),
  CAST(extract(epoch FROM clock_timestamp() - prepared) AS BIGINT)
FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - interval '60 seconds' ORDER BY prepared

-- name: held_back
-- Transactions that began since the oldest one that is still open.
SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)
  - CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)

-- name: unfrozen
SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()
