"""pi: what the sample file says, its versions, what hostile files cannot do, the round trip."""

from __future__ import annotations

import base64
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Image, Reasoning, Text, ToolCall, ToolResult, Unknown, call_ids
from clew.domain.turns import Usage
from clew.importers.formats.pi import FORMAT
from clew.importers.probe import probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Damaged,
    Kept,
    Skipped,
    Spent,
    Titled,
)
from clew.importers.source import Source
from readings import of, read_bytes, records, skipped
from strategies.conversations import Talk, heard, said, spent, values
from strategies.damage import put
from strategies.pi import Writer, lines, sessions

read = partial(read_bytes, FORMAT)

SAMPLE = Path(__file__).parents[2] / "data/transcripts/pi/real-large-session.jsonl"
SESSION = "d703a1a9-1b7b-4fb1-b512-c9738b1fe617"


def writer(version: int = 3) -> Writer:
    return Writer(Talk(SESSION, "model-a", "/srv", 1_700_000_000_000_000, ()), version)


# ---------------------------------------------------------------------- the sample


def test_a_real_session() -> None:
    assert FORMAT.matches(probe(Source(SAMPLE)))
    events = list(FORMAT.read(Source(SAMPLE)))
    (chat,) = of(Chat, events)
    assert (chat.id, chat.model, chat.created_at) == (
        SESSION, "claude-sonnet-4-5", 1_763_681_630_805_000,
    )  # fmt: skip
    assert chat.workspace == Workspace(cwd="/Users/dev/workspaces/pi-mono")
    kept = records(events)
    assert Counter(record.role.value for record in kept) == {
        "user": 88, "assistant": 453, "tool": 373,
    }  # fmt: skip
    calls = [id for record in kept for id in call_ids(record.parts)]
    results = [p for record in kept for p in record.parts if isinstance(p, ToolResult)]
    assert len(calls) == len(set(calls)) == 391
    assert {result.call_id for result in results} < set(calls)
    assert sum(result.is_error for result in results) == 19
    assert {result.name for result in results} == {"read", "bash", "edit", "write"}
    assert skipped(events) == {"model_change": 1, "thinking_level_change": 103, "details": 147}
    assert not of(Damaged, events)


def test_of_a_real_session_order_usage_and_broken_off_answers() -> None:
    events = list(FORMAT.read(Source(SAMPLE)))
    kept = records(events)
    assert kept[0].parts == (Text("/mode"),)
    assert kept[0].created_at == 1_763_681_581_550_000
    assert kept[1].parts == ()
    assert kept[1].meta == {
        "provider": "openai", "stopReason": "aborted", "errorMessage": "Request was aborted",
    }  # fmt: skip
    assert sum(record.parts == () for record in kept) == 14
    last = kept[-1].parts[0]
    assert isinstance(last, Text)
    assert last.text.startswith("Oh wait, these errors look like we have API mismatches!")
    assert kept[-1].created_at == 1_763_691_242_980_000
    assert spent(events) == Usage(47_526_750, 83_156, 43_229_469)
    costs = [record.spent.cost for record in kept if record.spent and record.spent.cost]
    assert sum(costs) == pytest.approx(30.3301977)
    assert all(record.parent is None for record in kept)
    assert len({record.id for record in kept}) == 914


# ---------------------------------------------------------------------- versions and ids


