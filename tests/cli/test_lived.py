"""What a person who lives with clew sees: sub-agents, gaps, other tools' ids, hints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import clew

from .helpers import Demo, Run, process


def delegates(demo: Demo, id: str) -> list[str]:
    """A sub-agent, one of its own, and one of another conversation: their ids."""
    with demo.open() as store:
        profile = store.profile("default")
        first = profile.open(id).delegate(clew.NewConversation(title="First"))
        first.add(clew.user("zebra crossing"))
        inner = first.delegate(clew.NewConversation(title="Inner"))
        inner.add(clew.user("zebra stripes"))
        other = profile.open(demo.ids.trip).delegate(clew.NewConversation(title="Other"))
        other.add(clew.user("zebra foal"))
        return [first.id, inner.id, other.id]


def found(run: Run, words: str) -> set[str]:
    code = 0 if run("list").stdout else 1
    lines = run("search", words, code=code).stdout.splitlines()
    return {line.split("\t")[0] for line in lines}


# ---------------------------------------------------------------- delete


def test_sub_agents_are_deleted_with_their_conversation(demo: Demo, run: Run) -> None:
    *_, other = delegates(demo, demo.ids.order)
    assert "and 2 sub-agents" in run("delete", demo.ids.order, "--yes").stdout
    assert found(run, "zebra") == {other}
    with demo.open() as store:
        assert store.verify() == []


def test_sub_agents_are_named_in_the_question(
    demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, inner, other = delegates(demo, demo.ids.order)

    def somebody_is_there(yes: bool, what: str) -> None: ...

    monkeypatch.setattr("clew.cli.commands.delete.can_ask", somebody_is_there)
    said = run("delete", demo.ids.order, input="n\n", code=1).stderr
    assert "Put 1 conversation and its 2 sub-agents into the bin?" in said
    said = run("delete", demo.ids.order, first, demo.ids.trip, "--now", input="n\n", code=1).stderr
    assert "Delete 3 conversations and their 2 sub-agents for good?" in said
    assert found(run, "zebra") == {first, inner, other}


def test_sub_agents_may_stay_and_are_said_to_be_there(tmp_path: Path, run: Run) -> None:
    place = tmp_path / "own.db"
    with clew.open(place) as store:
        origin = store.profile("default").create(title="Origin")
        agent = origin.delegate(clew.NewConversation(title="Agent"))
        agent.add(clew.user("a needle"))
    run("--store", place, "delete", origin.id, "--keep-sub-agents", "--now", "--yes")
    result = run("--store", place, "list")
    assert (result.stdout, "archived" in result.stderr) == ("", False)
    assert "1 sub-agent of deleted ones" in result.stderr
    assert (
        "sub-agent of a conversation that was deleted"
        in run("--store", place, "show", agent.id).stdout
    )
    run("--store", place, "delete", agent.id, "--now", "--yes")
    assert "Or add the first conversation" in run("--store", place, "list").stderr


def test_an_unknown_id_is_said_before_yes_is_asked_for(demo: Demo) -> None:
    done = process("delete", "nobody")
    assert done.returncode == 3
    assert "nobody" in done.stderr


# ---------------------------------------------------------------- nothing here


@pytest.mark.parametrize("command", [["list"], ["search", "x"], ["stats"], ["profiles"]])
def test_without_a_store_the_import_is_named_first(
    tmp_path: Path, run: Run, command: list[str]
) -> None:
    said = run("--store", tmp_path / "none.db", *command).stderr
    assert said.index("import --discover") < said.index("from Python")


def test_without_a_store_the_doctor_names_the_import_too(tmp_path: Path, run: Run) -> None:
    assert "clew import --discover" in run("--store", tmp_path / "none.db", "doctor").stdout


def test_hits_in_archived_conversations_are_said_to_be_there(demo: Demo, run: Run) -> None:
    run("archive", demo.ids.order)
    assert "--archived" in run("search", "arrive", code=1).stderr
    assert "--archived" not in run("search", "arrive nowhere", code=1).stderr
    assert found_archived(run) == {demo.ids.order}


def found_archived(run: Run) -> set[str]:
    lines = run("search", "arrive", "--archived").stdout.splitlines()
    return {line.split("\t")[0] for line in lines}


# ---------------------------------------------------------------- show, resume


def test_a_gap_in_the_numbers_is_explained(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        conversation = store.profile("default").create(title="Gaps")
        for at in range(6):
            conversation.add(clew.user(f"message {at + 1}"))
        early = conversation.branch(conversation.message(2).uid)
        early.add(clew.user("its own"))
        conversation.cut(conversation.message(6).uid)
        conversation.add(clew.user("after one"))
        late = conversation.branch(conversation.message(7).uid)
    shown = run("show", conversation.id).stdout
    assert "1 cut; --outline" in shown
    assert re.search(r"#5 .*\n.*\n\n1 message hidden by cut 1; --log shows it\n\nuser  #7", shown)
    assert "hidden by" not in run("show", conversation.id, "--to", 4).stdout
    assert "1 message hidden by cut 1" in run("show", late.id).stdout
    assert "hidden by" not in run("show", early.id).stdout
    run("cut", conversation.id, 3, "--yes")
    shown = run("show", conversation.id).stdout
    assert "\n5 messages hidden by cuts 1 and 2; --log shows them\n" in shown
    run("undo", conversation.id)
    assert "1 message hidden by cut 1" in run("show", conversation.id).stdout


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"stopReason": "aborted", "errorMessage": "Request was\x1b[1m aborted"},
         "(nothing; Request was^[[1m aborted)"),
        ({"error": True, "finish": "length"}, "(nothing; length)"),
        ({}, "(nothing)"),
    ],
)  # fmt: skip
def test_an_answer_without_content_is_said_to_be_empty(
    demo: Demo, run: Run, facts: dict[str, Any], said: str
) -> None:
    with demo.open() as store:
        conversation = store.profile("default").open(demo.ids.order)
        conversation.reopen()
        conversation.append([
            clew.Draft(role=clew.Role.ASSISTANT, parts=(), meta={"import": facts}),
        ])  # fmt: skip
    shown = run("show", demo.ids.order).stdout
    assert re.search(rf"assistant  #2 .*\n  {re.escape(said)}\n", shown)


def test_both_ends_of_a_conversation_have_a_time(demo: Demo, run: Run) -> None:
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d"
    assert re.search(rf"begun {time}, active {time} \(", run("show", demo.ids.trip).stdout)


def test_ids_of_other_tools_are_shown_and_lead_there(demo: Demo, run: Run, loads: Any) -> None:
    session = "fe5e1c67-53e7-4862-81ae-d0e013e3270b"
    with demo.open() as store:
        profile = store.profile("default")
        workspace = clew.Workspace(cwd="/home/ann/app")
        conversation = profile.create(source="claude-code", workspace=workspace)
        conversation.add(clew.user("Hello"))
        for name in (session, f"record:{'0' * 32}", f"{session}#{'a' * 32}"):
            conversation.claim_alias("claude-code", name)
        path = profile.create(source="codex")
        path.claim_alias("codex", "/home/ann/x; touch y.jsonl")
    for command in ("show", "resume"):
        shown = run(command, conversation.id).stdout
        assert f"also     claude-code {session}\n" in shown
    assert f"Go on in claude-code, in /home/ann/app:\n\n    claude --resume {session}\n" in shown
    there = {"source": "claude-code", "id": session, "command": f"claude --resume {session}"}
    assert loads("resume", conversation.id)["elsewhere"] == [there]
    assert "codex resume" not in run("resume", path.id).stdout
    assert "also" not in run("show", demo.ids.trip).stdout


# ---------------------------------------------------------------- list, stats


def test_what_nobody_knows_the_cost_of_has_none(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        profile = store.profile("default")
        for model, cost in (("free", None), ("cheap", 0.002), ("dear", 1234.5)):
            conversation = profile.create()
            number = conversation.plan_call(clew.CallPlan(model=model))
            result = clew.CallResult(usage=clew.Usage(input=5), cost=cost)
            conversation.finish_call(number, result)
    shown = run("stats").stdout
    for model, cost in (("free", "-"), ("cheap", "<$0.01"), ("dear", "$1,234.50")):
        assert re.search(rf"^{model} .* {re.escape(cost)}$", shown, re.MULTILINE)
