"""Whatever is done to a store, its export and import give an equal one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from exporting import brought, exported, rows
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.errors import ClewError

CHARACTERS = st.characters() | st.sampled_from(
    '\0\n\r\x7f\x85\u2028\u2029\u202e\ud83d\ude00\ud800 "\\'
)
TEXT = st.text(CHARACTERS, max_size=20)
LABEL = st.text(CHARACTERS, min_size=1, max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | TEXT | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
META = st.none() | st.dictionaries(TEXT, JSON, max_size=2)
IMAGE = st.builds(clew.Image, data=st.binary(max_size=30), detail=st.none() | TEXT)
FILE = st.builds(clew.File, name=st.none() | TEXT, data=st.binary(max_size=30))
PIECE = (
    st.builds(clew.Text, TEXT) | IMAGE | FILE | st.builds(clew.Unknown, JSON)
    | st.builds(clew.Image, url=TEXT)
)  # fmt: skip
PART = (
    PIECE
    | st.builds(clew.Reasoning, text=TEXT, model=st.none() | TEXT, data=st.none() | TEXT)
    | st.builds(clew.ToolCall, id=TEXT, name=TEXT, arguments=TEXT, extra=META)
    | st.builds(clew.ToolResult, call_id=TEXT, is_error=st.booleans(),
                content=TEXT | st.lists(PIECE, max_size=2).map(tuple))
)  # fmt: skip
DRAFT = st.builds(
    clew.Draft, role=st.sampled_from(list(clew.Role)), parts=st.lists(PART, max_size=3).map(tuple),
    key=st.none() | st.uuids().map(str), author=st.none() | LABEL, api_group=st.none() | LABEL,
    replaces=st.none() | st.integers(1, 5), tokens=st.none() | st.integers(0, 1 << 40), meta=META,
    created_at=st.none() | st.integers(0, 1 << 60),
)  # fmt: skip
DRAFTS = st.lists(DRAFT, min_size=1, max_size=3)
SEQ = st.integers(1, 8)
Act = Callable[[clew.Conversation], Any]
ACTS: st.SearchStrategy[Act] = st.one_of(
    DRAFTS.map(lambda drafts: lambda c: c.append(drafts)),
    DRAFTS.map(lambda drafts: lambda c: c.append(drafts)),
    SEQ.map(lambda seq: lambda c: c.cut(c.message(seq).uid)),
    st.just(lambda c: c.undo_cut()),
    st.tuples(SEQ, TEXT).map(lambda given: lambda c: c.commit_attempt(
        c.open_attempt().number,
        clew.Proposal(covers_to=given[0], tokens_before=9, tokens_after=2,
                      body=(clew.Inline(clew.Role.USER, (clew.Text(given[1]),)),)),
    )),
    st.tuples(SEQ, META).map(lambda given: lambda c: c.record_foreign_compaction(
        clew.Proposal(covers_to=given[0], body=(clew.Ref(1, given[0]),), tokens_before=0,
                      tokens_after=0, receipt=given[1])
    )),
    st.integers(1, 2).map(lambda generation: lambda c: c.undo_compaction(generation)),
    st.just(lambda c: c.open_attempt("user", model="m")),
    DRAFTS.map(lambda drafts: lambda c: c.begin_turn(drafts, call=clew.CallPlan(model="m"))),
    st.just(lambda c: c.resume_turn().wait()),
    st.just(lambda c: c.interrupt_turn("stopped")),
    st.tuples(LABEL, st.sampled_from(["user", "llm", "derived"])).map(
        lambda given: lambda c: c.set_title(*given)
    ),
    LABEL.map(lambda title: lambda c: c.lock_title(title)),
    st.just(lambda c: c.pin()), st.just(lambda c: c.archive()),
    st.just(lambda c: c.mark(automation=True)),
    LABEL.map(lambda text: lambda c: c.set_goal(text)), st.just(lambda c: c.close_goal()),
    st.lists(LABEL, max_size=3).map(
        lambda texts: lambda c: c.set_todos(list(map(clew.Todo, texts)))
    ),
    TEXT.map(lambda prompt: lambda c: c.set_prompt(prompt)),
    LABEL.map(lambda name: lambda c: c.claim_alias("tool", name)),
    st.sampled_from(["closed", "stale"]).map(lambda reason: lambda c: c.end(reason)),
    st.just(lambda c: c.reopen()),
)  # fmt: skip
STEP = st.one_of(
    st.tuples(st.integers(0, 5), ACTS),
    st.tuples(st.integers(0, 5), st.just("branch")),
    st.tuples(st.integers(0, 5), st.just("delegate")),
    st.tuples(st.integers(0, 5), st.just("delete")),
)


def play(profile: clew.Profile, known: list[clew.Conversation], steps: list[Any]) -> None:
    """What is refused is refused: another store is made all the same."""
    for which, act in steps:
        conv = known[which % len(known)]
        with suppress(ClewError):
            match act:
                case "branch":
                    known.append(conv.branch())
                case "delegate":
                    known.append(conv.delegate())
                case "delete":
                    profile.delete(conv.id)
                case _:
                    act(conv)


@given(st.lists(STEP, max_size=25), st.lists(STEP, max_size=10))
def test_an_import_of_any_store_is_equal(
    fast_dir: Path, first: list[Any], later: list[Any]
) -> None:
    """At once, and in two imports of which the second lets all grow."""
    folder = Path(tempfile.mkdtemp(dir=fast_dir))
    with (
        clew.open(folder / "a.db") as one,
        clew.open(folder / "b.db") as grown,
        clew.open(folder / "c.db") as fresh,
    ):
        profile = one.profile("p")
        known = [profile.create(id="first")]
        play(profile, known, first)
        found = brought(grown.profile("p"), exported(profile))
        assert (found.refused, found.damaged, found.notes) == ((), (), ())
        assert rows(grown, "p") == rows(one, "p")
        play(profile, known, later)
        data = exported(profile)
        found = brought(fresh.profile("p"), data)
        assert (found.refused, found.damaged, found.notes) == ((), (), ())
        assert rows(fresh, "p") == rows(one, "p")
        assert brought(fresh.profile("p"), data).unchanged == len(rows(one, "p")) - 1
        found = brought(grown.profile("p"), data)
        assert (found.refused, found.damaged, found.notes) == ((), (), ())
        assert [store.verify() for store in (fresh, grown)] == [[], []]