def _migrated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As pi writes a file of the first version anew."""
    header, *entries = [dict(row) for row in rows]
    header["version"] = 3
    previous = None
    for at, entry in enumerate(entries, 1):
        entry["id"], entry["parentId"] = f"{at:08x}", previous
        previous = entry["id"]
    for entry in entries:
        if "firstKeptEntryIndex" in entry:
            entry["firstKeptEntryId"] = entries[entry.pop("firstKeptEntryIndex") - 1]["id"]
    return [header, *entries]


def test_a_file_that_was_given_ids_has_the_same_records() -> None:
    w = writer(1)
    w.message("user", "a")
    w.entry("thinking_level_change", thinkingLevel="low")
    w.message("hookMessage", "hook", customType="x", display=True)
    w.message("assistant", [{"type": "text", "text": "b"}], model="model-a")
    w.entry("compaction", summary="S", firstKeptEntryIndex=3, tokensBefore=7)
    w.message("user", "c")
    before = read(lines(w.rows))
    rows = _migrated(w.rows)
    rows[3]["message"]["role"] = "custom"
    after = read(lines(rows))
    assert [record.id for record in records(after)] == [record.id for record in records(before)]
    (old,), (new,) = of(Compacted, before), of(Compacted, after)
    assert old == new
    first, hook, reply, _ = (record.id for record in records(before))
    assert old.body == (Inline(Role.USER, (Text("S"),)), Kept(hook or "", reply or ""))
    assert [record.parent for record in records(after)] == [None, first, hook, reply]

    parent = rows[4]["id"]
    rows.append({"type": "message", "id": "ffffffff", "parentId": parent, "message": {
        "role": "user", "content": "instead of c"}})  # fmt: skip
    assert records(read(lines(rows)))[-1].parent == reply


def test_ids_are_those_of_the_copies_in_a_forked_session_and_of_no_other() -> None:
    w = writer()
    w.message("user", "a")
    w.message("assistant", [{"type": "text", "text": "b"}])
    ids = [record.id for record in records(read(lines(w.rows)))]
    header = {"type": "session", "version": 3, "id": "fork", "timestamp": "2026-01-01T00:00:00Z",
              "cwd": "/srv", "parentSession": "/home/u/x/2026_old.jsonl"}  # fmt: skip
    forked = read(lines([header, *w.rows[1:]]))
    assert [record.id for record in records(forked)] == ids
    assert of(Chat, forked)[0].meta == {"version": 3, "parentSession": "2026_old.jsonl"}
    w.rows[1]["timestamp"] = "2020-01-01T00:00:00Z"
    assert not set(ids) & {record.id for record in records(read(lines(w.rows)))}


def test_the_tree_with_what_is_no_message_bridged() -> None:
    w = writer()
    w.entry("model_change", modelId="m")
    w.message("user", "a")
    w.entry("label", targetId="00000002", label="here")
    w.message("assistant", [{"type": "text", "text": "b"}])
    w.parent = "00000003"
    w.entry("branch_summary", summary="tried b", fromId="00000004")
    w.message("user", "c")
    w.parent = "00000001"
    w.message("user", "anew")
    events = read(lines(w.rows))
    a, b, summary, c, anew = records(events)
    assert (a.parent, b.parent, summary.parent, c.parent, anew.parent) == (
        None, a.id, a.id, summary.id, ROOT,
    )  # fmt: skip
    assert summary.role is Role.USER
    assert summary.meta == {"branchSummary": True, "fromId": "00000004"}
    assert skipped(events) == {"model_change": 1, "label": 1}


def test_a_compaction_keeps_what_stands_behind_the_first_kept_entry() -> None:
    w = writer()
    w.message("user", "a")
    kept = w.entry("thinking_level_change", thinkingLevel="low")["id"]
    w.message("assistant", [{"type": "text", "text": "b"}])
    w.entry("compaction", summary="S", firstKeptEntryId=kept, tokensBefore=50, fromHook=True)
    w.message("user", "c")
    events = read(lines(w.rows))
    a, b, c = records(events)
    (compaction,) = of(Compacted, events)
    assert (compaction.after, compaction.tokens_before) == (b.id, 50)
    assert compaction.body == (Inline(Role.USER, (Text("S"),)), Kept(a.id or "", b.id or ""))
    assert compaction.receipt == {"fromHook": True}
    assert c.parent == b.id
    for end in range(1, len(w.rows) + 1):
        told = [each for each in read(lines(w.rows[:end])) if not isinstance(each, Skipped)]
        assert told == [each for each in events if not isinstance(each, Skipped)][: len(told)]


# ---------------------------------------------------------------------- content


def test_kinds_of_messages_and_blocks() -> None:
    w = writer()
    picture = {"type": "image", "data": base64.b64encode(b"p").decode(), "mimeType": "image/gif"}
    odd = {"type": "hologram", "z": 1}
    w.message("user", [picture, odd])
    call = {"type": "toolCall", "id": "t", "name": "n", "arguments": {"b": 1}}
    w.message(
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {**call, "thoughtSignature": "ts"},
        ],
        model="m",
        usage={"input": 1, "output": 2, "cacheRead": 30, "cacheWrite": 4, "cost": {"total": 0.5}},
    )
    w.message("toolResult", [picture], toolCallId="t", toolName="n", isError=True, details={"x": 1})
    w.message("bashExecution", None, command="ls", output="a\n", exitCode=2)
    w.message("bashExecution", None, command="secret", excludeFromContext=True)
    w.entry("custom_message", customType="ext", content="injected", display=False)
    w.entry("session_info", name="A name")
    w.entry("custom", customType="state", data={})
    events = read(lines(w.rows))
    assert [(record.role.value, record.parts) for record in records(events)] == [
        ("user", (Image("image/gif", b"p"), Unknown(odd))),
        ("assistant", (
            Reasoning("hm", "m", "sig"),
            ToolCall("t", "n", '{"b":1}', extra={"thoughtSignature": "ts"}),
        )),
        ("tool", (ToolResult("t", (Image("image/gif", b"p"),), "n", True),)),
        ("user", (Text("Ran `ls`\n```\na\n\n```\nCommand exited with code 2"),)),
        ("user", (Text("injected"),)),
    ]  # fmt: skip
    assert records(events)[1].spent == Spent(model="m", usage=Usage(35, 2, 30), cost=0.5)
    assert records(events)[4].meta == {"customType": "ext"}
    assert of(Titled, events) == [Titled(chat=SESSION, title="A name", origin="user")]
    assert skipped(events) == {"details": 1, "message/bashExecution": 1, "custom": 1}


def test_a_file_without_its_header_is_known_by_its_path() -> None:
    w = writer()
    w.message("user", "a")
    events = read(lines(w.rows[1:]))
    assert {record.chat for record in records(events)} == {"held.jsonl"}


def test_damaged_lines_are_named_and_the_rest_arrives() -> None:
    w = writer()
    for text in ("a", "b", "c"):
        w.message("user", text)
    header, a, b, c = lines(w.rows).splitlines()
    deep = b"[" * 100_000
    data = b"\n".join(
        (
            b"\xef\xbb\xbf" + header + b"\r",
            a,
            b"\0" * 99,
            b"17",
            b[:-9],
            deep,
            c.replace(b"c", b"\xff"),
        )
    )
    events = read(data)
    assert [damaged.where for damaged in of(Damaged, events)] == [
        "line 3", "line 4", "line 5", "line 6",
    ]  # fmt: skip
    assert records(events)[0].parts == (Text("a"),)
    assert len(records(events)) == 2


def test_cycles_end() -> None:
    w = writer()
    first, second = w.entry("label"), w.message("user", "a")
    first["parentId"], second["parentId"] = second["id"], second["id"]
    (record,) = records(read(lines(w.rows)))
    assert record.parent is None


FIELDS = (
    "type", "id", "parentId", "timestamp", "message", "summary", "firstKeptEntryId", "name",
    "message.role", "message.content", "message.content.0", "message.content.0.type",
    "message.content.0.text", "message.content.0.id", "message.content.0.data", "message.usage",
    "message.usage.input", "message.usage.cost", "message.model", "message.details",
    "message.toolCallId", "version", "cwd",
)  # fmt: skip
ODD = values | st.sampled_from((1e308, 10**40, -1, "\ud800", "x" * 5000, [[]], {"type": "text"}))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(FIELDS), ODD), min_size=1, max_size=6),
    st.sampled_from((1, 3)),
)
@settings(max_examples=6 * settings.default.max_examples)
def test_any_value_may_stand_anywhere(changes: list[tuple[int, str, Any]], version: int) -> None:
    w = writer(version)
    w.message("user", [{"type": "text", "text": "a"}])
    w.message("assistant", [{"type": "toolCall", "id": "t"}], usage={"input": 1}, model="m")
    w.message("toolResult", [{"type": "image", "data": ""}], toolCallId="t")
    w.entry("compaction", summary="S", firstKeptEntryId="00000001", firstKeptEntryIndex=1)
    w.message("user", "b")
    for at, path, value in changes:
        put(w.rows[at], path.split("."), value)
    data = "\n".join(json.dumps(row) for row in w.rows).encode()
    assert len(records(read(data))) <= 6


@given(sessions())
@settings(max_examples=2 * settings.default.max_examples)
def test_a_conversation_comes_back(session: tuple[Talk, bytes]) -> None:
    talk, data = session
    events = read(data)
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage
    (chat,) = of(Chat, events)
    assert (chat.id, chat.workspace.cwd, chat.created_at) == (talk.id, talk.cwd, talk.started)
    times = [record.created_at for record in records(events) if record.created_at]
    assert times == sorted(times)
    assert len(times) == len(records(events))
    assert not of(Damaged, events)
