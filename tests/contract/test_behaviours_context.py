"""What a model is given after a compaction: S13, S22, S23, S26, S28 of docs/behaviours.md."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from long_talk import BUDGET, REQUEST, compactor, fill, seen, work
from talk import calls, result

import clew
from clew import Draft, Inline, Role, Text, Todo
from clew.context.budget import Budget
from clew.context.build import Context
from renderings import check_anthropic, check_chat, check_responses

TARGETS = range(400, 5_000, 230)


def valid(conv: clew.Conversation, context: Context) -> None:
    """Every provider takes it, and no two neighbours speak in one role where that matters."""
    check_chat(context.chat(conv.blob), alternate=context.alternates)
    check_responses(context.responses(conv.blob))
    turns = context.anthropic(conv.blob)
    check_anthropic(turns)
    assert all(a["role"] != b["role"] for a, b in pairwise(turns))


def words(context: Context, conv: clew.Conversation) -> list[str]:
    """The texts of the last message for a provider that wants strict turns."""
    return [block["text"] for block in context.anthropic(conv.blob)[-1]["content"]]


# ---------------------------------------------------------------------- S22


@pytest.mark.parametrize("target", TARGETS[::4])
def test_s22_1_the_last_request_is_always_there(conv: clew.Conversation, target: int) -> None:
    """Word for word, whether or not it was answered, however little is left."""
    fill(conv)
    conv.append([clew.assistant("It is written.")])
    assert compactor().compact(conv, target=target).state == "committed"
    assert REQUEST in seen(compactor().peek(conv))


@pytest.mark.parametrize("model", [None, "gpt-5", "claude-sonnet-4-5", "qwen3-32b"])
def test_s22_2_no_place_to_cut_makes_a_rendering_invalid(
    conv: clew.Conversation, model: str | None
) -> None:
    """S22.3, S22.5, T06: roles alternate, and the words of a person stand behind the ledger."""
    work(conv, *range(12))
    conv.append([clew.user("one"), clew.user("two"), calls("a", "b"), result("b"), result("a")])
    conv.append([clew.assistant("done"), clew.user("three")])
    work(conv, *range(12, 24))
    conv.append([clew.user("four"), calls("open"), clew.user(REQUEST)])
    engine = compactor(model=model)
    for target in TARGETS[:8]:
        if engine.compact(conv, target=target).state == "committed":
            context = engine.peek(conv)
            valid(conv, context)
            assert seen(context)[-1] == REQUEST
            engine.undo(conv)


def test_s22_4_one_who_speaks_first_after_a_compaction_follows_no_turn_of_ours(
    conv: clew.Conversation,
) -> None:
    """The ledger and the request are two parts of one turn where turns must alternate."""
    fill(conv)
    engine = compactor(model="claude-sonnet-4-5")
    done = engine.compact(conv, target=500)
    assert done.state == "committed"
    context = engine.peek(conv)
    valid(conv, context)
    assert words(context, conv)[-1] == REQUEST


def test_s22_6_what_no_person_said_is_no_request(conv: clew.Conversation) -> None:
    """Todos, the goal and what compactions wrote, another tool's too, are beside the log."""
    work(conv, 1)
    conv.append([clew.user("the person's own words")])
    foreign = clew.Proposal(
        covers_to=4, body=(Inline(Role.USER, (Text("Summary: continue with the old task"),)),),
        tokens_before=9, tokens_after=9,
    )  # fmt: skip
    conv.record_foreign_compaction(foreign)
    conv.set_todos([Todo("an old task")])
    conv.set_goal("ship it")
    shown = seen(compactor().peek(conv))
    assert shown[-2] == "the person's own words"
    assert shown[-1].startswith("<notes>")
    work(conv, *range(2, 70))
    context = compactor().context(conv)
    assert context.generation == 2
    requests = [m.text for m in conv.messages() if m.role is Role.USER]
    assert "Summary: continue with the old task" not in requests


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.SYSTEM])
def test_s22_7_a_talk_without_a_person_has_none_afterwards(
    conv: clew.Conversation, role: Role
) -> None:
    """It is compacted like any other, and nobody's words are made up."""
    for n in range(100):
        text = f"Report {n}: " + f"the job number {n} has run and all of it is well. " * 8
        conv.append([Draft(role=role, parts=(Text(text),))])
    context = compactor().context(conv)
    assert context.generation == 1
    assert context.tokens <= context.limit
    assert not any(item.entry.role is Role.USER and item.first for item in context.items)
    valid(conv, context)


# ---------------------------------------------------------------------- S23


def todos(conv: clew.Conversation, *items: tuple[str, Any]) -> None:
    conv.set_todos([Todo(text, state) for text, state in items])


@pytest.mark.parametrize("covered", [False, True], ids=["log", "compacted"])
def test_s23_1_open_todos_stand_behind_the_request_as_a_part_of_its_turn(
    conv: clew.Conversation, covered: bool
) -> None:
    """S23.2, S23.3, B32: never a message of their own, whatever stands at the end."""
    fill(conv)
    todos(conv, ("write the notes", "active"), ("tag it", "pending"), ("read", "done"))
    engine = compactor()
    context = engine.context(conv) if covered else engine.peek(conv)
    request, notes = seen(context)[-2:]
    assert request == REQUEST
    assert "write the notes" in notes
    assert "tag it" in notes
    assert "- read" not in notes
    valid(conv, context)
    assert conv.info().head == len(list(conv.messages()))


