-- Statements of store/copy/, which brings rows from one store into another as they are: whatever
-- the table, all columns but the inner numbers and ids. Shared by all engines. Rows are read by
-- their key, from the one before; a conversation's records by a range of numbers.

-- ---------------------------------------------------------------- what a copy knows of itself

-- name: copy_meta
SELECT name, value FROM meta ORDER BY name

-- name: copy_state_lock
-- First in each unit that writes to a copy: whose turn it is.
SELECT value FROM meta WHERE name = 'copy_state' {{for_write}}

-- name: copy_meta_set
INSERT INTO meta(name, value) VALUES (:name, :value)
ON CONFLICT(name) DO UPDATE SET value = excluded.value

-- name: copy_meta_forget
DELETE FROM meta WHERE name = :name

-- name: copy_newest
-- What is above these was written by others.
SELECT coalesce((SELECT max(id) FROM message), 0), coalesce((SELECT max(id) FROM change), 0)

-- name: copy_used
-- A row, if anything was ever kept here.
SELECT 1 WHERE EXISTS (SELECT 1 FROM conversation) OR EXISTS (SELECT 1 FROM dictionary)
  OR EXISTS (SELECT 1 FROM inbound) OR EXISTS (SELECT 1 FROM binding)
  OR EXISTS (SELECT 1 FROM alias) OR EXISTS (SELECT 1 FROM prompt)
  OR EXISTS (SELECT 1 FROM toolset)

-- name: copy_moved
SELECT value FROM meta WHERE name = 'moved_to'

-- name: copy_totals
SELECT count(*), CAST(coalesce(sum(head - base), 0) AS BIGINT) FROM conversation

-- ---------------------------------------------------------------- conversation

-- macro: copy_conversation
-- The second column: it is being deleted (not only in the bin) and no branch needs its rows any more, so for a copy it
-- is gone. The origin by its id, if that is not gone.
SELECT c.no, CASE WHEN c.deleting = 1 AND NOT EXISTS (
    SELECT 1 FROM conversation AS h WHERE h.origin = c.no AND h.base > 0) THEN 1 ELSE 0 END,
  c.id, c.profile, c.kind, c.source,
  CASE WHEN o.deleting = 0 OR EXISTS (
    SELECT 1 FROM conversation AS h WHERE h.origin = o.no AND h.base > 0) THEN o.id END,
  c.base, c.head, c.affinity, c.created_at, c.view, c.generation, c.fence, c.holder, c.held_at,
  c.held_ttl, c.turn, c.title_user, c.title_llm, c.title_derived, c.title_locked, c.preview,
  c.message_count, c.waiting, c.cwd, c.git_root, c.git_branch, c.model, c.prompt_hash,
  c.toolset_hash, c.attribution, c.pinned, c.archived, c.automation, c.read_only, c.imported_at,
  c.imported_to, c.active_at, c.ended_at, c.end_reason, c.reopened_at, c.binned_at,
  c.deleting, c.meta
FROM conversation AS c LEFT JOIN conversation AS o ON o.no = c.origin

-- name: copy_conversation_page
{{copy_conversation}} WHERE c.no > :no ORDER BY c.no LIMIT :limit

-- name: copy_conversation_one
{{copy_conversation}} WHERE c.no = :no

-- name: copy_conversation_by_id
{{copy_conversation}} WHERE c.no = (SELECT no FROM {{copy_names}} WHERE id = :id)

-- name: copy_conversation_update
UPDATE conversation SET origin = :origin, view = :view, generation = :generation, fence = :fence,
  holder = :holder, held_at = :held_at, held_ttl = :held_ttl, turn = :turn,
  title_user = :title_user, title_llm = :title_llm, title_derived = :title_derived,
  title_locked = :title_locked, preview = :preview, message_count = :message_count,
  waiting = :waiting, cwd = :cwd, git_root = :git_root, git_branch = :git_branch, model = :model,
  prompt_hash = :prompt_hash, toolset_hash = :toolset_hash, attribution = :attribution,
  pinned = :pinned, archived = :archived, automation = :automation, read_only = :read_only,
  imported_at = :imported_at, imported_to = :imported_to, active_at = :active_at, ended_at = :ended_at,
  end_reason = :end_reason, reopened_at = :reopened_at, binned_at = :binned_at,
  deleting = :deleting, meta = :meta
WHERE no = :no

-- name: copy_conversation_span
-- What its own messages are now; in the transaction that brings them.
UPDATE conversation SET base = :base, head = :head WHERE no = :no

-- ---------------------------------------------------------------- message

-- macro: copy_message
seq, uid, key, turn, role, author, api_group, replaces, parts, meta, tokens, created_at

