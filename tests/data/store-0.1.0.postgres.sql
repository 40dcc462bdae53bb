SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.clew_guard(known integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  place TEXT;
BEGIN
  IF known < (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'min_writer_version') THEN
    RAISE EXCEPTION 'a newer clew has changed the store' USING ERRCODE = 'CLEW1';
  END IF;
  SELECT value INTO place FROM meta WHERE name = 'moved_to'
    AND xmin IS DISTINCT FROM CAST(pg_current_xact_id_if_assigned() AS xid);
  IF place IS NOT NULL THEN
    RAISE EXCEPTION USING MESSAGE = place, ERRCODE = 'CLEW2';
  END IF;
END$$;
CREATE FUNCTION public.clew_id(nth bigint) RETURNS bigint
    LANGUAGE sql
    AS $$SELECT ((CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + clew_offset()) << 20)
    | (nth & 1048575)$$;
CREATE FUNCTION public.clew_needs_body() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.body, 1)) THEN
    RAISE EXCEPTION 'its dictionary was made anew by an erasure, repeat the call (I-23)' USING ERRCODE = '23514';
  END IF;
  RETURN NEW;
END$$;
CREATE FUNCTION public.clew_needs_parts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.parts, 1)) THEN
    RAISE EXCEPTION 'its dictionary was made anew by an erasure, repeat the call (I-23)' USING ERRCODE = '23514';
  END IF;
  RETURN NEW;
END$$;
CREATE FUNCTION public.clew_needs_schemas() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.schemas, 1)) THEN
    RAISE EXCEPTION 'its dictionary was made anew by an erasure, repeat the call (I-23)' USING ERRCODE = '23514';
  END IF;
  RETURN NEW;
END$$;
CREATE FUNCTION public.clew_needs_text() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM dictionary WHERE version = get_byte(NEW.text, 1)) THEN
    RAISE EXCEPTION 'its dictionary was made anew by an erasure, repeat the call (I-23)' USING ERRCODE = '23514';
  END IF;
  RETURN NEW;
END$$;
CREATE FUNCTION public.clew_newest(seen pg_snapshot) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$SELECT (CAST(CAST(pg_snapshot_xmax(seen) AS TEXT) AS BIGINT) + clew_offset()) << 20$$;
CREATE FUNCTION public.clew_number() RETURNS bigint
    LANGUAGE sql
    AS $$SELECT (CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) << 20)
    | CAST(floor(random() * 1048576) AS BIGINT)$$;
CREATE FUNCTION public.clew_offset() RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$SELECT CAST(0 AS BIGINT)$$;
CREATE FUNCTION public.clew_refuse() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF (NEW.id, NEW.conversation_no, NEW.seq, NEW.uid, NEW.turn, NEW.role, NEW.replaces,
      NEW.created_at) IS NOT DISTINCT FROM (OLD.id, OLD.conversation_no, OLD.seq, OLD.uid, OLD.turn,
      OLD.role, OLD.replaces, OLD.created_at)
    AND ((NEW.meta = '{"erased":true}' AND NEW.tokens = 0 AND NEW.key IS NULL
        AND NEW.author IS NULL AND NEW.api_group IS NULL)
      OR ((NEW.meta, NEW.tokens, NEW.key, NEW.author, NEW.api_group)
          IS NOT DISTINCT FROM (OLD.meta, OLD.tokens, OLD.key, OLD.author, OLD.api_group)
        AND substr(OLD.parts, 1, 1) IN ('\x02', '\x82')
        AND get_byte(OLD.parts, 1) < (SELECT max(version) FROM dictionary))) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a committed message never changes (I-02)' USING ERRCODE = '23514';
END$$;
CREATE FUNCTION public.clew_search_merge() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO '$user', 'public'
    AS $$SELECT gin_clean_pending_list(CAST('search_text_words' AS regclass))$$;
CREATE FUNCTION public.clew_settled(seen pg_snapshot) RETURNS bigint
    LANGUAGE sql STABLE
    AS $$SELECT (CAST(CAST(pg_snapshot_xmin(seen) AS TEXT) AS BIGINT) + clew_offset()) << 20$$;
CREATE FUNCTION public.clew_shown(id bigint, seen pg_snapshot) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$SELECT pg_visible_in_snapshot(CAST(CAST((id >> 20) - clew_offset() AS TEXT) AS xid8), seen)$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.alias (
    profile text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    foreign_id text NOT NULL COLLATE pg_catalog."C",
    conversation text NOT NULL COLLATE pg_catalog."C",
    from_seq bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    CONSTRAINT alias_kind_check CHECK ((kind = ANY (ARRAY['segment'::text, 'foreign'::text]))),
    CONSTRAINT alias_state_check CHECK ((state = ANY (ARRAY['claimed'::text, 'ambiguous'::text, 'deleted'::text])))
);
CREATE TABLE public.approval (
    conversation_no bigint NOT NULL,
    turn bigint NOT NULL,
    call_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    always smallint DEFAULT 0 NOT NULL,
    by text COLLATE pg_catalog."C",
    asked_at bigint NOT NULL,
    answered_at bigint,
    CONSTRAINT approval_always_check CHECK ((always = ANY (ARRAY[0, 1]))),
    CONSTRAINT approval_check CHECK (((state = 'asked'::text) = (answered_at IS NULL))),
    CONSTRAINT approval_check1 CHECK (((always = 0) OR (state = ANY (ARRAY['allowed'::text, 'started'::text])))),
    CONSTRAINT approval_state_check CHECK ((state = ANY (ARRAY['asked'::text, 'allowed'::text, 'denied'::text, 'started'::text])))
);
CREATE TABLE public.attempt (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    uid bytea NOT NULL,
    view bigint NOT NULL,
    base_generation bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    trigger text NOT NULL COLLATE pg_catalog."C",
    model text COLLATE pg_catalog."C",
    verdict text COLLATE pg_catalog."C",
    summary_error text COLLATE pg_catalog."C",
    deadline bigint,
    started_at bigint NOT NULL,
    ended_at bigint,
    tokens_before bigint,
    tokens_after bigint,
    CONSTRAINT attempt_check CHECK (((state = 'open'::text) = (ended_at IS NULL))),
    CONSTRAINT attempt_number_check CHECK ((number > 0)),
    CONSTRAINT attempt_state_check CHECK ((state = ANY (ARRAY['open'::text, 'committed'::text, 'cancelled'::text, 'overtaken'::text, 'failed'::text]))),
    CONSTRAINT attempt_trigger_check CHECK ((trigger = ANY (ARRAY['soft'::text, 'hard'::text, 'user'::text]))),
    CONSTRAINT attempt_uid_check CHECK ((octet_length(uid) = 16))
);
CREATE TABLE public.binding (
    profile text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    conversation text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL
);
CREATE TABLE public.blob (
    conversation_no bigint NOT NULL,
    hash bytea NOT NULL,
    bytes bytea NOT NULL,
    CONSTRAINT blob_hash_check CHECK ((octet_length(hash) = 32))
);
ALTER TABLE ONLY public.blob ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE public.boundary (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    subscriber text NOT NULL COLLATE pg_catalog."C",
    profile text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    generation bigint NOT NULL,
    reason text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    from_id text NOT NULL COLLATE pg_catalog."C",
    to_id text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    next_at bigint,
    error text COLLATE pg_catalog."C",
    CONSTRAINT boundary_check CHECK ((((kind = 'reset'::text) = (number = 0)) AND ((kind = 'reset'::text) = (generation = 0)))),
    CONSTRAINT boundary_from_id_check CHECK ((from_id <> ''::text)),
    CONSTRAINT boundary_generation_check CHECK ((generation >= 0)),
    CONSTRAINT boundary_kind_check CHECK ((kind = ANY (ARRAY['compaction'::text, 'undo'::text, 'reset'::text]))),
    CONSTRAINT boundary_number_check CHECK ((number >= 0)),
    CONSTRAINT boundary_reason_check CHECK ((reason <> ''::text)),
    CONSTRAINT boundary_source_check CHECK ((source <> ''::text)),
    CONSTRAINT boundary_to_id_check CHECK ((to_id <> ''::text))
);
CREATE TABLE public.change (
    id bigint NOT NULL,
    conversation text NOT NULL COLLATE pg_catalog."C",
    profile text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    detail text COLLATE pg_catalog."C",
    at bigint NOT NULL,
    CONSTRAINT change_kind_check CHECK ((kind = ANY (ARRAY['created'::text, 'cut'::text, 'undone'::text, 'compacted'::text, 'titled'::text, 'flagged'::text, 'ended'::text, 'reopened'::text, 'turn'::text, 'deleted'::text, 'erased'::text])))
);
CREATE SEQUENCE public.change_nth
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 1048575
    CACHE 1
    CYCLE;
