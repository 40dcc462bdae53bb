-- The log and every record beside it, for PostgreSQL: the twin of the file for SQLite.
-- Invariants are constraints first (docs/invariants.md). Times are microseconds since 1970-01-01
-- UTC, given by the caller. Texts compare by code point (COLLATE "C"), as on SQLite. The keys of a
-- conversation's tables begin with its number, so that they can be partitioned or distributed by
-- it. No text of a message is in a TEXT column, which cannot hold NUL.

-- Numbers that grow with commits. Transactions get their number when they first write and commit in
-- another order; a reader therefore never asks for "greater than the last": it asks for what its
-- last snapshot did not show (clew_shown), or for what lies below every transaction that is still
-- open (clew_settled). The offset is raised when a store is restored into another server, whose
-- transaction numbers are lower than the store's (`clew migrate --restored`).
CREATE FUNCTION clew_offset() RETURNS BIGINT LANGUAGE SQL IMMUTABLE AS 'SELECT CAST(0 AS BIGINT)';

CREATE FUNCTION clew_id(nth BIGINT) RETURNS BIGINT LANGUAGE SQL VOLATILE AS
  'SELECT ((CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + clew_offset()) << 20)
    | (nth & 1048575)';

CREATE FUNCTION clew_shown(id BIGINT, seen pg_snapshot) RETURNS BOOLEAN LANGUAGE SQL STABLE AS
  'SELECT pg_visible_in_snapshot(CAST(CAST((id >> 20) - clew_offset() AS TEXT) AS xid8), seen)';

CREATE FUNCTION clew_settled(seen pg_snapshot) RETURNS BIGINT LANGUAGE SQL STABLE AS
  'SELECT (CAST(CAST(pg_snapshot_xmin(seen) AS TEXT) AS BIGINT) + clew_offset()) << 20';

CREATE FUNCTION clew_newest(seen pg_snapshot) RETURNS BIGINT LANGUAGE SQL STABLE AS
  'SELECT (CAST(CAST(pg_snapshot_xmax(seen) AS TEXT) AS BIGINT) + clew_offset()) << 20';

-- A conversation's number: milliseconds and chance. Not a sequence, because one that a restore or a
-- failover has set back would give a number again that another host still holds for the
-- conversation which had it before.
CREATE FUNCTION clew_number() RETURNS BIGINT LANGUAGE SQL VOLATILE AS
  'SELECT (CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) << 20)
    | CAST(floor(random() * 1048576) AS BIGINT)';

-- The table `meta` is there already: it is made before all else, so that it can be locked.

-- A reason cannot be written unclassified: conversation.end_reason is a foreign key into this.
-- Boundaries are acts of a person or policy; the others are written by sweepers and imports only
-- and are undone by the next message.
CREATE TABLE end_reason(
  reason TEXT COLLATE "C" PRIMARY KEY,
  is_boundary SMALLINT NOT NULL CHECK(is_boundary IN (0, 1))
);

INSERT INTO end_reason(reason, is_boundary) VALUES
  ('closed', 1), ('reset', 1), ('new', 1), ('idle', 1), ('daily', 1), ('switched', 1),
  ('suspended', 1), ('expired', 1), ('exhausted', 1), ('finished', 1),
  ('stale', 0), ('imported', 0);

-- Zstandard dictionaries for message parts; immutable, numbered from 1.
CREATE TABLE dictionary(
  version BIGINT PRIMARY KEY,
  bytes BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE prompt(
  hash BYTEA PRIMARY KEY CHECK(octet_length(hash) = 32),
  text BYTEA NOT NULL
);

CREATE TABLE toolset(
  hash BYTEA PRIMARY KEY CHECK(octet_length(hash) = 32),
  names TEXT COLLATE "C" NOT NULL,
  schemas BYTEA NOT NULL
);
-- A handle that was open while a dictionary was made anew may still pack with the old one. Who takes
-- a dictionary away has these tables locked.
CREATE FUNCTION clew_needs_parts() RETURNS TRIGGER LANGUAGE plpgsql AS '
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.parts, 1)) THEN
    RAISE EXCEPTION ''its dictionary was made anew by an erasure, repeat the call (I-23)'' USING ERRCODE = ''23514'';
  END IF;
  RETURN NEW;
