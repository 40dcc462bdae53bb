"""clew erase."""

from __future__ import annotations

from typing import Any

import clew

from .helpers import Demo, Run

SECRET = "the number of my passport is 4711-0815-2342"


def made(demo: Demo) -> str:
    with demo.open() as store:
        conv = store.profile("default").create()
        conv.append([clew.user(SECRET, author="ann"), clew.assistant("noted")])
        return conv.id


def texts(demo: Demo, id: str) -> list[str]:
    with demo.open() as store:
        return [message.text for message in store.profile("default").open(id).messages()]


def test_without_yes_it_only_shows(demo: Demo, run: Run, loads: Any) -> None:
    id = made(demo)
    shown = run("erase", id, 1).stdout
    assert "#1" in shown
    assert "Nothing was erased" in shown
    plan = loads("erase", "--person", "ann")
    assert [(t["conversation"], t["whole"], t["seqs"]) for t in plan["targets"]] == [
        (id, True, [1, 2])
    ]
    assert texts(demo, id) == [SECRET, "noted"]


def test_a_message_is_erased_and_proven(demo: Demo, run: Run) -> None:
    id = made(demo)
    said = run("erase", id, 1, "--yes").stdout
    assert "Erased 1 message in 1 conversation" in said
    assert "none was found" in said
    assert "passport" not in said
    assert texts(demo, id) == ["[erased]", "noted"]
    assert "[erased]" in run("show", id).stdout
    assert "no problem" in run("verify").stdout.lower() or run("verify").exit_code == 0
    assert SECRET.encode() not in demo.path.read_bytes()


def test_what_quotes_it_is_told_and_fails(demo: Demo, run: Run, loads: Any) -> None:
    id = made(demo)
    with demo.open() as store:
        store.profile("default").open(id).append([clew.assistant(f"You said: {SECRET}")])
    said = run("erase", id, 1, "--yes", code=1).stdout
    assert "Found again" in said
    assert "message.parts" in said
    done = loads("erase", id, 3, "--yes")
    assert done["proof"]["traces"] == []


def test_everything_of_a_person(demo: Demo, run: Run, loads: Any) -> None:
    id = made(demo)
    done = loads("erase", "--person", "ann", "--yes")
    assert (done["messages"], done["conversations"]) == (2, 1)
    assert texts(demo, id) == ["[erased]", "[erased]"]
    assert "nothing to erase" in run("erase", "--person", "ann").stdout


def test_it_wants_to_be_told_what(demo: Demo, run: Run) -> None:
    assert "--person" in run("erase", code=2).stderr
    assert "--whole" in run("erase", demo.ids.order, code=2).stderr
    assert "stands alone" in run("erase", demo.ids.order, "--person", "x", code=2).stderr
    run("erase", demo.ids.order, 999, code=3)


def test_all_of_a_conversation_with_or_without_sub_agents(demo: Demo, loads: Any) -> None:
    id = made(demo)
    with demo.open() as store:
        helper = store.profile("default").open(id).delegate()
        helper.append([clew.user(SECRET)])
    kept = loads("erase", id, "--whole", "--keep-sub-agents")
    assert [t["conversation"] for t in kept["targets"]] == [id]
    assert any(helper.id in text for text in kept["left"])
    done = loads("erase", id, "--whole", "--yes")
    assert (done["messages"], done["proof"]["traces"]) == (3, [])
    assert texts(demo, helper.id) == ["[erased]"]