CREATE TABLE public.compaction (
    conversation_no bigint NOT NULL,
    generation bigint NOT NULL,
    attempt bigint,
    covers_to bigint NOT NULL,
    body bytea NOT NULL,
    cuts text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    tokens_before bigint,
    tokens_after bigint,
    created_at bigint NOT NULL,
    undone_at bigint,
    undone_tokens bigint,
    receipt text COLLATE pg_catalog."C",
    CONSTRAINT compaction_check CHECK (((undone_tokens IS NULL) OR (undone_at IS NOT NULL))),
    CONSTRAINT compaction_check1 CHECK (((kind = 'foreign'::text) OR ((tokens_before IS NOT NULL) AND (tokens_after IS NOT NULL) AND (tokens_after < tokens_before)))),
    CONSTRAINT compaction_covers_to_check CHECK ((covers_to > 0)),
    CONSTRAINT compaction_generation_check CHECK ((generation > 0)),
    CONSTRAINT compaction_kind_check CHECK ((kind = ANY (ARRAY['ours'::text, 'foreign'::text]))),
    CONSTRAINT compaction_undone_tokens_check CHECK ((undone_tokens >= 0))
);
CREATE TABLE public.conversation (
    no bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    profile text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    origin bigint,
    base bigint DEFAULT 0 NOT NULL,
    head bigint DEFAULT 0 NOT NULL,
    view bigint DEFAULT 0 NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    holder text COLLATE pg_catalog."C",
    held_at bigint,
    held_ttl bigint,
    turn bigint,
    title_user text COLLATE pg_catalog."C",
    title_llm text COLLATE pg_catalog."C",
    title_derived text COLLATE pg_catalog."C",
    title_locked smallint DEFAULT 0 NOT NULL,
    preview text COLLATE pg_catalog."C",
    message_count bigint DEFAULT 0 NOT NULL,
    waiting bigint DEFAULT 0 NOT NULL,
    cwd text COLLATE pg_catalog."C",
    git_root text COLLATE pg_catalog."C",
    git_branch text COLLATE pg_catalog."C",
    model text COLLATE pg_catalog."C",
    prompt_hash bytea,
    toolset_hash bytea,
    affinity text NOT NULL COLLATE pg_catalog."C",
    attribution text COLLATE pg_catalog."C",
    pinned smallint DEFAULT 0 NOT NULL,
    archived smallint DEFAULT 0 NOT NULL,
    automation smallint DEFAULT 0 NOT NULL,
    read_only smallint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    imported_at bigint,
    imported_to bigint,
    active_at bigint NOT NULL,
    ended_at bigint,
    end_reason text COLLATE pg_catalog."C",
    reopened_at bigint,
    binned_at bigint,
    deleting bigint DEFAULT 0 NOT NULL,
    meta text COLLATE pg_catalog."C",
    CONSTRAINT conversation_archived_check CHECK ((archived = ANY (ARRAY[0, 1]))),
    CONSTRAINT conversation_automation_check CHECK ((automation = ANY (ARRAY[0, 1]))),
    CONSTRAINT conversation_check CHECK (((imported_to >= base) AND (imported_to <= head))),
    CONSTRAINT conversation_check1 CHECK (((base >= 0) AND (head >= base) AND (view >= 0) AND (generation >= 0) AND (fence >= 0))),
    CONSTRAINT conversation_check2 CHECK (((kind = 'branch'::text) OR (base = 0))),
    CONSTRAINT conversation_check3 CHECK (((kind <> 'root'::text) OR (origin IS NULL))),
    CONSTRAINT conversation_check4 CHECK (((ended_at IS NULL) = (end_reason IS NULL))),
    CONSTRAINT conversation_check5 CHECK (((deleting = 0) OR (binned_at IS NOT NULL))),
    CONSTRAINT conversation_check6 CHECK (((binned_at IS NULL) OR (turn IS NULL))),
    CONSTRAINT conversation_check7 CHECK ((((holder IS NULL) = (held_at IS NULL)) AND ((holder IS NULL) = (held_ttl IS NULL)))),
    CONSTRAINT conversation_deleting_check CHECK ((deleting = ANY (ARRAY[(0)::bigint, (1)::bigint]))),
    CONSTRAINT conversation_id_check CHECK ((id <> ''::text)),
    CONSTRAINT conversation_kind_check CHECK ((kind = ANY (ARRAY['root'::text, 'branch'::text, 'delegate'::text]))),
    CONSTRAINT conversation_message_count_check CHECK ((message_count >= 0)),
    CONSTRAINT conversation_pinned_check CHECK ((pinned = ANY (ARRAY[0, 1]))),
    CONSTRAINT conversation_profile_check CHECK ((profile <> ''::text)),
    CONSTRAINT conversation_read_only_check CHECK ((read_only = ANY (ARRAY[0, 1]))),
    CONSTRAINT conversation_source_check CHECK ((source <> ''::text)),
    CONSTRAINT conversation_title_locked_check CHECK ((title_locked = ANY (ARRAY[0, 1]))),
    CONSTRAINT conversation_waiting_check CHECK ((waiting >= 0))
);
CREATE TABLE public.conversation_id (
    id text NOT NULL COLLATE pg_catalog."C",
    no bigint DEFAULT public.clew_number() NOT NULL,
    profile text NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT conversation_id_id_check CHECK ((id <> ''::text))
);
CREATE TABLE public.cut (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    uid bytea NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    by text COLLATE pg_catalog."C",
    at bigint NOT NULL,
    undone_at bigint,
    CONSTRAINT cut_check CHECK ((to_seq >= from_seq)),
    CONSTRAINT cut_from_seq_check CHECK ((from_seq > 0)),
    CONSTRAINT cut_number_check CHECK ((number > 0)),
    CONSTRAINT cut_uid_check CHECK ((octet_length(uid) = 16))
);
CREATE TABLE public.dictionary (
    version bigint NOT NULL,
    bytes bytea NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.end_reason (
    reason text NOT NULL COLLATE pg_catalog."C",
    is_boundary smallint NOT NULL,
    CONSTRAINT end_reason_is_boundary_check CHECK ((is_boundary = ANY (ARRAY[0, 1])))
);
CREATE TABLE public.goal (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    text text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    CONSTRAINT goal_number_check CHECK ((number > 0)),
    CONSTRAINT goal_state_check CHECK ((state = ANY (ARRAY['active'::text, 'done'::text, 'cleared'::text])))
);
CREATE TABLE public.inbound (
    profile text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    conversation text NOT NULL COLLATE pg_catalog."C",
    result text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL
);
CREATE TABLE public.inbox (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    uid bytea NOT NULL,
    key text COLLATE pg_catalog."C",
    role smallint NOT NULL,
    author text COLLATE pg_catalog."C",
    parts bytea NOT NULL,
    meta text COLLATE pg_catalog."C",
    tokens bigint,
    received_at bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    seq bigint,
    CONSTRAINT inbox_check CHECK (((state = 'taken'::text) = (seq IS NOT NULL))),
    CONSTRAINT inbox_number_check CHECK ((number > 0)),
    CONSTRAINT inbox_role_check CHECK (((role >= 1) AND (role <= 5))),
    CONSTRAINT inbox_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'taken'::text, 'withdrawn'::text]))),
    CONSTRAINT inbox_uid_check CHECK ((octet_length(uid) = 16))
);
CREATE TABLE public.job (
    name text NOT NULL COLLATE pg_catalog."C",
    holder text COLLATE pg_catalog."C",
    fence bigint NOT NULL,
    at bigint,
    ttl bigint,
    done_at bigint
);
CREATE TABLE public.message (
    id bigint NOT NULL,
    conversation_no bigint NOT NULL,
    seq bigint NOT NULL,
    created_at bigint NOT NULL,
    turn bigint,
    replaces bigint,
    tokens bigint,
    role smallint NOT NULL,
    uid bytea NOT NULL,
    key text COLLATE pg_catalog."C",
    author text COLLATE pg_catalog."C",
    api_group text COLLATE pg_catalog."C",
    parts bytea NOT NULL,
    meta text COLLATE pg_catalog."C",
    CONSTRAINT message_check CHECK ((replaces < seq)),
    CONSTRAINT message_role_check CHECK (((role >= 1) AND (role <= 5))),
    CONSTRAINT message_seq_check CHECK ((seq > 0)),
    CONSTRAINT message_tokens_check CHECK ((tokens >= 0)),
    CONSTRAINT message_uid_check CHECK ((octet_length(uid) = 16))
);
ALTER TABLE ONLY public.message ALTER COLUMN parts SET STORAGE EXTERNAL;
CREATE TABLE public.meta (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.model_call (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    turn bigint,
    purpose text NOT NULL COLLATE pg_catalog."C",
    after_attempt bigint,
    model text NOT NULL COLLATE pg_catalog."C",
    prompt_hash bytea,
    toolset_hash bytea,
    generation bigint NOT NULL,
    up_to_seq bigint NOT NULL,
    expected_tokens bigint,
    settings text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL,
    reasoning_tokens bigint DEFAULT 0 NOT NULL,
    cost double precision,
    latency bigint,
    prefix_hash text COLLATE pg_catalog."C",
    partial text COLLATE pg_catalog."C",
    error text COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    api_group text COLLATE pg_catalog."C",
    CONSTRAINT model_call_expected_tokens_check CHECK ((expected_tokens >= 0)),
    CONSTRAINT model_call_number_check CHECK ((number > 0)),
    CONSTRAINT model_call_purpose_check CHECK ((purpose = ANY (ARRAY['turn'::text, 'summary'::text, 'title'::text, 'review'::text]))),
    CONSTRAINT model_call_state_check CHECK ((state = ANY (ARRAY['planned'::text, 'done'::text, 'failed'::text])))
);
CREATE TABLE public.outbox (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    turn bigint NOT NULL,
    route text NOT NULL COLLATE pg_catalog."C",
    payload text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    attempts bigint DEFAULT 0 NOT NULL,
    next_at bigint NOT NULL,
    error text COLLATE pg_catalog."C",
    CONSTRAINT outbox_number_check CHECK ((number > 0)),
    CONSTRAINT outbox_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sent'::text, 'failed'::text])))
);
CREATE TABLE public.presence (
    conversation_no bigint NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    heartbeat bigint NOT NULL,
    label text COLLATE pg_catalog."C"
);
CREATE TABLE public.prompt (
    hash bytea NOT NULL,
    text bytea NOT NULL,
    CONSTRAINT prompt_hash_check CHECK ((octet_length(hash) = 32))
);
CREATE TABLE public.prompt_use (
    conversation_no bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT prompt_use_hash_check CHECK ((octet_length(hash) = 32))
);
CREATE TABLE public.search_mark (
    only_one smallint DEFAULT 1 NOT NULL,
    format integer NOT NULL,
    store_id text COLLATE pg_catalog."C",
    stamp text COLLATE pg_catalog."C",
    message bigint DEFAULT 0 NOT NULL,
    change bigint DEFAULT 0 NOT NULL,
    profile text COLLATE pg_catalog."C",
    unreadable bigint DEFAULT 0 NOT NULL,
    oversized bigint DEFAULT 0 NOT NULL,
    rows bigint DEFAULT 0 NOT NULL,
    CONSTRAINT search_mark_only_one_check CHECK ((only_one = 1))
);
CREATE TABLE public.search_text (
    id bigint NOT NULL,
    words tsvector NOT NULL
);
CREATE TABLE public.subscriber (
    profile text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    CONSTRAINT subscriber_name_check CHECK ((name <> ''::text)),
    CONSTRAINT subscriber_profile_check CHECK ((profile <> ''::text))
);
CREATE TABLE public.todo (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    text text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    CONSTRAINT todo_number_check CHECK ((number > 0)),
    CONSTRAINT todo_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'active'::text, 'done'::text, 'dropped'::text])))
);
CREATE TABLE public.toolset (
    hash bytea NOT NULL,
    names text NOT NULL COLLATE pg_catalog."C",
    schemas bytea NOT NULL,
    CONSTRAINT toolset_hash_check CHECK ((octet_length(hash) = 32))
);
CREATE TABLE public.turn (
    conversation_no bigint NOT NULL,
    number bigint NOT NULL,
    uid bytea NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint,
    error text COLLATE pg_catalog."C",
    CONSTRAINT turn_check CHECK (((state = ANY (ARRAY['running'::text, 'waiting'::text])) = (ended_at IS NULL))),
    CONSTRAINT turn_number_check CHECK ((number > 0)),
    CONSTRAINT turn_state_check CHECK ((state = ANY (ARRAY['running'::text, 'waiting'::text, 'done'::text, 'interrupted'::text, 'failed'::text]))),
    CONSTRAINT turn_uid_check CHECK ((octet_length(uid) = 16))
);
INSERT INTO public.alias VALUES ('sample', 'tool', 'segment-2', '73ww385gg99jp657vfqvc2r1yd', 6, 'segment', 'claimed', 1750000000000032);
INSERT INTO public.alias VALUES ('sample', 'tool', 'gone-1', '7qp2vx5kd80np3t5feywwc35he', 1, 'foreign', 'deleted', 1750000000000097);
INSERT INTO public.approval VALUES (1883267101773985399, 1, 'c1', 'look', 'started', 1, 'Ada', 1750000000000012, 1750000000000014);
INSERT INTO public.attempt VALUES (1883267101773985399, 1, '\x01977420dc007187817c627923c6612f', 0, 0, 'committed', 'user', 'm', NULL, NULL, NULL, 1750000000000030, 1750000000000031, 90, 20);
INSERT INTO public.attempt VALUES (1883267101868378229, 1, '\x01977420dc0077e69ca5499d004ae545', 0, 0, 'committed', 'hard', NULL, 'no summary', NULL, NULL, 1750000000000071, 1750000000000072, NULL, 8);
INSERT INTO public.binding VALUES ('sample', 'web', 'chat-1', '73ww385gg99jp657vfqvc2r1yd', 1750000000000002);
INSERT INTO public.binding VALUES ('sample', 'web', 'chat-2', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000063);
INSERT INTO public.binding VALUES ('sample', 'mail', 'route-1', '7y8f29w54r338hepfdrdsaw8j4', 1750000000000105);
INSERT INTO public.blob VALUES (1883267101773985399, '\x0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543', '\x89504e47');
INSERT INTO public.boundary VALUES (1883267101868378229, 1, 'memory', 'sample', 'compaction', 1, 'hard', 'web', '03k0yahtkykn4rrxwemvnj10z6', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000072, 0, NULL, NULL);
INSERT INTO public.boundary VALUES (1883267101868378229, 2, 'memory', 'sample', 'undo', 1, 'undo', 'web', '03k0yahtkykn4rrxwemvnj10z6', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000073, 0, NULL, NULL);
INSERT INTO public.boundary VALUES (1883267101773985399, 1, 'memory', 'sample', 'compaction', 1, 'user', 'web', '73ww385gg99jp657vfqvc2r1yd', 'segment-2', 1750000000000031, 1, 1750000005000076, 'ValueError: compaction');
INSERT INTO public.boundary VALUES (1883267101868378229, 0, 'memory', 'sample', 'reset', 0, 'reset', 'web', '45exq9nqc4yef72n2t2dx1tm06', '03k0yahtkykn4rrxwemvnj10z6', 1750000000000063, 1, 1750000005000079, 'ValueError: reset');
INSERT INTO public.change VALUES (792723457, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'created', NULL, 1750000000000003);
INSERT INTO public.change VALUES (797966338, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'turn', NULL, 1750000000000014);
INSERT INTO public.change VALUES (804257795, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'compacted', NULL, 1750000000000031);
INSERT INTO public.change VALUES (806354948, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'cut', NULL, 1750000000000038);
INSERT INTO public.change VALUES (808452101, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'titled', NULL, 1750000000000042);
INSERT INTO public.change VALUES (812646406, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'flagged', NULL, 1750000000000046);
INSERT INTO public.change VALUES (814743559, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'ended', 'closed', 1750000000000047);
INSERT INTO public.change VALUES (815792136, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'reopened', NULL, 1750000000000048);
INSERT INTO public.change VALUES (816840713, '0jw34b5epp83xhjj4dxh7pbn6s', 'sample', 'created', NULL, 1750000000000049);
INSERT INTO public.change VALUES (818937866, '2gy925avs5wah5n4ghgwcwf3fm', 'sample', 'created', NULL, 1750000000000055);
INSERT INTO public.change VALUES (821035019, '45exq9nqc4yef72n2t2dx1tm06', 'sample', 'created', NULL, 1750000000000061);
INSERT INTO public.change VALUES (822083596, '45exq9nqc4yef72n2t2dx1tm06', 'sample', 'ended', 'reset', 1750000000000063);
INSERT INTO public.change VALUES (822083597, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'created', NULL, 1750000000000064);
INSERT INTO public.change VALUES (825229326, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'compacted', NULL, 1750000000000072);
INSERT INTO public.change VALUES (826277903, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'undone', NULL, 1750000000000073);
INSERT INTO public.change VALUES (833617936, 'stopped', 'sample', 'created', NULL, 1750000000000084);
INSERT INTO public.change VALUES (836763665, 'stopped', 'sample', 'turn', NULL, 1750000000000092);
INSERT INTO public.change VALUES (837812242, '7qp2vx5kd80np3t5feywwc35he', 'sample', 'created', NULL, 1750000000000095);
INSERT INTO public.change VALUES (839909395, '7qp2vx5kd80np3t5feywwc35he', 'sample', 'deleted', '{}', 1750000000000098);
INSERT INTO public.change VALUES (845152276, '7y8f29w54r338hepfdrdsaw8j4', 'sample', 'created', NULL, 1750000000000106);
INSERT INTO public.compaction VALUES (1883267101773985399, 1, 1, 5, '\x005b7b2274797065223a22696e6c696e65222c22726f6c65223a2275736572222c227061727473223a5b7b2274797065223a2274657874222c2274657874223a2254686579206c6f6f6b65642e227d5d7d2c7b2274797065223a2273747562222c22736571223a342c2274657874223a227374696c6ce280a6227d2c7b2274797065223a22726566222c226669727374223a352c226c617374223a357d5d', '[]', 'ours', 90, 20, 1750000000000031, NULL, NULL, NULL);
INSERT INTO public.compaction VALUES (1883267101857458978, 1, NULL, 5, '\x005b7b2274797065223a22696e6c696e65222c22726f6c65223a2275736572222c227061727473223a5b7b2274797065223a2274657874222c2274657874223a2254686579206c6f6f6b65642e227d5d7d2c7b2274797065223a2273747562222c22736571223a342c2274657874223a227374696c6ce280a6227d2c7b2274797065223a22726566222c226669727374223a352c226c617374223a357d5d', '[]', 'ours', 90, 20, 1750000000000051, NULL, NULL, NULL);
INSERT INTO public.compaction VALUES (1883267101868378229, 1, 1, 1, '\x005b7b2274797065223a22726566222c226669727374223a312c226c617374223a317d5d', '[]', 'ours', 9, 8, 1750000000000072, 1750000000000073, 9, NULL);
INSERT INTO public.conversation VALUES (1883267101773985399, '73ww385gg99jp657vfqvc2r1yd', 'sample', 'root', 'web', NULL, 0, 8, 2, 1, 1, NULL, NULL, NULL, NULL, 'A sample', NULL, 'Look, 你好 ��', 0, 'right', 6, 0, NULL, NULL, NULL, NULL, '\xa73c706992e2e353f4a404ae1056d2b348a45478b7828f7f179f24bead864327', '\x5641ac1127ddee6c4c035fbdf7e93eec6ace2f83aee6f230051b872e4c59d122', '01977420dc0074248a5d2f346baa9455', NULL, 1, 0, 0, 0, 1750000000000003, NULL, NULL, 1750000000000039, NULL, NULL, 1750000000000048, NULL, 0, NULL);
INSERT INTO public.conversation VALUES (1883267101857458978, '0jw34b5epp83xhjj4dxh7pbn6s', 'sample', 'branch', 'web', 1883267101773985399, 8, 9, 0, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'A sample', 0, 'on a branch', 7, 0, NULL, NULL, NULL, NULL, '\xa73c706992e2e353f4a404ae1056d2b348a45478b7828f7f179f24bead864327', '\x5641ac1127ddee6c4c035fbdf7e93eec6ace2f83aee6f230051b872e4c59d122', '01977420dc007af399b8a714e61a441c', NULL, 0, 0, 0, 0, 1750000000000049, NULL, NULL, 1750000000000052, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.conversation VALUES (1883267101863464512, '2gy925avs5wah5n4ghgwcwf3fm', 'sample', 'delegate', 'web', 1883267101773985399, 0, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'for the helper', 0, 'for the helper', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc007e9aa3f2c9bf9c6316b9', '01977420dc0074248a5d2f346baa9455', 0, 0, 0, 0, 1750000000000055, NULL, NULL, 1750000000000057, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.conversation VALUES (1883267101867373702, '45exq9nqc4yef72n2t2dx1tm06', 'sample', 'root', 'web', NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc007ce08ff18e0242af9fc3', NULL, 0, 0, 0, 0, 1750000000000061, NULL, NULL, 1750000000000061, 1750000000000063, 'reset', NULL, NULL, 0, NULL);
INSERT INTO public.conversation VALUES (1883267101868378229, '03k0yahtkykn4rrxwemvnj10z6', 'sample', 'root', 'web', NULL, 0, 2, 2, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'long', 0, 'longer', 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc007d72b83e90ec17e0aa3c', NULL, 0, 0, 0, 0, 1750000000000064, NULL, NULL, 1750000000000066, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.conversation VALUES (1883267101891457246, 'stopped', 'sample', 'root', 'api', NULL, 0, 2, 0, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, 'Tell.', 0, 'Once upon', 2, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc0075579e1b372ad3fbf47a', NULL, 0, 0, 0, 0, 1750000000000084, NULL, NULL, 1750000000000093, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.conversation VALUES (1883267101917556108, '7y8f29w54r338hepfdrdsaw8j4', 'sample', 'root', 'mail', NULL, 0, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'by a channel', 0, 'by a channel', 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01977420dc0077d7aece328bff7b118e', NULL, 0, 0, 0, 0, 1750000000000106, NULL, NULL, 1750000000000106, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO public.conversation_id VALUES ('73ww385gg99jp657vfqvc2r1yd', 1883267101773985399, 'sample');
INSERT INTO public.conversation_id VALUES ('0jw34b5epp83xhjj4dxh7pbn6s', 1883267101857458978, 'sample');
INSERT INTO public.conversation_id VALUES ('2gy925avs5wah5n4ghgwcwf3fm', 1883267101863464512, 'sample');
INSERT INTO public.conversation_id VALUES ('45exq9nqc4yef72n2t2dx1tm06', 1883267101867373702, 'sample');
INSERT INTO public.conversation_id VALUES ('03k0yahtkykn4rrxwemvnj10z6', 1883267101868378229, 'sample');
INSERT INTO public.conversation_id VALUES ('stopped', 1883267101891457246, 'sample');
INSERT INTO public.conversation_id VALUES ('7y8f29w54r338hepfdrdsaw8j4', 1883267101917556108, 'sample');
INSERT INTO public.cut VALUES (1883267101773985399, 1, '\x01977420dc007cf6b4862b21fb97d435', 6, 7, 'person', 1750000000000038, NULL);
INSERT INTO public.cut VALUES (1883267101857458978, 1, '\x01977420dc007cf6b4862b21fb97d435', 6, 7, 'person', 1750000000000038, NULL);
INSERT INTO public.end_reason VALUES ('closed', 1);
INSERT INTO public.end_reason VALUES ('reset', 1);
INSERT INTO public.end_reason VALUES ('new', 1);
INSERT INTO public.end_reason VALUES ('idle', 1);
INSERT INTO public.end_reason VALUES ('daily', 1);
INSERT INTO public.end_reason VALUES ('switched', 1);
INSERT INTO public.end_reason VALUES ('suspended', 1);
INSERT INTO public.end_reason VALUES ('expired', 1);
INSERT INTO public.end_reason VALUES ('exhausted', 1);
INSERT INTO public.end_reason VALUES ('finished', 1);
INSERT INTO public.end_reason VALUES ('stale', 0);
INSERT INTO public.end_reason VALUES ('imported', 0);
INSERT INTO public.goal VALUES (1883267101773985399, 1, 'to be opened for ever', 'active', 1750000000000044);
INSERT INTO public.inbound VALUES ('sample', 'mail', 'a', '1', '7y8f29w54r338hepfdrdsaw8j4', '{"conversation":"7y8f29w54r338hepfdrdsaw8j4","appended":{"seqs":[1],"head":1,"new":1,"uids":["01977420dc007823a005b86051ef1922"],"numbers":[],"spooled":null},"again":false,"result":null}', 1750000000000104);
INSERT INTO public.inbox VALUES (1883267101773985399, 1, '\x01977420dc0079559ba91faf7a024204', 'k2', 1, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a227374696c6c2074686572653f227d5d', NULL, NULL, 1750000000000017, 'taken', 4);
INSERT INTO public.job VALUES ('nightly', NULL, 1, 1750000000000100, 60000000, 1750000000000101);
INSERT INTO public.message VALUES (794820609, 1883267101773985399, 1, 1750000000000005, 1, NULL, NULL, 1, '\x01977420dc0077c682e2e662f728b4fa', 'k1', NULL, NULL, '\x805b7b2274797065223a2274657874222c2274657874223a224c6f6f6b2c205c75346636305c7535393764205c75643830305c7530303030227d5d', NULL);
INSERT INTO public.message VALUES (796917762, 1883267101773985399, 2, 1750000000000010, 1, NULL, NULL, 2, '\x01977420dc007f7d8da5e709d4713d60', NULL, NULL, NULL, '\x005b7b2274797065223a22726561736f6e696e67222c2274657874223a22486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20486d2e20222c226d6f64656c223a226d222c227369676e6174757265223a2273227d2c7b2274797065223a2274657874222c2274657874223a224c6f6f6b696e672e227d2c7b2274797065223a22746f6f6c5f63616c6c222c226964223a226331222c226e616d65223a226c6f6f6b222c22617267756d656e7473223a227b5c2261745c223a5c22785c227d227d5d', NULL);
INSERT INTO public.message VALUES (801112067, 1883267101773985399, 3, 1750000000000021, 1, NULL, NULL, 3, '\x01977420dc00737fa87a1613e443df78', NULL, NULL, NULL, '\x005b7b2274797065223a22746f6f6c5f726573756c74222c2263616c6c5f6964223a226331222c22636f6e74656e74223a5b7b2274797065223a2274657874222c2274657874223a227365656e227d2c7b2274797065223a22696d616765222c226d656469615f74797065223a22696d6167652f706e67222c2268617368223a2230663436333663373866363564333633396563653561303634623561653735336533343038363134613134666231386162346437353430643263323438353433222c2273697a65223a347d2c7b2274797065223a22756e6b6e6f776e222c2276616c7565223a7b2274797065223a226f6464227d7d5d2c2273686f776e223a327d5d', NULL);
INSERT INTO public.message VALUES (801112068, 1883267101773985399, 4, 1750000000000017, 1, NULL, NULL, 1, '\x01977420dc0079559ba91faf7a024204', 'k2', NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a227374696c6c2074686572653f227d5d', NULL);
INSERT INTO public.message VALUES (802160645, 1883267101773985399, 5, 1750000000000025, 1, NULL, NULL, 2, '\x01977420dc007480a3a7711a81332876', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a22446f6e652e227d5d', NULL);
INSERT INTO public.message VALUES (805306374, 1883267101773985399, 6, 1750000000000033, NULL, NULL, NULL, 1, '\x01977420dc0074038ca5a5a19e4d6e3c', 'k3', NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a2277726f6e67227d5d', NULL);
INSERT INTO public.message VALUES (805306375, 1883267101773985399, 7, 1750000000000033, NULL, NULL, NULL, 2, '\x01977420dc007887a8e5216afcbd04c3', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a22736f2077726f6e67227d5d', NULL);
INSERT INTO public.message VALUES (807403528, 1883267101773985399, 8, 1750000000000039, NULL, NULL, NULL, 1, '\x01977420dc00725ba6f4590b9a164106', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a227269676874227d5d', NULL);
INSERT INTO public.message VALUES (817889289, 1883267101857458978, 9, 1750000000000052, NULL, NULL, NULL, 1, '\x01977420dc0078f5b8de58575487ce1e', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a226f6e2061206272616e6368227d5d', NULL);
INSERT INTO public.message VALUES (819986433, 1883267101863464512, 1, 1750000000000057, NULL, NULL, NULL, 1, '\x01977420dc0078d7b77383c13458a748', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a22666f72207468652068656c706572227d5d', NULL);
INSERT INTO public.message VALUES (823132161, 1883267101868378229, 1, 1750000000000066, NULL, NULL, NULL, 1, '\x01977420dc007d32b5d32b1666194cb1', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a226c6f6e67227d5d', NULL);
INSERT INTO public.message VALUES (823132162, 1883267101868378229, 2, 1750000000000066, NULL, NULL, NULL, 2, '\x01977420dc007a02ab0c1681c8f8e3d0', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a226c6f6e676572227d5d', NULL);
INSERT INTO public.message VALUES (834666497, 1883267101891457246, 1, 1750000000000086, 1, NULL, NULL, 1, '\x01977420dc007536baf3897a3e70f16a', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a2254656c6c2e227d5d', NULL);
INSERT INTO public.message VALUES (836763650, 1883267101891457246, 2, 1750000000000093, 1, NULL, NULL, 2, '\x01977420dc007917aac1c14f30e9c5cc', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a224f6e63652075706f6e227d5d', '{"partial":true}');
INSERT INTO public.message VALUES (845152257, 1883267101917556108, 1, 1750000000000102, NULL, NULL, NULL, 1, '\x01977420dc007823a005b86051ef1922', NULL, NULL, NULL, '\x005b7b2274797065223a2274657874222c2274657874223a2262792061206368616e6e656c227d5d', NULL);
INSERT INTO public.meta VALUES ('schema_version', '1');
INSERT INTO public.meta VALUES ('min_writer_version', '1');
INSERT INTO public.meta VALUES ('store_id', '8ccd83912abb05449f9ceb8aee0f5aef');
INSERT INTO public.meta VALUES ('stamp', 'c7c7a00716c47928dae015c9056a0442');
INSERT INTO public.model_call VALUES (1883267101773985399, 1, 1, 'turn', NULL, 'm', '\xa73c706992e2e353f4a404ae1056d2b348a45478b7828f7f179f24bead864327', '\x5641ac1127ddee6c4c035fbdf7e93eec6ace2f83aee6f230051b872e4c59d122', 0, 1, 8, NULL, 'done', 9, 4, 0, 0, 0.5, 3, NULL, NULL, NULL, 1750000000000008, NULL);
INSERT INTO public.model_call VALUES (1883267101891457246, 1, 1, 'turn', NULL, 'm', NULL, NULL, 0, 1, NULL, NULL, 'failed', 0, 0, 0, 0, NULL, NULL, NULL, '"Once upon"', 'interrupted', 1750000000000089, NULL);
INSERT INTO public.outbox VALUES (1883267101773985399, 1, 1, 'web:1', '{"text":"Done."}', 'failed', 1, 1750000000000083, 'no network');
INSERT INTO public.presence VALUES (1883267101773985399, 'agent', 1750000000000045, 'resting');
INSERT INTO public.prompt VALUES ('\xa73c706992e2e353f4a404ae1056d2b348a45478b7828f7f179f24bead864327', '\x0022596f75206b65657020612073616d706c652e22');
INSERT INTO public.prompt_use VALUES (1883267101773985399, '\xa73c706992e2e353f4a404ae1056d2b348a45478b7828f7f179f24bead864327');
INSERT INTO public.prompt_use VALUES (1883267101773985399, '\x5641ac1127ddee6c4c035fbdf7e93eec6ace2f83aee6f230051b872e4c59d122');
INSERT INTO public.prompt_use VALUES (1883267101857458978, '\xa73c706992e2e353f4a404ae1056d2b348a45478b7828f7f179f24bead864327');
INSERT INTO public.prompt_use VALUES (1883267101857458978, '\x5641ac1127ddee6c4c035fbdf7e93eec6ace2f83aee6f230051b872e4c59d122');
INSERT INTO public.subscriber VALUES ('sample', 'memory', 1750000000000001);
INSERT INTO public.todo VALUES (1883267101773985399, 1, 'one', 'pending', 1750000000000043);
INSERT INTO public.todo VALUES (1883267101773985399, 2, 'two', 'done', 1750000000000043);
INSERT INTO public.todo VALUES (1883267101857458978, 1, 'one', 'pending', 1750000000000043);
INSERT INTO public.toolset VALUES ('\x5641ac1127ddee6c4c035fbdf7e93eec6ace2f83aee6f230051b872e4c59d122', '["look"]', '\x005b7b226e616d65223a226c6f6f6b222c22706172616d6574657273223a7b7d7d5d');
INSERT INTO public.turn VALUES (1883267101773985399, 1, '\x01977420dc007c8bab1167b367a9c378', 'done', NULL, 1, 1750000000000008, 1750000000000027, NULL);
INSERT INTO public.turn VALUES (1883267101891457246, 1, '\x01977420dc0071039ed733e8b421eaeb', 'interrupted', NULL, 1, 1750000000000089, 1750000000000092, 'stopped');
SELECT pg_catalog.setval('public.change_nth', 20, true);
ALTER TABLE ONLY public.alias
    ADD CONSTRAINT alias_pkey PRIMARY KEY (profile, foreign_id, source, conversation);
ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_pkey PRIMARY KEY (conversation_no, turn, call_id);
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.binding
    ADD CONSTRAINT binding_pkey PRIMARY KEY (profile, source, key);
ALTER TABLE ONLY public.binding
    ADD CONSTRAINT binding_profile_source_conversation_key UNIQUE (profile, source, conversation);
ALTER TABLE ONLY public.blob
    ADD CONSTRAINT blob_pkey PRIMARY KEY (conversation_no, hash);
ALTER TABLE ONLY public.boundary
    ADD CONSTRAINT boundary_pkey PRIMARY KEY (conversation_no, subscriber, number);
ALTER TABLE ONLY public.change
    ADD CONSTRAINT change_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.compaction
    ADD CONSTRAINT compaction_pkey PRIMARY KEY (conversation_no, generation);
ALTER TABLE ONLY public.conversation_id
    ADD CONSTRAINT conversation_id_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (no);
ALTER TABLE ONLY public.cut
    ADD CONSTRAINT cut_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.dictionary
    ADD CONSTRAINT dictionary_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.end_reason
    ADD CONSTRAINT end_reason_pkey PRIMARY KEY (reason);
ALTER TABLE ONLY public.goal
    ADD CONSTRAINT goal_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.inbound
    ADD CONSTRAINT inbound_pkey PRIMARY KEY (profile, source, account, key);
ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_pkey PRIMARY KEY (conversation_no, seq);
ALTER TABLE ONLY public.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.model_call
    ADD CONSTRAINT model_call_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.presence
    ADD CONSTRAINT presence_pkey PRIMARY KEY (conversation_no, owner);
ALTER TABLE ONLY public.prompt
    ADD CONSTRAINT prompt_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.prompt_use
    ADD CONSTRAINT prompt_use_pkey PRIMARY KEY (conversation_no, hash);
ALTER TABLE ONLY public.search_mark
    ADD CONSTRAINT search_mark_pkey PRIMARY KEY (only_one);
ALTER TABLE ONLY public.search_text
    ADD CONSTRAINT search_text_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.subscriber
    ADD CONSTRAINT subscriber_pkey PRIMARY KEY (profile, name);
ALTER TABLE ONLY public.todo
    ADD CONSTRAINT todo_pkey PRIMARY KEY (conversation_no, number);
ALTER TABLE ONLY public.toolset
    ADD CONSTRAINT toolset_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.turn
    ADD CONSTRAINT turn_pkey PRIMARY KEY (conversation_no, number);
CREATE UNIQUE INDEX alias_claimed ON public.alias USING btree (profile, source, foreign_id) WHERE (state = 'claimed'::text);
CREATE INDEX alias_conversation ON public.alias USING btree (conversation);
CREATE INDEX boundary_due ON public.boundary USING btree (profile, subscriber, next_at, conversation_no) WHERE (next_at IS NOT NULL);
CREATE INDEX boundary_of ON public.boundary USING btree (profile, subscriber, conversation_no, number);
CREATE UNIQUE INDEX compaction_attempt ON public.compaction USING btree (conversation_no, attempt) WHERE (attempt IS NOT NULL);
CREATE INDEX conversation_binned ON public.conversation USING btree (binned_at, no) WHERE (binned_at IS NOT NULL);
CREATE INDEX conversation_by_project ON public.conversation USING btree (profile, archived, COALESCE(git_root, cwd), active_at, no) WHERE ((kind <> 'delegate'::text) AND (binned_at IS NULL) AND (COALESCE(git_root, cwd) IS NOT NULL));
CREATE INDEX conversation_by_source ON public.conversation USING btree (profile, archived, source, active_at, no) WHERE ((kind <> 'delegate'::text) AND (binned_at IS NULL));
CREATE INDEX conversation_deleting ON public.conversation USING btree (no) WHERE (deleting = 1);
CREATE INDEX conversation_everywhere ON public.conversation USING btree (archived, active_at, no) WHERE ((kind <> 'delegate'::text) AND (binned_at IS NULL));
CREATE INDEX conversation_listed ON public.conversation USING btree (profile, archived, active_at, no) WHERE ((kind <> 'delegate'::text) AND (binned_at IS NULL));
CREATE INDEX conversation_origin ON public.conversation USING btree (origin, no) WHERE (origin IS NOT NULL);
CREATE INDEX conversation_pinned ON public.conversation USING btree (profile, archived, pinned, active_at, no) WHERE ((pinned = 1) AND (kind <> 'delegate'::text) AND (binned_at IS NULL));
CREATE INDEX conversation_unfinished ON public.conversation USING btree (profile, no) WHERE ((turn IS NOT NULL) OR (waiting > 0));
CREATE UNIQUE INDEX goal_active ON public.goal USING btree (conversation_no) WHERE (state = 'active'::text);
CREATE INDEX inbound_at ON public.inbound USING btree (at);
CREATE UNIQUE INDEX inbox_key ON public.inbox USING btree (conversation_no, key) WHERE (key IS NOT NULL);
CREATE INDEX inbox_waiting ON public.inbox USING btree (conversation_no, number) WHERE (state = 'waiting'::text);
CREATE INDEX message_id ON public.message USING btree (id);
CREATE UNIQUE INDEX message_key ON public.message USING btree (conversation_no, key) WHERE (key IS NOT NULL);
CREATE INDEX message_replaces ON public.message USING btree (conversation_no, replaces) WHERE (replaces IS NOT NULL);
CREATE UNIQUE INDEX model_call_group ON public.model_call USING btree (conversation_no, api_group) WHERE (api_group IS NOT NULL);
CREATE INDEX model_call_started ON public.model_call USING btree (started_at);
CREATE INDEX outbox_due ON public.outbox USING btree (next_at) WHERE (state = 'pending'::text);
CREATE INDEX prompt_use_hash ON public.prompt_use USING btree (hash);
CREATE INDEX search_text_words ON public.search_text USING gin (words) WITH (fastupdate='on');
CREATE UNIQUE INDEX turn_open ON public.turn USING btree (conversation_no) WHERE (state = ANY (ARRAY['running'::text, 'waiting'::text]));
CREATE TRIGGER compaction_needs_dictionary BEFORE INSERT ON public.compaction FOR EACH ROW WHEN ((substr(new.body, 1, 1) = ANY (ARRAY['\x02'::bytea, '\x82'::bytea]))) EXECUTE FUNCTION public.clew_needs_body();
CREATE TRIGGER inbox_needs_dictionary BEFORE INSERT ON public.inbox FOR EACH ROW WHEN ((substr(new.parts, 1, 1) = ANY (ARRAY['\x02'::bytea, '\x82'::bytea]))) EXECUTE FUNCTION public.clew_needs_parts();
CREATE TRIGGER message_needs_dictionary BEFORE INSERT ON public.message FOR EACH ROW WHEN ((substr(new.parts, 1, 1) = ANY (ARRAY['\x02'::bytea, '\x82'::bytea]))) EXECUTE FUNCTION public.clew_needs_parts();
CREATE TRIGGER message_never_changes BEFORE UPDATE ON public.message FOR EACH ROW EXECUTE FUNCTION public.clew_refuse();
CREATE TRIGGER prompt_needs_dictionary BEFORE INSERT ON public.prompt FOR EACH ROW WHEN ((substr(new.text, 1, 1) = ANY (ARRAY['\x02'::bytea, '\x82'::bytea]))) EXECUTE FUNCTION public.clew_needs_text();
CREATE TRIGGER toolset_needs_dictionary BEFORE INSERT ON public.toolset FOR EACH ROW WHEN ((substr(new.schemas, 1, 1) = ANY (ARRAY['\x02'::bytea, '\x82'::bytea]))) EXECUTE FUNCTION public.clew_needs_schemas();
ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.attempt
    ADD CONSTRAINT attempt_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.blob
    ADD CONSTRAINT blob_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.boundary
    ADD CONSTRAINT boundary_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.boundary
    ADD CONSTRAINT boundary_profile_subscriber_fkey FOREIGN KEY (profile, subscriber) REFERENCES public.subscriber(profile, name);
ALTER TABLE ONLY public.compaction
    ADD CONSTRAINT compaction_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_end_reason_fkey FOREIGN KEY (end_reason) REFERENCES public.end_reason(reason);
ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_origin_fkey FOREIGN KEY (origin) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_prompt_hash_fkey FOREIGN KEY (prompt_hash) REFERENCES public.prompt(hash);
ALTER TABLE ONLY public.conversation
    ADD CONSTRAINT conversation_toolset_hash_fkey FOREIGN KEY (toolset_hash) REFERENCES public.toolset(hash);
ALTER TABLE ONLY public.cut
    ADD CONSTRAINT cut_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.goal
    ADD CONSTRAINT goal_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.inbox
    ADD CONSTRAINT inbox_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.message
    ADD CONSTRAINT message_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.model_call
    ADD CONSTRAINT model_call_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.model_call
    ADD CONSTRAINT model_call_prompt_hash_fkey FOREIGN KEY (prompt_hash) REFERENCES public.prompt(hash);
ALTER TABLE ONLY public.model_call
    ADD CONSTRAINT model_call_toolset_hash_fkey FOREIGN KEY (toolset_hash) REFERENCES public.toolset(hash);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.presence
    ADD CONSTRAINT presence_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.prompt_use
    ADD CONSTRAINT prompt_use_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.todo
    ADD CONSTRAINT todo_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
ALTER TABLE ONLY public.turn
    ADD CONSTRAINT turn_conversation_no_fkey FOREIGN KEY (conversation_no) REFERENCES public.conversation(no);
