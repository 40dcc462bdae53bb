-- Statements of repair (store/repair*.py), which makes a new file from what is left of a damaged
-- one.

-- name: shape_trees
SELECT type, name, tbl_name, rootpage FROM sqlite_schema WHERE rootpage > 0

-- name: shape_columns
SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?)

-- name: shape_without_rowid
SELECT wr FROM pragma_table_list(?)

-- name: shape_indexed
SELECT name, cid FROM pragma_index_xinfo(?) ORDER BY seqno

-- name: shape_index
SELECT "unique", partial FROM pragma_index_list(?) WHERE name = ?

-- name: load_settings
-- Rows come in any order; what is left without its parent is mended afterwards.
PRAGMA foreign_keys = 0; PRAGMA temp_store = 2; PRAGMA cache_size = -65536

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: evidence_create
-- What indexes say of the rows of their tables.
CREATE TEMP TABLE evidence(tree TEXT, row INTEGER, key TEXT, PRIMARY KEY(tree, row)) WITHOUT ROWID

-- name: evidence_add
INSERT OR IGNORE INTO temp.evidence(tree, row, key) VALUES (?, ?, ?)

-- name: evidence_of
SELECT key FROM temp.evidence WHERE tree = ? AND row = ?

-- name: evidence_order
CREATE INDEX temp.evidence_key ON evidence(tree, key)

-- name: evidence_row
SELECT row FROM temp.evidence WHERE tree = ? AND key = ?

-- name: evidence_lost
SELECT count(*) FROM temp.evidence WHERE tree = ?1 AND row NOT IN (SELECT rowid FROM message)

-- name: triggers
SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'

-- name: meta_keep
INSERT INTO meta(name, value) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value

-- name: sequence_raise
UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1

-- name: sequence_add
INSERT INTO sqlite_sequence(name, seq) SELECT ?1, ?2
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)

-- name: packed_message
SELECT id, parts, meta FROM message

-- name: packed_inbox
SELECT rowid, parts, meta FROM inbox

-- name: packed_compaction
SELECT rowid, body, cuts, receipt FROM compaction

-- name: packed_prompt
SELECT hash, text FROM prompt

-- name: packed_toolset
SELECT hash, schemas FROM toolset

-- name: packed_blob
SELECT rowid, hash, bytes FROM blob

-- name: drop_message
DELETE FROM message WHERE id = ?

-- name: drop_inbox
DELETE FROM inbox WHERE rowid = ?

-- name: drop_compaction
DELETE FROM compaction WHERE rowid = ?

-- name: drop_prompt
DELETE FROM prompt WHERE hash = ?

-- name: drop_toolset
DELETE FROM toolset WHERE hash = ?

-- name: drop_blob
DELETE FROM blob WHERE rowid = ?

-- name: dictionaries_left
SELECT version, bytes FROM dictionary

-- name: orphaned
-- Numbers of conversations that are gone, and that rows of worth name.
SELECT DISTINCT no FROM (
  SELECT conversation_no AS no FROM message UNION ALL SELECT conversation_no FROM turn
  UNION ALL SELECT conversation_no FROM inbox UNION ALL SELECT conversation_no FROM cut
  UNION ALL SELECT conversation_no FROM attempt UNION ALL SELECT conversation_no FROM compaction
  UNION ALL SELECT conversation_no FROM model_call UNION ALL SELECT conversation_no FROM todo
  UNION ALL SELECT conversation_no FROM goal UNION ALL SELECT conversation_no FROM outbox
  UNION ALL SELECT conversation_no FROM approval UNION ALL SELECT conversation_no FROM blob
  UNION ALL SELECT origin FROM conversation WHERE origin IS NOT NULL)
WHERE no NOT IN (SELECT no FROM conversation) ORDER BY no

