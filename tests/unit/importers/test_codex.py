"""Codex: rollouts, their older forms, and what `codex exec --json` prints."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.clock import LATEST
from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.turns import Usage
from clew.importers.fields import moment
from clew.importers.following import FollowedSource
from clew.importers.format import Format
from clew.importers.formats import codex, codex_exec
from clew.importers.probe import probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Damaged,
    Event,
    Fork,
    Kept,
    Paused,
    Rewound,
    Spent,
    Titled,
    Used,
    Warned,
)
from clew.importers.source import Source
from readings import of, records, skipped
from strategies.codex import (
    ENVIRONMENT,
    message,
    meta,
    result,
    tokens,
    turns,
    write_codex,
    write_exec,
)
from strategies.codex import line as line_of
from strategies.conversations import Exchange, Talk, heard, said, talks

DATA = Path(__file__).parents[2] / "data/transcripts/codex"
THREAD = "019fc8be-3658-7ca3-9e29-0123456789ab"
OTHER = "019fc8be-4000-7ca3-9e29-0123456789ab"
ROW = tuple[str, dict[str, Any]]


def read(path: Path, format: Format = codex.FORMAT) -> list[Event]:
    source = Source(path)
    assert [f for f in (codex.FORMAT, codex_exec.FORMAT) if f.matches(probe(source))] == [format]
    return list(format.read(source))


def talk(*exchanges: Exchange, id: str = THREAD) -> Talk:
    return Talk(id, "gpt-5", "/w", 1_700_000_000_000_000, exchanges)


def written(folder: Path, *rows: ROW, id: str = THREAD, **head: Any) -> Path:
    """A rollout of these rows."""
    whole = talk(id=id)
    path = folder / f"rollout-2026-01-02T03-04-05-{id}.jsonl"
    lines = [line_of(row, at, whole) for at, row in enumerate([meta(whole, **head), *rows])]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def bare(folder: Path, *lines: Any) -> Path:
    path = folder / "x.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in lines), "utf-8")
    return path


# ---------------------------------------------------------------------- the samples


def test_the_small_rollout() -> None:
    events = read(DATA / "atifmake-rollout.jsonl")
    assert events[0] == Chat(
        id="cx-1",
        created_at=moment("2026-04-01T08:00:00Z"),
        workspace=Workspace("/proj"),
        model="gpt-5-codex",
        meta={
            "originator": "cli",
            "cli_version": "0.146.0",
            "model_provider": "openai",
            "source": "cli",
        },
    )
    found = records(events)
    assert [(each.role, each.parts) for each in found] == [
        (Role.USER, (Text("List files."),)),
        (Role.ASSISTANT, (Reasoning("Shell out to ls.", model="gpt-5-codex", data="opaque"),)),
        (Role.ASSISTANT, (ToolCall("cx_call_1", "shell", '{"command":"ls -la"}'),)),
        (Role.TOOL, (ToolResult("cx_call_1", "README.md\nsrc"),)),
        (Role.ASSISTANT, (Text("Two entries."),)),
    ]
    assert [each.created_at for each in found] == [
        moment(f"2026-04-01T08:00:0{second}Z") for second in (2, 3, 4, 6, 7)
    ]
    assert found[1].api_group == found[2].api_group == found[1].id
    assert found[4].api_group == found[4].id != found[1].id
    assert of(Used, events) == [
        Used(
            chat="cx-1",
            group=found[1].id or "",
            spent=Spent(model="gpt-5-codex", usage=Usage(500, 40, 100, 12)),
            at=moment("2026-04-01T08:00:05Z"),
        )
    ]
    assert len(events) == 7


def test_the_rollout_of_all_shapes() -> None:
    events = read(DATA / "redacted-real-rollout.jsonl")
    chat = of(Chat, events)[0]
    assert (chat.id, chat.model) == ("019fc8be-3658-7ca3-9e29-000000000000", "gpt-5.6-luna")
    assert chat.workspace == Workspace("/tmp/repo", git_branch="main")
    assert chat.prompt == "[trimmed for fixture]"
    assert (chat.origin, chat.fork) == (None, None)
    found = records(events)
    assert Counter(str(each.role) for each in found) == {
        "user": 3, "assistant": 11, "tool": 6, "developer": 1,
    }  # fmt: skip
    assert found[0].parts == (
        Text("List the files"),
        Unknown({"type": "input_image", "image_url": None, "detail": "auto"}),
    )
    assert found[2].parts == (ToolCall("call-1", "shell", '{"command":["ls"]}', "custom"),)
    assert found[4].parts == (ToolResult("call-2", "a.txt\n"),)
    assert found[8].parts == (ToolResult("call-1", "a.txt\nb.txt\n"),)
    assert [each.parent for each in found] == [None, *(each.id for each in found[:-1])]
    assert [each.spent.usage for each in of(Used, events)] == [Usage(16341, 81, 3584, 63)]
    compactions = of(Compacted, events)
    assert [len(each.body) for each in compactions] == [1, 8, 21, 27, 65, 13]
    assert compactions[0].receipt == {
        "window_id": "w-2", "previous_window_id": "w-1", "first_window_id": "w-1",
        "window_number": 2,
    }  # fmt: skip
    assert compactions[1].body[-1] == Inline(
        Role.ASSISTANT,
        (
            Unknown(
                {
                    "type": "compaction",
                    "id": "[trimmed for fixture]",
                    "encrypted_content": "[trimmed for fixture]",
                    "metadata": {"turn_id": "[trimmed for fixture]"},
                }
            ),
        ),
    )
    assert of(Titled, events) == [
        Titled(chat=chat.id, title="[trimmed for fixture]", origin="user")
    ]
    kinds = skipped(events)
    assert (kinds["session_meta"], kinds["world_state"], kinds["event_msg/token_count"]) == (
        6,
        5,
        2,
    )
    assert kinds["response_item/ghost_snapshot"] == 1
    assert kinds["replacement_history/ghost_snapshot"] == 24
    assert not of(Damaged, events)
    assert not of(Warned, events)
    # Every line is accounted for: the head, and those that tell of a turn and give no event.
    told = 1 + (DATA / "redacted-real-rollout.jsonl").read_bytes().count(b'"type":"turn_context"')
    lines = sum(count for kind, count in kinds.items() if not kind.startswith("replacement"))
    assert told + lines + len(found) + len(compactions) + 2 == 118


def test_the_rollout_without_times() -> None:
    events = read(DATA / "exec-events-interleaved.jsonl")
    found = records(events)
    assert [str(each.role) for each in found] == [
        "user", "assistant", "tool", "assistant", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [each.created_at for each in found if each.role is Role.USER] == [
        moment("2025-01-15T12:00:03Z"),
        moment("2025-01-15T12:01:00Z"),
    ]
    assert of(Compacted, events) == [
        Compacted(
            chat="interleaved-session-1",
            id=f"{found[-1].id}/compacted",
            after=found[-1].id,
            body=(Inline(Role.USER, (Text("Conversation compacted"),)),),
            at=moment("2025-01-15T12:05:00Z"),
        )
    ]
    assert skipped(events) == {
        "replacement_history/item of no type": 1,
        "response_item/token_count": 1,
    }


def test_the_bare_lines() -> None:
    path = DATA / "session-branch.jsonl"
    events = read(path)
    found = records(events)
    call = found[1].id or ""
    assert events[0] == Chat(id=str(path))
    assert [each.parts for each in found] == [
        (Text("What branch am I on?"),),
        (ToolCall(call, "git", "status"),),
        (
            ToolResult(
                call,
                "On branch main\nYour branch is up to date with 'origin/main'.\n",
                name="git",
            ),
        ),
        (Text("You're on main."),),
    ]
    assert (found[0].model, found[3].created_at) == ("gpt-4o-mini", moment("2025-09-10T12:00:02Z"))
    assert skipped(events) == {"error": 1}


# ---------------------------------------------------------------------- older forms


def test_items_without_an_envelope_after_a_bare_head(tmp_path: Path) -> None:
    head = {"id": THREAD, "timestamp": "2025-06-01T00:00:00Z", "instructions": "Be brief."}
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    events = read(bare(tmp_path, head, {"record_type": "state"}, item))
    chat = of(Chat, events)[0]
    assert (chat.id, chat.prompt) == (THREAD, "Be brief.")
    assert [each.parts for each in records(events)] == [(Text("Hi"),)]
    assert skipped(events) == {"state": 1}


def test_the_session_files_before_the_rollouts(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    session = {"id": "s-1", "timestamp": "2025-05-01T00:00:00Z", "instructions": ""}
    path.write_text(json.dumps({"session": session, "items": [item, 5]}, indent=2))
    events = read(path)
    assert of(Chat, events)[0].id == "s-1"
    assert [each.parts for each in records(events)] == [(Text("Hi"),)]


# ---------------------------------------------------------------------- answers, usage, turns


def test_an_answer_ends_with_its_usage_a_result_or_a_user(tmp_path: Path) -> None:
    used = tokens(Usage(5, 1), Usage(5, 1))
    path = written(
        tmp_path,
        message("assistant", "a"), message("assistant", "b"), used,
        message("assistant", "c"), message("user", "d"), message("assistant", "e"),
    )  # fmt: skip
    found = records(read(path))
    ids = [each.id for each in found]
    assert [each.api_group for each in found] == [ids[0], ids[0], ids[2], None, ids[4]]


def test_usage_told_twice_counts_once_and_without_a_last_it_is_what_was_added(
    tmp_path: Path,
) -> None:
    one, total = Usage(10, 2), Usage(15, 4)
    last = tokens(total, total)
    del last[1]["info"]["last_token_usage"]
    path = written(
        tmp_path,
        message("assistant", "a"), tokens(one, one), tokens(one, one),
        message("assistant", "b"), last,
        ("event_msg", {"type": "token_count", "info": None}),
    )  # fmt: skip
    events = read(path)
    assert [each.spent.usage for each in of(Used, events)] == [Usage(10, 2), Usage(5, 2)]
    assert [each.group for each in of(Used, events)] == [each.id for each in records(events)]
    assert skipped(events) == {"event_msg/token_count": 2}


def test_usage_after_a_result_belongs_to_the_answer_before_it(tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
    path = written(
        tmp_path,
        ("response_item", call), result("c", "ok"), tokens(Usage(5, 1), Usage(5, 1)),
        tokens(Usage(5, 1), Usage(10, 2)),
    )  # fmt: skip
    events = read(path)
    asked, answered = records(events)
    assert [each.group for each in of(Used, events)] == [asked.id, f"{answered.id}/usage"]


def test_where_the_agent_is_changes_with_the_turn(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        ("turn_context", {"cwd": "/a", "model": "m1"}), message("user", "x"),
        ("turn_context", {"cwd": "/b", "model": "m2"}), message("user", "y"),
    )  # fmt: skip
    events = read(path)
    assert [(each.workspace, each.model) for each in records(events)] == [
        (Workspace("/a", git_branch="main"), "m1"),
        (Workspace("/b", git_branch="main"), "m2"),
    ]
    assert of(Chat, events)[0].model == "m1"


def test_turns_that_are_rolled_back(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        message("user", ENVIRONMENT), message("user", "one"), message("assistant", "1"),
        message("user", ENVIRONMENT), message("user", "two"), message("assistant", "2"),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
        message("user", "three"),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": 9}),
        ("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
        message("user", "four"),
    )  # fmt: skip
    events = read(path)
    found = records(events)
    # What Codex put before a turn goes with it, except before the first.
    assert [each.first for each in of(Rewound, events)] == [found[3].id, found[1].id]
    assert [found[6].parent, found[7].parent] == [found[2].id, found[0].id]
    assert skipped(events) == {"event_msg/thread_rolled_back": 1}
    assert [(each.meta or {}).get("context") for each in found[:2]] == [True, None]


def test_all_turns_of_a_thread_that_begins_with_one_are_rolled_back(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        message("user", "one"), ("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
        message("user", "two"),
    )  # fmt: skip
    assert [each.parent for each in records(read(path))] == [None, ROOT]


# ---------------------------------------------------------------------- compactions


def test_a_compaction_refers_to_what_it_puts_in_again(tmp_path: Path) -> None:
    again = [message("user", words)[1] for words in ("a", "go", "b", "new")]
    summary = message("user", "so far")[1]
    opaque = {"type": "compaction", "encrypted_content": "zzz"}
    history = [*again, summary, opaque, {"type": "ghost_snapshot"}]
    path = written(
        tmp_path,
        message("user", "a"), message("user", "go"), message("user", "b"),
        message("assistant", "yes"), message("user", "go"), message("user", "b"),
        ("compacted", {"message": "so far", "replacement_history": history, "window_id": "w2"}),
    )  # fmt: skip
    events = read(path)
    ids = [each.id or "" for each in records(events)]
    assert of(Compacted, events)[0].body == (
        Kept(ids[0], ids[0]),
        Kept(ids[4], ids[5]),  # of equal ones the newest
        Inline(Role.USER, (Text("new"),)),
        Inline(Role.USER, (Text("so far"),)),
        Inline(Role.ASSISTANT, (Unknown(opaque),)),
    )
    assert of(Compacted, events)[0].receipt == {"window_id": "w2"}
    assert skipped(events) == {"replacement_history/ghost_snapshot": 1}


def test_a_compaction_without_a_list_keeps_what_the_user_said_last(tmp_path: Path) -> None:
    long = "x" * 79_920
    path = written(
        tmp_path,
        message("user", ENVIRONMENT), message("user", "first"), message("user", long),
        message("user", "last"), ("compacted", {"message": "so far"}),
        ("compacted", {"message": ""}),
    )  # fmt: skip
    events = read(path)
    ids = [each.id or "" for each in records(events)]
    kept = (Kept(ids[2], ids[2]), Kept(ids[3], ids[3]))
    assert [each.body for each in of(Compacted, events)] == [
        (*kept, Inline(Role.USER, (Text("so far"),))),
        kept,
    ]
    assert [each.id for each in of(Compacted, events)] == [
        f"{ids[3]}/compacted",
        f"{ids[3]}/compacted2",
    ]


def test_a_compaction_refers_to_nothing_that_was_rolled_back(tmp_path: Path) -> None:
    go = message("user", "go")
    back = ("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    path = written(
        tmp_path,
        go, message("assistant", "1"), go, back,
        ("compacted", {"message": "", "replacement_history": [go[1], go[1]]}),
        ("compacted", {"message": ""}),
    )  # fmt: skip
    events = read(path)
    first = records(events)[0].id or ""
    assert [each.body for each in of(Compacted, events)] == [
        (Inline(Role.USER, (Text("go"),)), Kept(first, first)),
        (Kept(first, first),),
    ]


def test_many_equal_messages_are_told_apart(tmp_path: Path) -> None:
    many = [message("user", "go")] * 3000
    history = [row[1] for row in many]
    compacted = ("compacted", {"message": "", "replacement_history": history})
    events = read(written(tmp_path, *many, *[compacted] * 3))
    ids = [each.id or "" for each in records(events)]
    assert [each.body for each in of(Compacted, events)] == [(Kept(ids[0], ids[-1]),)] * 3


# ---------------------------------------------------------------------- other threads


def test_a_sub_agent_names_the_thread_that_began_it(tmp_path: Path) -> None:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}
    by_source = read(written(tmp_path, message("user", "x"), source=spawn, agent_role="tester"))
    chat = of(Chat, by_source)[0]
    assert (chat.origin, (chat.meta or {})["agent_role"]) == (OTHER, "tester")
    review = {"subagent": "review"}
    path = written(tmp_path, message("user", "x"), source=review, parent_thread_id=OTHER)
    assert of(Chat, read(path))[0].origin == OTHER
    path = written(tmp_path, message("user", "x"), source=review)
    assert of(Chat, read(path))[0].origin is None


def forked(folder: Path, *, named: bool) -> tuple[list[Event], list[Event]]:
    """A thread, and one that was forked from it behind its first answer."""
    first = [message("user", "one"), message("assistant", "1"), tokens(Usage(9, 1), Usage(9, 1))]
    old = written(folder, *first, message("user", "two"), id=OTHER)
    copied = meta(talk(id=OTHER))
    new = written(
        folder, copied, *first, message("user", "three"),
        tokens(Usage(7, 1), Usage(16, 2)), forked_from_id=OTHER if named else None,
    )  # fmt: skip
    return read(old), read(new)


@pytest.mark.parametrize("named", [True, False])
def test_a_forked_thread_has_the_ids_of_what_it_copied(tmp_path: Path, named: bool) -> None:
    old, new = forked(tmp_path, named=named)
    shared = [each.id for each in records(old)][:2]
    assert [each.id for each in records(new)][:2] == shared
    assert [each.parent for each in records(new)] == [None, shared[0], None]
    assert of(Chat, new)[0].fork == Fork(OTHER, shared[1], copied=True)
    assert [each.spent.usage for each in of(Used, new)] == [Usage(7, 1)]
    assert skipped(new) == {"session_meta": 1, "event_msg/token_count": 1}


def test_a_forked_thread_that_is_followed_says_the_same(tmp_path: Path) -> None:
    _, new = forked(tmp_path, named=True)
    source = FollowedSource(next(tmp_path.glob(f"*{THREAD}*")), stays=True)
    events = codex.FORMAT.read(source)
    assert list(takewhile(lambda event: not isinstance(event, Paused), events)) == new


def test_a_forked_thread_without_the_other_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, message("user", "one"), forked_from_id=OTHER)
    events = read(path)
    assert of(Chat, events)[0].fork is None
    assert (of(Chat, events)[0].meta or {})["forked_from"] == OTHER
    assert OTHER in of(Warned, events)[0].text


@pytest.mark.parametrize(("end", "last"), [(4, 0), (5, 1), (6, 2), (99, 3), (0, None)])
def test_a_thread_that_goes_on_from_a_place_in_another(
    tmp_path: Path, end: int, last: int | None
) -> None:
    day = tmp_path / "2026/08/02"
    later = tmp_path / "2026/09/30"
    day.mkdir(parents=True)
    later.mkdir(parents=True)
    old = written(
        day, message("user", "one"), message("assistant", "1"), message("assistant", "2"),
        message("user", "two"), id=OTHER,
    )  # fmt: skip
    rows = [json.loads(row) for row in old.read_text().splitlines()]
    rows.insert(2, {"type": "event_msg", "payload": {"type": "user_message"}})
    for at, row in enumerate(rows, 1):
        row["ordinal"] = at
    old.write_text("\n".join(json.dumps(row) for row in rows))
    base = {"thread_id": OTHER, "end_ordinal_exclusive": end}
    events = read(written(later, message("user", "else"), history_base=base))
    ids = [each.id for each in records(read(old))]
    wanted = None if last is None else ids[last]
    assert of(Chat, events)[0].fork == Fork(OTHER, wanted)


def test_a_name_with_path_characters_is_looked_up_nowhere(tmp_path: Path) -> None:
    base = {"thread_id": "../../x*", "end_ordinal_exclusive": 3}
    events = read(written(tmp_path, message("user", "x"), history_base=base))
    assert of(Chat, events)[0].fork == Fork("../../x*", None)
    assert len(of(Warned, events)) == 1


def test_a_file_whose_name_tells_another_thread_is_warned_of(tmp_path: Path) -> None:
    path = written(tmp_path, message("user", "x")).rename(
        tmp_path / f"rollout-2026-01-02T03-04-05-{OTHER}.jsonl"
    )
    events = read(path)
    assert of(Chat, events)[0].id == THREAD
    warning = of(Warned, events)[0].text
    assert THREAD in warning
    assert OTHER in warning


# ---------------------------------------------------------------------- items


@pytest.mark.parametrize(
    ("item", "role", "part"),
    [
        (
            {"type": "local_shell_call", "id": "l", "call_id": None, "action": {"command": ["ls"]}},
            Role.ASSISTANT,
            ToolCall("l", "local_shell", '{"command":["ls"]}', extra={"type": "local_shell_call"}),
        ),
        (
            {"type": "local_shell_call_output", "call_id": "l", "output": "ok"},
            Role.TOOL,
            ToolResult("l", "ok"),
        ),
        (
            {"type": "web_search_call", "id": "w", "status": "completed"},
            Role.ASSISTANT,
            Unknown({"type": "web_search_call", "id": "w", "status": "completed"}),
        ),
        (
            {"type": "image_generation_call", "id": "i", "result": "iVBORw=="},
            Role.ASSISTANT,
            Image(data=b"\x89PNG"),
        ),
        (
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": "data:image/gif;base64,R0lG"},
                ],
            },
            Role.TOOL,
            ToolResult("c", (Text("see"), Image(media_type="image/gif", data=b"GIF"))),
        ),
        (
            {"type": "function_call_output", "call_id": "c", "output": {"a": 1}},
            Role.TOOL,
            ToolResult("c", '{"a":1}'),
        ),
        (
            {"type": "function_call_output", "output": None},
            Role.TOOL,
            ToolResult("", ""),
        ),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "No."}],
            },
            Role.ASSISTANT,
            Text("No."),
        ),
    ],
)
def test_items_of_all_kinds(tmp_path: Path, item: Any, role: Role, part: Any) -> None:
    found = records(read(written(tmp_path, ("response_item", item))))
    assert [(each.role, each.parts) for each in found] == [(role, (part,))]


def test_a_call_with_its_answer_in_one_item_is_two_messages(tmp_path: Path) -> None:
    item = {
        "type": "mcp_call", "id": "m", "name": "find", "arguments": '{"q":1}', "output": "found",
    }  # fmt: skip
    found = records(read(written(tmp_path, ("response_item", item), message("user", "x"))))
    assert [each.parts for each in found[:2]] == [
        (ToolCall("m", "find", '{"q":1}', extra={"type": "mcp_call"}),),
        (ToolResult("m", "found"),),
    ]
    assert [each.id for each in found[1:2]] == [f"{found[0].id}/result"]
    assert found[2].parent == found[1].id


# ---------------------------------------------------------------------- what may stand in a file


def test_lines_of_any_kind_are_read_or_named(tmp_path: Path) -> None:
    path = written(tmp_path, message("user", "x"))
    with path.open("ab") as stream:
        stream.write(b'\xef\xbb\xbf\r\n[1]\n"x"\nnull\n\0\0\0\n{"type":"response_item"\n{}\n')
        stream.write(b'{"type":"future","payload":{"a":1}}\n{"type":7,"payload":[]}\n')
        stream.write(b'{"type":"response_item","payload":{"type":"message","role":"bot"}}\n')
        stream.write(b'{"type":"response_item","payload":{"type":"message","role":"user",')
        stream.write(b'"content":"\xff\xfe"}}\r\n' + b"[" * 5000 + b"]" * 5000 + b"\n")
    events = read(path)
    assert [each.parts for each in records(events)] == [(Text("x"),), (Text("\ufffd\ufffd"),)]
    assert [each.where for each in of(Damaged, events)] == [
        f"line {number}" for number in (3, 4, 5, 6, 7, 8, 14)
    ]
    assert skipped(events) == {
        "line of no type": 2, "future": 1, "response_item/message": 1,
    }  # fmt: skip


def test_times_out_of_range_are_none(tmp_path: Path) -> None:
    path = written(tmp_path, message("user", "x"))
    path.write_text(path.read_text().replace("2023-", "0001-"))
    assert [each.created_at for each in records(read(path))] == [None]


def test_a_rollout_without_a_head_is_known_by_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, message("user", "x"))
    path.write_text(path.read_text().partition("\n")[2])
    assert of(Chat, read(path))[0].id == THREAD


def test_an_empty_thread_is_a_chat_without_records(tmp_path: Path) -> None:
    assert [type(each) for each in read(written(tmp_path))] == [Chat]


# ---------------------------------------------------------------------- properties


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks())
def test_a_talk_comes_back(whole: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write_codex(whole, Path(folder)))
    assert heard(events, whole.id) == said(whole)
    spent = [each.spent.usage for each in of(Used, events)]
    assert sum(each.input for each in spent) == whole.usage.input
    assert sum(each.output for each in spent) == whole.usage.output
    chat = of(Chat, events)[0]
    assert (chat.id, chat.workspace.cwd, chat.created_at) == (whole.id, whole.cwd, whole.started)
    assert all(0 <= (each.created_at or 0) < LATEST for each in records(events))


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks(), st.data())
def test_a_file_that_grew_says_the_same_and_more(whole: Talk, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write_codex(whole, Path(folder))
        later = records(read(path))
        rows = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(rows[: data.draw(st.integers(1, len(rows)))]))
        before = records(read(path))
    assert later[: len(before)] == before


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(talks(), st.data())
def test_a_changed_line_gives_new_ids_from_there_on(whole: Talk, data: st.DataObject) -> None:
    rows = list(turns(whole))
    at = data.draw(st.sampled_from([n for n, row in enumerate(rows) if row[0] == "response_item"]))
    changed = [*rows[:at], message("user", "something else"), *rows[at + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        one = records(read(written(Path(folder), *rows)))
        two = records(read(written(Path(folder), *changed)))
    same = sum(row[0] == "response_item" for row in rows[:at])
    assert [each.id for each in one[:same]] == [each.id for each in two[:same]]
    assert not {each.id for each in one[same:]} & {each.id for each in two[same:]}


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(talks())
def test_what_a_run_prints_comes_back(whole: Talk) -> None:
    with tempfile.TemporaryDirectory() as folder:
        events = read(write_exec(whole, Path(folder) / "x.jsonl"), codex_exec.FORMAT)
    assert events[0] == Chat(id=whole.id, automation=True)
    texts = [part.text for each in records(events) for part in each.parts if isinstance(part, Text)]
    steps = [step for exchange in whole.exchanges for step in exchange.steps]
    assert texts == [step.text for step in steps if step.text]
    calls = [call for step in steps for call in step.calls]
    made = [part for each in records(events) for part in each.parts if isinstance(part, ToolCall)]
    assert [(each.name, json.loads(each.arguments)) for each in made] == [
        (f"s.{call.name}", call.arguments) for call in calls
    ]
    answers = [p for each in records(events) for p in each.parts if isinstance(p, ToolResult)]
    assert [(each.call_id, each.content, each.is_error) for each in answers] == [
        (asked.id, call.result, call.is_error) for asked, call in zip(made, calls, strict=True)
    ]
    usage = [each.spent.usage for each in of(Used, events)]
    assert sum(each.input for each in usage) == whole.usage.input


def test_the_items_of_a_run(tmp_path: Path) -> None:
    items = [
        {"id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "a\n",
         "exit_code": 1, "status": "failed"},
        {"id": "item_1", "type": "file_change", "changes": [{"path": "a", "kind": "add"}],
         "status": "completed"},
        {"id": "item_2", "type": "todo_list", "items": [{"text": "t", "completed": True}]},
        {"id": "item_3", "type": "error", "message": "x"},
    ]  # fmt: skip
    rows = [{"type": "item.completed", "item": item} for item in items]
    path = bare(tmp_path, {"type": "thread.started", "thread_id": "t"}, *rows)
    events = read(path, codex_exec.FORMAT)
    found = records(events)
    ids = [each.id or "" for each in found[::2]]
    assert [each.parts[0] for each in found] == [
        ToolCall(ids[0], "shell", '{"command":"ls"}'),
        ToolResult(ids[0], "a\n", is_error=True),
        ToolCall(ids[1], "apply_patch", '[{"path":"a","kind":"add"}]'),
        ToolResult(ids[1], "completed"),
        ToolCall(ids[2], "todo_list", '{"items":[{"text":"t","completed":true}]}'),
        ToolResult(ids[2], ""),
    ]
    assert skipped(events) == {"item.completed/error": 1}
