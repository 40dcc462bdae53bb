-- What only PostgreSQL says this way. READ COMMITTED: each statement of a unit sees what was
-- committed when it began, so a unit locks first and looks for its keys in a second statement.

-- macro: for_write
FOR NO KEY UPDATE

-- macro: for_removal
FOR UPDATE

-- macro: for_hold
FOR KEY SHARE

-- macro: for_claim
-- Two who look for work do not wait for each other.
FOR NO KEY UPDATE OF b SKIP LOCKED

-- macro: store_clock
-- Several machines share the store: rights expire by the server's clock.
CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)

-- macro: message_id
clew_id(:seq)

-- macro: moved_id
clew_id(seq)

-- macro: change_id
clew_id(nextval('change_nth'))

-- macro: title_like
-- By this collation `lower` folds ASCII letters only.
lower(coalesce(c.title_user, c.title_llm, c.title_derived, '') COLLATE "C")
    LIKE lower(CAST(:title AS TEXT) COLLATE "C") ESCAPE '!'

-- name: integrity
-- The server checks its pages (checksums) and keys itself; what it knows to be unfit it lists.
SELECT coalesce((
  SELECT 'index ' || CAST(CAST(indexrelid AS regclass) AS TEXT) || ' is not valid; REINDEX it'
  FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
  WHERE relnamespace = CAST(current_schema() AS regnamespace) AND NOT indisvalid LIMIT 1), 'ok')

-- name: foreign_keys
-- Rows without their parent: the server never looks again at what was loaded while its triggers
-- were off, as a restore and logical replication do.
SELECT 'prompt_use', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM prompt_use AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'message', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM message AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'blob', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM blob AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'cut', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM cut AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'attempt', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM attempt AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'compaction', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM compaction AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'turn', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM turn AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'model_call', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM model_call AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'inbox', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM inbox AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'todo', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM todo AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'goal', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM goal AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'approval', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM approval AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'presence', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM presence AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'outbox', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM outbox AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'boundary', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM boundary AS a WHERE a.conversation_no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.conversation_no))
UNION ALL
SELECT 'boundary', NULL, 'subscriber', NULL WHERE EXISTS (
  SELECT 1 FROM boundary AS a WHERE NOT EXISTS (
    SELECT 1 FROM subscriber AS b WHERE b.profile = a.profile AND b.name = a.subscriber))
UNION ALL
SELECT 'conversation', NULL, 'prompt', NULL WHERE EXISTS (
  SELECT 1 FROM conversation AS a WHERE a.prompt_hash IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM prompt AS b WHERE b.hash = a.prompt_hash))
UNION ALL
SELECT 'conversation', NULL, 'toolset', NULL WHERE EXISTS (
  SELECT 1 FROM conversation AS a WHERE a.toolset_hash IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM toolset AS b WHERE b.hash = a.toolset_hash))
UNION ALL
SELECT 'model_call', NULL, 'prompt', NULL WHERE EXISTS (
  SELECT 1 FROM model_call AS a WHERE a.prompt_hash IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM prompt AS b WHERE b.hash = a.prompt_hash))
UNION ALL
SELECT 'model_call', NULL, 'toolset', NULL WHERE EXISTS (
  SELECT 1 FROM model_call AS a WHERE a.toolset_hash IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM toolset AS b WHERE b.hash = a.toolset_hash))
UNION ALL
SELECT 'conversation', NULL, 'end_reason', NULL WHERE EXISTS (
  SELECT 1 FROM conversation AS a WHERE a.end_reason IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM end_reason AS b WHERE b.reason = a.end_reason))
UNION ALL
SELECT 'conversation', NULL, 'conversation', NULL WHERE EXISTS (
  SELECT 1 FROM conversation AS a WHERE a.origin IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation AS b WHERE b.no = a.origin))
UNION ALL
SELECT 'conversation', NULL, 'conversation_id', NULL WHERE EXISTS (
  SELECT 1 FROM conversation AS a WHERE a.no IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM conversation_id AS b WHERE b.no = a.no))

