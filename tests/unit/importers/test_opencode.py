"""OpenCode's storage folder and database."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.formats.opencode import FORMAT
from clew.importers.records import (
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Rewound,
    Spent,
    Used,
)
from readings import read as read_as
from readings import records, skipped
from strategies.conversations import PNG, Talk, heard, said, spent, talks
from strategies.opencode import (
    Stored,
    messages,
    session,
    write_database,
    write_folder,
)

read = partial(read_as, FORMAT)


SAMPLE = Path(__file__).parents[2] / "data/transcripts/opencode/storage_v2"
AT = 1_700_000_000_000
"""Milliseconds."""
INFO: dict[str, Any] = {
    "id": "ses_1", "directory": "/w", "title": "T", "version": "1", "time": {"created": AT},
}  # fmt: skip


@pytest.fixture(params=["folder", "database"])
def form(request: pytest.FixtureRequest) -> str:
    return request.param


def written(form: str, at: Path, stored: list[Stored], **info: Any) -> list[Event]:
    value = {**INFO, **info}
    if form == "folder":
        return read(write_folder(at / "storage", value, stored))
    return read(write_database(at / "opencode.db", value, stored))


def message(id: str, role: str, *parts: dict[str, Any], **fields: Any) -> Stored:
    numbered = [{"id": f"prt_{n}{id}", "messageID": id, **p} for n, p in enumerate(parts)]
    return {"id": id, "role": role, "time": {"created": AT}, **fields}, numbered


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **fields}


def test_the_sample() -> None:
    events = read(SAMPLE)
    assert not any(isinstance(event, Damaged) for event in events)
    small, large = (event for event in events if isinstance(event, Chat))
    assert small == Chat(
        id="s_stage0_small",
        title="OpenCode Small",
        created_at=1730000000000000,
        workspace=Workspace(cwd="/tmp/repo"),
        meta={"version": "1.3.17"},
    )
    assert (large.id, large.title) == ("s_stage0_large", "OpenCode Large")
    assert large.meta == {"version": "1.3.17", "slug": "open-code-stage0-large"}
    assert [(each.id, each.role.value) for each in records(events)] == [
        ("m_user_small", "user"),
        ("m_assistant_small", "assistant"),
        ("m_assistant_small/result", "tool"),
        ("m_user_large_1", "user"),
        ("m_assistant_large_1", "assistant"),
        ("m_assistant_large_1/result", "tool"),
        ("m_user_large_2", "user"),
        ("m_assistant_large_2", "assistant"),
    ]
    answer = records(events)[4]
    assert answer.parts == (
        ToolCall(
            "call_large_1", "bash", '{"command":"ls /non-existent-directory","cwd":"/tmp/large"}'
        ),
        Text("Command failed with exit code 1."),
        File(media_type="text/plain", name="error.log", url="file:///tmp/large/error.log"),
        Reasoning("Investigating failing command.", model="gpt-4o-mini"),
    )
    assert answer.spent == Spent(model="gpt-4o-mini", usage=Usage(input=120, output=16))
    assert answer.created_at == 1730000102000000
    assert answer.meta == {
        "provider": "openai",
        "agent": "opencode",
        "error": "MessageAbortedError",
        "finish": "stop",
        "synthetic": [1],
    }
    assert records(events)[5].parts == (
        ToolResult(
            "call_large_1", "ls: /non-existent-directory: No such file or directory\n", "bash"
        ),
    )
    assert skipped(events) == {"part step-start": 1, "part patch": 1, "part compaction": 1}


def test_a_compaction(form: str, tmp_path: Path) -> None:
    tokens = {"input": 9, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 3}}
    events = written(
        form,
        tmp_path,
        [
            message("m1", "user", text("one")),
            message("m2", "assistant", text("two"), modelID="g"),
            message("m3", "user", text("three")),
            message("m4", "user", {"type": "compaction", "auto": True, "tail_start_id": "m3"}),
            message(
                "m5", "assistant", text("Summary."), summary=True, parentID="m4", modelID="g",
                tokens=tokens, cost=0.25,
            ),
            message("m6", "user", text("Continue", synthetic=True)),
        ],
    )  # fmt: skip
    assert [each.id for each in records(events)] == ["m1", "m2", "m3", "m6"]
    assert [event for event in events if isinstance(event, Compacted)] == [
        Compacted(
            chat="ses_1",
            id="m5",
            after="m3",
            body=(
                Kept("m3", "m3"),
                Inline(role=Role.USER, parts=(Text("What did we do so far?"),)),
                Inline(role=Role.ASSISTANT, parts=(Text("Summary."),)),
            ),
            at=AT * 1000,
            receipt={"auto": True, "model": "g"},
        )
    ]
    usage = Usage(input=16, output=3, cached=4, reasoning=1)
    assert [event for event in events if isinstance(event, Used)] == [
        Used(
            chat="ses_1",
            group="m5",
            spent=Spent(model="g", usage=usage, cost=0.25),
            at=AT * 1000,
        )
    ]
    assert skipped(events) == {}


def test_a_compaction_that_failed_covers_nothing(form: str, tmp_path: Path) -> None:
    events = written(
        form,
        tmp_path,
        [
            message("m1", "user", text("one")),
            message("m2", "user", {"type": "compaction", "auto": False}),
            message("m3", "assistant", summary=True, parentID="m2", error={"name": "X"}),
        ],
    )
    assert not any(isinstance(event, Compacted) for event in events)
    assert skipped(events) == {"failed compaction": 1}


def test_a_revert_is_a_rewind(form: str, tmp_path: Path) -> None:
    stored = [
        message("m1", "user", text("one")),
        message("m2", "assistant", text("two")),
        message("m3", "user", text("three")),
    ]
    for at, revert, first in (
        (1, {"messageID": "m2"}, "m2"),
        (2, {"messageID": "m2", "partID": "prt_0m2"}, "m3"),
    ):
        folder = tmp_path / str(at)
        folder.mkdir()
        events = written(form, folder, stored, revert=revert)
        assert [event for event in events if isinstance(event, Rewound)] == [
            Rewound(chat="ses_1", first=first)
        ]
        assert len(records(events)) == 3
    (tmp_path / "3").mkdir()
    events = written(form, tmp_path / "3", stored, revert={"messageID": "elsewhere"})
    assert not any(isinstance(event, Rewound) for event in events)


def test_a_session_that_a_tool_began_comes_after_its_origin(tmp_path: Path) -> None:
    folder = tmp_path / "storage"
    state = {"status": "completed", "output": "done", "metadata": {"sessionId": "ses_0"}}
    task = {"type": "tool", "tool": "task", "callID": "call_1", "state": state}
    write_folder(folder, INFO, [message("m1", "assistant", task)])
    child = {**INFO, "id": "ses_0", "parentID": "ses_1", "title": "Child session - 2026"}
    write_folder(folder, child, [message("n1", "user", text("go"))])
    stray = {**INFO, "id": "ses_2", "parentID": "ses_gone"}
    write_folder(folder, stray, [])
    chats = [event for event in read(folder) if isinstance(event, Chat)]
    assert [(each.id, each.origin, each.call) for each in chats] == [
        ("ses_2", None, None),
        ("ses_1", None, None),
        ("ses_0", "ses_1", "call_1"),
    ]
    assert [each.title for each in chats] == ["T", "T", None]


def test_parts_of_all_kinds(form: str, tmp_path: Path) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    picture = {"type": "file", "mime": "image/png", "url": url}
    attached: dict[str, Any] = {
        "status": "completed",
        "input": {},
        "output": "o",
        "attachments": [picture],
    }
    subtask = {"type": "subtask", "prompt": "p", "agent": "a"}
    events = written(
        form,
        tmp_path,
        [
            message("m1", "user", subtask, {"type": "agent", "name": "x"}, text("")),
            message(
                "m2", "assistant",
                {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "s"}}},
                {"type": "tool", "tool": "a", "callID": "c1", "state": attached},
                {"type": "tool", "tool": "b", "callID": "c2", "state": {"status": "running"}},
                {"type": "tool", "tool": "c", "callID": "c3", "state": {
                    "status": "error", "input": {"x": 1}, "error": "no"}},
                {"type": "retry"},
                {"type": ["odd"]},
                model={"modelID": "g"}, path={"cwd": "/w/sub", "root": "/w"},
            ),
            message("m3", "assistant", error={"name": "ProviderAuthError"}),
            message("m4", "tool", text("of no known role")),
        ],
    )  # fmt: skip
    prompt, answer, results = records(events)
    assert [prompt.parts[0]] == [Unknown({**subtask, "id": "prt_0m1", **_of(form, "m1")})]
    assert answer.parts == (
        Reasoning("hm", model="g", signature="s"),
        ToolCall("c1", "a", "{}"),
        ToolCall("c2", "b", ""),
        ToolCall("c3", "c", '{"x":1}'),
    )
    assert answer.workspace == Workspace(cwd="/w/sub", git_root="/w")
    assert results.parts == (
        ToolResult("c1", (Text("o"), Image(data=PNG)), "a"),
        ToolResult("c3", "no", "c", is_error=True),
    )
    assert skipped(events) == {
        "part agent": 1,
        "part retry": 1,
        "part None": 1,
        "ProviderAuthError": 1,
        "message of another role": 1,
    }


def _of(form: str, id: str) -> dict[str, str]:
    """A part's file names its message; its row has that in a column."""
    return {"messageID": id} if form == "folder" else {}


