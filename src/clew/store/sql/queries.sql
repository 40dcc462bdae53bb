-- Statements that every engine runs as they are. Rules: CAST(x AS T), never ::; times and ids are
-- parameters; RETURNING promises no order. A module of store/ runs only statements that begin
-- with the name of a table it writes, or reads.

-- ---------------------------------------------------------------- meta

-- name: stamp_read
-- First in each write transaction: a file swapped underneath shows another stamp.
SELECT stamp.value, CAST(writer.value AS INTEGER) FROM meta AS stamp, meta AS writer
WHERE stamp.name = 'stamp' AND writer.name = 'min_writer_version'

-- name: dictionary_all
SELECT version, bytes FROM dictionary ORDER BY version

-- name: dictionary_insert
INSERT INTO dictionary(version, bytes, created_at) VALUES (:version, :bytes, :at)
ON CONFLICT(version) DO NOTHING

-- name: change_insert
INSERT INTO change(id, conversation, profile, kind, detail, at)
VALUES ({{change_id}}, :conversation, :profile, :kind, :detail, :at)

-- name: end_reason_all
SELECT reason, is_boundary FROM end_reason ORDER BY reason

-- ---------------------------------------------------------------- conversation

-- macro: locked
SELECT no, id, profile, kind, origin, base, head, view, generation, fence, holder, held_at,
  held_ttl, turn, ended_at, end_reason,
  (SELECT is_boundary FROM end_reason WHERE reason = end_reason), read_only, binned_at,
  message_count, waiting, title_locked, deleting, {{store_clock}}
FROM conversation

-- name: conversation_lock
-- The first statement of every unit that writes to a conversation. NO KEY: what a foreign key, or
-- a branch that inherits, holds (conversation_base_hold) does not wait for an append.
{{locked}} WHERE no = :no {{for_write}}

-- name: conversation_lock_fenced
-- The fence is decided here, inside the transaction that writes: no row means the right is lost.
-- An engine that had to wait for the lock looks at the fence again after it.
{{locked}} WHERE no = :no AND fence = :fence {{for_write}}

-- name: conversation_lock_whole
-- For a step of a deletion: also waits for, and keeps out, those that hold the row.
{{locked}} WHERE no = :no {{for_removal}}

-- name: conversation_row
-- As it is, for readers.
{{locked}} WHERE no = :no

-- name: conversation_base_hold
-- As conversation_base_of, in a unit that writes to a branch: until its end no deletion moves the
-- rows that the branch inherits from there.
SELECT origin, base FROM conversation WHERE no = :no {{for_hold}}

-- name: conversation_append
-- Moves head last, by the rows really inserted.
UPDATE conversation SET head = :head, message_count = message_count + :visible,
  active_at = CASE WHEN active_at < :at THEN :at ELSE active_at END,
  preview = coalesce(:preview, preview), title_derived = coalesce(title_derived, :title),
  view = view + :moved
WHERE no = :no

-- name: conversation_renew
UPDATE conversation SET held_at = :at WHERE no = :no AND holder IS NOT NULL

-- name: conversation_take
UPDATE conversation SET fence = fence + 1, holder = :holder, held_at = :at, held_ttl = :ttl
WHERE no = :no

-- name: conversation_release
UPDATE conversation SET holder = NULL, held_at = NULL, held_ttl = NULL WHERE no = :no

-- name: conversation_fence
-- Ends whoever runs: their next write finds another fence.
UPDATE conversation SET fence = fence + 1, holder = NULL, held_at = NULL, held_ttl = NULL
WHERE no = :no

-- name: conversation_turn
UPDATE conversation SET turn = :turn WHERE no = :no

-- name: conversation_waiting
UPDATE conversation SET waiting = waiting + :by WHERE no = :no

-- name: conversation_view
-- Whatever changes the meaning of rows already there moves the view.
UPDATE conversation SET view = view + :moves, message_count = :message_count, preview = :preview
WHERE no = :no

-- name: conversation_generation
UPDATE conversation SET view = view + 1, generation = :generation WHERE no = :no

-- name: conversation_end
UPDATE conversation SET ended_at = :at, end_reason = :reason WHERE no = :no AND ended_at IS NULL

-- name: conversation_reopen
UPDATE conversation SET ended_at = NULL, end_reason = NULL, reopened_at = :at WHERE no = :no

-- name: conversation_title_user
UPDATE conversation SET title_user = :title, title_locked = :locked WHERE no = :no

-- name: conversation_title_llm
UPDATE conversation SET title_llm = :title WHERE no = :no

-- name: conversation_title_derived
UPDATE conversation SET title_derived = :title WHERE no = :no

-- name: conversation_flags
UPDATE conversation SET pinned = :pinned, archived = :archived, automation = :automation,
  read_only = :read_only
WHERE no = :no

-- name: conversation_workspace
UPDATE conversation SET cwd = :cwd, git_root = :git_root, git_branch = :git_branch,
  model = :model
WHERE no = :no

-- name: conversation_prompt
UPDATE conversation SET prompt_hash = coalesce(:prompt, prompt_hash),
  toolset_hash = coalesce(:toolset, toolset_hash)
WHERE no = :no

-- name: conversation_inherit
-- Also the title, so that the list shows what the branch is about.
UPDATE conversation SET
  prompt_hash = coalesce(prompt_hash, (SELECT prompt_hash FROM conversation WHERE no = :origin)),
  toolset_hash = coalesce(toolset_hash,
    (SELECT toolset_hash FROM conversation WHERE no = :origin)),
  title_derived = (SELECT coalesce(title_user, title_llm, title_derived) FROM conversation
    WHERE no = :origin)
WHERE no = :branch

-- name: conversation_bin
UPDATE conversation SET binned_at = :at WHERE no = :no AND binned_at IS NULL

-- name: conversation_unbin
UPDATE conversation SET binned_at = NULL WHERE no = :no AND deleting = 0

-- name: conversation_doom
-- Points at no prompt any more, so that the last step can let go of those nobody else uses.
UPDATE conversation SET deleting = 1, binned_at = coalesce(binned_at, :at), prompt_hash = NULL,
  toolset_hash = NULL
WHERE no = :no

-- name: conversation_base
UPDATE conversation SET base = :base, origin = :origin WHERE no = :no

-- name: conversation_orphan
UPDATE conversation SET origin = NULL WHERE origin = :no AND base = 0

-- name: conversation_children
SELECT no, id, kind, base FROM conversation WHERE origin = :no ORDER BY base DESC, no

-- name: conversation_deleting
SELECT no, id, profile FROM conversation WHERE deleting = 1 ORDER BY no

-- name: conversation_binned
-- What can be restored, the latest first.
SELECT c.id, coalesce(c.title_user, c.title_llm, c.title_derived), c.source, c.kind,
  (SELECT o.id FROM conversation AS o WHERE o.no = c.origin), c.message_count, c.active_at,
  c.binned_at
FROM conversation AS c
WHERE c.profile = :profile AND c.binned_at IS NOT NULL AND c.deleting = 0
ORDER BY c.binned_at DESC, c.no DESC LIMIT :limit

-- name: conversation_overdue
-- What was put into the bin by then, the oldest first.
SELECT no, id, profile, kind, source, message_count, binned_at FROM conversation
WHERE binned_at IS NOT NULL AND deleting = 0 AND (binned_at, no) > (:from, :no)
  AND binned_at <= :before AND (CAST(:profile AS TEXT) IS NULL OR profile = :profile)
ORDER BY binned_at, no LIMIT :limit

