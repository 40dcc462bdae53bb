PRAGMA application_id = 1668048247;
CREATE TABLE meta(
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE end_reason(
  reason TEXT PRIMARY KEY,
  is_boundary INTEGER NOT NULL CHECK(is_boundary IN (0, 1))
) STRICT, WITHOUT ROWID;
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
CREATE TABLE prompt_use(
  conversation_no INTEGER NOT NULL REFERENCES conversation(no),
  hash BLOB NOT NULL CHECK(length(hash) = 32),
  PRIMARY KEY(conversation_no, hash)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE subscriber(
  profile TEXT NOT NULL CHECK(profile <> ''),
  name TEXT NOT NULL CHECK(name <> ''),
  created_at INTEGER NOT NULL,
  PRIMARY KEY(profile, name)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE job(
  name TEXT PRIMARY KEY,
  holder TEXT,
  fence INTEGER NOT NULL,
  at INTEGER,
  ttl INTEGER,
  done_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE change(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation TEXT NOT NULL,
  profile TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('created', 'cut', 'undone', 'compacted', 'titled', 'flagged',
    'ended', 'reopened', 'turn', 'deleted', 'erased')),
  detail TEXT,
  at INTEGER NOT NULL
) STRICT;
INSERT INTO "meta" VALUES ('min_writer_version', '1');
INSERT INTO "meta" VALUES ('schema_version', '1');
INSERT INTO "meta" VALUES ('stamp', '5998e9851c3d6a46dc5af3383cb1ae50');
INSERT INTO "meta" VALUES ('store_id', '8cb7cfdde31459a7ac92477782a20d7e');
INSERT INTO "end_reason" VALUES ('closed', 1);
INSERT INTO "end_reason" VALUES ('daily', 1);
INSERT INTO "end_reason" VALUES ('exhausted', 1);
INSERT INTO "end_reason" VALUES ('expired', 1);
INSERT INTO "end_reason" VALUES ('finished', 1);
INSERT INTO "end_reason" VALUES ('idle', 1);
INSERT INTO "end_reason" VALUES ('imported', 0);
INSERT INTO "end_reason" VALUES ('new', 1);
INSERT INTO "end_reason" VALUES ('reset', 1);
INSERT INTO "end_reason" VALUES ('stale', 0);
INSERT INTO "end_reason" VALUES ('suspended', 1);
INSERT INTO "end_reason" VALUES ('switched', 1);
INSERT INTO "prompt" VALUES (X'A73C706992E2E353F4A404AE1056D2B348A45478B7828F7F179F24BEAD864327', X'0022596F75206B65657020612073616D706C652E22');
INSERT INTO "toolset" VALUES (X'5641AC1127DDEE6C4C035FBDF7E93EEC6ACE2F83AEE6F230051B872E4C59D122', '["look"]', X'005B7B226E616D65223A226C6F6F6B222C22706172616D6574657273223A7B7D7D5D');
INSERT INTO "conversation" VALUES (1, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'root', 'web', NULL, 0, 8, 2, 1, 1, NULL, NULL, NULL, NULL, 'A sample', NULL, 'Look, 你好 ��', 0, 'right', 6, 0, NULL, NULL, NULL, NULL, X'A73C706992E2E353F4A404AE1056D2B348A45478B7828F7F179F24BEAD864327', X'5641AC1127DDEE6C4C035FBDF7E93EEC6ACE2F83AEE6F230051B872E4C59D122', '01977420dc0074248a5d2f346baa9455', NULL, 1, 0, 0, 0, 1750000000000003, NULL, NULL, 1750000000000039, NULL, NULL, 1750000000000048, NULL, 0, NULL);
INSERT INTO "conversation" VALUES (2, '0jw34b5epp83xhjj4dxh7pbn6s', 'sample', 'branch', 'web', 1, 8, 9, 0, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'A sample', 0, 'on a branch', 7, 0, NULL, NULL, NULL, NULL, X'A73C706992E2E353F4A404AE1056D2B348A45478B7828F7F179F24BEAD864327', X'5641AC1127DDEE6C4C035FBDF7E93EEC6ACE2F83AEE6F230051B872E4C59D122', '01977420dc007af399b8a714e61a441c', NULL, 0, 0, 0, 0, 1750000000000049, NULL, NULL, 1750000000000052, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO "conversation" VALUES (3, '2gy925avs5wah5n4ghgwcwf3fm', 'sample', 'delegate', 'web', 1, 0, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'for the helper', 0, 'for the helper', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc007e9aa3f2c9bf9c6316b9', '01977420dc0074248a5d2f346baa9455', 0, 0, 0, 0, 1750000000000055, NULL, NULL, 1750000000000057, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO "conversation" VALUES (4, '45exq9nqc4yef72n2t2dx1tm06', 'sample', 'root', 'web', NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc007ce08ff18e0242af9fc3', NULL, 0, 0, 0, 0, 1750000000000061, NULL, NULL, 1750000000000061, 1750000000000063, 'reset', NULL, NULL, 0, NULL);
INSERT INTO "conversation" VALUES (5, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'root', 'web', NULL, 0, 2, 2, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'long', 0, 'longer', 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc007d72b83e90ec17e0aa3c', NULL, 0, 0, 0, 0, 1750000000000064, NULL, NULL, 1750000000000066, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO "conversation" VALUES (6, 'stopped', 'sample', 'root', 'api', NULL, 0, 2, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, 'Tell.', 0, 'Once upon', 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc0075579e1b372ad3fbf47a', NULL, 0, 0, 0, 0, 1750000000000084, NULL, NULL, 1750000000000093, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO "conversation" VALUES (8, '7y8f29w54r338hepfdrdsaw8j4', 'sample', 'root', 'mail', NULL, 0, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'by a channel', 0, 'by a channel', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc0077d7aece328bff7b118e', NULL, 0, 0, 0, 0, 1750000000000106, NULL, NULL, 1750000000000106, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO "prompt_use" VALUES (1, X'5641AC1127DDEE6C4C035FBDF7E93EEC6ACE2F83AEE6F230051B872E4C59D122');
INSERT INTO "prompt_use" VALUES (2, X'5641AC1127DDEE6C4C035FBDF7E93EEC6ACE2F83AEE6F230051B872E4C59D122');
INSERT INTO "prompt_use" VALUES (1, X'A73C706992E2E353F4A404AE1056D2B348A45478B7828F7F179F24BEAD864327');
INSERT INTO "prompt_use" VALUES (2, X'A73C706992E2E353F4A404AE1056D2B348A45478B7828F7F179F24BEAD864327');
INSERT INTO "message" VALUES (1, 1, 1, X'01977420DC0077C682E2E662F728B4FA', 'k1', 1, 1, NULL, NULL, NULL, X'805B7B2274797065223A2274657874222C2274657874223A224C6F6F6B2C205C75346636305C7535393764205C75643830305C7530303030227D5D', NULL, NULL, 1750000000000005);
INSERT INTO "message" VALUES (2, 1, 2, X'01977420DC007F7D8DA5E709D4713D60', NULL, 1, 2, NULL, NULL, NULL, X'005B7B2274797065223A22726561736F6E696E67222C2274657874223A22486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20486D2E20222C226D6F64656C223A226D222C227369676E6174757265223A2273227D2C7B2274797065223A2274657874222C2274657874223A224C6F6F6B696E672E227D2C7B2274797065223A22746F6F6C5F63616C6C222C226964223A226331222C226E616D65223A226C6F6F6B222C22617267756D656E7473223A227B5C2261745C223A5C22785C227D227D5D', NULL, NULL, 1750000000000010);
INSERT INTO "message" VALUES (3, 1, 3, X'01977420DC00737FA87A1613E443DF78', NULL, 1, 3, NULL, NULL, NULL, X'005B7B2274797065223A22746F6F6C5F726573756C74222C2263616C6C5F6964223A226331222C22636F6E74656E74223A5B7B2274797065223A2274657874222C2274657874223A227365656E227D2C7B2274797065223A22696D616765222C226D656469615F74797065223A22696D6167652F706E67222C2268617368223A2230663436333663373866363564333633396563653561303634623561653735336533343038363134613134666231386162346437353430643263323438353433222C2273697A65223A347D2C7B2274797065223A22756E6B6E6F776E222C2276616C7565223A7B2274797065223A226F6464227D7D5D2C2273686F776E223A327D5D', NULL, NULL, 1750000000000021);
INSERT INTO "message" VALUES (4, 1, 4, X'01977420DC0079559BA91FAF7A024204', 'k2', 1, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A227374696C6C2074686572653F227D5D', NULL, NULL, 1750000000000017);
INSERT INTO "message" VALUES (5, 1, 5, X'01977420DC007480A3A7711A81332876', NULL, 1, 2, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A22446F6E652E227D5D', NULL, NULL, 1750000000000025);
INSERT INTO "message" VALUES (6, 1, 6, X'01977420DC0074038CA5A5A19E4D6E3C', 'k3', NULL, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A2277726F6E67227D5D', NULL, NULL, 1750000000000033);
INSERT INTO "message" VALUES (7, 1, 7, X'01977420DC007887A8E5216AFCBD04C3', NULL, NULL, 2, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A22736F2077726F6E67227D5D', NULL, NULL, 1750000000000033);
INSERT INTO "message" VALUES (8, 1, 8, X'01977420DC00725BA6F4590B9A164106', NULL, NULL, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A227269676874227D5D', NULL, NULL, 1750000000000039);
INSERT INTO "message" VALUES (9, 2, 9, X'01977420DC0078F5B8DE58575487CE1E', NULL, NULL, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A226F6E2061206272616E6368227D5D', NULL, NULL, 1750000000000052);
INSERT INTO "message" VALUES (10, 3, 1, X'01977420DC0078D7B77383C13458A748', NULL, NULL, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A22666F72207468652068656C706572227D5D', NULL, NULL, 1750000000000057);
INSERT INTO "message" VALUES (11, 5, 1, X'01977420DC007D32B5D32B1666194CB1', NULL, NULL, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A226C6F6E67227D5D', NULL, NULL, 1750000000000066);
INSERT INTO "message" VALUES (12, 5, 2, X'01977420DC007A02AB0C1681C8F8E3D0', NULL, NULL, 2, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A226C6F6E676572227D5D', NULL, NULL, 1750000000000066);
INSERT INTO "message" VALUES (13, 6, 1, X'01977420DC007536BAF3897A3E70F16A', NULL, 1, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A2254656C6C2E227D5D', NULL, NULL, 1750000000000086);
INSERT INTO "message" VALUES (14, 6, 2, X'01977420DC007917AAC1C14F30E9C5CC', NULL, 1, 2, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A224F6E63652075706F6E227D5D', '{"partial":true}', NULL, 1750000000000093);
INSERT INTO "message" VALUES (15, 8, 1, X'01977420DC007823A005B86051EF1922', NULL, NULL, 1, NULL, NULL, NULL, X'005B7B2274797065223A2274657874222C2274657874223A2262792061206368616E6E656C227D5D', NULL, NULL, 1750000000000102);
INSERT INTO "blob" VALUES (1, X'0F4636C78F65D3639ECE5A064B5AE753E3408614A14FB18AB4D7540D2C248543', X'89504E47');
INSERT INTO "cut" VALUES (1, 1, X'01977420DC007CF6B4862B21FB97D435', 6, 7, 'person', 1750000000000038, NULL);
INSERT INTO "cut" VALUES (2, 1, X'01977420DC007CF6B4862B21FB97D435', 6, 7, 'person', 1750000000000038, NULL);
INSERT INTO "attempt" VALUES (1, 1, X'01977420DC007187817C627923C6612F', 0, 0, 'committed', 'user', 'm', NULL, NULL, NULL, 1750000000000030, 1750000000000031, 90, 20);
INSERT INTO "attempt" VALUES (5, 1, X'01977420DC0077E69CA5499D004AE545', 0, 0, 'committed', 'hard', NULL, 'no summary', NULL, NULL, 1750000000000071, 1750000000000072, NULL, 8);
INSERT INTO "compaction" VALUES (1, 1, 1, 5, X'005B7B2274797065223A22696E6C696E65222C22726F6C65223A2275736572222C227061727473223A5B7B2274797065223A2274657874222C2274657874223A2254686579206C6F6F6B65642E227D5D7D2C7B2274797065223A2273747562222C22736571223A342C2274657874223A227374696C6CE280A6227D2C7B2274797065223A22726566222C226669727374223A352C226C617374223A357D5D', '[]', 'ours', 90, 20, 1750000000000031, NULL, NULL, NULL);
INSERT INTO "compaction" VALUES (2, 1, NULL, 5, X'005B7B2274797065223A22696E6C696E65222C22726F6C65223A2275736572222C227061727473223A5B7B2274797065223A2274657874222C2274657874223A2254686579206C6F6F6B65642E227D5D7D2C7B2274797065223A2273747562222C22736571223A342C2274657874223A227374696C6CE280A6227D2C7B2274797065223A22726566222C226669727374223A352C226C617374223A357D5D', '[]', 'ours', 90, 20, 1750000000000051, NULL, NULL, NULL);
INSERT INTO "compaction" VALUES (5, 1, 1, 1, X'005B7B2274797065223A22726566222C226669727374223A312C226C617374223A317D5D', '[]', 'ours', 9, 8, 1750000000000072, 1750000000000073, 9, NULL);
INSERT INTO "turn" VALUES (1, 1, X'01977420DC007C8BAB1167B367A9C378', 'done', NULL, 1, 1750000000000008, 1750000000000027, NULL);
INSERT INTO "turn" VALUES (6, 1, X'01977420DC0071039ED733E8B421EAEB', 'interrupted', NULL, 1, 1750000000000089, 1750000000000092, 'stopped');
INSERT INTO "model_call" VALUES (1, 1, 1, 'turn', NULL, 'm', X'A73C706992E2E353F4A404AE1056D2B348A45478B7828F7F179F24BEAD864327', X'5641AC1127DDEE6C4C035FBDF7E93EEC6ACE2F83AEE6F230051B872E4C59D122', 0, 1, 8, NULL, 'done', 9, 4, 0, 0, 0.5, 3, NULL, NULL, NULL, 1750000000000008, NULL);
INSERT INTO "model_call" VALUES (6, 1, 1, 'turn', NULL, 'm', NULL, NULL, 0, 1, NULL, NULL, 'failed', 0, 0, 0, 0, NULL, NULL, NULL, '"Once upon"', 'interrupted', 1750000000000089, NULL);
INSERT INTO "inbox" VALUES (1, 1, X'01977420DC0079559BA91FAF7A024204', 'k2', 1, NULL, X'005B7B2274797065223A2274657874222C2274657874223A227374696C6C2074686572653F227D5D', NULL, NULL, 1750000000000017, 'taken', 4);
INSERT INTO "inbound" VALUES ('sample', 'mail', 'a', '1', '7y8f29w54r338hepfdrdsaw8j4', '{"conversation":"7y8f29w54r338hepfdrdsaw8j4","appended":{"seqs":[1],"head":1,"new":1,"uids":["01977420dc007823a005b86051ef1922"],"numbers":[],"spooled":null},"again":false,"result":null}', 1750000000000104);
INSERT INTO "binding" VALUES ('sample', 'mail', 'route-1', '7y8f29w54r338hepfdrdsaw8j4', 1750000000000105);
INSERT INTO "binding" VALUES ('sample', 'web', 'chat-1', '73ww385gg99jp657vfqvc2r1yd', 1750000000000002);
INSERT INTO "binding" VALUES ('sample', 'web', 'chat-2', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000063);
INSERT INTO "alias" VALUES ('sample', 'tool', 'gone-1', '7qp2vx5kd80np3t5feywwc35he', 1, 'foreign', 'deleted', 1750000000000097);
INSERT INTO "alias" VALUES ('sample', 'tool', 'segment-2', '73ww385gg99jp657vfqvc2r1yd', 6, 'segment', 'claimed', 1750000000000032);
INSERT INTO "todo" VALUES (1, 1, 'one', 'pending', 1750000000000043);
INSERT INTO "todo" VALUES (1, 2, 'two', 'done', 1750000000000043);
INSERT INTO "todo" VALUES (2, 1, 'one', 'pending', 1750000000000043);
INSERT INTO "goal" VALUES (1, 1, 'to be opened for ever', 'active', 1750000000000044);
INSERT INTO "approval" VALUES (1, 1, 'c1', 'look', 'started', 1, 'Ada', 1750000000000012, 1750000000000014);
INSERT INTO "presence" VALUES (1, 'agent', 1750000000000045, 'resting');
INSERT INTO "outbox" VALUES (1, 1, 1, 'web:1', '{"text":"Done."}', 'failed', 1, 1750000000000083, 'no network');
INSERT INTO "subscriber" VALUES ('sample', 'memory', 1750000000000001);
INSERT INTO "boundary" VALUES (1, 1, 'memory', 'sample', 'compaction', 1, 'user', 'web', '73ww385gg99jp657vfqvc2r1yd', 'segment-2', 1750000000000031, 1, 1750000005000076, 'ValueError: compaction');
INSERT INTO "boundary" VALUES (5, 0, 'memory', 'sample', 'reset', 0, 'reset', 'web', '45exq9nqc4yef72n2t2dx1tm06', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000063, 1, 1750000005000079, 'ValueError: reset');
INSERT INTO "boundary" VALUES (5, 1, 'memory', 'sample', 'compaction', 1, 'hard', 'web', '03k0yahtkykn4rrxwemvnj10z6', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000072, 0, NULL, NULL);
INSERT INTO "boundary" VALUES (5, 2, 'memory', 'sample', 'undo', 1, 'undo', 'web', '03k0yahtkykn4rrxwemvnj10z6', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000073, 0, NULL, NULL);
INSERT INTO "job" VALUES ('nightly', NULL, 1, 1750000000000100, 60000000, 1750000000000101);
INSERT INTO "change" VALUES (1, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'created', NULL, 1750000000000003);
INSERT INTO "change" VALUES (2, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'turn', NULL, 1750000000000014);
INSERT INTO "change" VALUES (3, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'compacted', NULL, 1750000000000031);
INSERT INTO "change" VALUES (4, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'cut', NULL, 1750000000000038);
INSERT INTO "change" VALUES (5, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'titled', NULL, 1750000000000042);
INSERT INTO "change" VALUES (6, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'flagged', NULL, 1750000000000046);
INSERT INTO "change" VALUES (7, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'ended', 'closed', 1750000000000047);
INSERT INTO "change" VALUES (8, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'reopened', NULL, 1750000000000048);
INSERT INTO "change" VALUES (9, '0jw34b5epp83xhjj4dxh7pbn6s', 'sample', 'created', NULL, 1750000000000049);
INSERT INTO "change" VALUES (10, '2gy925avs5wah5n4ghgwcwf3fm', 'sample', 'created', NULL, 1750000000000055);
INSERT INTO "change" VALUES (11, '45exq9nqc4yef72n2t2dx1tm06', 'sample', 'created', NULL, 1750000000000061);
INSERT INTO "change" VALUES (12, '45exq9nqc4yef72n2t2dx1tm06', 'sample', 'ended', 'reset', 1750000000000063);
INSERT INTO "change" VALUES (13, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'created', NULL, 1750000000000064);
INSERT INTO "change" VALUES (14, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'compacted', NULL, 1750000000000072);
INSERT INTO "change" VALUES (15, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'undone', NULL, 1750000000000073);
INSERT INTO "change" VALUES (16, 'stopped', 'sample', 'created', NULL, 1750000000000084);
INSERT INTO "change" VALUES (17, 'stopped', 'sample', 'turn', NULL, 1750000000000092);
INSERT INTO "change" VALUES (18, '7qp2vx5kd80np3t5feywwc35he', 'sample', 'created', NULL, 1750000000000095);
INSERT INTO "change" VALUES (19, '7qp2vx5kd80np3t5feywwc35he', 'sample', 'deleted', '{}', 1750000000000098);
INSERT INTO "change" VALUES (20, '7y8f29w54r338hepfdrdsaw8j4', 'sample', 'created', NULL, 1750000000000106);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES ('conversation', 8);
INSERT INTO sqlite_sequence VALUES ('change', 20);
INSERT INTO sqlite_sequence VALUES ('message', 15);
CREATE TRIGGER prompt_needs_dictionary BEFORE INSERT ON prompt
WHEN hex(substr(NEW.text, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.text, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;
CREATE TRIGGER toolset_needs_dictionary BEFORE INSERT ON toolset
WHEN hex(substr(NEW.schemas, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.schemas, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;
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
CREATE INDEX prompt_use_hash ON prompt_use(hash);
CREATE UNIQUE INDEX message_seq ON message(conversation_no, seq);
CREATE UNIQUE INDEX message_key ON message(conversation_no, key) WHERE key IS NOT NULL;
CREATE INDEX message_replaces ON message(conversation_no, replaces) WHERE replaces IS NOT NULL;
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
CREATE TRIGGER message_needs_dictionary BEFORE INSERT ON message
WHEN hex(substr(NEW.parts, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.parts, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;
CREATE UNIQUE INDEX compaction_attempt ON compaction(conversation_no, attempt)
  WHERE attempt IS NOT NULL;
CREATE TRIGGER compaction_needs_dictionary BEFORE INSERT ON compaction
WHEN hex(substr(NEW.body, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.body, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;
CREATE UNIQUE INDEX turn_open ON turn(conversation_no) WHERE state IN ('running', 'waiting');
CREATE UNIQUE INDEX model_call_group ON model_call(conversation_no, api_group)
  WHERE api_group IS NOT NULL;
CREATE INDEX model_call_started ON model_call(started_at);
CREATE UNIQUE INDEX inbox_key ON inbox(conversation_no, key) WHERE key IS NOT NULL;
CREATE INDEX inbox_waiting ON inbox(conversation_no, number) WHERE state = 'waiting';
CREATE TRIGGER inbox_needs_dictionary BEFORE INSERT ON inbox
WHEN hex(substr(NEW.parts, 1, 1)) IN ('02', '82') AND NOT EXISTS (
  SELECT 1 FROM dictionary WHERE printf('%02X', version) = hex(substr(NEW.parts, 2, 1)))
BEGIN SELECT RAISE(ABORT, 'its dictionary was made anew by an erasure, repeat the call (I-23)'); END;
CREATE INDEX inbound_at ON inbound(at);
CREATE UNIQUE INDEX alias_claimed ON alias(profile, source, foreign_id) WHERE state = 'claimed';
CREATE INDEX alias_conversation ON alias(conversation);
CREATE UNIQUE INDEX goal_active ON goal(conversation_no) WHERE state = 'active';
CREATE INDEX outbox_due ON outbox(next_at) WHERE state = 'pending';
CREATE INDEX boundary_due ON boundary(profile, subscriber, next_at, conversation_no)
  WHERE next_at IS NOT NULL;
CREATE INDEX boundary_of ON boundary(profile, subscriber, conversation_no, number);
