-- The log and every record beside it. Invariants are constraints first (docs/invariants.md).
-- Times are microseconds since 1970-01-01 UTC, given by the caller.

CREATE TABLE meta(
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A reason cannot be written unclassified: conversation.end_reason is a foreign key into this.
-- Boundaries are acts of a person or policy; the others are written by sweepers and imports only
-- and are undone by the next message.
CREATE TABLE end_reason(
  reason TEXT PRIMARY KEY,
  is_boundary INTEGER NOT NULL CHECK(is_boundary IN (0, 1))
) STRICT, WITHOUT ROWID;

INSERT INTO end_reason(reason, is_boundary) VALUES
  ('closed', 1), ('reset', 1), ('new', 1), ('idle', 1), ('daily', 1), ('switched', 1),
  ('suspended', 1), ('expired', 1), ('exhausted', 1), ('finished', 1),
  ('stale', 0), ('imported', 0);

-- Zstandard dictionaries for message parts; immutable, numbered from 1.
CREATE TABLE dictionary(
  version INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE prompt(
  hash BLOB PRIMARY KEY CHECK(length(hash) = 32),
  text BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE toolset(
  hash BLOB PRIMARY KEY CHECK(length(hash) = 32),
  names TEXT NOT NULL,
  schemas BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER prompt_needs_dictionary BEFORE INSERT ON prompt
WHEN hex(substr(NEW.text, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.text, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;
CREATE TRIGGER toolset_needs_dictionary BEFORE INSERT ON toolset
WHEN hex(substr(NEW.schemas, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.schemas, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;

CREATE TABLE conversation(
  no INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE CHECK(id <> ''),
  profile TEXT NOT NULL CHECK(profile <> ''),
  kind TEXT NOT NULL CHECK(kind IN ('root', 'branch', 'delegate')),
  source TEXT NOT NULL CHECK(source <> ''),
  origin INTEGER REFERENCES conversation(no),
  base INTEGER NOT NULL DEFAULT 0,
  head INTEGER NOT NULL DEFAULT 0,
  view INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  holder TEXT,
  held_at INTEGER,
  held_ttl INTEGER,
  turn INTEGER,
  title_user TEXT,
  title_llm TEXT,
  title_derived TEXT,
  title_locked INTEGER NOT NULL DEFAULT 0 CHECK(title_locked IN (0, 1)),
  preview TEXT,
  message_count INTEGER NOT NULL DEFAULT 0 CHECK(message_count >= 0),
  waiting INTEGER NOT NULL DEFAULT 0 CHECK(waiting >= 0),
  cwd TEXT,
  git_root TEXT,
  git_branch TEXT,
  model TEXT,
  prompt_hash BLOB REFERENCES prompt(hash),
  toolset_hash BLOB REFERENCES toolset(hash),
  affinity TEXT NOT NULL,
  attribution TEXT,
  pinned INTEGER NOT NULL DEFAULT 0 CHECK(pinned IN (0, 1)),
  archived INTEGER NOT NULL DEFAULT 0 CHECK(archived IN (0, 1)),
  automation INTEGER NOT NULL DEFAULT 0 CHECK(automation IN (0, 1)),
  read_only INTEGER NOT NULL DEFAULT 0 CHECK(read_only IN (0, 1)),
  created_at INTEGER NOT NULL,
  imported_at INTEGER,
  -- What lies above came from here, not from the source of an import.
  imported_to INTEGER CHECK(imported_to BETWEEN base AND head),
  active_at INTEGER NOT NULL,
  ended_at INTEGER,
  end_reason TEXT REFERENCES end_reason(reason),
  reopened_at INTEGER,
  -- In the bin since then; `deleting`: its rows are on their way out, and nobody restores it.
  binned_at INTEGER,
  deleting INTEGER NOT NULL DEFAULT 0 CHECK(deleting IN (0, 1)),
  meta TEXT,
  CHECK(base >= 0 AND head >= base AND view >= 0 AND generation >= 0 AND fence >= 0),
  CHECK(kind = 'branch' OR base = 0),
  CHECK(kind <> 'root' OR origin IS NULL),
  CHECK((ended_at IS NULL) = (end_reason IS NULL)),
  CHECK(deleting = 0 OR binned_at IS NOT NULL),
  CHECK(binned_at IS NULL OR turn IS NULL),
  CHECK((holder IS NULL) = (held_at IS NULL) AND (holder IS NULL) = (held_ttl IS NULL))
) STRICT;

-- Each kind of list walks one of these from its newest end, so it stays flat at any size.
CREATE INDEX conversation_listed ON conversation(profile, archived, active_at, no)
  WHERE kind <> 'delegate' AND binned_at IS NULL;
CREATE INDEX conversation_everywhere ON conversation(archived, active_at, no)
  WHERE kind <> 'delegate' AND binned_at IS NULL;
CREATE INDEX conversation_by_source ON conversation(profile, archived, source, active_at, no)
  WHERE kind <> 'delegate' AND binned_at IS NULL;
CREATE INDEX conversation_by_project
  ON conversation(profile, archived, coalesce(git_root, cwd), active_at, no)
  WHERE kind <> 'delegate' AND binned_at IS NULL AND coalesce(git_root, cwd) IS NOT NULL;
CREATE INDEX conversation_pinned ON conversation(profile, archived, pinned, active_at, no)
  WHERE pinned = 1 AND kind <> 'delegate' AND binned_at IS NULL;
CREATE INDEX conversation_origin ON conversation(origin, no) WHERE origin IS NOT NULL;
CREATE INDEX conversation_unfinished ON conversation(profile, no)
  WHERE turn IS NOT NULL OR waiting > 0;
CREATE INDEX conversation_binned ON conversation(binned_at, no) WHERE binned_at IS NOT NULL;
CREATE INDEX conversation_deleting ON conversation(no) WHERE deleting = 1;

-- Which conversations have ever pointed at a prompt or tool set: it stays while one of them does,
-- since their model calls name it.
CREATE TABLE prompt_use(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  hash BLOB NOT NULL CHECK(length(hash) = 32),
  PRIMARY KEY(conversation_no, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX prompt_use_hash ON prompt_use(hash);

-- id: commit order on this engine, the mark of the search indexer; never reused.
CREATE TABLE message(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  seq INTEGER NOT NULL CHECK(seq > 0),
  uid BLOB NOT NULL CHECK(length(uid) = 16),
  key TEXT,
  turn INTEGER,
  role INTEGER NOT NULL CHECK(role BETWEEN 1 AND 5),
  author TEXT,
  api_group TEXT,
  replaces INTEGER CHECK(replaces < seq),
  parts BLOB NOT NULL,
  meta TEXT,
  tokens INTEGER CHECK(tokens >= 0),
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_seq ON message(conversation_no, seq);
CREATE UNIQUE INDEX message_key ON message(conversation_no, key) WHERE key IS NOT NULL;
CREATE INDEX message_replaces ON message(conversation_no, replaces) WHERE replaces IS NOT NULL;

-- But for erasure, which leaves a tombstone, and for packing it anew, where a newer dictionary than
-- the one it was packed with is there (I-23).
CREATE TRIGGER message_never_changes BEFORE UPDATE ON message
WHEN NOT (
  NEW.id IS OLD.id AND NEW.conversation_no IS OLD.conversation_no AND NEW.seq IS OLD.seq
  AND NEW.uid IS OLD.uid AND NEW.turn IS OLD.turn AND NEW.role IS OLD.role
  AND NEW.replaces IS OLD.replaces AND NEW.created_at IS OLD.created_at
  AND ((NEW.meta IS '{"erased":true}' AND NEW.tokens IS 0 AND NEW.key IS NULL
      AND NEW.author IS NULL AND NEW.api_group IS NULL)
    OR (NEW.meta IS OLD.meta AND NEW.tokens IS OLD.tokens AND NEW.key IS OLD.key
      AND NEW.author IS OLD.author AND NEW.api_group IS OLD.api_group
      AND hex(substr(OLD.parts, 1, 1)) IN ('02', '82') AND hex(substr(OLD.parts, 2, 1))
        < (SELECT printf('%02X', max(version)) FROM dictionary))))
BEGIN SELECT RAISE(ABORT, 'a committed message never changes (I-02)'); END;

-- A handle that was open while a dictionary was made anew may still pack with the old one.
CREATE TRIGGER message_needs_dictionary BEFORE INSERT ON message
WHEN hex(substr(NEW.parts, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.parts, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;

CREATE TABLE blob(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  hash BLOB NOT NULL CHECK(length(hash) = 32),
  bytes BLOB NOT NULL,
  PRIMARY KEY(conversation_no, hash)
) STRICT;

CREATE TABLE cut(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  uid BLOB NOT NULL CHECK(length(uid) = 16),
  from_seq INTEGER NOT NULL CHECK(from_seq > 0),
  to_seq INTEGER NOT NULL CHECK(to_seq >= from_seq),
  by TEXT,
  at INTEGER NOT NULL,
  undone_at INTEGER,
  PRIMARY KEY(conversation_no, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  uid BLOB NOT NULL CHECK(length(uid) = 16),
  view INTEGER NOT NULL,
  base_generation INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('open', 'committed', 'cancelled', 'overtaken', 'failed')),
  trigger TEXT NOT NULL CHECK(trigger IN ('soft', 'hard', 'user')),
  model TEXT,
  verdict TEXT,
  summary_error TEXT,
  deadline INTEGER,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  tokens_before INTEGER,
  tokens_after INTEGER,
  PRIMARY KEY(conversation_no, number),
  CHECK((state = 'open') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE compaction(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  generation INTEGER NOT NULL CHECK(generation > 0),
  attempt INTEGER,
  covers_to INTEGER NOT NULL CHECK(covers_to > 0),
  body BLOB NOT NULL,
  cuts TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('ours', 'foreign')),
  tokens_before INTEGER,
  tokens_after INTEGER,
  created_at INTEGER NOT NULL,
  undone_at INTEGER,
  undone_tokens INTEGER CHECK(undone_tokens >= 0),
  receipt TEXT,
  PRIMARY KEY(conversation_no, generation),
  CHECK(undone_tokens IS NULL OR undone_at IS NOT NULL),
  CHECK(kind = 'foreign' OR
        (tokens_before IS NOT NULL AND tokens_after IS NOT NULL AND tokens_after < tokens_before))
) STRICT;
CREATE UNIQUE INDEX compaction_attempt ON compaction(conversation_no, attempt)
  WHERE attempt IS NOT NULL;
CREATE TRIGGER compaction_needs_dictionary BEFORE INSERT ON compaction
WHEN hex(substr(NEW.body, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.body, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;

CREATE TABLE turn(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  uid BLOB NOT NULL CHECK(length(uid) = 16),
  state TEXT NOT NULL CHECK(state IN ('running', 'waiting', 'done', 'interrupted', 'failed')),
  key TEXT,
  first_seq INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  error TEXT,
  PRIMARY KEY(conversation_no, number),
  CHECK((state IN ('running', 'waiting')) = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX turn_open ON turn(conversation_no) WHERE state IN ('running', 'waiting');

CREATE TABLE model_call(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  turn INTEGER,
  purpose TEXT NOT NULL CHECK(purpose IN ('turn', 'summary', 'title', 'review')),
  after_attempt INTEGER,
  model TEXT NOT NULL,
  prompt_hash BLOB REFERENCES prompt(hash),
  toolset_hash BLOB REFERENCES toolset(hash),
  generation INTEGER NOT NULL,
  up_to_seq INTEGER NOT NULL,
  expected_tokens INTEGER CHECK(expected_tokens >= 0),
  settings TEXT,
  state TEXT NOT NULL CHECK(state IN ('planned', 'done', 'failed')),
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  cost REAL,
  latency INTEGER,
  prefix_hash TEXT,
  partial TEXT,
  error TEXT,
  started_at INTEGER NOT NULL,
  api_group TEXT,
  PRIMARY KEY(conversation_no, number)
) STRICT, WITHOUT ROWID;
-- The usage of an imported call counts once, however many records of the source repeat it.
CREATE UNIQUE INDEX model_call_group ON model_call(conversation_no, api_group)
  WHERE api_group IS NOT NULL;
-- What a day cost is looked up before each turn.
CREATE INDEX model_call_started ON model_call(started_at);

CREATE TABLE inbox(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  uid BLOB NOT NULL CHECK(length(uid) = 16),
  key TEXT,
  role INTEGER NOT NULL CHECK(role BETWEEN 1 AND 5),
  author TEXT,
  parts BLOB NOT NULL,
  meta TEXT,
  tokens INTEGER,
  received_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('waiting', 'taken', 'withdrawn')),
  seq INTEGER,
  PRIMARY KEY(conversation_no, number),
  CHECK((state = 'taken') = (seq IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX inbox_key ON inbox(conversation_no, key) WHERE key IS NOT NULL;
CREATE INDEX inbox_waiting ON inbox(conversation_no, number) WHERE state = 'waiting';
CREATE TRIGGER inbox_needs_dictionary BEFORE INSERT ON inbox
WHEN hex(substr(NEW.parts, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.parts, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;

-- inbound, binding and alias name the conversation by its id, without a foreign key: they outlive
-- it, or are written before it (verify checks them).
CREATE TABLE inbound(
  profile TEXT NOT NULL,
  source TEXT NOT NULL,
  account TEXT NOT NULL,
  key TEXT NOT NULL,
  conversation TEXT NOT NULL,
  result TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY(profile, source, account, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_at ON inbound(at);

CREATE TABLE binding(
  profile TEXT NOT NULL,
  source TEXT NOT NULL,
  key TEXT NOT NULL,
  conversation TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY(profile, source, key),
  UNIQUE(profile, source, conversation)
) STRICT, WITHOUT ROWID;

CREATE TABLE alias(
  profile TEXT NOT NULL,
  source TEXT NOT NULL,
  foreign_id TEXT NOT NULL,
  conversation TEXT NOT NULL,
  from_seq INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('segment', 'foreign')),
  state TEXT NOT NULL CHECK(state IN ('claimed', 'ambiguous', 'deleted')),
  at INTEGER NOT NULL,
  PRIMARY KEY(profile, foreign_id, source, conversation)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX alias_claimed ON alias(profile, source, foreign_id) WHERE state = 'claimed';
CREATE INDEX alias_conversation ON alias(conversation);

CREATE TABLE todo(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  text TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('pending', 'active', 'done', 'dropped')),
  at INTEGER NOT NULL,
  PRIMARY KEY(conversation_no, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE goal(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  text TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('active', 'done', 'cleared')),
  at INTEGER NOT NULL,
  PRIMARY KEY(conversation_no, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX goal_active ON goal(conversation_no) WHERE state = 'active';

-- Tool calls that a person must allow before they run. started: they may have run.
CREATE TABLE approval(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  turn INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('asked', 'allowed', 'denied', 'started')),
  always INTEGER NOT NULL DEFAULT 0 CHECK(always IN (0, 1)),
  by TEXT,
  asked_at INTEGER NOT NULL,
  answered_at INTEGER,
  PRIMARY KEY(conversation_no, turn, call_id),
  CHECK((state = 'asked') = (answered_at IS NULL)),
  CHECK(always = 0 OR state IN ('allowed', 'started'))
) STRICT, WITHOUT ROWID;

CREATE TABLE presence(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  owner TEXT NOT NULL,
  heartbeat INTEGER NOT NULL,
  label TEXT,
  PRIMARY KEY(conversation_no, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number > 0),
  turn INTEGER NOT NULL,
  route TEXT NOT NULL,
  payload TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('pending', 'sent', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY(conversation_no, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox(next_at) WHERE state = 'pending';

-- Who is told of every boundary in a profile (I-20).
CREATE TABLE subscriber(
  profile TEXT NOT NULL CHECK(profile <> ''),
  name TEXT NOT NULL CHECK(name <> ''),
  created_at INTEGER NOT NULL,
  PRIMARY KEY(profile, name)
) STRICT, WITHOUT ROWID;

-- What a subscriber was not told yet. number: the conversation's view right after the boundary, so
-- that it grows and is never given again. next_at: of the lowest of a conversation alone, so that
-- who looks for work meets none that has to wait.
CREATE TABLE boundary(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  number INTEGER NOT NULL CHECK(number >= 0),
  subscriber TEXT NOT NULL,
  profile TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('compaction', 'undo', 'reset')),
  generation INTEGER NOT NULL CHECK(generation >= 0),
  reason TEXT NOT NULL CHECK(reason <> ''),
  source TEXT NOT NULL CHECK(source <> ''),
  from_id TEXT NOT NULL CHECK(from_id <> ''),
  to_id TEXT NOT NULL CHECK(to_id <> ''),
  at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  error TEXT,
  PRIMARY KEY(conversation_no, subscriber, number),
  FOREIGN KEY(profile, subscriber) REFERENCES subscriber(profile, name),
  CHECK((kind = 'reset') = (number = 0) AND (kind = 'reset') = (generation = 0))
) STRICT, WITHOUT ROWID;
CREATE INDEX boundary_due ON boundary(profile, subscriber, next_at, conversation_no)
  WHERE next_at IS NOT NULL;
CREATE INDEX boundary_of ON boundary(profile, subscriber, conversation_no, number);

CREATE TABLE job(
  name TEXT PRIMARY KEY,
  holder TEXT,
  fence INTEGER NOT NULL,
  at INTEGER,
  ttl INTEGER,
  done_at INTEGER
) STRICT, WITHOUT ROWID;

-- Everything that changes a conversation other than appending to it: what follow() reports, and
-- what the search indexer must undo. `detail` of a deletion or erasure holds the ranges of message ids.
CREATE TABLE change(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation TEXT NOT NULL,
  profile TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('created', 'cut', 'undone', 'compacted', 'titled', 'flagged',
    'ended', 'reopened', 'turn', 'deleted', 'erased')),
  detail TEXT,
  at INTEGER NOT NULL
) STRICT;