-- name: conversation_bytes
-- What its own messages and blobs take, as they are stored.
SELECT CAST(coalesce((SELECT sum(length(parts)) FROM message WHERE conversation_no = :no), 0)
    AS BIGINT)
  + CAST(coalesce((SELECT sum(length(bytes)) FROM blob WHERE conversation_no = :no), 0) AS BIGINT)

-- name: conversation_base_of
SELECT origin, base FROM conversation WHERE no = :no

-- macro: info
SELECT c.no, c.id, c.profile, c.kind, c.source, o.id, c.base, c.head, c.view, c.generation,
  c.fence, c.turn, c.title_user, c.title_llm, c.title_derived, c.title_locked, c.preview,
  c.message_count, c.waiting, c.cwd, c.git_root, c.git_branch, c.model, c.affinity, c.attribution,
  c.pinned, c.archived, c.automation, c.read_only, c.created_at, c.active_at, c.imported_at,
  c.ended_at, c.end_reason, c.reopened_at, c.meta, c.binned_at, c.prompt_hash, c.toolset_hash
FROM conversation c LEFT JOIN conversation o ON o.no = c.origin

-- macro: summary
SELECT c.no, c.id, c.profile, c.kind, c.source, c.title_user, c.title_llm, c.title_derived,
  c.preview, c.message_count, c.waiting, c.turn, c.cwd, c.git_root, c.git_branch, c.model,
  c.pinned, c.archived, c.created_at, c.active_at, c.ended_at, c.end_reason
FROM conversation c

-- macro: residual
  AND (c.active_at, c.no) < (:active_at, :no) AND c.archived = :archived
  AND (CAST(:source AS TEXT) IS NULL OR c.source = :source)
  AND (CAST(:project AS TEXT) IS NULL OR coalesce(c.git_root, c.cwd) = :project)
  AND (CAST(:git_branch AS TEXT) IS NULL OR c.git_branch = :git_branch)
  AND (CAST(:model AS TEXT) IS NULL OR c.model = :model)
  AND (CAST(:automation AS BIGINT) IS NULL OR c.automation = :automation)
  AND (CAST(:pinned AS BIGINT) IS NULL OR c.pinned = :pinned)
  AND (CAST(:ended AS BIGINT) IS NULL OR (c.ended_at IS NOT NULL) = (:ended = 1))
  AND (CAST(:since AS BIGINT) IS NULL OR c.active_at >= :since)
  AND (CAST(:title AS TEXT) IS NULL OR {{title_like}})
ORDER BY c.active_at DESC, c.no DESC LIMIT :limit

-- name: conversation_info
{{info}} WHERE c.no = :no

-- name: conversation_list
{{summary}} WHERE c.profile = :profile AND c.archived = :archived AND c.kind <> 'delegate'
  AND c.binned_at IS NULL
{{residual}}

-- name: conversation_list_source
{{summary}} WHERE c.profile = :profile AND c.source = :source AND c.kind <> 'delegate'
  AND c.binned_at IS NULL
{{residual}}

-- name: conversation_list_project
-- The second term lets the planner take the partial index.
{{summary}} WHERE c.profile = :profile AND coalesce(c.git_root, c.cwd) = :project
  AND coalesce(c.git_root, c.cwd) IS NOT NULL AND c.kind <> 'delegate' AND c.binned_at IS NULL
{{residual}}

-- name: conversation_list_pinned
{{summary}} WHERE c.profile = :profile AND c.pinned = 1 AND c.kind <> 'delegate'
  AND c.binned_at IS NULL
{{residual}}

-- name: conversation_list_everywhere
{{summary}} WHERE c.archived = :archived AND c.kind <> 'delegate' AND c.binned_at IS NULL
{{residual}}

-- name: conversation_list_children
{{info}} WHERE c.origin = :origin AND c.profile = :profile AND c.binned_at IS NULL
ORDER BY c.no DESC LIMIT :limit

-- name: conversation_all
SELECT no, id, profile FROM conversation WHERE no > :no ORDER BY no LIMIT :limit

-- name: conversation_counts
SELECT count(*), CAST(coalesce(sum(head - base), 0) AS BIGINT),
  CAST(coalesce(sum(archived), 0) AS BIGINT), CAST(coalesce(sum(pinned), 0) AS BIGINT),
  coalesce(sum(CASE WHEN ended_at IS NOT NULL THEN 1 ELSE 0 END), 0),
  coalesce(sum(CASE WHEN turn IS NOT NULL THEN 1 ELSE 0 END), 0),
  CAST(coalesce(sum(waiting), 0) AS BIGINT)
FROM conversation WHERE profile = :profile AND binned_at IS NULL

-- name: conversation_sources
SELECT source, count(*), CAST(coalesce(sum(head - base), 0) AS BIGINT) FROM conversation
WHERE profile = :profile AND binned_at IS NULL GROUP BY source ORDER BY source

-- name: conversation_profiles
SELECT profile, count(*) FROM conversation WHERE binned_at IS NULL GROUP BY profile
ORDER BY profile

-- name: conversation_open_turns
SELECT no, id FROM conversation WHERE profile = :profile AND binned_at IS NULL
  AND (turn IS NOT NULL OR waiting > 0)
ORDER BY no

-- name: conversation_aged
-- What a policy may take: nothing that is pinned, archived, running or waiting. The rest is decided
-- in domain/retention.py. By number, so that a run of pages meets each once.
SELECT no, id, profile, kind, source, automation, active_at, imported_at, ended_at, reopened_at,
  message_count
FROM conversation
WHERE no > :no AND binned_at IS NULL AND pinned = 0 AND archived = 0 AND turn IS NULL
  AND waiting = 0 AND active_at <= :before
  AND (CAST(:profile AS TEXT) IS NULL OR profile = :profile)
ORDER BY no LIMIT :limit

-- ---------------------------------------------------------------- message

-- macro: message
SELECT seq, uid, role, parts, created_at, key, turn, author, api_group, replaces, tokens, meta
FROM message

-- name: message_insert
INSERT INTO message(id, conversation_no, seq, uid, key, turn, role, author, api_group, replaces,
  parts, meta, tokens, created_at)
VALUES ({{message_id}}, :no, :seq, :uid, :key, :turn, :role, :author, :api_group, :replaces,
  :parts, :meta, :tokens, :at)

-- name: message_range
{{message}} WHERE conversation_no = :no AND seq BETWEEN :first AND :last ORDER BY seq

-- name: message_range_forward
{{message}} WHERE conversation_no = :no AND seq BETWEEN :first AND :last
ORDER BY seq LIMIT :limit

-- name: message_range_backward
{{message}} WHERE conversation_no = :no AND seq BETWEEN :first AND :last
ORDER BY seq DESC LIMIT :limit

-- name: message_by_key
SELECT seq, role, parts, uid FROM message
WHERE conversation_no = :no AND key = :key AND seq <= :last

-- name: message_uids
-- uid is not indexed: it is looked for only above the head that its writer last saw.
SELECT seq, uid, role, parts FROM message
WHERE conversation_no = :no AND seq > :after AND seq <= :last ORDER BY seq

-- name: message_uids_backward
SELECT seq, uid FROM message
WHERE conversation_no = :no AND seq < :before ORDER BY seq DESC LIMIT :limit

-- name: message_replacements
-- In this order it walks the partial index, which is empty for most; by seq it would walk the log.
SELECT seq, replaces FROM message WHERE conversation_no = :no AND replaces IS NOT NULL
ORDER BY replaces