def test_order_is_by_time_and_then_by_id(form: str, tmp_path: Path) -> None:
    events = written(
        form,
        tmp_path,
        [
            message("m3", "user", text("second"), time={"created": AT + 2}),
            message("m9", "user", text("first"), time={"created": AT + 1}),
            message("m1", "user", text("third"), time={"created": AT + 3}),
            message("m2", "user", text("fourth"), time={"created": AT + 3}),
        ],
    )
    assert [each.id for each in records(events)] == ["m9", "m3", "m1", "m2"]


def test_damage_in_a_folder_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "storage"
    shutil.copytree(SAMPLE, folder)
    (folder / "part/m_user_small/001.json").write_bytes(b"\0\0\0")
    (folder / "message/s_stage0_small/msg_0002.json").write_text("[1]")
    (folder / "session/proj_test/ses_x.json").write_text('{"title": "no id"}')
    (folder / "session/proj_test/ses_y.json").write_text('{"id": "../../elsewhere"}')
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/m.json").write_text('{"id": "stolen", "role": "user"}')
    (folder / "session/proj_test/ses_z.json").symlink_to("/etc/hostname")
    events = read(folder)
    assert [event for event in events if isinstance(event, Damaged)] == [
        Damaged("a session", "it has no id"),
        Damaged("message/s_stage0_small/msg_0002.json", "no JSON object"),
        Damaged("part/m_user_small/001.json", "nothing but NUL bytes"),
    ]
    assert len(records(events)) == 5
    assert skipped(events)["message without parts"] == 1