-- name: copy_message_rows
-- In the order in which they were committed.
SELECT id, conversation_no, {{copy_message}} FROM message WHERE id > :id AND id <= :last
ORDER BY id LIMIT :limit

-- name: copy_message_range
SELECT 0, conversation_no, {{copy_message}} FROM message
WHERE conversation_no = :no AND seq BETWEEN :first AND :last ORDER BY seq LIMIT :limit

-- name: copy_message_walk
SELECT 0, conversation_no, {{copy_message}} FROM message
WHERE (conversation_no, seq) > (:no, :seq) ORDER BY conversation_no, seq LIMIT :limit

-- name: copy_message_insert
INSERT INTO message(id, conversation_no, {{copy_message}})
VALUES ({{copy_message_id}}, :no, :seq, :uid, :key, :turn, :role, :author, :api_group, :replaces,
  :parts, :meta, :tokens, :created_at)

-- ---------------------------------------------------------------- records of a conversation

-- macro: copy_cut
number, uid, from_seq, to_seq, by, at, undone_at

-- name: copy_cut_rows
SELECT conversation_no, {{copy_cut}} FROM cut
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_cut_insert
INSERT INTO cut(conversation_no, {{copy_cut}})
VALUES (:no, :number, :uid, :from_seq, :to_seq, :by, :at, :undone_at)

-- name: copy_cut_delete
DELETE FROM cut WHERE conversation_no = :no AND number = :number

-- macro: copy_attempt
number, uid, view, base_generation, state, trigger, model, verdict, summary_error, deadline,
  started_at, ended_at, tokens_before, tokens_after

-- name: copy_attempt_rows
SELECT conversation_no, {{copy_attempt}} FROM attempt
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_attempt_insert
INSERT INTO attempt(conversation_no, {{copy_attempt}})
VALUES (:no, :number, :uid, :view, :base_generation, :state, :trigger, :model, :verdict,
  :summary_error, :deadline, :started_at, :ended_at, :tokens_before, :tokens_after)

-- name: copy_attempt_delete
DELETE FROM attempt WHERE conversation_no = :no AND number = :number

-- macro: copy_compaction
generation, attempt, covers_to, body, cuts, kind, tokens_before, tokens_after, created_at,
  undone_at, undone_tokens, receipt

-- name: copy_compaction_rows
SELECT conversation_no, {{copy_compaction}} FROM compaction
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, generation

-- name: copy_compaction_page
-- Of one conversation, for what leaves a store by itself.
SELECT conversation_no, {{copy_compaction}} FROM compaction
WHERE conversation_no = :no AND generation > :generation ORDER BY generation LIMIT :limit

-- name: copy_compaction_insert
INSERT INTO compaction(conversation_no, {{copy_compaction}})
VALUES (:no, :generation, :attempt, :covers_to, :body, :cuts, :kind, :tokens_before,
  :tokens_after, :created_at, :undone_at, :undone_tokens, :receipt)

-- name: copy_compaction_delete
DELETE FROM compaction WHERE conversation_no = :no AND generation = :generation

-- macro: copy_turn
number, uid, state, key, first_seq, started_at, ended_at, error

-- name: copy_turn_rows
SELECT conversation_no, {{copy_turn}} FROM turn
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_turn_page
-- Of one conversation, for what leaves a store by itself.
SELECT conversation_no, {{copy_turn}} FROM turn
WHERE conversation_no = :no AND number > :number ORDER BY number LIMIT :limit

-- name: copy_turn_insert
INSERT INTO turn(conversation_no, {{copy_turn}})
VALUES (:no, :number, :uid, :state, :key, :first_seq, :started_at, :ended_at, :error)

-- name: copy_turn_delete
DELETE FROM turn WHERE conversation_no = :no AND number = :number

-- macro: copy_model_call
number, turn, purpose, after_attempt, model, prompt_hash, toolset_hash, generation, up_to_seq,
  expected_tokens, settings, state, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost, latency,
  prefix_hash, partial, error, started_at, api_group

-- name: copy_model_call_rows
SELECT conversation_no, {{copy_model_call}} FROM model_call
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_model_call_page
-- Of one conversation, for what leaves a store by itself.
SELECT conversation_no, {{copy_model_call}} FROM model_call
WHERE conversation_no = :no AND number > :number ORDER BY number LIMIT :limit

-- name: copy_model_call_insert
INSERT INTO model_call(conversation_no, {{copy_model_call}})
VALUES (:no, :number, :turn, :purpose, :after_attempt, :model, :prompt_hash, :toolset_hash,
  :generation, :up_to_seq, :expected_tokens, :settings, :state, :input_tokens, :output_tokens,
  :cached_tokens, :reasoning_tokens, :cost, :latency, :prefix_hash, :partial, :error, :started_at, :api_group)