-- name: message_move
-- One step of deleting an origin: its highest inherited rows become the branch's own.
INSERT INTO message(id, conversation_no, seq, uid, key, turn, role, author, api_group, replaces,
  parts, meta, tokens, created_at)
SELECT {{moved_id}}, :branch, seq, uid, key, NULL, role, author, api_group, replaces, parts, meta, tokens,
  created_at
FROM message WHERE conversation_no = :no AND seq BETWEEN :first AND :last ORDER BY seq

-- name: message_ids
SELECT id FROM message WHERE conversation_no = :no ORDER BY seq DESC LIMIT :limit

-- name: message_delete
DELETE FROM message WHERE conversation_no = :no AND seq IN
  (SELECT seq FROM message WHERE conversation_no = :no ORDER BY seq DESC LIMIT :limit)

-- name: message_sample
SELECT parts FROM message WHERE id >= :id ORDER BY id LIMIT :limit

-- ---------------------------------------------------------------- blob

-- name: blob_insert
INSERT INTO blob(conversation_no, hash, bytes) VALUES (:no, :hash, :bytes)
ON CONFLICT(conversation_no, hash) DO NOTHING

-- name: blob_get
SELECT bytes FROM blob WHERE conversation_no = :no AND hash = :hash

-- name: blob_known
SELECT 1 FROM blob WHERE conversation_no = :no AND hash = :hash

-- name: blob_copy
INSERT INTO blob(conversation_no, hash, bytes)
SELECT :branch, hash, bytes FROM blob WHERE conversation_no = :no AND hash = :hash
ON CONFLICT(conversation_no, hash) DO NOTHING

-- name: blob_delete
DELETE FROM blob WHERE conversation_no = :no

-- ---------------------------------------------------------------- cut

-- name: cut_all
SELECT number, from_seq, to_seq, by, at, undone_at FROM cut WHERE conversation_no = :no
ORDER BY number

-- name: cut_by_uid
SELECT number FROM cut WHERE conversation_no = :no AND uid = :uid

-- name: cut_insert
INSERT INTO cut(conversation_no, number, uid, from_seq, to_seq, by, at)
VALUES (:no, :number, :uid, :from_seq, :to_seq, :by, :at)

-- name: cut_undo
UPDATE cut SET undone_at = :at WHERE conversation_no = :no AND number = :number
  AND undone_at IS NULL

-- name: cut_copy
INSERT INTO cut(conversation_no, number, uid, from_seq, to_seq, by, at)
SELECT :branch, number, uid, from_seq, CASE WHEN to_seq < :base THEN to_seq ELSE :base END, by, at
FROM cut WHERE conversation_no = :no AND undone_at IS NULL AND from_seq <= :base
  AND number < :below

-- name: cut_delete
DELETE FROM cut WHERE conversation_no = :no

-- ---------------------------------------------------------------- attempt and compaction

-- macro: attempt
SELECT number, view, base_generation, state, trigger, started_at, model, verdict, summary_error,
  deadline, ended_at, tokens_before, tokens_after
FROM attempt

-- name: attempt_all
{{attempt}} WHERE conversation_no = :no ORDER BY number

-- name: attempt_get
{{attempt}} WHERE conversation_no = :no AND number = :number

-- name: attempt_by_uid
{{attempt}} WHERE conversation_no = :no AND uid = :uid

-- name: attempt_last
SELECT coalesce(max(number), 0) FROM attempt WHERE conversation_no = :no

-- name: attempt_open
SELECT number FROM attempt WHERE conversation_no = :no AND state = 'open' ORDER BY number

-- name: attempt_insert
INSERT INTO attempt(conversation_no, number, uid, view, base_generation, state, trigger, model,
  deadline, started_at, tokens_before)
VALUES (:no, :number, :uid, :view, :generation, 'open', :trigger, :model, :deadline, :at,
  :tokens_before)

-- name: attempt_close
-- The swap that decides between commit and cancel: whoever comes first wins.
UPDATE attempt SET state = :state, verdict = :verdict, summary_error = :error, ended_at = :at,
  tokens_after = :tokens_after
WHERE conversation_no = :no AND number = :number AND state = 'open'

-- name: attempt_cancel_all
UPDATE attempt SET state = 'cancelled', ended_at = :at
WHERE conversation_no = :no AND state = 'open'

-- name: attempt_reap
UPDATE attempt SET state = 'failed', verdict = 'abandoned', ended_at = :at
WHERE conversation_no = :no AND state = 'open' AND deadline <= :at

-- name: attempt_delete
DELETE FROM attempt WHERE conversation_no = :no

-- macro: compaction
SELECT generation, attempt, covers_to, body, cuts, kind, tokens_before, tokens_after, created_at,
  undone_at, receipt, undone_tokens
FROM compaction

-- name: compaction_all
{{compaction}} WHERE conversation_no = :no ORDER BY generation DESC

-- name: compaction_of_attempt
{{compaction}} WHERE conversation_no = :no AND attempt = :attempt

-- name: compaction_heads
-- Without bodies: enough to tell which one is in effect.
SELECT generation, covers_to, cuts FROM compaction
WHERE conversation_no = :no AND undone_at IS NULL ORDER BY generation DESC

-- name: compaction_get
{{compaction}} WHERE conversation_no = :no AND generation = :generation

-- name: compaction_insert
INSERT INTO compaction(conversation_no, generation, attempt, covers_to, body, cuts, kind,
  tokens_before, tokens_after, created_at, receipt)
VALUES (:no, :generation, :attempt, :covers_to, :body, :cuts, :kind, :tokens_before,
  :tokens_after, :at, :receipt)

-- name: compaction_undo
UPDATE compaction SET undone_at = :at, undone_tokens = :tokens
WHERE conversation_no = :no AND generation = :generation AND undone_at IS NULL

-- name: compaction_delete
DELETE FROM compaction WHERE conversation_no = :no

-- ---------------------------------------------------------------- turn and model_call

-- macro: turn
SELECT number, uid, state, key, first_seq, started_at, ended_at, error FROM turn

-- name: turn_get
{{turn}} WHERE conversation_no = :no AND number = :number

-- name: turn_all
{{turn}} WHERE conversation_no = :no AND number < :before ORDER BY number DESC LIMIT :limit

-- name: turn_last
SELECT coalesce(max(number), 0) FROM turn WHERE conversation_no = :no

-- name: turn_by_uid
{{turn}} WHERE conversation_no = :no AND number > :after AND uid = :uid

-- name: turn_insert
INSERT INTO turn(conversation_no, number, uid, state, key, first_seq, started_at)
VALUES (:no, :number, :uid, 'running', :key, :first_seq, :at)

-- name: turn_state
UPDATE turn SET state = :state WHERE conversation_no = :no AND number = :number
  AND state IN ('running', 'waiting')

-- name: turn_close
UPDATE turn SET state = :state, ended_at = :at, error = :error
WHERE conversation_no = :no AND number = :number AND state IN ('running', 'waiting')

-- name: turn_delete
DELETE FROM turn WHERE conversation_no = :no

-- macro: model_call
SELECT number, turn, purpose, model, state, generation, up_to_seq, input_tokens, output_tokens,
  cached_tokens, reasoning_tokens, cost, latency, started_at, partial, error, api_group,
  expected_tokens, after_attempt, prefix_hash
FROM model_call

-- name: model_call_last
SELECT coalesce(max(number), 0) FROM model_call WHERE conversation_no = :no

-- name: model_call_insert
INSERT INTO model_call(conversation_no, number, turn, purpose, after_attempt, model, prompt_hash,
  toolset_hash, generation, up_to_seq, expected_tokens, settings, state, started_at)
