-- Statements of the search that run on the STORE (never on the search file), for queries.sql and,
-- where marked, sqlite.sql.

-- ---------------------------------------------------------------- queries.sql

-- macro: searchable
-- What a hit shows. :named = 1: one conversation is searched as a person sees it, so that its own
-- cuts count, for inherited rows too (the caller applies them), and its being archived does not.
-- :line is ',no,no,' of the conversations whose rows it shows, NULL for any.
SELECT m.id, m.conversation_no, c.id, coalesce(c.title_user, c.title_llm, c.title_derived),
  m.seq, m.uid, m.role, m.created_at, c.source, m.parts

-- macro: searched
c.no = m.conversation_no
  AND (CAST(:profile AS TEXT) IS NULL OR c.profile = :profile)
  AND (CAST(:line AS TEXT) IS NULL OR :line LIKE '%,' || CAST(c.no AS TEXT) || ',%')
  AND (CAST(:role AS INTEGER) IS NULL OR m.role = :role)
  AND (CAST(:source AS TEXT) IS NULL OR c.source = :source)
  AND (CAST(:model AS TEXT) IS NULL OR c.model = :model)
  AND (CAST(:project AS TEXT) IS NULL OR coalesce(c.git_root, c.cwd) = :project)
  AND (CAST(:git_branch AS TEXT) IS NULL OR c.git_branch = :git_branch)
  AND (CAST(:since AS BIGINT) IS NULL OR m.created_at >= :since)
  AND (CAST(:until AS BIGINT) IS NULL OR m.created_at < :until)
  AND (:named = 1 OR (c.binned_at IS NULL AND (:archived = 1 OR c.archived = 0)))
  AND (:hidden = 1 OR :named = 1 OR NOT EXISTS (
    SELECT 1 FROM cut AS x WHERE x.conversation_no = m.conversation_no AND x.undone_at IS NULL
      AND m.seq BETWEEN x.from_seq AND x.to_seq))
  AND (:hidden = 1 OR NOT EXISTS (
    SELECT 1 FROM message AS r WHERE r.conversation_no = m.conversation_no AND r.replaces = m.seq))

-- name: search_rows_between
-- CROSS JOIN keeps the order of the loops: rows of a small range of ids, then their conversation.
{{searchable}} FROM message AS m CROSS JOIN conversation AS c
WHERE m.id > :above AND m.id < :below AND {{searched}}
ORDER BY m.id DESC

-- name: search_rows_after
SELECT m.id, m.conversation_no, c.profile, m.parts
FROM message AS m CROSS JOIN conversation AS c
WHERE m.id > :after AND c.no = m.conversation_no
ORDER BY m.id LIMIT :limit

-- name: search_changes_after
-- Ranges of ids that are gone, in `detail`; the first row of a deletion has none yet.
SELECT id, detail FROM change WHERE id > :after AND kind = 'deleted' ORDER BY id LIMIT :limit

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

-- name: search_cuts
SELECT from_seq, to_seq FROM cut WHERE conversation_no = :no AND undone_at IS NULL

-- ---------------------------------------------------------------- sqlite.sql

-- name: search_store
-- Which log this is and the highest ids it ever gave. Not max(id): after the newest rows were
-- deleted an index that knows them would look like one of a later state of the log.
SELECT (SELECT value FROM meta WHERE name = 'store_id'),
  (SELECT value FROM meta WHERE name = 'stamp'),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0),
  coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change'), 0)

-- name: search_rows
-- As search_rows_between, for ids given as a JSON array; in no particular order.
{{searchable}} FROM json_each(:ids) AS wanted CROSS JOIN message AS m CROSS JOIN conversation AS c
WHERE m.id = wanted.value AND {{searched}}