-- name: copy_model_call_delete
DELETE FROM model_call WHERE conversation_no = :no AND number = :number

-- macro: copy_inbox
number, uid, key, role, author, parts, meta, tokens, received_at, state, seq

-- name: copy_inbox_rows
SELECT conversation_no, {{copy_inbox}} FROM inbox
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_inbox_insert
INSERT INTO inbox(conversation_no, {{copy_inbox}})
VALUES (:no, :number, :uid, :key, :role, :author, :parts, :meta, :tokens, :received_at, :state,
  :seq)

-- name: copy_inbox_delete
DELETE FROM inbox WHERE conversation_no = :no AND number = :number

-- name: copy_todo_rows
SELECT conversation_no, number, text, state, at FROM todo
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_todo_insert
INSERT INTO todo(conversation_no, number, text, state, at)
VALUES (:no, :number, :text, :state, :at)

-- name: copy_todo_delete
DELETE FROM todo WHERE conversation_no = :no AND number = :number

-- name: copy_goal_rows
SELECT conversation_no, number, text, state, at FROM goal
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_goal_insert
INSERT INTO goal(conversation_no, number, text, state, at)
VALUES (:no, :number, :text, :state, :at)

-- name: copy_goal_delete
DELETE FROM goal WHERE conversation_no = :no AND number = :number

-- macro: copy_approval
turn, call_id, name, state, always, by, asked_at, answered_at

-- name: copy_approval_rows
SELECT conversation_no, {{copy_approval}} FROM approval
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, turn, call_id

-- name: copy_approval_insert
INSERT INTO approval(conversation_no, {{copy_approval}})
VALUES (:no, :turn, :call_id, :name, :state, :always, :by, :asked_at, :answered_at)

-- name: copy_approval_delete
DELETE FROM approval WHERE conversation_no = :no AND turn = :turn AND call_id = :call_id

-- name: copy_presence_rows
SELECT conversation_no, owner, heartbeat, label FROM presence
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, owner

-- name: copy_presence_insert
INSERT INTO presence(conversation_no, owner, heartbeat, label)
VALUES (:no, :owner, :heartbeat, :label)

-- name: copy_presence_delete
DELETE FROM presence WHERE conversation_no = :no AND owner = :owner

-- macro: copy_outbox
number, turn, route, payload, state, attempts, next_at, error

-- name: copy_outbox_rows
SELECT conversation_no, {{copy_outbox}} FROM outbox
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number

-- name: copy_outbox_insert
INSERT INTO outbox(conversation_no, {{copy_outbox}})
VALUES (:no, :number, :turn, :route, :payload, :state, :attempts, :next_at, :error)

-- name: copy_outbox_delete
DELETE FROM outbox WHERE conversation_no = :no AND number = :number

-- macro: copy_boundary
number, subscriber, profile, kind, generation, reason, source, from_id, to_id, at, attempts,
  next_at, error

-- name: copy_boundary_rows
SELECT conversation_no, {{copy_boundary}} FROM boundary
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, number, subscriber

-- name: copy_boundary_insert
INSERT INTO boundary(conversation_no, {{copy_boundary}})
VALUES (:no, :number, :subscriber, :profile, :kind, :generation, :reason, :source, :from_id, :to_id,
  :at, :attempts, :next_at, :error)

-- name: copy_boundary_delete
DELETE FROM boundary
WHERE conversation_no = :no AND number = :number AND subscriber = :subscriber

-- name: copy_prompt_use_rows
SELECT conversation_no, hash FROM prompt_use
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, hash

-- name: copy_prompt_use_insert
INSERT INTO prompt_use(conversation_no, hash) VALUES (:no, :hash)

-- name: copy_prompt_use_delete
DELETE FROM prompt_use WHERE conversation_no = :no AND hash = :hash

-- name: copy_blob_rows
-- Without the bytes, which their hash names.
SELECT conversation_no, hash FROM blob
WHERE conversation_no BETWEEN :first AND :last ORDER BY conversation_no, hash

-- name: copy_blob_insert
-- In a transaction before that of the other records: a run that was ended between them left it.
INSERT INTO blob(conversation_no, hash, bytes) VALUES (:no, :hash, :bytes)
ON CONFLICT(conversation_no, hash) DO NOTHING

-- name: copy_blob_delete
DELETE FROM blob WHERE conversation_no = :no AND hash = :hash

-- ---------------------------------------------------------------- what the store has once

-- name: copy_dictionary_rows
SELECT version, bytes, created_at FROM dictionary WHERE version > :version
ORDER BY version LIMIT :limit