-- name: orphaned_facts
SELECT (SELECT min(seq) FROM message WHERE conversation_no = ?1),
  (SELECT min(created_at) FROM message WHERE conversation_no = ?1),
  (SELECT max(created_at) FROM message WHERE conversation_no = ?1),
  (SELECT profile FROM conversation WHERE origin = ?1 LIMIT 1),
  (SELECT base FROM conversation WHERE origin = ?1 ORDER BY base DESC LIMIT 1)

-- name: conversation_stand_in
INSERT INTO conversation(no, id, profile, kind, source, origin, base, head, title_derived, affinity,
  created_at, active_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?2, ?9, ?10)

-- name: heads
UPDATE conversation SET head = max(head,
  coalesce((SELECT max(seq) FROM message m WHERE m.conversation_no = conversation.no), 0),
  coalesce((SELECT max(to_seq) FROM cut k WHERE k.conversation_no = conversation.no), 0),
  coalesce((SELECT max(covers_to) FROM compaction p WHERE p.conversation_no = conversation.no), 0),
  coalesce((SELECT max(seq) FROM inbox i WHERE i.conversation_no = conversation.no), 0),
  coalesce((SELECT max(base) FROM conversation b WHERE b.origin = conversation.no), 0))

-- name: gaps
SELECT c.no, c.id, c.base, c.head, c.created_at FROM conversation c
LEFT JOIN (SELECT conversation_no AS no, count(*) AS n FROM message GROUP BY conversation_no) m
  ON m.no = c.no
WHERE c.head - c.base <> coalesce(m.n, 0) ORDER BY c.no

-- name: message_places
SELECT seq, turn, created_at FROM message WHERE conversation_no = ? AND seq > ? ORDER BY seq

-- name: message_from_inbox
-- A message that came by way of the inbox stands there, too.
INSERT OR IGNORE INTO message(id, conversation_no, seq, uid, key, turn, role, author, parts, meta,
  tokens, created_at)
SELECT ?3, conversation_no, seq, uid, key, ?4, role, author, parts, meta, tokens, received_at
FROM inbox WHERE conversation_no = ?1 AND seq = ?2 AND state = 'taken'

-- name: message_stand_in
INSERT INTO message(id, conversation_no, seq, uid, turn, role, parts, meta, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: id_free
SELECT NOT EXISTS (SELECT 1 FROM message WHERE id = ?)

-- name: turns_lost
INSERT INTO turn(conversation_no, number, uid, state, first_seq, started_at, ended_at, error)
SELECT conversation_no, turn, min(uid), 'interrupted', min(seq), min(created_at), max(created_at), ?
FROM message m WHERE turn IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM turn t WHERE t.conversation_no = m.conversation_no AND t.number = m.turn)
GROUP BY conversation_no, turn

-- name: turns_first
UPDATE turn SET first_seq = min(first_seq, coalesce((SELECT min(seq) FROM message m
  WHERE m.conversation_no = turn.conversation_no AND m.turn = turn.number), first_seq))

-- name: turns_odd
-- Conversations whose open turn, holder and turn rows do not say the same.
SELECT c.no FROM conversation c WHERE
  (c.turn IS NOT NULL OR c.holder IS NOT NULL
   OR EXISTS (SELECT 1 FROM turn t WHERE t.conversation_no = c.no AND t.ended_at IS NULL))
  AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_no = c.no AND t.number = c.turn
    AND t.ended_at IS NULL AND (t.state = 'running') = (c.holder IS NOT NULL))

-- name: turn_end
UPDATE turn SET state = 'interrupted', ended_at = max(started_at, ?2), error = ?3
WHERE conversation_no = ?1 AND ended_at IS NULL

-- name: turn_leave
UPDATE conversation SET turn = NULL, holder = NULL, held_at = NULL, held_ttl = NULL,
  fence = fence + 1 WHERE no = ?

-- name: fences
UPDATE conversation SET fence = max(fence, (SELECT max(number) FROM turn t
  WHERE t.conversation_no = conversation.no))