END';
CREATE FUNCTION clew_needs_body() RETURNS TRIGGER LANGUAGE plpgsql AS '
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.body, 1)) THEN
    RAISE EXCEPTION ''its dictionary was made anew by an erasure, repeat the call (I-23)'' USING ERRCODE = ''23514'';
  END IF;
  RETURN NEW;
END';
CREATE FUNCTION clew_needs_text() RETURNS TRIGGER LANGUAGE plpgsql AS '
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.text, 1)) THEN
    RAISE EXCEPTION ''its dictionary was made anew by an erasure, repeat the call (I-23)'' USING ERRCODE = ''23514'';
  END IF;
  RETURN NEW;
END';
CREATE FUNCTION clew_needs_schemas() RETURNS TRIGGER LANGUAGE plpgsql AS '
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.schemas, 1)) THEN
    RAISE EXCEPTION ''its dictionary was made anew by an erasure, repeat the call (I-23)'' USING ERRCODE = ''23514'';
  END IF;
  RETURN NEW;
END';
CREATE TRIGGER prompt_needs_dictionary BEFORE INSERT ON prompt
FOR EACH ROW WHEN (substr(NEW.text, 1, 1) IN ('\x02', '\x82')) EXECUTE FUNCTION clew_needs_text();
CREATE TRIGGER toolset_needs_dictionary BEFORE INSERT ON toolset
FOR EACH ROW WHEN (substr(NEW.schemas, 1, 1) IN ('\x02', '\x82')) EXECUTE FUNCTION clew_needs_schemas();

-- Its primary key decides between two that create one id. A table of its own, so that the others
-- need no index that does not begin with the number.
CREATE TABLE conversation_id(
  id TEXT COLLATE "C" PRIMARY KEY CHECK(id <> ''),
  no BIGINT NOT NULL DEFAULT clew_number(),
  profile TEXT COLLATE "C" NOT NULL
);

CREATE TABLE conversation(
  no BIGINT PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL CHECK(id <> ''),
  profile TEXT COLLATE "C" NOT NULL CHECK(profile <> ''),
  kind TEXT COLLATE "C" NOT NULL CHECK(kind IN ('root', 'branch', 'delegate')),
  source TEXT COLLATE "C" NOT NULL CHECK(source <> ''),
  origin BIGINT REFERENCES conversation(no),
  base BIGINT NOT NULL DEFAULT 0,
  head BIGINT NOT NULL DEFAULT 0,
  view BIGINT NOT NULL DEFAULT 0,
  generation BIGINT NOT NULL DEFAULT 0,
  fence BIGINT NOT NULL DEFAULT 0,
  holder TEXT COLLATE "C",
  held_at BIGINT,
  held_ttl BIGINT,
  turn BIGINT,
  title_user TEXT COLLATE "C",
  title_llm TEXT COLLATE "C",
  title_derived TEXT COLLATE "C",
  title_locked SMALLINT NOT NULL DEFAULT 0 CHECK(title_locked IN (0, 1)),
  preview TEXT COLLATE "C",
  message_count BIGINT NOT NULL DEFAULT 0 CHECK(message_count >= 0),
  waiting BIGINT NOT NULL DEFAULT 0 CHECK(waiting >= 0),
  cwd TEXT COLLATE "C",
  git_root TEXT COLLATE "C",
  git_branch TEXT COLLATE "C",
  model TEXT COLLATE "C",
  prompt_hash BYTEA REFERENCES prompt(hash),
  toolset_hash BYTEA REFERENCES toolset(hash),
  affinity TEXT COLLATE "C" NOT NULL,
  attribution TEXT COLLATE "C",
  pinned SMALLINT NOT NULL DEFAULT 0 CHECK(pinned IN (0, 1)),
  archived SMALLINT NOT NULL DEFAULT 0 CHECK(archived IN (0, 1)),
  automation SMALLINT NOT NULL DEFAULT 0 CHECK(automation IN (0, 1)),
  read_only SMALLINT NOT NULL DEFAULT 0 CHECK(read_only IN (0, 1)),
  created_at BIGINT NOT NULL,
  imported_at BIGINT,
  -- What lies above came from here, not from the source of an import.
  imported_to BIGINT CHECK(imported_to BETWEEN base AND head),
  active_at BIGINT NOT NULL,
  ended_at BIGINT,
  end_reason TEXT COLLATE "C" REFERENCES end_reason(reason),
  reopened_at BIGINT,
  -- In the bin since then; `deleting`: its rows are on their way out, and nobody restores it.
  binned_at BIGINT,
  deleting BIGINT NOT NULL DEFAULT 0 CHECK(deleting IN (0, 1)),
  meta TEXT COLLATE "C",
  CHECK(base >= 0 AND head >= base AND view >= 0 AND generation >= 0 AND fence >= 0),
  CHECK(kind = 'branch' OR base = 0),
  CHECK(kind <> 'root' OR origin IS NULL),
  CHECK((ended_at IS NULL) = (end_reason IS NULL)),
  CHECK(deleting = 0 OR binned_at IS NOT NULL),
  CHECK(binned_at IS NULL OR turn IS NULL),
  CHECK((holder IS NULL) = (held_at IS NULL) AND (holder IS NULL) = (held_ttl IS NULL))
);

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
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  hash BYTEA NOT NULL CHECK(octet_length(hash) = 32),
  PRIMARY KEY(conversation_no, hash)
);
CREATE INDEX prompt_use_hash ON prompt_use(hash);