-- name: copy_dictionary_insert
INSERT INTO dictionary(version, bytes, created_at) VALUES (:version, :bytes, :created_at)

-- name: copy_dictionary_delete
DELETE FROM dictionary WHERE version = :version

-- name: copy_prompt_rows
-- Without the text, which its hash names.
SELECT hash FROM prompt WHERE hash > :hash ORDER BY hash LIMIT :limit

-- name: copy_prompt_one
SELECT hash, text FROM prompt WHERE hash = :hash

-- name: copy_prompt_insert
INSERT INTO prompt(hash, text) VALUES (:hash, :text)

-- name: copy_prompt_delete
DELETE FROM prompt WHERE hash = :hash

-- name: copy_toolset_rows
SELECT hash FROM toolset WHERE hash > :hash ORDER BY hash LIMIT :limit

-- name: copy_toolset_one
SELECT hash, names, schemas FROM toolset WHERE hash = :hash

-- name: copy_toolset_insert
INSERT INTO toolset(hash, names, schemas) VALUES (:hash, :names, :schemas)

-- name: copy_toolset_delete
DELETE FROM toolset WHERE hash = :hash

-- name: copy_inbound_rows
SELECT profile, source, account, key, conversation, result, at FROM inbound
WHERE (profile, source, account, key) > (:profile, :source, :account, :key)
ORDER BY profile, source, account, key LIMIT :limit

-- name: copy_inbound_insert
INSERT INTO inbound(profile, source, account, key, conversation, result, at)
VALUES (:profile, :source, :account, :key, :conversation, :result, :at)

-- name: copy_inbound_delete
DELETE FROM inbound
WHERE profile = :profile AND source = :source AND account = :account AND key = :key

-- name: copy_binding_rows
SELECT profile, source, key, conversation, at FROM binding
WHERE (profile, source, key) > (:profile, :source, :key)
ORDER BY profile, source, key LIMIT :limit

-- name: copy_binding_insert
INSERT INTO binding(profile, source, key, conversation, at)
VALUES (:profile, :source, :key, :conversation, :at)

-- name: copy_binding_delete
DELETE FROM binding WHERE profile = :profile AND source = :source AND key = :key

-- name: copy_alias_rows
SELECT profile, foreign_id, source, conversation, from_seq, kind, state, at FROM alias
WHERE (profile, foreign_id, source, conversation) > (:profile, :foreign_id, :source, :conversation)
ORDER BY profile, foreign_id, source, conversation LIMIT :limit

-- name: copy_alias_insert
INSERT INTO alias(profile, foreign_id, source, conversation, from_seq, kind, state, at)
VALUES (:profile, :foreign_id, :source, :conversation, :from_seq, :kind, :state, :at)
ON CONFLICT DO NOTHING

-- name: copy_alias_delete
DELETE FROM alias WHERE profile = :profile AND foreign_id = :foreign_id AND source = :source
  AND conversation = :conversation

-- name: copy_subscriber_rows
SELECT profile, name, created_at FROM subscriber WHERE (profile, name) > (:profile, :name)
ORDER BY profile, name LIMIT :limit

-- name: copy_subscriber_insert
-- Before the rows that name it; one that came back under its name meanwhile takes its place.
INSERT INTO subscriber(profile, name, created_at) VALUES (:profile, :name, :created_at)
ON CONFLICT(profile, name) DO UPDATE SET created_at = excluded.created_at

-- name: copy_subscriber_delete
DELETE FROM subscriber WHERE profile = :profile AND name = :name

-- name: copy_job_rows
SELECT name, holder, fence, at, ttl, done_at FROM job WHERE name > :name ORDER BY name LIMIT :limit

-- name: copy_job_insert
INSERT INTO job(name, holder, fence, at, ttl, done_at)
VALUES (:name, :holder, :fence, :at, :ttl, :done_at)

-- name: copy_job_delete
DELETE FROM job WHERE name = :name

-- ---------------------------------------------------------------- one conversation by itself

-- name: transfer_aliases
SELECT source, foreign_id, from_seq, kind, state, at FROM alias
WHERE conversation = :conversation AND profile = :profile AND state <> 'deleted'
ORDER BY from_seq, source, foreign_id

-- name: transfer_numbers
-- The highest number of each kind of record.
SELECT coalesce((SELECT max(number) FROM cut WHERE conversation_no = :no), 0),
  coalesce((SELECT max(number) FROM attempt WHERE conversation_no = :no), 0),
  coalesce((SELECT max(number) FROM turn WHERE conversation_no = :no), 0),
  coalesce((SELECT max(number) FROM model_call WHERE conversation_no = :no), 0)
