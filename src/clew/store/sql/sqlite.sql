-- What only SQLite says this way. BEGIN IMMEDIATE has locked the file: no statement locks a row.

-- macro: for_write

-- macro: for_removal

-- macro: for_hold

-- macro: for_claim

-- macro: store_clock
-- The store is on the caller's machine: its clock is the caller's.
NULL

-- macro: message_id
-- Given by AUTOINCREMENT: commit order, never reused.
NULL

-- macro: moved_id
NULL

-- macro: change_id
NULL

-- macro: title_like
-- LIKE folds the case of ASCII letters.
coalesce(c.title_user, c.title_llm, c.title_derived, '') LIKE :title ESCAPE '!'

-- name: integrity
PRAGMA integrity_check(20)

-- name: foreign_keys
PRAGMA foreign_key_check

-- name: conversation_insert
INSERT INTO conversation(id, profile, kind, source, origin, base, head, title_user, title_derived,
  preview, message_count, cwd, git_root, git_branch, model, prompt_hash, toolset_hash, affinity,
  attribution, archived, automation, read_only, created_at, imported_at, active_at, generation,
  meta)
VALUES (:id, :profile, :kind, :source, :origin, :base, :base, :title_user, :title_derived,
  :preview, :message_count, :cwd, :git_root, :git_branch, :model, :prompt_hash, :toolset_hash,
  :affinity, :attribution, :archived, :automation, :read_only, :at, :imported_at, :at, :generation,
  :meta)
ON CONFLICT(id) DO NOTHING

-- name: conversation_no
SELECT no, profile FROM conversation WHERE id = :id AND binned_at IS NULL

-- name: conversation_whole
-- Of this id, in the bin too.
SELECT no, profile, binned_at, deleting FROM conversation WHERE id = :id

-- name: space_state
-- Pages that are free, all pages, bytes of a page, and whether the file can shrink in steps (2).
SELECT f.freelist_count, p.page_count, s.page_size, a.auto_vacuum
FROM pragma_freelist_count AS f, pragma_page_count AS p, pragma_page_size AS s,
  pragma_auto_vacuum AS a

-- name: space_step
-- Some milliseconds of the write lock; see store/vacuum.py.
PRAGMA incremental_vacuum(128)

-- name: conversation_prefix
-- The upper bound is the prefix with its last character raised: a range of the id index.
SELECT id FROM conversation WHERE id >= :low AND id < :high AND profile = :profile
  AND binned_at IS NULL
ORDER BY id LIMIT :limit

-- name: conversation_delete
DELETE FROM conversation WHERE no = :no

-- name: message_span
-- About how many messages, and the lowest and highest id.
SELECT coalesce(max(id), 0), coalesce(min(id), 0), coalesce(max(id), 0) FROM message

-- name: follow_mark
-- Now. `change` is the mark before, for engines that need it. A restored file has another stamp,
-- which every read looks at: one history.
SELECT (SELECT coalesce(max(id), 0) FROM message), (SELECT coalesce(max(id), 0) FROM change), ''
WHERE :change IS NULL OR 1

-- name: change_after
-- The first column is the mark that follows.
SELECT id, conversation, profile, kind FROM change WHERE id > :change ORDER BY id LIMIT :limit

-- name: message_changed_after
SELECT c.id, c.profile, min(m.seq), max(m.seq) FROM message m
JOIN conversation c ON c.no = m.conversation_no
WHERE m.id > :message GROUP BY m.conversation_no, c.id, c.profile
ORDER BY max(m.id)

-- name: search_store
-- Which log this is and the highest ids it ever gave. Not max(id): after the newest rows were
-- deleted an index that knows them would look like one of a later state of the log.
SELECT (SELECT value FROM meta WHERE name = 'store_id'),
  (SELECT value FROM meta WHERE name = 'stamp'),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)

-- name: search_floor
-- The newest :limit rows with :above < id < :below: the id they are above, and how many there are.
-- Ids have few gaps, so they count as the rows.
SELECT max(:above, below - 1 - :limit), max(0, min(:limit, below - 1 - :above))
FROM (SELECT min(:below,
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0) + 1) AS below)

-- name: search_rows_between
-- CROSS JOIN keeps the order of the loops: rows of a small range of ids, then their conversation.
{{searchable}} FROM message AS m CROSS JOIN conversation AS c
WHERE m.id > :above AND m.id < :below AND {{searched}}
ORDER BY m.id DESC

-- name: search_rows
-- As search_rows_between, for ids given as a JSON array; in no particular order.
{{searchable}} FROM json_each(:ids) AS wanted CROSS JOIN message AS m CROSS JOIN conversation AS c
WHERE m.id = wanted.value AND {{searched}}

-- name: search_line
-- A conversation and, for a branch, those whose rows it shows: up to which seq of each.
WITH RECURSIVE line(no, title, origin, base, upto) AS (
  SELECT no, coalesce(title_user, title_llm, title_derived), origin, base, head
  FROM conversation
  WHERE id = :conversation AND binned_at IS NULL
    AND (CAST(:profile AS TEXT) IS NULL OR profile = :profile)
  UNION ALL
  SELECT o.no, line.title, o.origin, o.base,
    CASE WHEN line.base < line.upto THEN line.base ELSE line.upto END
  FROM line JOIN conversation AS o ON o.no = line.origin
  WHERE line.base > 0)
SELECT no, title, upto FROM line

-- name: erasure_lock
-- The unit has the file's write lock already.
SELECT NULL

-- ---------------------------------------------------------------- copying (copy.sql)

-- macro: copy_message_id
NULL

-- macro: copy_names
conversation

-- name: copy_pause
-- The unit has the file's write lock already.
SELECT NULL

-- name: copy_pause_all
SELECT NULL

-- name: copy_conversation_insert
-- Without its messages; what may change follows (copy_conversation_update).
INSERT INTO conversation(id, profile, kind, source, origin, base, head, affinity, created_at,
  active_at)
VALUES (:id, :profile, :kind, :source, :origin, :base, :base, :affinity, :created_at, :created_at)
ON CONFLICT(id) DO NOTHING