WHERE fence = 0 AND EXISTS (SELECT 1 FROM turn t WHERE t.conversation_no = conversation.no)

-- name: inbox_lost
DELETE FROM inbox WHERE state = 'taken' AND NOT EXISTS (SELECT 1 FROM message m
  WHERE m.conversation_no = inbox.conversation_no AND m.seq = inbox.seq AND m.uid = inbox.uid)

-- name: inbox_twice
DELETE FROM inbox WHERE state <> 'taken' AND key IS NOT NULL AND EXISTS (SELECT 1 FROM message m
  WHERE m.conversation_no = inbox.conversation_no AND m.key = inbox.key)

-- name: waiting
UPDATE conversation SET waiting = (SELECT count(*) FROM inbox i
  WHERE i.conversation_no = conversation.no AND i.state = 'waiting')

-- name: generations
SELECT conversation_no, max(generation), count(*), min(created_at) FROM compaction
GROUP BY conversation_no

-- name: generation_numbers
SELECT generation FROM compaction WHERE conversation_no = ?

-- name: generation_raise
UPDATE conversation SET generation = max(generation, ?2) WHERE no = ?1

-- name: generations_short
SELECT no, generation, active_at FROM conversation c WHERE generation > 0 AND generation <>
  (SELECT count(*) FROM compaction p WHERE p.conversation_no = c.no)

-- name: compaction_stand_in
-- In the place of one that is lost, and out of effect.
INSERT INTO compaction(conversation_no, generation, covers_to, body, cuts, kind, created_at,
  undone_at)
VALUES (?1, ?2, 1, ?3, '[]', 'foreign', ?4, ?4)

-- name: compaction_blank_of
UPDATE compaction SET attempt = NULL, covers_to = 1, body = ?3, cuts = '[]', kind = 'foreign',
  receipt = NULL, undone_tokens = NULL, undone_at = coalesce(undone_at, created_at)
WHERE conversation_no = (SELECT no FROM conversation WHERE id = ?1) AND generation = ?2

-- name: generation_lower
UPDATE conversation SET generation = 0 WHERE head = 0 AND generation > 0

-- name: attempts_lost
UPDATE compaction SET attempt = NULL WHERE attempt IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM attempt a WHERE a.conversation_no = compaction.conversation_no
    AND a.number = compaction.attempt AND a.state = 'committed')

-- name: cuts_named
SELECT conversation_no, cuts, created_at FROM compaction WHERE cuts <> '[]'

-- name: cut_numbers
SELECT number FROM cut WHERE conversation_no = ?

-- name: cut_stand_in
-- In the place of one that is lost: it hides nothing.
INSERT INTO cut(conversation_no, number, uid, from_seq, to_seq, at, undone_at)
VALUES (?1, ?2, ?3, 1, 1, ?4, ?4)

-- name: cuts_between
SELECT conversation_no, max(number), count(*), min(at) FROM cut GROUP BY conversation_no

-- name: views
UPDATE conversation SET view = max(view, coalesce((
  SELECT sum(CASE WHEN undone_at IS NULL THEN 1 ELSE 2 END) FROM cut k
  WHERE k.conversation_no = conversation.no), 0)) WHERE kind <> 'branch'

-- name: prompts_lost
UPDATE conversation SET prompt_hash = NULL
WHERE prompt_hash IS NOT NULL AND prompt_hash NOT IN (SELECT hash FROM prompt)

-- name: toolsets_lost
UPDATE conversation SET toolset_hash = NULL
WHERE toolset_hash IS NOT NULL AND toolset_hash NOT IN (SELECT hash FROM toolset)

-- name: call_prompts_lost
UPDATE model_call SET prompt_hash = NULL
WHERE prompt_hash IS NOT NULL AND prompt_hash NOT IN (SELECT hash FROM prompt)

-- name: call_toolsets_lost
UPDATE model_call SET toolset_hash = NULL
WHERE toolset_hash IS NOT NULL AND toolset_hash NOT IN (SELECT hash FROM toolset)