SELECT no, :number, :turn, :purpose,
  coalesce(CAST(:after_attempt AS BIGINT),
    (SELECT max(number) FROM attempt WHERE conversation_no = :no)),
  :model, prompt_hash, toolset_hash, generation, head, :expected, :settings, 'planned', :at
FROM conversation WHERE no = :no

-- name: model_call_finish
UPDATE model_call SET state = :state, input_tokens = :input, output_tokens = :output,
  cached_tokens = :cached, reasoning_tokens = :reasoning, cost = :cost, latency = :latency,
  prefix_hash = :prefix_hash, error = :error, partial = NULL,
  expected_tokens = coalesce(:expected, expected_tokens),
  generation = coalesce(:generation, generation), up_to_seq = coalesce(:up_to_seq, up_to_seq)
WHERE conversation_no = :no AND number = :number AND state = 'planned'

-- name: model_call_partial
UPDATE model_call SET partial = :partial
WHERE conversation_no = :no AND number = :number AND state = 'planned'

-- name: model_call_streamed
SELECT partial FROM model_call
WHERE conversation_no = :no AND turn = :turn AND state = 'planned' AND partial IS NOT NULL
ORDER BY number DESC LIMIT 1

-- name: model_call_interrupt
UPDATE model_call SET state = 'failed', error = 'interrupted'
WHERE conversation_no = :no AND turn = :turn AND state = 'planned'

-- name: model_call_all
{{model_call}} WHERE conversation_no = :no ORDER BY number

-- name: model_call_newest
{{model_call}} WHERE conversation_no = :no ORDER BY number DESC LIMIT :limit

-- name: model_call_get
{{model_call}} WHERE conversation_no = :no AND number = :number

-- name: model_call_usage
SELECT m.model, count(*), CAST(sum(m.input_tokens) AS BIGINT),
  CAST(sum(m.output_tokens) AS BIGINT), CAST(sum(m.cached_tokens) AS BIGINT),
  CAST(sum(m.reasoning_tokens) AS BIGINT), coalesce(sum(m.cost), 0)
-- Calls by their index on the time, then their conversations: CROSS JOIN keeps this order.
FROM model_call AS m CROSS JOIN conversation AS c
WHERE c.no = m.conversation_no AND c.profile = :profile AND m.started_at >= :since
  AND m.state <> 'planned'
GROUP BY m.model ORDER BY m.model