-- id: clew_id(seq), so that rows of one conversation ascend as seq does.
CREATE TABLE message(
  id BIGINT NOT NULL,
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  seq BIGINT NOT NULL CHECK(seq > 0),
  created_at BIGINT NOT NULL,
  turn BIGINT,
  replaces BIGINT CHECK(replaces < seq),
  tokens BIGINT CHECK(tokens >= 0),
  role SMALLINT NOT NULL CHECK(role BETWEEN 1 AND 5),
  uid BYTEA NOT NULL CHECK(octet_length(uid) = 16),
  key TEXT COLLATE "C",
  author TEXT COLLATE "C",
  api_group TEXT COLLATE "C",
  parts BYTEA NOT NULL,
  meta TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, seq)
) {{partitioned}};
-- What clew has compressed, or found not to be worth it, is not compressed again.
ALTER TABLE message ALTER COLUMN parts SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX message_key ON message(conversation_no, key) WHERE key IS NOT NULL;
CREATE INDEX message_replaces ON message(conversation_no, replaces) WHERE replaces IS NOT NULL;
CREATE INDEX message_id ON message(id);

-- But for erasure, which leaves a tombstone, and for packing it anew, where a newer dictionary than
-- the one it was packed with is there (I-23).
CREATE FUNCTION clew_refuse() RETURNS TRIGGER LANGUAGE plpgsql AS '
BEGIN
  IF (NEW.id, NEW.conversation_no, NEW.seq, NEW.uid, NEW.turn, NEW.role, NEW.replaces,
      NEW.created_at) IS NOT DISTINCT FROM (OLD.id, OLD.conversation_no, OLD.seq, OLD.uid, OLD.turn,
      OLD.role, OLD.replaces, OLD.created_at)
    AND ((NEW.meta = ''{"erased":true}'' AND NEW.tokens = 0 AND NEW.key IS NULL
        AND NEW.author IS NULL AND NEW.api_group IS NULL)
      OR ((NEW.meta, NEW.tokens, NEW.key, NEW.author, NEW.api_group)
          IS NOT DISTINCT FROM (OLD.meta, OLD.tokens, OLD.key, OLD.author, OLD.api_group)
        AND substr(OLD.parts, 1, 1) IN (''\x02'', ''\x82'')
        AND get_byte(OLD.parts, 1) < (SELECT max(version) FROM dictionary))) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION ''a committed message never changes (I-02)'' USING ERRCODE = ''23514'';
END';
CREATE TRIGGER message_never_changes BEFORE UPDATE ON message
FOR EACH ROW EXECUTE FUNCTION clew_refuse();
CREATE TRIGGER message_needs_dictionary BEFORE INSERT ON message
FOR EACH ROW WHEN (substr(NEW.parts, 1, 1) IN ('\x02', '\x82')) EXECUTE FUNCTION clew_needs_parts();

CREATE TABLE blob(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  hash BYTEA NOT NULL CHECK(octet_length(hash) = 32),
  bytes BYTEA NOT NULL,
  PRIMARY KEY(conversation_no, hash)
) {{partitioned}};
ALTER TABLE blob ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE cut(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  uid BYTEA NOT NULL CHECK(octet_length(uid) = 16),
  from_seq BIGINT NOT NULL CHECK(from_seq > 0),
  to_seq BIGINT NOT NULL CHECK(to_seq >= from_seq),
  by TEXT COLLATE "C",
  at BIGINT NOT NULL,
  undone_at BIGINT,
  PRIMARY KEY(conversation_no, number)
);

