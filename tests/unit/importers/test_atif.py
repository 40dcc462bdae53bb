"""ATIF trajectories."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import atif
import pytest
from hypothesis import given, settings

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.formats.atif import FORMAT
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Skipped,
    Spent,
    Used,
    Warned,
)
from clew.importers.source import Source
from readings import read as read_as
from readings import records
from strategies.atif import document as document_of
from strategies.atif import write
from strategies.conversations import Talk, heard, said, spent, talks

read = partial(read_as, FORMAT)


DATA = Path(__file__).parents[2] / "data/transcripts/atif"


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": at, "message": ""} | step for at, step in enumerate(steps, 1)]
    agent = {"name": "tester", "version": "1", "model_name": "m"}
    given = {"schema_version": "ATIF-v1.7", "trajectory_id": "t", "agent": agent}
    return given | {"steps": numbered} | more


def put(folder: Path, name: str = "trajectory.json", **more: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(more), "utf-8")
    return path


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"source": "user", "message": text} | more


def agent(text: Any = "", **more: Any) -> dict[str, Any]:
    return {"source": "agent", "message": text} | more


def roles(events: list[Event]) -> Counter[str]:
    return Counter(record.role.value for record in records(events))


# ---------------------------------------------------------------------- the files


def test_the_redacted_export_of_hermes() -> None:
    events = read(DATA / "hermes-atif-v1.7-real-redacted.json")
    assert isinstance(events[0], Chat)
    assert events[0].id == "real-nemo-relay-trajectory-redacted"
    assert [(each.id, each.role.value) for each in records(events)] == [
        ("1", "system"), ("2", "system"), ("3", "assistant"), ("4", "system"), ("5", "system"),
        ("6", "assistant"), ("6/result", "tool"),
    ]  # fmt: skip
    assert records(events)[2].spent == Spent(model="<redacted>", usage=Usage(8983, 7))
    assert len(records(events)[5].parts) == len(records(events)[6].parts) == 4
    assert events[-1] == Skipped("steps.extra", 6)


def test_the_file_of_several_agents() -> None:
    events = read(DATA / "multiagent.json")
    chat = events[0]
    assert isinstance(chat, Chat)
    assert (chat.id, chat.model) == ("fx-1", "fake-model")
    assert chat.tools is not None
    assert [tool["function"]["name"] for tool in chat.tools] == [
        "search_flights", "read_calendar", "book_flight",
    ]  # fmt: skip
    assert [each.id for each in records(events)] == [
        "1", "2", "3", "3/result", "4", "4/result", "5",
    ]  # fmt: skip
    assert records(events)[3].parts == (
        ToolResult("c2", "No events."),
        ToolResult("c1", '[{"offer_id": 7, "depart": "09:00"}]'),
    )
    assert records(events)[2].parts[1:] == (
        ToolCall("c1", "search_flights", '{"origin":"LAX","dest":"SFO"}'),
        ToolCall("c2", "read_calendar", '{"date":"2026-11-02"}'),
    )
    assert events[-2:] == [Skipped("steps.extra", 4), Skipped("extra")]


def test_the_two_golden_files_of_one_session_id_are_two_conversations() -> None:
    first = read(DATA / "openhands-hello-world.trajectory.json")
    second = read(DATA / "terminus2-context-summarization.trajectory.json")
    assert isinstance(first[0], Chat)
    assert isinstance(second[0], Chat)
    assert first[0].id != second[0].id
    assert roles(first) == {"system": 3, "user": 1, "assistant": 2, "tool": 1}
    assert spent(first) == Usage(220, 80)
    assert records(first)[4].spent == Spent(model="unknown", usage=Usage(100, 50), cost=0.00075)
    assert roles(second) == {"system": 1, "user": 2, "assistant": 7, "tool": 7}
    assert spent(second) == Usage(6502, 690)
    assert records(second)[2].parts[0] == ToolResult(
        "call_0_1", "New Terminal Output:\n\nroot@CONTAINER_ID:/app# mkdir test_dir\n\n\n"
    )
    assert second[-6:] == [
        Skipped("metrics.prompt_token_ids", 7),
        Skipped("metrics.completion_token_ids", 7),
        Skipped("metrics.logprobs", 7),
        *[Skipped("subagent_trajectory_ref")] * 3,
    ]


# ---------------------------------------------------------------------- steps


def test_thinking_models_times_and_metrics(tmp_path: Path) -> None:
    given = agent(
        "said",
        timestamp="2026-01-01T00:00:00Z",
        model_name="other",
        reasoning_content="hm",
        reasoning_effort="high",
        llm_call_count=2,
        metrics={"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 5, "cost_usd": 0.5,
                 "extra": {"reasoning_tokens": 2}},
    )  # fmt: skip
    events = read(put(tmp_path, **trajectory(given)))
    assert events[1:] == [
        Record(
            chat="t",
            role=Role.ASSISTANT,
            parts=(Reasoning("hm", "other"), Text("said")),
            id="1",
            created_at=1767225600_000_000,
            model="other",
            spent=Spent(model="other", usage=Usage(9, 4, 5, 2), cost=0.5),
            meta={"llm_call_count": 2, "reasoning_effort": "high"},
        )
    ]
    chat = events[0]
    assert isinstance(chat, Chat)
    assert chat.created_at == 1767225600_000_000


def test_observations_that_answer_no_call(tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "f", "arguments": {}}
    events = read(
        put(
            tmp_path,
            **trajectory(
                agent("look", observation={"results": [{"content": "seen"}]}),
                {"source": "system", "observation": {"results": [{"content": "reset"}]}},
                agent(
                    tool_calls=[call],
                    observation={"results": [{"content": "x"}, {"source_call_id": "c"}]},
                ),
            ),
        )
    )
    assert [(each.id, each.role.value, each.parts) for each in records(events)] == [
        ("1", "assistant", (Text("look"),)),
        ("1/observed", "user", (Text("seen"),)),
        ("2", "system", (Text("reset"),)),
        ("3", "assistant", (ToolCall("c", "f", "{}"),)),
        ("3/result", "tool", (ToolResult("c"),)),
        ("3/observed", "user", (Text("x"),)),
    ]


def test_images_and_sounds_are_read_from_beside_the_file_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images/shot.png").write_bytes(b"png")
    (tmp_path.parent / "secret.png").write_bytes(b"secret")
    paths = ["images/shot.png", "../secret.png", "https://example.org/a.png", "images/gone.png"]
    pieces = [
        {"type": "image", "source": {"media_type": "image/png", "path": path}} for path in paths
    ]
    pieces.append({"type": "audio", "source": {"media_type": "audio/wav", "path": "https://x/y"}})
    (record,) = records(read(put(tmp_path, **trajectory(user(pieces)))))
    assert record.parts == (
        Image("image/png", data=b"png"),
        Unknown(pieces[1]),
        Image(url="https://example.org/a.png"),
        Unknown(pieces[3]),
        File("audio/wav", url="https://x/y"),
    )


def test_totals_count_where_the_steps_have_none(tmp_path: Path) -> None:
    total = {"total_prompt_tokens": 9, "total_completion_tokens": 4, "total_cost_usd": 1.5}
    events = read(put(tmp_path, **trajectory(user("x"), final_metrics=total)))
    assert events[-1] == Used(
        chat="t", group="final", spent=Spent(model="m", usage=Usage(9, 4), cost=1.5)
    )


# ---------------------------------------------------------------------- several trajectories


def test_embedded_and_referenced_sub_agents_are_delegates(tmp_path: Path) -> None:
    inner = trajectory(user("inner"), trajectory_id="sub")
    put(tmp_path, "other.json", **trajectory(user("other"), trajectory_id="o"))
    call = {"tool_call_id": "c", "function_name": "task", "arguments": {}}
    refs = [{"trajectory_id": "sub"}, {"trajectory_path": "other.json"}]
    result = {"source_call_id": "c", "content": "ok", "subagent_trajectory_ref": refs}
    main = trajectory(
        user("go"),
        agent(tool_calls=[call], observation={"results": [result]}),
        subagent_trajectories=[inner],
    )
    events = read(put(tmp_path, **main))
    chats = [(e.id, e.origin, e.call) for e in events if isinstance(e, Chat)]
    assert chats == [("t", None, None), ("t:agent:sub", "t", "c"), ("o", "t", "c")]
    assert [(each.chat, each.id) for each in records(events)] == [
        ("t", "1"), ("t", "2"), ("t", "2/result"), ("t:agent:sub", "1"), ("o", "1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path", ["../other.json", "/etc/passwd", "a/b.json", ".hidden", "", "x\0y", "n" * 300, 7]
)
def test_a_reference_never_leads_out_of_the_folder(tmp_path: Path, path: Any) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    put(tmp_path, "other.json", **trajectory(user("other")))
    refs = {"results": [{"subagent_trajectory_ref": [{"trajectory_path": path}]}]}
    main = trajectory(agent(observation=refs), continued_trajectory_ref=path)
    events = read(put(folder, **main))
    assert len([event for event in events if isinstance(event, Chat)]) == 1
    assert len(records(events)) == 1


def test_a_trajectory_that_goes_on_in_another_file_is_one(tmp_path: Path) -> None:
    first = trajectory(
        user("task"), agent("one"), continued_trajectory_ref="trajectory.cont-1.json"
    )
    second = trajectory(
        user("task", is_copied_context=True),
        user("a summary", is_copied_context=True),
        agent("two"),
        continued_trajectory_ref="trajectory.json",
    )
    path = put(tmp_path, **first)
    continued = put(tmp_path, "trajectory.cont-1.json", **second)
    events = read(path)
    assert [each.id for each in records(events)] == ["1", "2", "cont-1:3"]
    assert [event for event in events if isinstance(event, Compacted)] == [
        Compacted(
            chat="t",
            id="compaction:cont-1:3",
            body=(Kept("1", "1"), Inline(role=Role.USER, parts=(Text("a summary"),))),
        )
    ]
    assert read(continued) == [Skipped("continuation, read with what it continues")]
    path.unlink()
    alone = records(read(continued))
    assert [each.parts for each in alone] == [(Text("task"),), (Text("a summary"),), (Text("two"),)]
    assert alone[0].meta == {"copied_context": True}


# ---------------------------------------------------------------------- hostile


def test_odd_steps_keep_what_can_be_kept(tmp_path: Path) -> None:
    steps = [5, {"step_id": 2, "source": "agent"}, {"step_id": 2, "message": {"a": 1}}, {}]
    given = trajectory(schema_version="ATIF-v9.9") | {"steps": steps}
    events = read(put(tmp_path, **given))
    assert [each.id for each in records(events)] == ["2", "step 3"]
    assert [event.where for event in events if isinstance(event, Damaged)] == ["step 1", "step 4"]
    assert any(isinstance(event, Warned) for event in events)


@pytest.mark.parametrize("data", [b'{"schema_version": "ATIF-v1.7", "steps": [', b'"ATIF-v1.7"'])
def test_a_document_that_is_cut_off_is_damaged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    assert isinstance(list(FORMAT.read(Source(path)))[-1], Damaged)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks(errors=False))
def test_a_talk_comes_back(talk: Talk) -> None:
    atif.Trajectory.model_validate(document_of(talk))
    with tempfile.TemporaryDirectory() as folder:
        events = read(write(talk, Path(folder) / "trajectory.json"))
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage
    assert isinstance(events[0], Chat)
    assert (events[0].id, events[0].model) == (talk.id, talk.model)
