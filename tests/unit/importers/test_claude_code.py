"""Claude Code: what the sample files say, what hostile ones cannot do, and the round trip."""

from __future__ import annotations

import base64
import json
import uuid
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
from clew.domain.parts import (
    File,
    Image,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    call_ids,
)
from clew.domain.turns import Usage
from clew.importers.bridges import REMEMBERED
from clew.importers.formats.claude_code import FORMAT
from clew.importers.probe import probe
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Rewound,
    Skipped,
    Spent,
    Titled,
)
from clew.importers.source import Source
from readings import of, read_bytes, records, skipped
from strategies.claude_code import Writer, lines, sessions
from strategies.conversations import Talk, heard, said, spent, values
from strategies.damage import put

from_bytes = partial(read_bytes, FORMAT)

SAMPLES = Path(__file__).parents[2] / "data/transcripts/claude-code"
REAL = "fe5e1c67-53e7-4862-81ae-d0e013e3270b"
SESSION = "11111111-2222-4333-8444-555555555555"


def sample(name: str) -> list[Event]:
    return list(FORMAT.read(Source(SAMPLES / name)))


def follows(events: list[Event]) -> dict[str | None, str | None]:
    """The last two characters of ids: record and parent."""
    short = [(record.id, record.parent) for record in records(events)]
    return {id and id[-2:]: parent and parent[-2:] for id, parent in short}


def read(folder: Path, data: bytes, name: str = f"{SESSION}.jsonl") -> list[Event]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return list(FORMAT.read(Source(path)))


def writer() -> Writer:
    talk = Talk(SESSION, "model-a", "/srv", 1_700_000_000_000_000, ())
    return Writer(talk, split=False, noise=False)


def reply(content: Any, id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    return {"id": id, "role": "assistant", "model": "model-a", "content": content, **fields}


# ---------------------------------------------------------------------- samples


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.name)
def test_samples_are_known_by_their_content(path: Path) -> None:
    assert FORMAT.matches(probe(Source(path)))


def test_a_real_session_with_sub_agents() -> None:
    events = sample("real-long-sidechains-summary.jsonl")
    main, *sides = of(Chat, events)
    assert (main.id, main.origin) == (REAL, None)
    assert {side.origin for side in sides} == {REAL}
    assert [side.call for side in sides] == [
        "toolu_01LS6tcVd796SbQKmZqeVnWY",
        "toolu_014i9ThHMNShCHocf9xMKasf",
        "toolu_01EbxY94wRUAGyMLj5wh699C",
        "toolu_017rjDpjVPeNFmAEXNTkoP55",
        "toolu_01EPom7jESzNbU8coiKjzVGS",
    ]
    counts = Counter((r.chat.partition(":side:")[2][:8], r.role.value) for r in records(events))
    assert counts == {
        ("", "user"): 3, ("", "assistant"): 18, ("", "tool"): 11,
        ("6690d10e", "user"): 1, ("6690d10e", "assistant"): 12, ("6690d10e", "tool"): 8,
        ("60dade70", "user"): 1, ("60dade70", "assistant"): 52, ("60dade70", "tool"): 33,
        ("f4546a51", "user"): 1, ("f4546a51", "assistant"): 58, ("f4546a51", "tool"): 39,
        ("0d692b0f", "user"): 1, ("0d692b0f", "assistant"): 40, ("0d692b0f", "tool"): 24,
        ("f4ab2bf6", "user"): 1, ("f4ab2bf6", "assistant"): 82, ("f4ab2bf6", "tool"): 52,
    }  # fmt: skip
    assert skipped(events) == {"summary": 1, "toolUseResult": 144}
    assert not of(Damaged, events)


