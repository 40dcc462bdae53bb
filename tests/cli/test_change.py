"""clew rename, pin, unpin, archive, unarchive, branch, cut, undo, delete."""

from __future__ import annotations

import json
from typing import Any

import pytest

import clew

from .helpers import Demo, Run, process


def info(demo: Demo, id: str) -> clew.ConversationInfo:
    with demo.open() as store:
        return store.profile("default").open(id).info()


def test_rename(demo: Demo, run: Run) -> None:
    assert "Renamed" in run("rename", demo.ids.order[:7], "Lost order").stdout
    assert info(demo, demo.ids.order).title == "Lost order"
    run("rename", demo.ids.order, "")
    assert info(demo, demo.ids.order).title == "My order did not arrive"


def test_a_locked_title_is_refused(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        store.profile("default").open(demo.ids.trip).lock_title("Mine")
    assert "locked" in run("rename", demo.ids.trip, "Yours", code=4).stderr


def test_pins(demo: Demo, run: Run) -> None:
    run("pin", demo.ids.order, demo.ids.long)
    assert info(demo, demo.ids.order).pinned
    assert info(demo, demo.ids.long).pinned
    run("unpin", demo.ids.order)
    assert not info(demo, demo.ids.order).pinned


def test_archiving(demo: Demo, run: Run) -> None:
    run("archive", demo.ids.order)
    assert info(demo, demo.ids.order).archived
    assert demo.ids.order in run("list", "--archived").stdout
    run("unarchive", demo.ids.order)
    assert demo.ids.order in run("list").stdout


def test_no_id_is_acted_on_when_one_is_wrong(demo: Demo, run: Run) -> None:
    run("pin", demo.ids.order, "nobody", code=3)
    assert not info(demo, demo.ids.order).pinned
    run("delete", demo.ids.order, "nobody", "--yes", code=3)
    assert info(demo, demo.ids.order).message_count == 1


def test_branches(demo: Demo, run: Run, loads: Any) -> None:
    found = loads("branch", demo.ids.long, "--at", 3, "--title", "Elsewhere")
    assert (found["base"], found["title"], found["source"]) == (3, "Elsewhere", "cli")
    with demo.open() as store:
        uid = store.profile("default").open(demo.ids.long).message(5).uid
    assert loads("branch", demo.ids.long, "--at", uid)["base"] == 5
    assert loads("branch", demo.ids.long)["base"] == 60
    assert loads("branch", demo.ids.flaky, "--at-cut", 1)["message_count"] == 6
    assert "Branched" in run("branch", demo.ids.long, "--at", "#7").stdout
    run("branch", demo.ids.long, "--at", 61, code=3)
    run("branch", demo.ids.long, "--at", "nothing", code=3)
    run("branch", demo.ids.long, "--at", 1, "--at-cut", 1, code=2)


def test_cut_and_undo(demo: Demo, run: Run, loads: Any) -> None:
    cut = loads("cut", demo.ids.long, 58, "--yes")
    assert (cut["from_seq"], cut["to_seq"], cut["number"]) == (58, 60, 1)
    assert info(demo, demo.ids.long).message_count == 57
    undone = loads("undo", demo.ids.long)
    assert undone["number"] == 1
    assert info(demo, demo.ids.long).message_count == 60
    run("undo", demo.ids.long, code=3)
    assert "Hid 1 message" in run("cut", demo.ids.long, 60, "-y").stdout
    assert "shows #60 to #60 again" in run("undo", demo.ids.long).stdout


def test_a_cut_that_was_followed_is_not_undone(demo: Demo, run: Run) -> None:
    assert "branch" in run("undo", demo.ids.flaky, code=4).stderr


def test_questions_need_a_terminal(demo: Demo) -> None:
    for command in (["cut", demo.ids.long, 1], ["delete", demo.ids.long], ["restore", demo.path]):
        done = process(*command)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "give --yes" in done.stderr
    assert info(demo, demo.ids.long).message_count == 60


def test_cut_passes_what_it_showed(demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = clew.Conversation.cut

    def late(self: clew.Conversation, uid: str, **given: Any) -> clew.CutOutcome:
        self.add(clew.user("meanwhile"))
        return real(self, uid, **given)

    monkeypatch.setattr(clew.Conversation, "cut", late)
    assert "the conversation changed" in run("cut", demo.ids.long, 1, "--yes", code=4).stderr


def test_delete(demo: Demo, run: Run) -> None:
    run("delete", demo.ids.flaky[:9], demo.ids.order, "--yes")
    assert demo.ids.flaky not in run("list").stdout
    assert "Wait." not in run("show", demo.ids.other_way).stdout
    assert "The retry test fails" in run("show", demo.ids.other_way).stdout
    with demo.open() as store:
        assert store.verify() == []


def test_an_ambiguous_id_lists_who_is_meant(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        profile = store.profile("default")
        made = [profile.create(id=f"abcd{i}").id for i in range(3)]
    error = run("pin", "abc", code=3).stderr
    assert all(id in error for id in made)
    assert error.count("\n") == 1
    found = json.loads(run("resume", "abc", "--json", code=3).stderr)
    assert found["candidates"] == made
    assert found["error"] == "Ambiguous"