CREATE TABLE attempt(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  uid BYTEA NOT NULL CHECK(octet_length(uid) = 16),
  view BIGINT NOT NULL,
  base_generation BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('open', 'committed', 'cancelled', 'overtaken', 'failed')),
  trigger TEXT COLLATE "C" NOT NULL CHECK(trigger IN ('soft', 'hard', 'user')),
  model TEXT COLLATE "C",
  verdict TEXT COLLATE "C",
  summary_error TEXT COLLATE "C",
  deadline BIGINT,
  started_at BIGINT NOT NULL,
  ended_at BIGINT,
  tokens_before BIGINT,
  tokens_after BIGINT,
  PRIMARY KEY(conversation_no, number),
  CHECK((state = 'open') = (ended_at IS NULL))
);

CREATE TABLE compaction(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  generation BIGINT NOT NULL CHECK(generation > 0),
  attempt BIGINT,
  covers_to BIGINT NOT NULL CHECK(covers_to > 0),
  body BYTEA NOT NULL,
  cuts TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL CHECK(kind IN ('ours', 'foreign')),
  tokens_before BIGINT,
  tokens_after BIGINT,
  created_at BIGINT NOT NULL,
  undone_at BIGINT,
  undone_tokens BIGINT CHECK(undone_tokens >= 0),
  receipt TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, generation),
  CHECK(undone_tokens IS NULL OR undone_at IS NOT NULL),
  CHECK(kind = 'foreign' OR
        (tokens_before IS NOT NULL AND tokens_after IS NOT NULL AND tokens_after < tokens_before))
);
CREATE UNIQUE INDEX compaction_attempt ON compaction(conversation_no, attempt)
  WHERE attempt IS NOT NULL;
CREATE TRIGGER compaction_needs_dictionary BEFORE INSERT ON compaction
FOR EACH ROW WHEN (substr(NEW.body, 1, 1) IN ('\x02', '\x82')) EXECUTE FUNCTION clew_needs_body();

CREATE TABLE turn(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  uid BYTEA NOT NULL CHECK(octet_length(uid) = 16),
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('running', 'waiting', 'done', 'interrupted', 'failed')),
  key TEXT COLLATE "C",
  first_seq BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at BIGINT,
  error TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, number),
  CHECK((state IN ('running', 'waiting')) = (ended_at IS NULL))
);
CREATE UNIQUE INDEX turn_open ON turn(conversation_no) WHERE state IN ('running', 'waiting');

CREATE TABLE model_call(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  turn BIGINT,
  purpose TEXT COLLATE "C" NOT NULL CHECK(purpose IN ('turn', 'summary', 'title', 'review')),
  after_attempt BIGINT,
  model TEXT COLLATE "C" NOT NULL,
  prompt_hash BYTEA REFERENCES prompt(hash),
  toolset_hash BYTEA REFERENCES toolset(hash),
  generation BIGINT NOT NULL,
  up_to_seq BIGINT NOT NULL,
  expected_tokens BIGINT CHECK(expected_tokens >= 0),
  settings TEXT COLLATE "C",
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('planned', 'done', 'failed')),
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cached_tokens BIGINT NOT NULL DEFAULT 0,
  reasoning_tokens BIGINT NOT NULL DEFAULT 0,
  cost DOUBLE PRECISION,
  latency BIGINT,
  prefix_hash TEXT COLLATE "C",
  partial TEXT COLLATE "C",
  error TEXT COLLATE "C",
  started_at BIGINT NOT NULL,
  api_group TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, number)
);
-- The usage of an imported call counts once, however many records of the source repeat it.
CREATE UNIQUE INDEX model_call_group ON model_call(conversation_no, api_group)
  WHERE api_group IS NOT NULL;
-- What a day cost is looked up before each turn.
CREATE INDEX model_call_started ON model_call(started_at);