def test_of_a_real_session_calls_usage_times_and_places() -> None:
    events = sample("real-long-sidechains-summary.jsonl")
    kept = records(events)
    calls = [id for record in kept for id in call_ids(record.parts)]
    results = [p.call_id for record in kept for p in record.parts if isinstance(p, ToolResult)]
    assert len(calls) == len(results) == 167
    assert set(calls) == set(results)
    assert len({record.api_group for record in kept} - {None}) == 170
    own = [record for record in kept if record.chat == REAL]
    assert spent(own) == Usage(168358, 2636, 161313)
    assert spent(kept) == Usage(3786648, 51933, 3647854)
    assert {record.model for record in own if record.role is Role.ASSISTANT} == {
        "claude-sonnet-4-20250514"
    }
    assert own[0].created_at == 1_756_860_751_217_000
    assert own[-1].created_at == 1_756_861_323_665_000
    last = own[-1].parts[0]
    assert isinstance(last, Text)
    assert last.text.startswith("CLAUDE.md has been created with comprehensive documentation")
    assert own[0].workspace == Workspace(cwd="/path/to/Demo")
    assert [record.workspace.cwd for record in own if record.workspace] == [
        "/path/to/Demo",
        "/path/to/Demo/todo-app",
        "/path/to/Demo/todo-app/types",
        "/path/to/Demo",
        "/path/to/Demo/todo-app",
        "/path/to/Demo",
    ]
    ids = {record.id for record in kept}
    assert len(ids) == 437
    assert all(record.parent in ids for record in kept if record.parent is not None)
    assert sum(record.parent is None for record in kept) == 6
    assert [r.id for r in kept if (r.meta or {}).get("isMeta")] == [
        "5a3fdd4a-ac04-44ec-8323-407fdb4c7c06"
    ]


def test_a_compaction_is_one_with_its_summary() -> None:
    events = sample("agentpile-compaction.jsonl")
    (compaction,) = of(Compacted, events)
    assert compaction == Compacted(
        chat="00000000-0000-4000-8000-000000000004",
        id="00000000-0000-4000-8000-000000000043",
        after="00000000-0000-4000-8000-000000000042",
        body=(Inline(Role.USER, (Text("This is the compaction summary."),)),),
        tokens_before=2000,
        tokens_after=500,
        at=1_790_856_003_000_000,
        receipt={"trigger": "auto", "preTokens": 2000, "postTokens": 500, "durationMs": 800},
    )
    assert follows(events) == {"41": None, "42": "41", "45": "42"}
    assert events.index(compaction) == 3
    assert skipped(events) == {"queue-operation": 1}