-- name: conversation_insert
-- The id first: of two that create one id the second waits for the first to commit, gets no
-- number, and inserts nothing.
WITH named AS (
  INSERT INTO conversation_id(id, profile) VALUES (:id, :profile) ON CONFLICT(id) DO NOTHING
  RETURNING no)
INSERT INTO conversation(no, id, profile, kind, source, origin, base, head, title_user,
  title_derived, preview, message_count, cwd, git_root, git_branch, model, prompt_hash,
  toolset_hash, affinity, attribution, archived, automation, read_only, created_at, imported_at,
  active_at, generation, meta)
SELECT no, :id, :profile, :kind, :source, :origin, :base, :base, :title_user,
  :title_derived, :preview, :message_count, :cwd, :git_root, :git_branch, :model, :prompt_hash,
  :toolset_hash, :affinity, :attribution, :archived, :automation, :read_only, :at, :imported_at,
  :at, :generation, :meta
FROM named

-- name: conversation_no
SELECT c.no, c.profile FROM conversation_id i JOIN conversation c ON c.no = i.no
WHERE i.id = :id AND c.binned_at IS NULL

-- name: conversation_whole
-- Of this id, in the bin too.
SELECT c.no, c.profile, c.binned_at, c.deleting
FROM conversation_id i JOIN conversation c ON c.no = i.no WHERE i.id = :id

-- name: space_state
-- Autovacuum gives space back by itself.
SELECT 0, 0, 0, 0

-- name: space_step
SELECT 0

-- name: conversation_prefix
SELECT c.id FROM conversation_id i JOIN conversation c ON c.no = i.no
WHERE i.id >= :low AND i.id < :high AND i.profile = :profile AND c.binned_at IS NULL
ORDER BY i.id LIMIT :limit

-- name: conversation_delete
WITH unnamed AS (
  DELETE FROM conversation_id
  WHERE id = (SELECT id FROM conversation WHERE no = :no) AND no = :no)
DELETE FROM conversation WHERE no = :no

-- name: message_span
SELECT CAST((SELECT coalesce(sum(head - base), 0) FROM conversation) AS BIGINT),
  (SELECT coalesce(min(id), 0) FROM message), (SELECT coalesce(max(id), 0) FROM message)

-- name: follow_mark
-- A mark is a snapshot: what it shows has been told. While a batch of changes is not told to its
-- end, the mark of changes is 'before/then/id': told up to `id` of what `then` shows.
SELECT CAST(pg_current_snapshot() AS TEXT),
  coalesce(nullif(split_part(:change, '/', 2), ''), CAST(pg_current_snapshot() AS TEXT)),
  -- The server's timeline: a standby that took over without the newest transactions gives their
  -- numbers again, and what has them would seem told.
  CASE WHEN pg_is_in_recovery() THEN 'standby'
    ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END

-- name: change_after
SELECT concat_ws('/', split_part(:change, '/', 1),
    coalesce(nullif(split_part(:change, '/', 2), ''), CAST(pg_current_snapshot() AS TEXT)), id),
  conversation, profile, kind
FROM change
WHERE id >= clew_settled(CAST(split_part(:change, '/', 1) AS pg_snapshot))
  AND id > CAST(coalesce(nullif(split_part(:change, '/', 3), ''), '0') AS BIGINT)
  AND NOT clew_shown(id, CAST(split_part(:change, '/', 1) AS pg_snapshot))
  AND clew_shown(id,
    CAST(coalesce(nullif(split_part(:change, '/', 2), ''), CAST(pg_current_snapshot() AS TEXT))
      AS pg_snapshot))
ORDER BY id LIMIT :limit

-- name: message_changed_after
SELECT c.id, c.profile, min(m.seq), max(m.seq) FROM message m
JOIN conversation c ON c.no = m.conversation_no
WHERE m.id >= clew_settled(CAST(:message AS pg_snapshot))
  AND NOT clew_shown(m.id, CAST(:message AS pg_snapshot))
