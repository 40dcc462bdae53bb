"""Trajectories of SWE-agent and mini-swe-agent."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Reasoning, Text, ToolCall, ToolResult, answered_ids, call_ids
from clew.domain.turns import Usage
from clew.importers.format import Format
from clew.importers.formats import mini_swe_agent, swe_agent
from clew.importers.records import Chat, Damaged, Event, Skipped, Spent, Used
from clew.importers.source import Source
from readings import read, records
from strategies.conversations import Talk, heard, said, spent, talks
from strategies.swe_agent import write_mini, write_traj

DATA = Path(__file__).parents[2] / "data/transcripts"
SIMPLE = DATA / "swe-agent/function_calling_simple.traj"
LONG = DATA / "swe-agent/marshmallow-1867-function-calling.traj"
MINI = DATA / "mini-swe-agent/github_issue.traj.json"
FORMATS = [swe_agent.FORMAT, mini_swe_agent.FORMAT]


def written(tmp_path: Path, format: Format, document: Any) -> list[Event]:
    path = tmp_path / "x.traj"
    path.write_text(json.dumps(document), "utf-8")
    return read(format, path)


def test_the_simple_demo() -> None:
    events = read(swe_agent.FORMAT, SIMPLE)
    assert events[0] == Chat(id=str(SIMPLE), title_origin="derived")
    found = records(events)
    assert len(events) == 1 + len(found)
    assert Counter(str(each.role) for each in found) == {
        "system": 1, "user": 1, "assistant": 5, "tool": 5,
    }  # fmt: skip
    assert found[2].parts[1:] == (
        ToolCall("call_PbWErNIge3YTrli3fiVvmIid", "find_file", '{"file_name":"missing_colon.py"}'),
    )
    assert [call_ids(each.parts) for each in found[2::2]] == [
        answered_ids(each.parts) for each in found[3::2]
    ]
    assert found[3].meta == {"agent": "main", "kind": "observation"}
    assert all(each.created_at is None and each.id is None for each in found)


def test_the_long_demo() -> None:
    events = read(swe_agent.FORMAT, LONG)
    chat = events[0]
    assert isinstance(chat, Chat)
    assert (chat.title, chat.model) == ("marshmallow-code__marshmallow-1867", "replay")
    assert chat.meta == {"environment": "main", "exit_status": "submitted", "api_calls": 13}
    found = records(events)
    assert Counter(str(each.role) for each in found) == {
        "system": 1, "user": 1, "assistant": 13, "tool": 13,
    }  # fmt: skip
    assert found[-1].role is Role.TOOL
    assert answered_ids(found[-1].parts) == ("call_submit",)
    assert found[3].workspace == Workspace(cwd="/testbed")
    assert found[2].workspace is None
    assert events[-4:] == [
        Skipped("trajectory", 13),
        Skipped("info.submission"),
        Skipped("info.edited_files30"),
        Skipped("replay_config"),
    ]


def test_the_real_mini_run() -> None:
    events = read(mini_swe_agent.FORMAT, MINI)
    assert events[0] == Chat(id=str(MINI))
    found = records(events)
    assert len(events) == 23
    assert Counter(str(each.role) for each in found) == {"system": 1, "user": 11, "assistant": 10}
    last = found[-1].parts[0]
    assert isinstance(last, Text)
    assert last.text.startswith("diff --git a/tests/missing_colon.py")


def test_text_mode_demonstrations_and_thinking(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": [{"type": "text", "text": "demo"}], "is_demo": True,
         "agent": "main"},
        {"role": "assistant", "content": "ls", "agent": "main", "is_demo": True},
        {"role": "assistant", "content": "```ls```", "agent": "main",
         "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        {"role": "user", "content": "README", "agent": "main", "message_type": "observation"},
    ]  # fmt: skip
    state = '{"open_file": "n/a", "working_dir": "/repo"}'
    stats = {"instance_cost": 0.25, "tokens_sent": 100, "tokens_received": 7, "api_calls": 1}
    events = written(
        tmp_path,
        swe_agent.FORMAT,
        {
            "history": history,
            "trajectory": [{"state": state}],
            "info": {"model_stats": stats},
            "replay_config": '{"agent": {"model": {"name": "m"}}}',
        },
    )
    demo, _, answer, observed = records(events)
    assert demo.meta == {"agent": "main", "is_demo": True}
    assert answer.parts == (Reasoning("hm", "m", "s"), Text("```ls```"))
    assert (observed.role, observed.workspace) == (Role.USER, Workspace(cwd="/repo"))
    assert [event for event in events if isinstance(event, Used)] == [
        Used(
            chat=str(tmp_path / "x.traj"),
            group="run",
            spent=Spent(model="m", usage=Usage(100, 7), cost=0.25),
        )
    ]


def test_steps_are_read_where_the_history_is_missing(tmp_path: Path) -> None:
    query = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    call = {"id": "c", "function": {"name": "bash", "arguments": "{}"}}
    events = written(
        tmp_path,
        swe_agent.FORMAT,
        {
            "trajectory": [
                {"query": query, "response": "look", "observation": "seen", "action": "ls"},
                {"response": "try", "tool_calls": [call], "observation": "tried"},
                {"response": "end", "observation": None},
            ]
        },
    )
    assert [(each.role.value, each.parts) for each in records(events)] == [
        ("system", (Text("s"),)),
        ("user", (Text("u"),)),
        ("assistant", (Text("look"),)),
        ("user", (Text("seen"),)),
        ("assistant", (Text("try"), ToolCall("c", "bash", "{}"))),
        ("tool", (ToolResult("c", "tried"),)),
        ("assistant", (Text("end"),)),
    ]


def test_the_newer_mini_form(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": None}
    events = written(
        tmp_path,
        mini_swe_agent.FORMAT,
        {
            "info": {
                "model_stats": {"instance_cost": 0.5, "api_calls": 1},
                "config": {"model": {"model_name": "m"}},
                "exit_status": "Submitted",
                "mini_version": "2.0",
                "submission": "diff",
            },
            "messages": [
                {"role": "user", "content": "u", "extra": {"timestamp": 1_700_000_000.5}},
                {"role": "assistant", "content": "a", "extra": {"cost": 0.5, "response": {
                    "id": "r", "model": "m-1", "usage": usage}}},
                {"role": "exit", "content": "diff"},
            ],
            "trajectory_format": "mini-swe-agent-1.1",
            "novel": 1,
        },
    )  # fmt: skip
    chat = events[0]
    assert isinstance(chat, Chat)
    assert chat.meta == {
        "exit_status": "Submitted", "version": "2.0", "api_calls": 1,
        "trajectory_format": "mini-swe-agent-1.1",
    }  # fmt: skip
    asked, answer = records(events)
    assert asked.created_at == 1_700_000_000_500_000
    assert answer.spent == Spent(model="m-1", usage=Usage(9, 4), cost=0.5)
    assert events[3:] == [
        Skipped("message/exit"), Skipped("info.config"), Skipped("info.submission"),
        Skipped("novel"),
    ]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_a_document_that_is_cut_off_is_damaged(format: Format, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"history": [{"role": "user", "agent": "main"')
    assert [type(event) for event in format.read(Source(path))] == [Damaged]


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks(images=False, errors=False))
def test_a_talk_comes_back(talk: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        traj = read(swe_agent.FORMAT, write_traj(talk, Path(folder) / "x.traj"))
        mini = read(mini_swe_agent.FORMAT, write_mini(talk, Path(folder) / "x.traj.json"))
    wanted = [(Role.SYSTEM, (Text("You fix."),)), *said(talk)]
    assert heard(traj) == wanted
    assert heard(mini) == wanted
    assert spent(mini) == talk.usage
