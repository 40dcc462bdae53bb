"""Importing a conversation that is here: it grows by what is new, or is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from copying import ENGINES, drop, place
from exporting import brought, exported, rows

import clew

Change = Callable[[clew.Conversation], object]


@pytest.fixture(params=ENGINES)
def both(request: pytest.FixtureRequest, fast_dir: Path) -> Iterator[tuple[clew.Store, clew.Store]]:
    with (
        clew.open(place("file", fast_dir, "a")) as one,
        clew.open(place(request.param, fast_dir, "b")) as other,
    ):
        yield one, other
        assert other.verify() == []
    drop()


def talk(store: clew.Store) -> clew.Conversation:
    conv = store.profile("p").create(id="talk", prompt="first")
    conv.append([clew.user("one"), clew.assistant("two"), clew.user("three")])
    return conv


def compact(conv: clew.Conversation) -> None:
    attempt = conv.open_attempt()
    body = (clew.Inline(clew.Role.USER, (clew.Text("sum"),)),)
    conv.commit_attempt(
        attempt.number, clew.Proposal(covers_to=2, body=body, tokens_before=9, tokens_after=1)
    )


def turn(conv: clew.Conversation) -> None:
    begun = conv.begin_turn([clew.user("go")], call=clew.CallPlan(model="m"))
    assert isinstance(begun, clew.TurnHandle)
    begun.finish([clew.assistant("done")])


CHANGES: dict[str, Change] = {
    "a message": lambda c: c.append([clew.user("four", key="k")]),
    "an image": lambda c: c.append(
        [clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"bytes"),))]
    ),
    "a cut": lambda c: c.cut(c.message(3).uid),
    "a cut and a message": lambda c: c.edit(c.message(3).uid, clew.user("else")),
    "a compaction": compact,
    "a turn": turn,
    "a title": lambda c: c.set_title("by a model", "llm"),
    "a prompt and a message": lambda c: (c.set_prompt("second"), c.append([clew.user("x")])),
    "a goal": lambda c: c.set_goal("win"),
    "todos": lambda c: c.set_todos([clew.Todo("a"), clew.Todo("b", "done")]),
    "an alias": lambda c: c.claim_alias("tool", "t-1"),
    "a call": lambda c: c.finish_call(
        c.plan_call(clew.CallPlan(model="m")), clew.CallResult(usage=clew.Usage(1, 2))
    ),
    "an end": lambda c: c.end("closed"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_it_grows_by_what_is_new(both: tuple[clew.Store, clew.Store], change: Change) -> None:
    one, other = both
    conv = talk(one)
    older = exported(one.profile("p"))
    brought(other.profile("p"), older)
    change(conv)
    newer = exported(one.profile("p"))
    found = brought(other.profile("p"), newer)
    assert (found.grown, found.refused, found.damaged, found.notes) == (1, (), (), ())
    here, there = rows(other, "p"), rows(one, "p")
    here["talk"].pop("toolset_hash"), there["talk"].pop("toolset_hash")
    assert here == there
    assert brought(other.profile("p"), newer).unchanged == 1
    assert brought(other.profile("p"), older).unchanged == 1  # an older file takes nothing back
    assert rows(other, "p") == rows(one, "p")


UNDONE: dict[str, tuple[Change, Change]] = {
    "a cut": (lambda c: c.cut(c.message(2).uid), lambda c: c.undo_cut()),
    "a compaction": (compact, lambda c: c.undo_compaction(1)),
    "an attempt": (lambda c: c.open_attempt(), lambda c: c.cancel_attempt(1)),
    "a waiting turn": (
        lambda c: _begin(c).wait(),
        lambda c: c.resume_turn().finish([clew.assistant("yes")]),
    ),
    "a running turn": (lambda c: _begin(c), lambda c: c.interrupt_turn("stop")),
    "a planned call": (
        lambda c: c.plan_call(clew.CallPlan(model="m")),
        lambda c: c.finish_call(1, clew.CallResult(cost=0.5)),
    ),
    "a goal": (lambda c: c.set_goal("win"), lambda c: c.close_goal()),
}


def _begin(conv: clew.Conversation) -> clew.TurnHandle:
    begun = conv.begin_turn([clew.user("go")])
    assert isinstance(begun, clew.TurnHandle)
    return begun


@pytest.mark.parametrize(("change", "undo"), UNDONE.values(), ids=UNDONE.keys())
def test_records_go_on(
    both: tuple[clew.Store, clew.Store], change: Change, undo: Change
) -> None:  # fmt: skip
    """What was undone, ended or finished since is so here too; an older file takes nothing back."""
    one, other = both
    conv = talk(one)
    change(conv)
    older = exported(one.profile("p"))
    brought(other.profile("p"), older)
    undo(conv)
    assert brought(other.profile("p"), exported(one.profile("p"))).grown == 1
    here, there = rows(other, "p"), rows(one, "p")
    for side in (here, there):
        side["talk"].pop("fence")
    assert here == there
    assert brought(other.profile("p"), older).unchanged == 1
    here = rows(other, "p")
    here["talk"].pop("fence")
    assert here == there


DIVERGING: dict[str, Change] = {
    "a message": lambda c: c.append([clew.user("mine")]),
    "a cut": lambda c: c.cut(c.message(1).uid),
    "a compaction": compact,
    "a turn": turn,
}


@pytest.mark.parametrize("ours", DIVERGING.values(), ids=DIVERGING.keys())
@pytest.mark.parametrize(
    "theirs",
    [CHANGES["a message"], CHANGES["a cut"], CHANGES["a turn"], CHANGES["a call"]],
    ids=["a message", "a cut", "a turn", "a call"],
)
def test_what_went_on_in_both_is_left_alone(
    both: tuple[clew.Store, clew.Store], ours: Change, theirs: Change
) -> None:
    one, other = both
    conv = talk(one)
    brought(other.profile("p"), exported(one.profile("p")))
    theirs(conv)
    ours(other.profile("p").open("talk"))
    one.profile("p").create(id="another").append([clew.user("arrives")])
    before = rows(other, "p")
    found = brought(other.profile("p"), exported(one.profile("p")))
    assert [id for id, _ in found.refused] == ["talk"]
    assert found.new == 1
    after = rows(other, "p")
    assert after.pop("another")
    assert after == before


def test_what_a_person_set_here_stays(both: tuple[clew.Store, clew.Store]) -> None:
    one, other = both
    conv = talk(one)
    brought(other.profile("p"), exported(one.profile("p")))
    mine = other.profile("p").open("talk")
    mine.set_title("my own title")
    mine.pin()
    conv.set_title("their title")
    conv.append([clew.user("four")])
    assert brought(other.profile("p"), exported(one.profile("p"))).grown == 1
    info = mine.info()
    assert (info.title, info.pinned, info.head) == ("my own title", True, 4)


def test_what_runs_here_is_not_written_to(both: tuple[clew.Store, clew.Store]) -> None:
    one, other = both
    conv = talk(one)
    conv.append([clew.user("q")])
    brought(other.profile("p"), exported(one.profile("p")))
    _begin(other.profile("p").open("talk"))
    before = rows(other, "p")
    conv.append([clew.user("four")])
    (refused,) = brought(other.profile("p"), exported(one.profile("p"))).refused
    assert refused[0] == "talk"
    assert rows(other, "p") == before


def test_followers_and_the_search_see_what_came(both: tuple[clew.Store, clew.Store]) -> None:
    one, other = both
    conv = talk(one)
    profile = other.profile("p")
    mark = profile.mark()
    brought(profile, exported(one.profile("p")))
    mark, changes = profile.changes(mark)
    assert {change.kind for change in changes} >= {"created"}
    assert [hit.seq for hit in profile.search("three").hits] == [3]
    conv.edit(conv.message(3).uid, clew.user("instead"))
    brought(profile, exported(one.profile("p")))
    _, changes = profile.changes(mark)
    assert {change.kind for change in changes} >= {"cut"}
    assert [hit.seq for hit in profile.search("three OR instead").hits] == [4]