def test_records_of_one_message_share_their_group() -> None:
    events = sample("agentpile-split_interleaved.jsonl")
    assert [record.api_group for record in records(events)] == [
        None, "msg_fx_a", "msg_fx_a", None, "msg_fx_a", None,
    ]  # fmt: skip
    assert [record.role.value for record in records(events)] == [
        "user", "assistant", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert spent(events) == Usage(100, 20)
    assert follows(events) == {
        "11": None, "12": "11", "13": "12", "14": "13", "15": "14", "16": "15",
    }  # fmt: skip


def test_an_edit_is_a_second_child_with_what_is_between_bridged() -> None:
    events = sample("agentpile-edit_branch.jsonl")
    assert follows(events) == {"31": None, "32": "31", "34": "32", "35": "32"}
    assert skipped(events) == {"queue-operation": 1, "system/turn_duration": 1}


def test_records_that_come_again_are_given_as_they_stand() -> None:
    """Which of them is kept is decided where ids are known."""
    ids = [record.id[-2:] for record in records(sample("agentpile-duplicates.jsonl")) if record.id]
    assert ids == ["81", "81", "81", "82", "83", "84"]


def test_a_result_names_the_agent_that_gave_it() -> None:
    events = sample("agentpile-subagents.jsonl")
    agents = [(record.meta or {}).get("agentId") for record in records(events)]
    assert agents == [
        None, None, "afx0000000000001", None, "afx_missing_id", None, None, None,
        "afx0000000000003",
    ]  # fmt: skip
    assert len(of(Chat, events)) == 1
    assert skipped(events) == {"queue-operation": 1, "toolUseResult": 4}


def test_lines_that_are_no_records_are_named_and_the_rest_arrives() -> None:
    events = sample("edge-cases-unicode-long-orphans.jsonl")
    assert [(damaged.where, damaged.reason) for damaged in of(Damaged, events)] == [
        ("line 10", "a record of type user with no message"),
        ("line 11", "a record of type user with no message"),
        ("line 13", "a text, not an object"),
        ("line 15", "a number, not an object"),
        ("line 16", "a list, not an object"),
    ]
    assert [record.id for record in records(events)] == [
        "edge_001", "edge_002", "edge_003", "edge_004", "edge_005", "edge_006", "edge_007",
        "edge_008", "edge_009", "edge_011", "assistant_004", "edge_010",
    ]  # fmt: skip
    by_id = {record.id: record for record in records(events)}
    assert by_id["edge_010"].parts == (Text("wow error"),)
    assert by_id["edge_011"].parts == (
        Text(
            "Testing special characters: café, naïve, résumé, 中文, العربية, русский, 🎉 emojis 🚀 "
            "and symbols ∑∆√π∞"
        ),
    )
    (result,) = by_id["edge_005"].parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("tool_edge_001", True)
    assert by_id["assistant_004"].parent == "assistant_003"
    (titled,) = of(Titled, events)
    assert titled.title.startswith("Tested various edge cases")
    assert skipped(events) == {"no type": 1}


def test_a_typical_session() -> None:
    events = sample("representative-messages-image.jsonl")
    assert Counter(record.role.value for record in records(events)) == {
        "user": 4, "assistant": 5, "tool": 2,
    }  # fmt: skip
    assert spent(events) == Usage(218, 445)
    assert [titled.title[:36] for titled in of(Titled, events)] == [
        "User learned about Python decorators"
    ]
    last = records(events)[-1]
    assert (last.id, last.created_at) == ("msg_011", 1_749_895_440_000_000)


def test_the_shapes_of_a_recent_version() -> None:
    events = sample("redacted-thinking-recent-version.jsonl")
    side = "ses_stage0_small:side:u1"
    assert [(chat.id, chat.origin) for chat in of(Chat, events)] == [
        ("ses_stage0_small", None),
        (side, "ses_stage0_small"),
    ]
    inside = [record for record in records(events) if record.chat == side]
    assert [(record.id, record.parent) for record in inside] == [
        ("u1", None), ("a1", "u1"), ("u2", "a1"), ("u2b", "a1"), ("a2", "u2"), ("a3", "u2"),
    ]  # fmt: skip
    assert inside[1].parts == (
        Reasoning("Reasoning goes here."),
        Text("I'll list files."),
        ToolCall("a1", "bash", '{"command":"ls"}'),
    )
    assert [(titled.title, titled.origin) for titled in of(Titled, events)] == [
        ("Stage0 small fixture", "user"),
        ("Stage0 AI title", "llm"),
    ]
    assert of(Rewound, events)[0] == Rewound(chat=side, first="a3")
    compaction = of(Compacted, events)[0]
    assert (compaction.id, compaction.chat, compaction.tokens_before) == ("s4", side, 120000)
    assert compaction.body == (Inline(Role.USER, (Text("Summary of prior context."),)),)
    own = [record for record in records(events) if record.chat == "ses_stage0_small"]
    assert own[0].parent is None  # what it follows stands in the sub-agent's conversation
    assert own[0].parts[0] == Reasoning(
        "[trimmed for fixture]", "claude-opus-5", "[trimmed for fixture]"
    )
    assert own[2].meta == {"attachment": "queued_command"}
    kinds = skipped(events)
    assert kinds["attachment/queued_command"] == 3
    assert kinds["system/api_error"] == 4
    assert kinds["summary"] == 1
    assert sum(kinds.values()) == 64  # of which 2 are toolUseResult
    assert len(records(events)) == 20


# ---------------------------------------------------------------------- files


def test_a_file_named_by_a_uuid_is_that_session(tmp_path: Path) -> None:
    w = writer()
    w.say("hello", sessionId="another")
    assert {record.chat for record in records(read(tmp_path, lines(w.rows)))} == {SESSION}
    again = read(tmp_path, lines(w.rows), "copy.jsonl")
    assert {record.chat for record in records(again)} == {"another"}
    for row in w.rows:
        del row["sessionId"]
    nameless = read(tmp_path, lines(w.rows), "nameless.jsonl")
    assert {r.chat for r in records(nameless)} == {str(tmp_path / "nameless.jsonl")}


def test_a_sub_agents_file_belongs_to_its_session(tmp_path: Path) -> None:
    w = writer()
    w.say("look around", isSidechain=True, agentId="a77")
    about = {"agentType": "Explore", "description": "Map it", "toolUseId": "toolu_9"}
    beside = tmp_path / SESSION / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a77.meta.json").write_text(json.dumps(about))
    events = read(tmp_path, lines(w.rows), f"{SESSION}/subagents/agent-a77.jsonl")
    (chat,) = of(Chat, events)
    assert (chat.id, chat.origin, chat.call) == (f"{SESSION}:agent:a77", SESSION, "toolu_9")
    assert (chat.title, chat.meta["agentType"]) == ("Map it", "Explore")
    assert [record.chat for record in records(events)] == [chat.id]


@pytest.mark.parametrize("where", [f"{SESSION}/subagents/agent-a77.jsonl", "agent-a77.jsonl"])
def test_without_a_sidecar_the_sessions_file_names_the_call(tmp_path: Path, where: str) -> None:
    w = writer()
    w.row("assistant", message=reply([{"type": "tool_use", "id": "t1", "name": "Task"}]))
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    w.say([block], toolUseResult={"agentId": "a77"})
    (tmp_path / f"{SESSION}.jsonl").write_bytes(lines(w.rows))
    inner = writer()
    inner.say("look around", isSidechain=True, agentId="a77")
    (chat,) = of(Chat, read(tmp_path, lines(inner.rows), where))
    assert (chat.id, chat.call) == (f"{SESSION}:agent:a77", "t1")


def test_a_session_id_is_no_path(tmp_path: Path) -> None:
    """It names no file to look into unless it is a UUID."""
    (tmp_path / "secret.jsonl").write_text("{}")
    inner = writer()
    inner.say("x", isSidechain=True, sessionId="../../secret", agentId="a")
    (chat,) = of(Chat, read(tmp_path, lines(inner.rows), "p/subagents/agent-a.jsonl"))
    assert (chat.call, chat.origin) == (None, "../../secret")


def test_a_first_line_longer_than_the_first_look_is_known_by_its_keys(tmp_path: Path) -> None:
    w = writer()
    w.say("x" * 200_000)
    path = tmp_path / "big.jsonl"
    path.write_bytes(lines(w.rows))
    assert FORMAT.matches(probe(Source(path)))
    path.write_text('{"type":"message","id":"1","message":{"role":"user"}}\n')
    assert not FORMAT.matches(probe(Source(path)))


# ---------------------------------------------------------------------- content


def parts(folder: Path, content: Any, **fields: Any) -> tuple[Any, ...]:
    w = writer()
    w.say(content, **fields)
    return records(read(folder, lines(w.rows)))[0].parts


def test_images_documents_and_unknown_blocks(tmp_path: Path) -> None:
    data = base64.b64encode(b"picture").decode()
    inline = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/gif", "data": data},
    }
    linked = {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "*"}}
    paper = {"type": "document", "title": "T", "source": {"type": "base64", "data": data}}
    plain = {"type": "document", "source": {"type": "text", "data": "words"}}
    odd = {"type": "hologram", "depth": {"z": [1, None]}}
    assert parts(tmp_path, [inline, linked, broken, paper, plain, odd]) == (
        Image("image/gif", b"picture"),
        Image(url="https://x.test/a.png"),
        Unknown(broken),
        File("application/pdf", "T", b"picture"),
        File("text/plain", data=b"words"),
        Unknown(odd),
    )
    result = {"type": "tool_result", "tool_use_id": "t", "content": [inline, odd]}
    assert parts(tmp_path, [result]) == (
        ToolResult("t", (Image("image/gif", b"picture"), Unknown(odd))),
    )


