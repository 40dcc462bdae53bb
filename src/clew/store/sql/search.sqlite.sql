-- Statements of the search file, which is not the store's: see store/search.

-- name: pragma_journal
PRAGMA journal_mode = WAL

-- name: pragma_synchronous
-- A crash may lose the last batches, mark and rows together: they are indexed again.
PRAGMA synchronous = NORMAL

-- name: pragma_cache
PRAGMA cache_size = -16384

-- name: pages
PRAGMA page_count

-- name: pragma_space
-- Before the first page of a new file.
PRAGMA auto_vacuum = INCREMENTAL

-- name: space_state
-- Pages that are free, all pages, bytes of a page.
SELECT f.freelist_count, p.page_count, s.page_size
FROM pragma_freelist_count AS f, pragma_page_count AS p, pragma_page_size AS s

-- name: space_step
PRAGMA incremental_vacuum(128)

-- name: format_read
PRAGMA user_version

-- name: tables_count
SELECT count(*) FROM sqlite_schema

-- name: words_create
-- The text comes as words between spaces (words.py), so the tokenizer has nothing to decide:
-- 'ascii' splits at spaces and leaves everything beyond ASCII alone, whatever Unicode says.
-- detail=none: which rows have a word, not where. Less than half the size of detail=full; phrases
-- are looked for in the text of the rows that have all their words.
CREATE VIRTUAL TABLE words USING fts5(
  body, content='', contentless_delete=1, detail=none, tokenize='ascii')

-- name: words_automerge
-- Measured: larger runs before merging index faster, and queries do not notice.
INSERT INTO words(words, rank) VALUES ('automerge', 8)

-- name: mark_create
-- How far the log is indexed, and which log: written in the transaction of the rows themselves.
CREATE TABLE mark(
  only INTEGER PRIMARY KEY CHECK(only = 1),
  store_id TEXT,
  stamp TEXT,
  message INTEGER NOT NULL,
  change INTEGER NOT NULL,
  -- The one profile of all rows so far; '' once there were several.
  profile TEXT,
  -- Rows that could not be decoded; not counted down when they are deleted.
  unreadable INTEGER NOT NULL
) STRICT

-- name: mark_insert
INSERT INTO mark(only, message, change, unreadable) VALUES (1, 0, 0, 0)

-- name: mark_read
SELECT store_id, stamp, message, change, profile, unreadable FROM mark

-- name: mark_set
UPDATE mark SET store_id = :store_id, stamp = :stamp, message = :message, change = :change,
  profile = :profile, unreadable = :unreadable

-- name: words_insert
INSERT INTO words(rowid, body) VALUES (:id, :body)

-- name: words_delete
DELETE FROM words WHERE rowid BETWEEN :first AND :last

-- name: words_count
SELECT count(*) FROM words_docsize

-- name: words_newest
SELECT rowid FROM words WHERE words MATCH :match AND rowid < :below ORDER BY rowid DESC

-- name: words_floor
-- The newest rows: the id of the first of them, and how many there are.
SELECT coalesce(min(id), 0), count(*)
FROM (SELECT id FROM words_docsize ORDER BY id DESC LIMIT :most)

-- name: words_frequency
SELECT count(*) FROM words WHERE words MATCH :match AND rowid >= :first

-- name: pragma_secure_delete
PRAGMA secure_delete = ON

-- name: words_optimize
INSERT INTO words(words) VALUES ('optimize')

-- name: vacuum
VACUUM

-- name: cut_wal
PRAGMA wal_checkpoint(TRUNCATE)