-- name: model_call_usage_here
SELECT model, count(*), CAST(sum(input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT),
  CAST(sum(cached_tokens) AS BIGINT), CAST(sum(reasoning_tokens) AS BIGINT), coalesce(sum(cost), 0)
FROM model_call WHERE conversation_no = :no AND state <> 'planned'
GROUP BY model ORDER BY model

-- name: model_call_usage_by
-- By slots of time, and by conversation where :one is 1: max() is of one value then.
SELECT m.started_at / CAST(:slot AS BIGINT),
  CASE WHEN CAST(:one AS BIGINT) = 1 THEN m.conversation_no ELSE 0 END,
  max(c.id), max(coalesce(c.title_user, c.title_llm, c.title_derived)), m.model, m.purpose,
  count(*), CAST(sum(CASE WHEN m.state = 'failed' THEN 1 ELSE 0 END) AS BIGINT), count(m.cost),
  CAST(sum(m.input_tokens) AS BIGINT), CAST(sum(m.output_tokens) AS BIGINT),
  CAST(sum(m.cached_tokens) AS BIGINT), CAST(sum(m.reasoning_tokens) AS BIGINT),
  coalesce(sum(m.cost), 0)
FROM model_call AS m CROSS JOIN conversation AS c
WHERE c.no = m.conversation_no AND c.profile = :profile AND m.started_at >= :since
  AND m.started_at < :until AND m.state <> 'planned'
GROUP BY 1, 2, m.model, m.purpose ORDER BY 1, 2, m.model, m.purpose

-- name: model_call_delete
DELETE FROM model_call WHERE conversation_no = :no

-- ---------------------------------------------------------------- inbox

-- macro: inbox
SELECT number, uid, role, parts, received_at, key, author, meta, state, seq, tokens FROM inbox

-- name: inbox_last
SELECT coalesce(max(number), 0) FROM inbox WHERE conversation_no = :no

-- name: inbox_waiting
{{inbox}} WHERE conversation_no = :no AND state = 'waiting' ORDER BY number

-- name: inbox_withdrawn
-- For a unit that is run again: what its first run queued may have been withdrawn meanwhile.
{{inbox}} WHERE conversation_no = :no AND state = 'withdrawn' ORDER BY number

-- name: inbox_state
SELECT state FROM inbox WHERE conversation_no = :no AND number = :number

-- name: inbox_by_key
{{inbox}} WHERE conversation_no = :no AND key = :key

-- name: inbox_insert
INSERT INTO inbox(conversation_no, number, uid, key, role, author, parts, meta, tokens,
  received_at, state)
VALUES (:no, :number, :uid, :key, :role, :author, :parts, :meta, :tokens, :at, 'waiting')

-- name: inbox_taken
UPDATE inbox SET state = 'taken', seq = :seq WHERE conversation_no = :no AND number = :number
  AND state = 'waiting'

-- name: inbox_withdraw
UPDATE inbox SET state = 'withdrawn' WHERE conversation_no = :no AND state = 'waiting'
RETURNING number

-- name: inbox_withdraw_one
UPDATE inbox SET state = 'withdrawn' WHERE conversation_no = :no AND number = :number
  AND state = 'waiting'

-- name: inbox_carry
-- A reset carries what waits into the conversation that follows.
INSERT INTO inbox(conversation_no, number, uid, key, role, author, parts, meta, tokens,
  received_at, state)
SELECT :to, number, uid, key, role, author, parts, meta, tokens, received_at, 'waiting'
FROM inbox WHERE conversation_no = :no AND state = 'waiting'

-- name: inbox_delete
DELETE FROM inbox WHERE conversation_no = :no

-- ---------------------------------------------------------------- inbound, binding, alias

-- name: inbound_get
SELECT conversation, result FROM inbound
WHERE profile = :profile AND source = :source AND account = :account AND key = :key

-- name: inbound_insert
-- First of all in its unit: of two deliveries of one key the second waits here for the first to
-- commit, inserts nothing, and reads the first's result.
INSERT INTO inbound(profile, source, account, key, conversation, result, at)
VALUES (:profile, :source, :account, :key, '', '', :at)
ON CONFLICT(profile, source, account, key) DO NOTHING

-- name: inbound_finish
UPDATE inbound SET conversation = :conversation, result = :result
WHERE profile = :profile AND source = :source AND account = :account AND key = :key

-- name: inbound_expire
-- Never the newest :keep: a clock that jumps far ahead would have all of them forgotten.
DELETE FROM inbound
WHERE at < :before AND at < (SELECT at FROM inbound ORDER BY at DESC LIMIT 1 OFFSET :keep)

-- name: binding_get
SELECT conversation FROM binding WHERE profile = :profile AND source = :source AND key = :key

-- name: binding_lock
-- Two resets of one key meet here, before either locks a conversation.
SELECT conversation FROM binding WHERE profile = :profile AND source = :source AND key = :key
{{for_write}}

-- name: binding_insert
-- The loser of a race reads the winner: the primary key decides.
INSERT INTO binding(profile, source, key, conversation, at)
VALUES (:profile, :source, :key, :conversation, :at)
ON CONFLICT DO NOTHING

-- name: binding_replace
UPDATE binding SET conversation = :conversation, at = :at
WHERE profile = :profile AND source = :source AND key = :key AND conversation = :old

-- name: binding_of
SELECT source, key FROM binding WHERE profile = :profile AND conversation = :conversation
ORDER BY source, key

-- name: binding_delete
DELETE FROM binding WHERE profile = :profile AND conversation = :conversation

-- name: alias_find
SELECT source, conversation, from_seq, kind, state FROM alias
WHERE profile = :profile AND foreign_id = :foreign_id
  AND (CAST(:source AS TEXT) IS NULL OR source = :source)
ORDER BY at, source, conversation

-- name: alias_prefix
SELECT DISTINCT conversation FROM alias
WHERE profile = :profile AND foreign_id >= :low AND foreign_id < :high AND state <> 'deleted'
ORDER BY conversation LIMIT :limit

-- name: alias_insert
INSERT INTO alias(profile, source, foreign_id, conversation, from_seq, kind, state, at)
VALUES (:profile, :source, :foreign_id, :conversation, :from_seq, :kind, :state, :at)
ON CONFLICT DO NOTHING

-- name: alias_of
SELECT source, foreign_id, from_seq, kind, state FROM alias
WHERE conversation = :conversation AND profile = :profile ORDER BY from_seq, source, foreign_id

-- name: alias_tombstone
-- What was imported and deleted here stays deleted for the next import.
UPDATE alias SET state = 'deleted' WHERE conversation = :conversation AND profile = :profile

-- name: alias_remove
DELETE FROM alias WHERE profile = :profile AND source = :source AND foreign_id = :foreign_id
  AND conversation = :conversation

-- ---------------------------------------------------------------- prompt and toolset

-- name: prompt_insert
INSERT INTO prompt(hash, text) VALUES (:hash, :text) ON CONFLICT(hash) DO NOTHING

-- name: prompt_hold
-- Until the unit's end the prompt stays, whoever else lets go of it.
SELECT 1 FROM prompt WHERE hash = :hash {{for_hold}}

-- name: prompt_lock
-- Before prompt_delete: waits for those that hold it, so that their use counts.
SELECT 1 FROM prompt WHERE hash = :hash {{for_removal}}

-- name: prompt_use_insert
INSERT INTO prompt_use(conversation_no, hash) VALUES (:no, :hash) ON CONFLICT DO NOTHING

-- name: prompt_use_copy
INSERT INTO prompt_use(conversation_no, hash)
SELECT :branch, hash FROM prompt_use WHERE conversation_no = :no ON CONFLICT DO NOTHING

-- name: prompt_use_of
SELECT hash FROM prompt_use WHERE conversation_no = :no

-- name: prompt_use_delete
DELETE FROM prompt_use WHERE conversation_no = :no

-- name: prompt_delete
DELETE FROM prompt WHERE hash = :hash
  AND NOT EXISTS (SELECT 1 FROM prompt_use WHERE hash = :hash)

-- name: toolset_hold
SELECT 1 FROM toolset WHERE hash = :hash {{for_hold}}

-- name: toolset_lock
SELECT 1 FROM toolset WHERE hash = :hash {{for_removal}}

-- name: toolset_delete
DELETE FROM toolset WHERE hash = :hash
  AND NOT EXISTS (SELECT 1 FROM prompt_use WHERE hash = :hash)

-- name: prompt_of
SELECT p.text FROM prompt p JOIN conversation c ON c.prompt_hash = p.hash WHERE c.no = :no

-- name: toolset_insert
INSERT INTO toolset(hash, names, schemas) VALUES (:hash, :names, :schemas)
ON CONFLICT(hash) DO NOTHING

-- name: toolset_of
SELECT t.schemas FROM toolset t JOIN conversation c ON c.toolset_hash = t.hash WHERE c.no = :no

-- ---------------------------------------------------------------- todo, goal, presence

-- name: todo_all
SELECT number, text, state FROM todo WHERE conversation_no = :no ORDER BY number

-- name: todo_delete
DELETE FROM todo WHERE conversation_no = :no

-- name: todo_insert
INSERT INTO todo(conversation_no, number, text, state, at)
VALUES (:no, :number, :text, :state, :at)

-- name: todo_copy
INSERT INTO todo(conversation_no, number, text, state, at)
SELECT :branch, number, text, state, at FROM todo
WHERE conversation_no = :no AND state IN ('pending', 'active')

-- name: goal_active
SELECT number, text, state, at FROM goal WHERE conversation_no = :no AND state = 'active'

-- name: goal_last
SELECT coalesce(max(number), 0) FROM goal WHERE conversation_no = :no

-- name: goal_close
UPDATE goal SET state = :state, at = :at WHERE conversation_no = :no AND state = 'active'

-- name: goal_insert
INSERT INTO goal(conversation_no, number, text, state, at)
VALUES (:no, :number, :text, 'active', :at)

-- name: goal_delete
DELETE FROM goal WHERE conversation_no = :no

-- name: presence_beat
INSERT INTO presence(conversation_no, owner, heartbeat, label)
VALUES (:no, :owner, :at, :label)
ON CONFLICT(conversation_no, owner) DO UPDATE SET heartbeat = excluded.heartbeat,
  label = excluded.label

-- name: presence_leave
DELETE FROM presence WHERE conversation_no = :no AND owner = :owner

-- name: presence_all
SELECT owner, heartbeat, label FROM presence WHERE conversation_no = :no ORDER BY owner

-- name: presence_delete
DELETE FROM presence WHERE conversation_no = :no

-- ---------------------------------------------------------------- approval

-- name: approval_insert
INSERT INTO approval(conversation_no, turn, call_id, name, state, asked_at)
VALUES (:no, :turn, :call_id, :name, 'asked', :at)
ON CONFLICT(conversation_no, turn, call_id) DO NOTHING

-- name: approval_answer
UPDATE approval SET state = :state, always = :always, by = :by, answered_at = :at
WHERE conversation_no = :no AND turn = :turn AND call_id = :call_id AND state = 'asked'

-- name: approval_start
UPDATE approval SET state = 'started'
WHERE conversation_no = :no AND turn = :turn AND call_id = :call_id AND state = 'allowed'

-- name: approval_of_turn
SELECT turn, call_id, name, state, always, by, asked_at, answered_at FROM approval
WHERE conversation_no = :no AND turn = :turn ORDER BY asked_at, call_id

-- name: approval_all
-- With the turn, if it is there.
SELECT a.turn, a.call_id, t.number FROM approval AS a
LEFT JOIN turn AS t ON t.conversation_no = a.conversation_no AND t.number = a.turn
WHERE a.conversation_no = :no ORDER BY a.turn, a.call_id

-- name: approval_always
SELECT DISTINCT name FROM approval WHERE conversation_no = :no AND always = 1 ORDER BY name

-- name: approval_delete
DELETE FROM approval WHERE conversation_no = :no

-- ---------------------------------------------------------------- outbox and job

-- name: outbox_last
SELECT coalesce(max(number), 0) FROM outbox WHERE conversation_no = :no

-- name: outbox_insert
INSERT INTO outbox(conversation_no, number, turn, route, payload, state, next_at)
VALUES (:no, :number, :turn, :route, :payload, 'pending', :at)

-- macro: delivery
SELECT b.conversation_no, c.id, b.number, b.turn, b.route, b.payload, b.state, b.attempts,
  b.next_at, b.error
FROM outbox AS b JOIN conversation AS c ON c.no = b.conversation_no

-- macro: delivery_due
-- The lowest that is pending in its conversation: none below it becomes pending again.
{{delivery}}
WHERE b.state = 'pending' AND b.next_at BETWEEN :low AND :high AND c.profile = :profile
  AND c.binned_at IS NULL AND substr(b.route, 1, CAST(:size AS INTEGER)) = :routes
  AND NOT EXISTS (SELECT 1 FROM outbox AS e WHERE e.conversation_no = b.conversation_no
    AND e.number < b.number AND e.state = 'pending')
ORDER BY b.next_at, b.conversation_no LIMIT 1

-- name: outbox_of_turn
{{delivery}} WHERE b.conversation_no = :no AND b.turn = :turn ORDER BY b.number

-- name: outbox_all
{{delivery}} WHERE c.profile = :profile AND c.binned_at IS NULL
  AND (CAST(:state AS TEXT) IS NULL OR b.state = CAST(:state AS TEXT))
ORDER BY b.next_at DESC, b.conversation_no, b.number DESC LIMIT :limit

-- name: outbox_is_due
{{delivery_due}}

-- name: outbox_due
{{delivery_due}} {{for_claim}}

-- name: outbox_clock
SELECT {{store_clock}}

-- name: outbox_get
-- Waits for who is at it.
SELECT attempts, next_at, state FROM outbox
WHERE conversation_no = :no AND number = :number {{for_write}}

-- name: outbox_claim
UPDATE outbox SET attempts = attempts + 1, next_at = :until
WHERE conversation_no = :no AND number = :number

-- name: outbox_settle
UPDATE outbox SET state = :state, next_at = :at, error = :error
WHERE conversation_no = :no AND number = :number

-- name: outbox_delete
DELETE FROM outbox WHERE conversation_no = :no

-- macro: segment
-- What the conversation `c` is called since it was last rotated.
(SELECT a.foreign_id FROM alias AS a
    WHERE a.conversation = c.id AND a.profile = c.profile AND a.kind = 'segment'
    ORDER BY a.from_seq DESC, a.at DESC, a.foreign_id DESC LIMIT 1)

-- macro: boundary
SELECT b.conversation_no, b.number, b.kind, b.generation, b.reason, b.source, b.from_id, b.to_id,
  b.at, b.profile, c.id, b.subscriber, b.attempts, b.next_at, b.error
FROM boundary AS b JOIN conversation AS c ON c.no = b.conversation_no
WHERE b.profile = :profile AND b.subscriber = :name AND c.binned_at IS NULL

-- macro: due
b.next_at IS NOT NULL AND b.next_at BETWEEN :low AND :high
ORDER BY b.next_at, b.conversation_no LIMIT 1

-- name: boundary_insert
-- One row for each subscriber of the profile, each held until the commit.
INSERT INTO boundary(conversation_no, number, subscriber, profile, kind, generation, reason, source,
  from_id, to_id, at, next_at)
SELECT c.no, c.view, s.name, c.profile, :kind, :generation, :reason, c.source,
  coalesce(CAST(:from_id AS TEXT), {{segment}}, c.id),
  coalesce(CAST(:to_id AS TEXT), {{segment}}, c.id), :at,
  CASE WHEN EXISTS (
    SELECT 1 FROM boundary AS b WHERE b.conversation_no = c.no AND b.subscriber = s.name)
    THEN NULL ELSE 0 END
FROM conversation AS c JOIN subscriber AS s ON s.profile = c.profile
WHERE c.no = :no {{for_hold}}

-- name: boundary_is_due
{{boundary}} AND {{due}}

-- name: boundary_due
{{boundary}} AND {{due}} {{for_claim}}

-- name: boundary_get
-- Waits for who is at it.
SELECT attempts, next_at FROM boundary
WHERE conversation_no = :no AND subscriber = :subscriber AND number = :number {{for_write}}

-- name: boundary_claim
UPDATE boundary SET attempts = attempts + 1, next_at = :until
WHERE conversation_no = :no AND subscriber = :subscriber AND number = :number

-- name: boundary_told
DELETE FROM boundary WHERE conversation_no = :no AND subscriber = :subscriber
  AND number = :number AND attempts = :attempts

-- name: boundary_next
-- What was behind one that is gone.
UPDATE boundary SET next_at = 0
WHERE conversation_no = :no AND subscriber = :subscriber AND number = (
  SELECT min(b.number) FROM boundary AS b
  WHERE b.conversation_no = :no AND b.subscriber = :subscriber)

-- name: boundary_retry
UPDATE boundary SET next_at = :at, error = :error
WHERE conversation_no = :no AND subscriber = :subscriber AND number = :number
  AND attempts = :attempts

-- name: boundary_pending
{{boundary}} ORDER BY c.id, b.number LIMIT :limit

-- name: boundary_forget
-- From the highest of each conversation: nothing that stays is behind one that is gone.
DELETE FROM boundary WHERE subscriber = :name AND (conversation_no, number) IN (
  SELECT conversation_no, number FROM boundary
  WHERE profile = :profile AND subscriber = :name
  ORDER BY conversation_no DESC, number DESC LIMIT :limit)

-- name: boundary_delete
DELETE FROM boundary WHERE conversation_no = :no

-- name: subscriber_insert
INSERT INTO subscriber(profile, name, created_at) VALUES (:profile, :name, :at)
ON CONFLICT(profile, name) DO NOTHING

-- name: subscriber_get
SELECT created_at, {{store_clock}} FROM subscriber WHERE profile = :profile AND name = :name

-- name: subscriber_hold
SELECT 1 FROM subscriber WHERE profile = :profile {{for_hold}}

-- name: subscriber_lock
SELECT 1 FROM subscriber WHERE profile = :profile AND name = :name {{for_removal}}

-- name: subscriber_delete
DELETE FROM subscriber WHERE profile = :profile AND name = :name

-- name: subscriber_all
SELECT s.name, s.created_at, (
  SELECT count(*) FROM boundary AS b WHERE b.profile = s.profile AND b.subscriber = s.name)
FROM subscriber AS s WHERE s.profile = :profile ORDER BY s.name

-- name: job_lock
SELECT holder, fence, at, ttl, done_at, {{store_clock}} FROM job WHERE name = :name {{for_write}}

-- name: job_insert
INSERT INTO job(name, fence) VALUES (:name, 0) ON CONFLICT(name) DO NOTHING

-- name: job_take
UPDATE job SET holder = :holder, fence = fence + 1, at = :at, ttl = :ttl WHERE name = :name

-- name: job_renew
UPDATE job SET at = :at WHERE name = :name AND fence = :fence AND holder IS NOT NULL

-- name: job_forget
DELETE FROM job WHERE substr(name, 1, CAST(:size AS INTEGER)) = :prefix AND name <> :name

-- name: job_release
UPDATE job SET holder = NULL, done_at = coalesce(:done_at, done_at)
WHERE name = :name AND fence = :fence AND holder IS NOT NULL

-- name: job_all
SELECT name, holder, fence, at, ttl, done_at FROM job ORDER BY name

-- ---------------------------------------------------------------- verify

-- name: conversation_count_all
SELECT count(*) FROM conversation

-- name: message_bounds
-- Rows, first and last seq, keys that an inherited part of the conversation has too, rows at or
-- below the base.
SELECT count(*), min(m.seq), max(m.seq),
  coalesce(sum(CASE WHEN m.key IS NOT NULL AND EXISTS (
    SELECT 1 FROM message i JOIN conversation c ON c.no = :no
    WHERE i.conversation_no = c.origin AND i.key = m.key AND i.seq <= :base) THEN 1 ELSE 0 END), 0),
  coalesce(sum(CASE WHEN m.seq <= :base THEN 1 ELSE 0 END), 0)
FROM message m WHERE m.conversation_no = :no

-- name: message_turns
SELECT turn, min(seq), max(seq), count(*) FROM message
WHERE conversation_no = :no AND turn IS NOT NULL GROUP BY turn ORDER BY turn

-- name: turn_open_of
SELECT number FROM turn WHERE conversation_no = :no AND state IN ('running', 'waiting')

-- name: compaction_generations
SELECT generation FROM compaction WHERE conversation_no = :no ORDER BY generation

-- name: boundary_odd
-- Rows that no boundary of their conversation can have made.
SELECT b.subscriber, b.number, b.kind, b.generation FROM boundary AS b
JOIN conversation AS c ON c.no = b.conversation_no
WHERE b.conversation_no = :no AND (b.number > c.view OR b.generation > c.generation
  OR b.profile <> c.profile OR (b.next_at IS NULL) <> EXISTS (
    SELECT 1 FROM boundary AS e WHERE e.conversation_no = :no AND e.subscriber = b.subscriber
      AND e.number < b.number)
  OR (b.kind = 'undo' AND NOT EXISTS (
    SELECT 1 FROM compaction AS k WHERE k.conversation_no = :no AND k.generation = b.generation
      AND k.undone_at IS NOT NULL)))
ORDER BY b.subscriber, b.number

-- name: inbox_taken_of
SELECT m.seq FROM inbox i LEFT JOIN message m
  ON m.conversation_no = i.conversation_no AND m.seq = i.seq AND m.uid = i.uid
WHERE i.conversation_no = :no AND i.state = 'taken'

-- name: binding_dangling
SELECT b.profile, b.source, b.key, b.conversation FROM binding b
LEFT JOIN conversation c ON c.id = b.conversation AND c.profile = b.profile
WHERE c.no IS NULL OR c.binned_at IS NOT NULL ORDER BY b.profile, b.source, b.key

-- name: alias_dangling
SELECT a.profile, a.source, a.foreign_id, a.conversation FROM alias a
LEFT JOIN conversation c ON c.id = a.conversation AND c.profile = a.profile
WHERE (c.no IS NULL OR c.binned_at IS NOT NULL) AND a.state <> 'deleted'
ORDER BY a.profile, a.source, a.foreign_id

-- ---------------------------------------------------------------- search over the log

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
  AND (CAST(:role AS BIGINT) IS NULL OR m.role = :role)
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

-- name: search_rows_after
SELECT m.id, m.conversation_no, c.profile, m.parts
FROM message AS m CROSS JOIN conversation AS c
WHERE m.id > :after AND m.id <= :upto AND c.no = m.conversation_no
ORDER BY m.id LIMIT :limit

-- name: search_changes_after
-- Ranges of ids that are gone, or empty now, in `detail`; the first row of a deletion has none.
SELECT id, detail FROM change WHERE id > :after AND id <= :upto AND kind IN ('deleted', 'erased')
ORDER BY id LIMIT :limit

-- name: search_cuts
SELECT from_seq, to_seq FROM cut WHERE conversation_no = :no AND undone_at IS NULL

-- ---------------------------------------------------------------- verify, of blobs

-- name: blob_hashes
SELECT hash FROM blob WHERE conversation_no = :no ORDER BY hash

-- ---------------------------------------------------------------- import

-- name: import_aliases
-- The names of one imported chat and of the branches that its import made.
SELECT foreign_id, conversation, state FROM alias
WHERE profile = :profile AND foreign_id >= :low AND foreign_id < :high AND source = :source

-- name: import_line
SELECT c.no, c.kind, c.base, c.head, c.origin, c.imported_to,
  CASE WHEN c.turn IS NULL AND c.waiting = 0 AND c.read_only = 0 AND c.ended_at IS NULL
    THEN 1 ELSE 0 END,
  c.title_user, c.title_llm, c.title_derived
FROM conversation AS c WHERE c.id = :id AND c.profile = :profile AND c.binned_at IS NULL

-- name: import_uids
SELECT seq, uid FROM message WHERE conversation_no = :no AND seq BETWEEN :first AND :last
ORDER BY seq

-- name: import_receipts
SELECT receipt FROM compaction WHERE conversation_no = :no AND kind = 'foreign'

-- name: import_groups
SELECT api_group FROM model_call WHERE conversation_no = :no AND api_group IS NOT NULL

-- name: import_row
SELECT imported_to, title_user, title_llm, title_derived FROM conversation WHERE no = :no

-- name: conversation_imported
-- What lies above is ours: what the source brings after that goes to a branch.
UPDATE conversation SET imported_to = :seq, imported_at = :at WHERE no = :no

-- name: model_call_import
-- One row for each api_group: records of one API message repeat its usage, mostly grown.
INSERT INTO model_call(conversation_no, number, purpose, model, prompt_hash, toolset_hash,
  generation, up_to_seq, state, input_tokens, output_tokens, cached_tokens, reasoning_tokens,
  cost, latency, started_at, api_group)
SELECT no, (SELECT coalesce(max(number), 0) + 1 FROM model_call WHERE conversation_no = :no),
  'turn', :model, prompt_hash, toolset_hash, generation, :up_to_seq, 'done', :input, :output,
  :cached, :reasoning, CAST(:cost AS DOUBLE PRECISION), CAST(:latency AS BIGINT), :at,
  CAST(:api_group AS TEXT)
FROM conversation WHERE no = :no
ON CONFLICT(conversation_no, api_group) WHERE api_group IS NOT NULL DO UPDATE SET
  input_tokens = CASE WHEN model_call.input_tokens < excluded.input_tokens
    THEN excluded.input_tokens ELSE model_call.input_tokens END,
  output_tokens = CASE WHEN model_call.output_tokens < excluded.output_tokens
    THEN excluded.output_tokens ELSE model_call.output_tokens END,
  cached_tokens = CASE WHEN model_call.cached_tokens < excluded.cached_tokens
    THEN excluded.cached_tokens ELSE model_call.cached_tokens END,
  reasoning_tokens = CASE WHEN model_call.reasoning_tokens < excluded.reasoning_tokens
    THEN excluded.reasoning_tokens ELSE model_call.reasoning_tokens END,
  cost = CASE WHEN coalesce(model_call.cost, 0) < excluded.cost
    THEN excluded.cost ELSE model_call.cost END

-- ---------------------------------------------------------------- erasure

-- name: meta_erasure_insert
-- An erasure that has begun: what it takes, until it is done.
INSERT INTO meta(name, value) VALUES (:name, :value) ON CONFLICT(name) DO NOTHING

-- name: meta_erasure_all
SELECT name, value FROM meta WHERE name LIKE 'erasure:%' ORDER BY name

-- name: meta_erasure_update
UPDATE meta SET value = :value WHERE name = :name

-- name: meta_erasure_delete
DELETE FROM meta WHERE name = :name

-- name: message_erasable
-- Those that are no tombstones yet. :author NULL: of anybody.
SELECT seq, id, parts, key, author, meta, turn, api_group FROM message
WHERE conversation_no = :no AND seq >= :first AND seq <= :last
  AND (meta IS NULL OR meta <> :mark) AND (CAST(:author AS TEXT) IS NULL OR author = :author)
ORDER BY seq LIMIT :limit

-- name: message_authored
-- Who wrote here, and how many messages of people are of others, or of nobody known.
SELECT c.no, c.id, c.kind, c.origin, sum(CASE WHEN m.author = :author THEN 1 ELSE 0 END),
  sum(CASE WHEN m.role = 1 AND (m.author IS NULL OR m.author <> :author) THEN 1 ELSE 0 END)
FROM conversation AS c JOIN message AS m ON m.conversation_no = c.no
WHERE c.profile = :profile AND c.no > :after AND c.no <= :upto
GROUP BY c.no, c.id, c.kind, c.origin
HAVING sum(CASE WHEN m.author = :author THEN 1 ELSE 0 END) > 0
ORDER BY c.no

-- name: message_erase
UPDATE message SET parts = :parts, meta = :mark, tokens = 0, key = NULL, author = NULL,
  api_group = NULL
WHERE conversation_no = :no AND seq = :seq

-- name: message_packed
-- Rows packed with one dictionary: its tag and number are the first two bytes.
SELECT conversation_no, seq, parts FROM message
WHERE (conversation_no, seq) > (:no, :seq) AND substr(parts, 1, 2) IN (:plain, :escaped)
ORDER BY conversation_no, seq LIMIT :limit

-- name: message_repack
UPDATE message SET parts = :new WHERE conversation_no = :no AND seq = :seq

-- name: inbox_packed
SELECT conversation_no, number, parts FROM inbox
WHERE (conversation_no, number) > (:no, :seq) AND substr(parts, 1, 2) IN (:plain, :escaped)
ORDER BY conversation_no, number LIMIT :limit

-- name: inbox_repack
UPDATE inbox SET parts = :new WHERE conversation_no = :no AND number = :seq

-- name: compaction_packed
SELECT conversation_no, generation, body FROM compaction
WHERE (conversation_no, generation) > (:no, :seq) AND substr(body, 1, 2) IN (:plain, :escaped)
ORDER BY conversation_no, generation LIMIT :limit

-- name: compaction_repack
UPDATE compaction SET body = :new WHERE conversation_no = :no AND generation = :seq

-- name: prompt_packed
SELECT hash, text FROM prompt WHERE substr(text, 1, 2) IN (:plain, :escaped)
ORDER BY hash LIMIT :limit

-- name: prompt_repack
UPDATE prompt SET text = :new WHERE hash = :hash

-- name: toolset_packed
SELECT hash, schemas FROM toolset WHERE substr(schemas, 1, 2) IN (:plain, :escaped)
ORDER BY hash LIMIT :limit

-- name: toolset_repack
UPDATE toolset SET schemas = :new WHERE hash = :hash

-- name: dictionary_drop
DELETE FROM dictionary WHERE version = :version

-- name: inbox_erasable
SELECT number, parts, key, author, meta, seq, state FROM inbox WHERE conversation_no = :no
ORDER BY number

-- name: inbox_authored
SELECT DISTINCT i.conversation_no FROM inbox AS i JOIN conversation AS c ON c.no = i.conversation_no
WHERE c.profile = :profile AND i.author = :author ORDER BY 1

-- name: inbox_erase
UPDATE inbox SET parts = :parts, key = NULL, author = NULL, meta = :mark, tokens = 0
WHERE conversation_no = :no AND number = :number

-- name: blob_drop
DELETE FROM blob WHERE conversation_no = :no AND hash = :hash

-- name: compaction_erasable
-- Bodies of what covers a seq.
SELECT generation, body, receipt, undone_at FROM compaction
WHERE conversation_no = :no AND covers_to >= :seq ORDER BY generation

-- name: compaction_erase
UPDATE compaction SET body = :body, receipt = NULL
WHERE conversation_no = :no AND generation = :generation

-- name: attempt_texts
SELECT verdict, summary_error FROM attempt WHERE conversation_no = :no ORDER BY number

-- name: attempt_erase
-- What guards go by stays: verdicts are words of clew's own.
UPDATE attempt SET summary_error = NULL WHERE conversation_no = :no

-- name: turn_texts
SELECT key, error FROM turn WHERE conversation_no = :no ORDER BY number

-- name: turn_erase
UPDATE turn SET key = NULL, error = CASE WHEN error IS NULL THEN NULL ELSE 'erased' END
WHERE conversation_no = :no AND number BETWEEN :first AND :last

-- name: model_call_texts
SELECT partial, error, settings FROM model_call WHERE conversation_no = :no ORDER BY number

-- name: model_call_erase
UPDATE model_call SET partial = NULL, settings = NULL,
  error = CASE WHEN error IS NULL THEN NULL ELSE 'erased' END
WHERE conversation_no = :no

-- name: model_call_unprompt
UPDATE model_call SET prompt_hash = NULL, toolset_hash = NULL WHERE conversation_no = :no

-- name: outbox_texts
SELECT number, turn, route, payload, error FROM outbox WHERE conversation_no = :no ORDER BY number

-- name: outbox_erase
-- What was not sent is not sent any more.
UPDATE outbox SET payload = 'null', route = :route,
  error = CASE WHEN state = 'sent' THEN NULL ELSE 'erased' END,
  state = CASE WHEN state = 'pending' THEN 'failed' ELSE state END
WHERE conversation_no = :no AND number = :number

-- name: todo_erase
UPDATE todo SET text = :text WHERE conversation_no = :no AND number = :number

-- name: goal_texts
SELECT number, text FROM goal WHERE conversation_no = :no ORDER BY number

-- name: goal_erase
UPDATE goal SET text = :text WHERE conversation_no = :no AND number = :number

-- name: approval_erase
UPDATE approval SET by = NULL WHERE conversation_no = :no
  AND (CAST(:person AS TEXT) IS NULL OR by = :person)

-- name: cut_erase
UPDATE cut SET by = NULL WHERE conversation_no = :no
  AND (CAST(:person AS TEXT) IS NULL OR by = :person)

-- name: boundary_erase
UPDATE boundary SET error = NULL WHERE conversation_no = :no

-- name: conversation_erase
-- Titles and preview that may be of what is gone; the view moves.
UPDATE conversation SET view = view + 1, title_user = :title_user, title_llm = NULL,
  title_derived = :title_derived, preview = :preview
WHERE no = :no

-- name: conversation_forget
-- What a conversation that is erased as a whole says of itself.
UPDATE conversation SET title_user = NULL, title_llm = NULL, title_derived = NULL, title_locked = 0,
  preview = NULL, cwd = NULL, git_root = NULL, git_branch = NULL, meta = NULL, prompt_hash = NULL,
  toolset_hash = NULL, view = view + 1
WHERE no = :no

-- name: conversation_texts
SELECT title_user, title_llm, title_derived, preview, cwd, git_root, git_branch, meta
FROM conversation WHERE no = :no

-- name: conversation_place
SELECT no, id, kind, origin, base, head FROM conversation
WHERE no = (SELECT no FROM {{copy_names}} WHERE id = :id) AND profile = :profile

-- name: binding_keys
SELECT source, key, conversation FROM binding WHERE profile = :profile ORDER BY source, key

-- name: binding_forget
DELETE FROM binding WHERE profile = :profile AND source = :source AND key = :key

-- name: inbound_keys
SELECT source, account, key, conversation FROM inbound WHERE profile = :profile
ORDER BY source, account, key

-- name: inbound_forget
DELETE FROM inbound WHERE profile = :profile AND source = :source AND account = :account
  AND key = :key

-- name: inbound_forget_of
DELETE FROM inbound WHERE profile = :profile AND conversation = :conversation

-- name: alias_keys
SELECT source, foreign_id, conversation FROM alias WHERE profile = :profile
ORDER BY source, foreign_id

-- name: alias_forget
DELETE FROM alias WHERE profile = :profile AND source = :source AND foreign_id = :foreign_id