def test_redacted_thinking_keeps_its_data_and_model(tmp_path: Path) -> None:
    w = writer()
    w.row("assistant", message=reply([{"type": "redacted_thinking", "data": "opaque"}]))
    (record,) = records(read(tmp_path, lines(w.rows)))
    assert record.parts == (Reasoning(model="model-a", data="opaque"),)


def test_arguments_are_the_text_that_stands_there(tmp_path: Path) -> None:
    w = writer()
    w.row("assistant", message=reply([{"type": "tool_use", "id": "t", "name": "n", "input": "@"}]))
    data = lines(w.rows).replace(b'"@"', b'{"b": 1.0,"a":"\\u00e9"}')
    (record,) = records(read(tmp_path, data))
    assert record.parts == (ToolCall("t", "n", '{"b": 1.0,"a":"\\u00e9"}'),)


def test_what_stands_beside_results_is_a_message_that_follows(tmp_path: Path) -> None:
    w = writer()
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    both = w.say([result, {"type": "text", "text": "stop"}])["uuid"]
    w.say("and then")
    first, second, third = records(read(tmp_path, lines(w.rows)))
    assert (first.role, first.id, first.parts) == (Role.TOOL, both, (ToolResult("t", "ok"),))
    assert (second.role, second.parts) == (Role.USER, (Text("stop"),))
    assert (second.id, second.parent) == (f"{both}/text", both)
    assert third.parent == second.id