CREATE TABLE inbox(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  uid BYTEA NOT NULL CHECK(octet_length(uid) = 16),
  key TEXT COLLATE "C",
  role SMALLINT NOT NULL CHECK(role BETWEEN 1 AND 5),
  author TEXT COLLATE "C",
  parts BYTEA NOT NULL,
  meta TEXT COLLATE "C",
  tokens BIGINT,
  received_at BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('waiting', 'taken', 'withdrawn')),
  seq BIGINT,
  PRIMARY KEY(conversation_no, number),
  CHECK((state = 'taken') = (seq IS NOT NULL))
);
CREATE UNIQUE INDEX inbox_key ON inbox(conversation_no, key) WHERE key IS NOT NULL;
CREATE INDEX inbox_waiting ON inbox(conversation_no, number) WHERE state = 'waiting';
CREATE TRIGGER inbox_needs_dictionary BEFORE INSERT ON inbox
FOR EACH ROW WHEN (substr(NEW.parts, 1, 1) IN ('\x02', '\x82')) EXECUTE FUNCTION clew_needs_parts();

-- inbound, binding and alias name the conversation by its id, without a foreign key: they outlive
-- it, or are written before it (verify checks them).
CREATE TABLE inbound(
  profile TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  conversation TEXT COLLATE "C" NOT NULL,
  result TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY(profile, source, account, key)
);
CREATE INDEX inbound_at ON inbound(at);

CREATE TABLE binding(
  profile TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  conversation TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY(profile, source, key),
  UNIQUE(profile, source, conversation)
);

CREATE TABLE alias(
  profile TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  foreign_id TEXT COLLATE "C" NOT NULL,
  conversation TEXT COLLATE "C" NOT NULL,
  from_seq BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL CHECK(kind IN ('segment', 'foreign')),
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('claimed', 'ambiguous', 'deleted')),
  at BIGINT NOT NULL,
  PRIMARY KEY(profile, foreign_id, source, conversation)
);
CREATE UNIQUE INDEX alias_claimed ON alias(profile, source, foreign_id) WHERE state = 'claimed';
CREATE INDEX alias_conversation ON alias(conversation);

CREATE TABLE todo(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  text TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('pending', 'active', 'done', 'dropped')),
  at BIGINT NOT NULL,
  PRIMARY KEY(conversation_no, number)
);

CREATE TABLE goal(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  text TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('active', 'done', 'cleared')),
  at BIGINT NOT NULL,
  PRIMARY KEY(conversation_no, number)
);
CREATE UNIQUE INDEX goal_active ON goal(conversation_no) WHERE state = 'active';

-- Tool calls that a person must allow before they run. started: they may have run.
CREATE TABLE approval(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  turn BIGINT NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('asked', 'allowed', 'denied', 'started')),
  always SMALLINT NOT NULL DEFAULT 0 CHECK(always IN (0, 1)),
  by TEXT COLLATE "C",
  asked_at BIGINT NOT NULL,
  answered_at BIGINT,
  PRIMARY KEY(conversation_no, turn, call_id),
  CHECK((state = 'asked') = (answered_at IS NULL)),
  CHECK(always = 0 OR state IN ('allowed', 'started'))
);

CREATE TABLE presence(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  owner TEXT COLLATE "C" NOT NULL,
  heartbeat BIGINT NOT NULL,
  label TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, owner)
);

CREATE TABLE outbox(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number > 0),
  turn BIGINT NOT NULL,
  route TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK(state IN ('pending', 'sent', 'failed')),
  attempts BIGINT NOT NULL DEFAULT 0,
  next_at BIGINT NOT NULL,
  error TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, number)
);
CREATE INDEX outbox_due ON outbox(next_at) WHERE state = 'pending';

-- Who is told of every boundary in a profile (I-20).
CREATE TABLE subscriber(
  profile TEXT COLLATE "C" NOT NULL CHECK(profile <> ''),
  name TEXT COLLATE "C" NOT NULL CHECK(name <> ''),
  created_at BIGINT NOT NULL,
  PRIMARY KEY(profile, name)
);