GROUP BY m.conversation_no, c.id, c.profile
ORDER BY max(m.id)

-- name: search_store
-- Which log this is, and the numbers below which nothing will be committed any more.
SELECT (SELECT value FROM meta WHERE name = 'store_id'),
  (SELECT value FROM meta WHERE name = 'stamp'),
  clew_settled(pg_current_snapshot()) - 1, clew_settled(pg_current_snapshot()) - 1

-- name: search_floor
-- The newest :limit rows with :above < id < :below: the id they are above, and how many there are.
SELECT CASE WHEN count(*) < CAST(:limit AS BIGINT) THEN CAST(:above AS BIGINT)
  ELSE min(id) - 1 END, count(*)
FROM (SELECT id FROM message WHERE id > :above AND id < :below ORDER BY id DESC LIMIT :limit)
  AS newest

-- name: search_rows_between
-- The range holds 256 rows at most. That the planner is told so keeps it from reading all of
-- conversation, as it would for the share of the table that it takes any range for.
{{searchable}}
FROM (SELECT * FROM message WHERE id > :above AND id < :below ORDER BY id DESC LIMIT 256) AS m
CROSS JOIN conversation AS c
WHERE {{searched}}
ORDER BY m.id DESC

-- name: search_rows
-- As search_rows_between, for ids given as a JSON array; in no particular order. OFFSET 0: first the
-- rows by their ids. The planner expects so little of so many filters that it would begin with them,
-- at conversation.
{{searchable}}
FROM (SELECT * FROM message WHERE id = ANY(ARRAY(
  SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:ids AS JSON)))) OFFSET 0) AS m
CROSS JOIN conversation AS c
WHERE {{searched}}

-- name: search_line
-- A conversation and, for a branch, those whose rows it shows: up to which seq of each.
WITH RECURSIVE line(no, title, origin, base, upto) AS (
  SELECT c.no, coalesce(c.title_user, c.title_llm, c.title_derived), c.origin, c.base, c.head
  FROM conversation_id AS i JOIN conversation AS c ON c.no = i.no
  WHERE i.id = :conversation AND c.binned_at IS NULL
    AND (CAST(:profile AS TEXT) IS NULL OR c.profile = :profile)
  UNION ALL
  SELECT o.no, line.title, o.origin, o.base,
    CASE WHEN line.base < line.upto THEN line.base ELSE line.upto END
  FROM line JOIN conversation AS o ON o.no = line.origin
  WHERE line.base > 0)
SELECT no, title, upto FROM line

-- name: erasure_lock
-- Waits for all who write values that are packed, and has the next ones wait: their triggers look
-- for the dictionary after this has committed.
LOCK TABLE prompt, toolset, message, inbox, compaction IN EXCLUSIVE MODE

-- ---------------------------------------------------------------- copying (copy.sql)

-- macro: copy_message_id
clew_id(:nth)

-- macro: copy_names
conversation_id

-- name: copy_pause
-- Waits for all who write to a conversation, and has the next ones wait.
LOCK TABLE conversation IN EXCLUSIVE MODE

-- name: copy_pause_all
-- Then for those who lock no conversation, too: the guard at the end of every unit reads `meta`.
-- Who is past it has committed when this is held; who is not waits there, and is refused.
LOCK TABLE meta IN ACCESS EXCLUSIVE MODE

-- name: copy_conversation_insert
-- Without its messages; what may change follows (copy_conversation_update).
WITH named AS (
  INSERT INTO conversation_id(id, profile) VALUES (:id, :profile) ON CONFLICT(id) DO NOTHING
  RETURNING no)
INSERT INTO conversation(no, id, profile, kind, source, origin, base, head, affinity, created_at,
  active_at)
SELECT no, :id, :profile, :kind, :source, :origin, :base, :base, :affinity, :created_at,
  :created_at
FROM named