def test_errors_of_the_api_are_messages_of_no_model(tmp_path: Path) -> None:
    w = writer()
    message = reply([{"type": "text", "text": "API Error"}], model="<synthetic>", usage={"a": 1})
    w.row("assistant", isApiErrorMessage=True, message=message)
    (record,) = records(read(tmp_path, lines(w.rows)))
    assert (record.model, record.spent) == (None, None)
    assert record.meta == {"version": "2.1.0", "isApiErrorMessage": True}


def test_usage_counts_cached_tokens_and_what_old_versions_say_of_cost(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 1, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300,
        "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 5},
    }  # fmt: skip
    w = writer()
    w.row("assistant", costUSD=0.5, durationMs=12, message=reply("x", usage=usage))
    (record,) = records(read(tmp_path, lines(w.rows)))
    assert record.spent == Spent(
        model="model-a", usage=Usage(321, 7, 300, 5), cost=0.5, latency=12_000
    )


def test_where_the_agent_is_stands_at_the_records_where_it_changes(tmp_path: Path) -> None:
    w = writer()
    for cwd, branch in (("/a", "main"), ("/a", "main"), ("/b", "main"), ("/b", "")):
        w.say("x", cwd=cwd, gitBranch=branch)
    assert [record.workspace for record in records(read(tmp_path, lines(w.rows)))] == [
        Workspace("/a", git_branch="main"),
        None,
        Workspace("/b", git_branch="main"),
        Workspace("/b"),
    ]


def test_what_was_typed_while_the_agent_worked_is_a_message(tmp_path: Path) -> None:
    w = writer()
    w.say("go")
    queued = {"type": "queued_command", "prompt": "also this", "commandMode": "prompt"}
    w.row("attachment", attachment=queued)
    w.row("attachment", attachment={**queued, "commandMode": "task-notification"})
    events = read(tmp_path, lines(w.rows))
    assert [r.parts for r in records(events)] == [(Text("go"),), (Text("also this"),)]
    assert skipped(events) == {"attachment/queued_command": 1}


# ---------------------------------------------------------------------- titles, sub-agents, rewinds


def test_a_summary_titles_the_conversation_that_it_names(tmp_path: Path) -> None:
    w = writer()
    leaf = w.say("a")["uuid"]
    w.say("b")
    before = {"type": "summary", "summary": "Of this", "leafUuid": leaf}
    other = {"type": "summary", "summary": "Of another file", "leafUuid": "elsewhere"}
    for rows in ([before, other, *w.rows], [*w.rows, other, before]):
        events = read(tmp_path, lines(rows))
        assert [titled.title for titled in of(Titled, events)] == ["Of this"]
        assert skipped(events) == {"summary": 1}