@pytest.mark.parametrize("notices", [(), ("Two steps are left.",)], ids=["todos", "host"])
@pytest.mark.parametrize("covered", [False, True], ids=["log", "compacted"])
def test_s23_1_behind_a_step_they_stand_in_its_last_result(
    conv: clew.Conversation, covered: bool, notices: tuple[str, ...]
) -> None:
    """S23.3: what stands before them begins the next request, whatever becomes of the todos."""
    fill(conv)
    conv.append([calls("a", "b"), result("b", "second"), result("a", "first")])
    todos(conv, ("write the notes", "active"))
    engine = compactor()
    context = (engine.context if covered else engine.peek)(conv, notices=notices)
    valid(conv, context)
    asked = context.chat(conv.blob)
    assert [m["role"] for m in asked[-3:]] == ["assistant", "tool", "tool"]
    assert asked[-1]["content"].startswith("first\n\n<notes>")
    assert "write the notes" in asked[-1]["content"]
    assert all(notice in asked[-1]["content"] for notice in notices)
    assert "<notes>" not in str(asked[:-1])
    todos(conv, ("tag it", "pending"))
    conv.append([calls("c"), result("c", "third")])
    assert engine.peek(conv).chat(conv.blob)[: len(asked) - 1] == asked[:-1]
    assert not any("<notes>" in message.text for message in conv.messages())
    assert "<notes>" not in str(conv.context())


def test_s23_4_todos_never_pile_up(conv: clew.Conversation) -> None:
    """S23.5: they are written beside each rendering, so no old ones are there to be cut out."""
    engine = compactor()
    for n in range(4):
        fill(conv, 0.82 if n == 0 else 0.5)
        todos(conv, (f"task {n}", "pending"))
        context = engine.context(conv)
        notes = [text for text in seen(context) if text.startswith("<notes>")]
        assert len(notes) == 1
        assert f"task {n}" in notes[0]
        assert all(f"task {old}" not in notes[0] for old in range(n))
    assert conv.info().generation >= 2
    assert not any("<notes>" in message.text for message in conv.messages())


def test_s23_2_behind_a_picture_too(conv: clew.Conversation) -> None:
    """What the newest message of the user holds does not matter."""
    fill(conv, 0.5)
    conv.append([clew.assistant("ok"), Draft(role=Role.USER, parts=(clew.Image(data=b"png"),))])
    todos(conv, ("look", "pending"))
    compactor().compact(conv)
    context = compactor().peek(conv)
    assert seen(context)[-1].startswith("<notes>")
    assert context.items[-1].entry.role is Role.USER


def test_s23_6_nothing_is_said_when_all_is_done(conv: clew.Conversation) -> None:
    fill(conv)
    todos(conv, ("read", "done"), ("write", "dropped"))
    assert seen(compactor().context(conv))[-1] == REQUEST


# ---------------------------------------------------------------------- S13, S26


def test_s26_1_a_compaction_of_the_engine_is_told_with_its_platform(
    profile: clew.Profile,
) -> None:
    """S10.3, S13.1, S26.2, S26.4: what a host asked to be told, with both names of a rotation."""
    conv = profile.create(source="telegram")
    profile.subscribe("memory")
    fill(conv)
    clew.Compactor(BUDGET, rotate=lambda _: ("host", "next")).context(conv)
    told: list[clew.Boundary] = []
    profile.deliver("memory", told.append)
    (boundary,) = told
    assert (boundary.conversation, boundary.generation) == (conv.id, 1)
    assert boundary.platform == "telegram"
    assert "next" in str(boundary)


def test_s13_1_who_fails_to_listen_stops_no_compaction(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    """S13.2, S13.5, S13.6: handlers run when they are delivered to, never inside a commit."""
    profile.subscribe("memory")
    fill(conv)

    def broken(_: object) -> None:
        raise RuntimeError("no")

    assert compactor().context(conv).generation == 1
    assert len(profile.deliver("memory", broken).failed) == 1
    assert compactor().peek(conv).generation == 1
    conv.append([clew.user("goes on")])


# ---------------------------------------------------------------------- S28


def test_s28_1_a_review_reads_the_context_and_cannot_compact_it(conv: clew.Conversation) -> None:
    """S28.2, T13: a snapshot is enough for it; what is compacted meanwhile changes nothing."""
    fill(conv)
    review = conv.snapshot()
    before = seen(compactor().peek(review))  # pyright: ignore[reportArgumentType]
    with pytest.raises((AttributeError, clew.ReadOnly)):
        compactor().context(review)  # pyright: ignore[reportArgumentType]
    assert (conv.compactions(), conv.attempts()) == ((), ())
    compactor().context(conv)
    assert seen(compactor().peek(review))[-1:] == before[-1:]


def test_s28_3_work_on_the_side_has_a_log_and_a_scope_of_its_own(conv: clew.Conversation) -> None:
    """What a delegate compacts is its own."""
    fill(conv)
    side = conv.delegate()
    assert side.info().affinity != conv.info().affinity
    fill(side)
    assert compactor().context(side).generation == 1
    assert conv.info().generation == 0
    assert conv.attempts() == ()


def test_a_branch_is_compacted_by_itself(conv: clew.Conversation) -> None:
    """Of what it inherited, too; its origin does not change by it."""
    fill(conv)
    branch = conv.branch()
    assert compactor().context(branch).generation == 1
    assert (conv.info().generation, conv.attempts()) == (0, ())
    assert compactor().peek(conv).tokens > Budget(window=12_000).low_tokens