def test_damage_in_a_database_is_named(tmp_path: Path) -> None:
    path = write_database(tmp_path / "opencode.db", INFO, [message("m1", "user", text("one"))])
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO message VALUES ('m2', 'ses_1', 1800000000000, 1, '{bad')")
        database.execute(
            "INSERT INTO message VALUES ('m3', 'ses_1', 1900000000000, 1, ?)", (b"\xff",)
        )
        database.execute("INSERT INTO part VALUES ('p', 'm1', 'ses_1', 1, 1, '[]')")
        database.execute("UPDATE session SET title = CAST(x'ff41' AS TEXT)")
        database.execute("INSERT INTO todo VALUES ('ses_1', 'bake')")
        database.commit()
    events = read(path)
    assert [event.where for event in events if isinstance(event, Damaged)] == [
        "part p",
        "message m2",
        "message m3",
    ]
    assert len(records(events)) == 1
    chat = events[0]
    assert isinstance(chat, Chat)
    assert chat.title == "\ufffdA"
    assert skipped(events) == {"todo": 1}


@pytest.mark.parametrize("form", ["folder", "database"])
@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(talk=talks())
def test_a_talk_comes_back(talk: Talk, form: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        if form == "folder":
            path = write_folder(Path(name) / "storage", session(talk), messages(talk))
        else:
            path = write_database(Path(name) / "opencode.db", session(talk), messages(talk))
        events = read(path)
    assert heard(events) == said(talk)
    assert spent(events) == talk.usage
    chat = events[0]
    assert isinstance(chat, Chat)
    assert (chat.workspace.cwd, chat.created_at) == (talk.cwd, talk.started)