def test_a_title_before_the_first_record_comes_after_the_conversation(tmp_path: Path) -> None:
    w = writer()
    w.say("a")
    title = {"type": "custom-title", "customTitle": "Mine", "sessionId": SESSION}
    events = read(tmp_path, lines([title, *w.rows]))
    assert [type(event) for event in events] == [Chat, Titled, Record]
    assert skipped(read(tmp_path, lines([title]))) == {"custom-title": 1}


def _spawn(w: Writer, *prompts: str) -> None:
    calls = [
        {"type": "tool_use", "id": f"t{at}", "name": "Task", "input": {"prompt": prompt}}
        for at, prompt in enumerate(prompts)
    ]
    w.row("assistant", message=reply(calls))


def test_sidechains_that_interleave_are_kept_apart(tmp_path: Path) -> None:
    w = writer()
    _spawn(w, "one", "two")
    main = w.parent
    tips: dict[str, str | None] = {"one": None, "two": None}
    for name, text in (("one", "one"), ("two", "two"), ("one", "1a"), ("two", "2a"), ("one", "1b")):
        w.parent = tips[name]
        message = reply(text, f"m{text}") if text != name else {"role": "user", "content": text}
        kind = "assistant" if text != name else "user"
        tips[name] = w.row(kind, isSidechain=True, message=message)["uuid"]
    w.parent = main
    w.say([{"type": "tool_result", "tool_use_id": "t0", "content": "ok"}])
    events = read(tmp_path, lines(w.rows))
    chats = of(Chat, events)
    assert [(chat.origin, chat.call) for chat in chats] == [
        (None, None), (SESSION, "t0"), (SESSION, "t1"),
    ]  # fmt: skip
    texts = [
        [p.text for r in records(events) if r.chat == chat.id for p in r.parts if type(p) is Text]
        for chat in chats
    ]
    assert texts == [[], ["one", "1a", "1b"], ["two", "2a"]]


def test_a_call_that_is_not_sure_is_not_given(tmp_path: Path) -> None:
    w = writer()
    _spawn(w, "same", "same")
    w.parent = None
    w.say("same", isSidechain=True)
    assert [chat.call for chat in of(Chat, read(tmp_path, lines(w.rows)))] == [None, None]


def test_retracted_messages_are_taken_back_if_they_are_the_newest(tmp_path: Path) -> None:
    w = writer()
    w.say("a")
    first = w.row("assistant", message=reply("no"))["uuid"]
    second = w.row("assistant", message=reply("no, really"))["uuid"]
    refusal = {"subtype": "api_refusal", "retractedMessageUuids": [first, second]}
    w.row("system", **refusal)
    assert of(Rewound, read(tmp_path, lines(w.rows))) == [Rewound(chat=SESSION, first=first)]
    w.rows.insert(3, dict(w.rows[0], uuid=str(uuid.uuid4()), parentUuid=second))
    events = read(tmp_path, lines(w.rows))
    assert of(Rewound, events) == []
    assert skipped(events) == {"system/api_refusal": 1}


# ---------------------------------------------------------------------- compactions


def _boundary(w: Writer, **meta: Any) -> str:
    last = w.parent
    w.parent = None
    row = w.row("system", subtype="compact_boundary", logicalParentUuid=last, compactMetadata=meta)
    return row["uuid"]


def test_a_file_that_grows_tells_the_same_compactions(tmp_path: Path) -> None:
    """Cut after any record: what was told before is the beginning of what is told in the end."""
    w = writer()
    w.say("a")
    w.row("assistant", message=reply("b"))
    _boundary(w, trigger="auto", preTokens=9)
    w.row("attachment", attachment={"type": "file"})
    w.say("the summary", isCompactSummary=True)
    w.say("c")
    _boundary(w, trigger="manual")
    w.say("no summary came")
    w.say("a summary of its own", isCompactSummary=True)
    w.say("d")
    whole = [event for event in read(tmp_path, lines(w.rows)) if not isinstance(event, Skipped)]
    for end in range(len(w.rows) + 1):
        events = read(tmp_path, lines(w.rows[:end]))
        told = [event for event in events if not isinstance(event, Skipped)]
        assert told == whole[: len(told)]
    a, b, c, no, d = (record.id for record in records(whole))
    first, second, third = of(Compacted, whole)
    assert [item.after for item in (first, second, third)] == [b, c, no]
    assert first.body == (Inline(Role.USER, (Text("the summary"),)),)
    assert second.body == ()
    assert third.body == (Inline(Role.USER, (Text("a summary of its own"),)),)
    assert [record.parent for record in records(whole)] == [None, a, b, c, no]
    assert d is not None