-- name: prompt_uses
INSERT OR IGNORE INTO prompt_use(conversation_no, hash)
SELECT no, prompt_hash FROM conversation WHERE prompt_hash IS NOT NULL
UNION SELECT no, toolset_hash FROM conversation WHERE toolset_hash IS NOT NULL
UNION SELECT conversation_no, prompt_hash FROM model_call WHERE prompt_hash IS NOT NULL
UNION SELECT conversation_no, toolset_hash FROM model_call WHERE toolset_hash IS NOT NULL

-- name: prompt_uses_loose
DELETE FROM prompt_use WHERE conversation_no NOT IN (SELECT no FROM conversation)

-- name: presence_loose
DELETE FROM presence WHERE conversation_no NOT IN (SELECT no FROM conversation)

-- name: subscribers_lost
INSERT OR IGNORE INTO subscriber(profile, name, created_at)
SELECT profile, subscriber, min(at) FROM boundary GROUP BY profile, subscriber

-- name: boundaries_loose
DELETE FROM boundary WHERE NOT EXISTS (SELECT 1 FROM conversation c
  WHERE c.no = boundary.conversation_no AND c.profile = boundary.profile
    AND c.view >= boundary.number AND c.generation >= boundary.generation)
  OR (kind = 'undo' AND NOT EXISTS (SELECT 1 FROM compaction k
    WHERE k.conversation_no = boundary.conversation_no AND k.generation = boundary.generation
      AND k.undone_at IS NOT NULL))

-- name: boundaries_due
UPDATE boundary SET next_at = CASE WHEN EXISTS (SELECT 1 FROM boundary e
    WHERE e.conversation_no = boundary.conversation_no AND e.subscriber = boundary.subscriber
      AND e.number < boundary.number) THEN NULL ELSE coalesce(next_at, at) END

-- name: bindings_lost
DELETE FROM binding WHERE NOT EXISTS (SELECT 1 FROM conversation c
  WHERE c.id = binding.conversation AND c.profile = binding.profile)

-- name: aliases_lost
-- Of a conversation that is lost: the next import brings it in again.
DELETE FROM alias WHERE state <> 'deleted' AND NOT EXISTS (SELECT 1 FROM conversation c
  WHERE c.id = alias.conversation AND c.profile = alias.profile)

-- name: approvals_lost
DELETE FROM approval WHERE NOT EXISTS (SELECT 1 FROM turn t
  WHERE t.conversation_no = approval.conversation_no AND t.number = approval.turn)

-- name: approvals
SELECT conversation_no, turn, call_id FROM approval ORDER BY conversation_no

-- name: approval_drop
DELETE FROM approval WHERE conversation_no = ? AND turn = ? AND call_id = ?

-- name: family
SELECT no, origin, base FROM conversation WHERE no = ?

-- name: conversations
SELECT no, id FROM conversation ORDER BY no

-- name: messages_of
SELECT id, seq, turn, parts FROM message WHERE conversation_no = ?1 AND seq <= ?2 ORDER BY seq

-- name: seqs_taken
SELECT seq FROM inbox WHERE conversation_no = ? AND state = 'taken'

-- name: blob_there
SELECT 1 FROM blob WHERE conversation_no = ? AND hash = ?

-- name: blob_elsewhere
INSERT OR IGNORE INTO blob(conversation_no, hash, bytes)
SELECT ?1, hash, bytes FROM blob WHERE hash = ?2 LIMIT 1

-- name: turn_off
UPDATE message SET turn = NULL WHERE conversation_no = ?1 AND turn = ?2 AND seq >= ?3

-- name: parts_change
UPDATE message SET parts = ?2 WHERE id = ?1

-- name: counter
UPDATE conversation SET message_count = ?2 WHERE no = ?1

-- name: compaction_at
SELECT generation FROM compaction WHERE conversation_no = (SELECT no FROM conversation WHERE id = ?)