-- What a subscriber was not told yet. number: the conversation's view right after the boundary, so
-- that it grows and is never given again. next_at: of the lowest of a conversation alone, so that
-- who looks for work meets none that has to wait.
CREATE TABLE boundary(
  conversation_no BIGINT NOT NULL REFERENCES conversation(no),
  number BIGINT NOT NULL CHECK(number >= 0),
  subscriber TEXT COLLATE "C" NOT NULL,
  profile TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL CHECK(kind IN ('compaction', 'undo', 'reset')),
  generation BIGINT NOT NULL CHECK(generation >= 0),
  reason TEXT COLLATE "C" NOT NULL CHECK(reason <> ''),
  source TEXT COLLATE "C" NOT NULL CHECK(source <> ''),
  from_id TEXT COLLATE "C" NOT NULL CHECK(from_id <> ''),
  to_id TEXT COLLATE "C" NOT NULL CHECK(to_id <> ''),
  at BIGINT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_at BIGINT,
  error TEXT COLLATE "C",
  PRIMARY KEY(conversation_no, subscriber, number),
  FOREIGN KEY(profile, subscriber) REFERENCES subscriber(profile, name),
  CHECK((kind = 'reset') = (number = 0) AND (kind = 'reset') = (generation = 0))
);
CREATE INDEX boundary_due ON boundary(profile, subscriber, next_at, conversation_no)
  WHERE next_at IS NOT NULL;
CREATE INDEX boundary_of ON boundary(profile, subscriber, conversation_no, number);

CREATE TABLE job(
  name TEXT COLLATE "C" PRIMARY KEY,
  holder TEXT COLLATE "C",
  fence BIGINT NOT NULL,
  at BIGINT,
  ttl BIGINT,
  done_at BIGINT
);

-- Everything that changes a conversation other than appending to it: what follow() reports, and
-- what the search indexer must undo. `detail` of a deletion or erasure holds the ranges of message ids.
CREATE SEQUENCE change_nth CYCLE MAXVALUE 1048575;
CREATE TABLE change(
  id BIGINT PRIMARY KEY,
  conversation TEXT COLLATE "C" NOT NULL,
  profile TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL CHECK(kind IN ('created', 'cut', 'undone', 'compacted', 'titled', 'flagged',
    'ended', 'reopened', 'turn', 'deleted', 'erased')),
  detail TEXT COLLATE "C",
  at BIGINT NOT NULL
);

-- Last in each write transaction, with the newest schema that the writer knows. A `post` migration
-- first waits for all who hold a lock on a conversation, and then raises min_writer_version: a
-- writer that knows less has committed before it, or is refused here. A move (store/copy/) waits and
-- seals in the same way; its own transaction, which writes `moved_to`, may commit.
CREATE FUNCTION clew_guard(known INTEGER) RETURNS VOID LANGUAGE plpgsql AS '
DECLARE
  place TEXT;
BEGIN
  IF known < (SELECT CAST(value AS INTEGER) FROM meta WHERE name = ''min_writer_version'') THEN
    RAISE EXCEPTION ''a newer clew has changed the store'' USING ERRCODE = ''CLEW1'';
  END IF;
  SELECT value INTO place FROM meta WHERE name = ''moved_to''
    AND xmin IS DISTINCT FROM CAST(pg_current_xact_id_if_assigned() AS xid);
  IF place IS NOT NULL THEN
    RAISE EXCEPTION USING MESSAGE = place, ERRCODE = ''CLEW2'';
  END IF;
END';

-- The words of each message that is indexed, which may be thrown away at any time; and how far the
-- log is. `words` has no positions: see docs/decisions/0011-an-index-without-positions.md.
CREATE TABLE search_text(
  id BIGINT PRIMARY KEY,
  words tsvector NOT NULL
);
CREATE INDEX search_text_words ON search_text USING gin(words) WITH (fastupdate = on);

CREATE TABLE search_mark(
  only_one SMALLINT PRIMARY KEY DEFAULT 1 CHECK(only_one = 1),
  format INTEGER NOT NULL,
  store_id TEXT COLLATE "C",
  stamp TEXT COLLATE "C",
  message BIGINT NOT NULL DEFAULT 0,
  change BIGINT NOT NULL DEFAULT 0,
  -- The one profile of all rows so far; '' once there were several.
  profile TEXT COLLATE "C",
  -- Rows that could not be decoded, and those with too many words; not counted down.
  unreadable BIGINT NOT NULL DEFAULT 0,
  oversized BIGINT NOT NULL DEFAULT 0,
  rows BIGINT NOT NULL DEFAULT 0
);

-- A batch goes into the index as a whole, which takes a fifth of the time, and at its end: a query
-- would have to read through what is pending. Only the owner of an index may ask for that.
CREATE FUNCTION clew_search_merge() RETURNS BIGINT LANGUAGE SQL VOLATILE SECURITY DEFINER
  SET search_path FROM CURRENT AS
  'SELECT gin_clean_pending_list(CAST(''search_text_words'' AS regclass))';