@pytest.mark.parametrize("at_boundary", [False, True])
def test_preserved_messages_stand_after_the_summary(tmp_path: Path, at_boundary: bool) -> None:
    w = writer()
    w.say("a")
    head = w.row("assistant", message=reply("b"))["uuid"]
    tail = w.say("c")["uuid"]
    boundary = _boundary(w, preservedSegment={"headUuid": head, "tailUuid": tail})
    summary = w.say("the summary", isCompactSummary=True)["uuid"]
    segment = w.rows[3]["compactMetadata"]["preservedSegment"]
    segment["anchorUuid"] = boundary if at_boundary else summary
    inline, kept = Inline(Role.USER, (Text("the summary"),)), Kept(head, tail)
    (compaction,) = of(Compacted, read(tmp_path, lines(w.rows)))
    assert compaction.body == ((kept, inline) if at_boundary else (inline, kept))
    assert compaction.after == tail


def test_a_microcompact_is_bridged(tmp_path: Path) -> None:
    w = writer()
    first = w.say("a")["uuid"]
    w.row("system", subtype="microcompact_boundary", microcompactMetadata={"preTokens": 1})
    w.say("b")
    events = read(tmp_path, lines(w.rows))
    assert [record.parent for record in records(events)] == [None, first]
    assert skipped(events) == {"system/microcompact_boundary": 1}


def test_a_compaction_of_nothing_is_none(tmp_path: Path) -> None:
    w = writer()
    _boundary(w)
    w.say("a")
    events = read(tmp_path, lines(w.rows))
    assert of(Compacted, events) == []
    assert skipped(events) == {"system/compact_boundary": 1}


# ---------------------------------------------------------------------- damage


