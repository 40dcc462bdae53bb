-- Statements of backup, restore and doctor, which work on SQLite files and not through the waist;
-- with those of upkeep.sql.

-- name: begin_snapshot
BEGIN

-- name: hold_snapshot
-- A transaction takes its snapshot at its first read.
SELECT count(*) FROM sqlite_schema

-- name: page_size
PRAGMA page_size

-- name: sync_each_commit
PRAGMA synchronous = FULL

-- name: use_wal
PRAGMA journal_mode = WAL

-- name: merge_wal
PRAGMA wal_checkpoint(PASSIVE)

-- name: read_only
PRAGMA query_only = 1

-- name: integrity
PRAGMA integrity_check(5)

-- name: quick_check
PRAGMA quick_check(5)

-- name: sizes
SELECT page_count * page_size, freelist_count * page_size
FROM pragma_page_count, pragma_page_size, pragma_freelist_count

-- name: meta
SELECT name, value FROM meta ORDER BY name

-- name: stamp_write
UPDATE meta SET value = ? WHERE name = 'stamp'

-- name: contents
SELECT (SELECT count(*) FROM conversation WHERE binned_at IS NULL),
  (SELECT count(*) FROM message),
  (SELECT coalesce(max(id), 0) FROM message),
  (SELECT max(active_at) FROM conversation WHERE binned_at IS NULL)

-- name: last_ids
SELECT (SELECT coalesce(max(id), 0) FROM message), (SELECT coalesce(max(id), 0) FROM change)

-- name: space
-- Whether the file can become smaller in steps (2), pages that are free, all pages.
SELECT a.auto_vacuum, f.freelist_count, p.page_count
FROM pragma_auto_vacuum AS a, pragma_freelist_count AS f, pragma_page_count AS p

-- name: search_format
PRAGMA user_version

-- name: search_mark
SELECT store_id, stamp, message, change FROM mark