def test_glued_torn_and_empty_lines(tmp_path: Path) -> None:
    w = writer()
    ids = [w.say(text)["uuid"] for text in ("a", "b", "c", "d", "e", "f")]
    a, b, c, d, e, f = lines(w.rows).splitlines()
    data = b"\n".join(
        (
            b"\xef\xbb\xbf" + a + b"\r",
            b + c,  # the line end was lost
            b"\0" * 5000,  # blocks that were never written
            b"\0\0" + d,
            e[: len(e) // 2] + f,  # a crash in mid-line, and then the next record
            b"",
        )
    )
    events = read(tmp_path, data)
    assert [record.id for record in records(events)] == [*ids[:4], ids[5]]
    assert [damaged.where for damaged in of(Damaged, events)] == ["line 3", "line 5"]


def test_invalid_utf8_is_replaced(tmp_path: Path) -> None:
    w = writer()
    w.say("a@b")
    (record,) = records(read(tmp_path, lines(w.rows).replace(b"@", b"\xff")))
    assert record.parts == (Text("a\ufffdb"),)


def test_nesting_is_refused_and_the_rest_arrives(tmp_path: Path) -> None:
    w = writer()
    w.say("@")
    w.say("b")
    data = lines(w.rows).replace(b'"@"', b"[" * 100_000 + b"]" * 100_000)
    events = read(tmp_path, data)
    assert [damaged.where for damaged in of(Damaged, events)] == ["line 1"]
    assert [record.parts for record in records(events)] == [(Text("b"),)]


def test_cycles_and_missing_ids(tmp_path: Path) -> None:
    w = writer()
    one, two = w.say("a"), w.row("system", subtype="x")
    one["parentUuid"] = one["uuid"]
    two["parentUuid"] = two["uuid"]
    three = w.say("b")
    nameless = w.say("c")
    nameless["uuid"] = None
    first, second, third = records(read(tmp_path, lines(w.rows)))
    assert (first.parent, second.parent) == (None, None)
    assert (third.id, third.parent) == (None, three["uuid"])
    assert third.content == lines([nameless]).rstrip()


def test_memory_does_not_grow_with_what_is_skipped(tmp_path: Path) -> None:
    """A bridge over more records than are remembered ends; the engine goes on with the newest."""
    w = writer()
    w.say("a")
    for _ in range(2 * REMEMBERED + 10):
        w.row("progress")
    w.say("b")
    w.parent = w.rows[1]["uuid"]
    w.say("c")
    first, second, third = records(read(tmp_path, lines(w.rows)))
    assert second.parent == first.id
    assert third.parent == w.rows[1]["uuid"]


def test_odd_blocks_cost_no_more_than_their_line(tmp_path: Path) -> None:
    """Were the line decoded for each of them, this would take hours."""
    w = writer()
    w.say([{"type": "odd", "at": at} for at in range(20_000)])
    (record,) = records(read(tmp_path, lines(w.rows)))
    assert record.parts[-1] == Unknown({"type": "odd", "at": 19_999})


def test_records_among_garbage_on_one_line_are_looked_for_a_few_times(tmp_path: Path) -> None:
    w = writer()
    for text in ("a", "b"):
        w.say(text)
    first, second = lines(w.rows).splitlines()
    torn = b'{"type":[' * 3
    events = read(tmp_path, first + torn + second)
    assert [record.parts for record in records(events)] == [(Text("a"),), (Text("b"),)]
    assert [damaged.where for damaged in of(Damaged, events)] == ["line 1"]
    assert len(records(read(tmp_path, first + torn * 9 + second))) == 1


FIELDS = st.sampled_from(
    (
        "type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp",
        "cwd", "version", "isSidechain", "agentId", "isMeta", "isCompactSummary", "message",
        "toolUseResult", "compactMetadata", "retractedMessageUuids", "attachment", "costUSD",
        "durationMs", "message.content", "message.id", "message.usage", "message.model",
        "message.content.0", "message.content.0.type", "message.content.0.text",
        "message.content.0.content", "message.content.0.input", "message.content.0.source",
        "message.content.0.id", "message.usage.input_tokens",
    )
)  # fmt: skip
ODD = values | st.sampled_from((1e308, 10**40, -1, "\ud800", "x" * 5000, [[]], {"type": "text"}))


@given(st.lists(st.tuples(st.integers(0, 5), FIELDS, ODD), min_size=1, max_size=6))
@settings(max_examples=6 * settings.default.max_examples)
def test_any_value_may_stand_anywhere(changes: list[tuple[int, str, Any]]) -> None:
    w = writer()
    w.say([{"type": "text", "text": "a"}])
    usage = {"input_tokens": 1, "output_tokens": 1}
    w.row("assistant", message=reply([{"type": "tool_use", "id": "t"}], usage=usage))
    w.say([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text"}]}])
    _boundary(w, preTokens=5)
    w.say("sum", isCompactSummary=True)
    w.say("b", isSidechain=True)
    for at, path, value in changes:
        put(w.rows[at], path.split("."), value)
    events = from_bytes(lines(w.rows, ascii_only=True))
    assert len(of(Record, events)) + len(of(Damaged, events)) <= 8


# ---------------------------------------------------------------------- round trip


@given(sessions())
@settings(max_examples=2 * settings.default.max_examples)
def test_a_conversation_comes_back(session: tuple[Talk, bytes]) -> None:
    talk, data = session
    events = from_bytes(data)
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage
    assert {record.chat for record in records(events)} == {talk.id}
    assert all(record.created_at is not None for record in records(events))
    assert {e.cwd for r in records(events) if (e := r.workspace)} == {talk.cwd}
    ids = [record.id for record in records(events)]
    assert [record.parent for record in records(events)] == [None, *ids[:-1]]
    assert not of(Damaged, events)
