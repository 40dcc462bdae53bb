"""Any Unicode in, the same out: lone surrogates, NUL, line separators; a case per TEXT column.

What a person reads (titles, names, reasons) is cleaned, since no engine's TEXT holds NUL or lone
surrogates; what is compared (keys, ids) is refused when it holds them; content comes back as it
was. No TEXT column ever holds either.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw import Raw, Run
from talk import HOLDER, begun, calls, compact, proposal, talk, texts

import clew
from clew import CallPlan, CallResult, Draft, Role, Text, ToolCall, ToolResult
from clew.domain.turns import Spent, Usage
from clew.store.landing import Landing, Spend
from clew.testing.reference import ReferenceStore

PAIR = "a\ud83d\ude00b\U0001f600"
"""A high and a low surrogate, two code points: not the character that they would encode."""

NASTY = "a\0b\ud800c\u2028\u2029\u0085é中🎉"
CLEAN = "a\ufffdb\ufffdc\u2028\u2029\u0085é中🎉"


@pytest.mark.parametrize(
    "text", [NASTY, PAIR, "ok \ud800 end", "a\x00b", "\udfff", "e\u0301", "\ufeff"]
)
def test_b83_b85_b86_content_comes_back_unchanged(conv: clew.Conversation, text: str) -> None:
    """In every kind of part, also beside others, and five turns later."""
    parts = (Text(text), ToolCall(text, text, text), clew.Unknown({text: [text]}))
    answer = ToolResult(text, (Text(text),), text)
    conv.append([clew.user("before"), Draft(role=Role.ASSISTANT, parts=parts)])
    conv.append([Draft(role=Role.TOOL, parts=(answer,)), clew.user("after")])
    for n in range(5):
        begun(conv.begin_turn([clew.user(str(n))], holder=HOLDER)).finish([clew.assistant(text)])
    assert conv.message(2).parts == parts
    assert conv.message(3).parts == (answer,)
    assert texts(conv)[-1] == text
    assert conv.info().message_count == 14


@given(st.text(st.characters(codec=None) | st.sampled_from("\ud83d\ude00"), max_size=400))
def test_any_text_comes_back_unchanged(text: str) -> None:
    """Long ones too, which are compressed; with a cut, an edit and a branch on the way."""
    conv = ReferenceStore().profile("me").create()
    conv.append([clew.user(text)])
    assert conv.message(1).text == text
    conv.append([clew.user("x", meta={"k": [text]})])
    assert conv.message(2).meta == {"k": [text]}
    packed = KIT_CODEC.pack((Text(text), Text(text * 3)))
    assert KIT_CODEC.parts(packed) == (Text(text), Text(text * 3))


KIT_CODEC = clew.store.codec.Codec()  # pyright: ignore


def _turn(conv: clew.Conversation) -> clew.TurnHandle:
    return begun(conv.begin_turn([clew.user("x")], holder=HOLDER, call=CallPlan(model="m")))


def _waiting(conv: clew.Conversation, **fields: Any) -> clew.Appended:
    _turn(conv)
    return conv.append([clew.user("w", **fields)])


def _unsent(profile: clew.Profile, conv: clew.Conversation, error: str) -> None:
    """A delivery that failed for this reason."""
    _turn(conv).finish(deliveries=[clew.Delivery("r", 1)])
    taken = profile.take_delivery()
    assert taken is not None
    profile.settle_delivery(taken, error)


def _asked(conv: clew.Conversation, call_id: str, name: str = "run") -> clew.Conversation:
    """A call that waits for a person."""
    _turn(conv).record([calls(call_id)], asks=[clew.Ask(call_id, name)])
    return conv


def _untold(profile: clew.Profile, conv: clew.Conversation, error: str) -> None:
    """A boundary whose subscriber fails with this text."""
    profile.subscribe("s")
    talk(conv, "a")
    compact(conv, 1)

    def fail(_: clew.Boundary) -> None:
        raise ValueError(error)

    profile.deliver("s", fail)


Write = Callable[[clew.Profile, clew.Conversation], Any]

Read = Callable[[clew.Profile, clew.Conversation], Any]

CLEANED: dict[str, tuple[Write, Read | None]] = {
    "conversation.title_user": (lambda p, c: c.set_title(NASTY), lambda p, c: c.info().title),
    "conversation.title_llm": (
        lambda p, c: c.set_title(NASTY, "llm"), lambda p, c: c.info().title),
    "conversation.title_derived": (
        lambda p, c: c.append([clew.user(NASTY)]), lambda p, c: c.info().title),
    "conversation.preview": (
        lambda p, c: c.append([clew.assistant(NASTY)]), lambda p, c: c.info().preview),
    "conversation.cwd": (
        lambda p, c: c.set_workspace(clew.Workspace(cwd=NASTY)), lambda p, c: c.info().cwd),
    "conversation.git_root": (
        lambda p, c: c.set_workspace(clew.Workspace(git_root=NASTY)),
        lambda p, c: c.info().git_root),
    "conversation.git_branch": (
        lambda p, c: c.set_workspace(clew.Workspace(git_branch=NASTY)),
        lambda p, c: c.info().git_branch),
    "conversation.model": (
        lambda p, c: c.set_workspace(model=NASTY), lambda p, c: c.info().model),
    "message.author": (
        lambda p, c: c.append([clew.user("x", author=NASTY)]), lambda p, c: c.message(1).author),
    "message.api_group": (
        lambda p, c: c.append([clew.user("x", api_group=NASTY)]),
        lambda p, c: c.message(1).api_group),
    "inbox.author": (
        lambda p, c: _waiting(c, author=NASTY), lambda p, c: c.inbox()[0].author),
    "cut.by": (
        lambda p, c: c.cut(talk(c, "x")[0].uid, by=NASTY), lambda p, c: c.cuts()[0].by),
    "attempt.model": (
        lambda p, c: c.open_attempt(model=NASTY), lambda p, c: c.attempts()[0].model),
    "attempt.verdict": (
        lambda p, c: c.fail_attempt(c.open_attempt().number, NASTY),
        lambda p, c: c.attempts()[0].verdict),
    "attempt.summary_error": (
        lambda p, c: c.fail_attempt(c.open_attempt().number, "x", summary_error=NASTY),
        lambda p, c: c.attempts()[0].summary_error),
    "boundary.error": (
        lambda p, c: _untold(p, c, NASTY),
        lambda p, c: (p.pending("s")[0].error or "").removeprefix("ValueError: ")),
    "turn.error": (
        lambda p, c: _turn(c).finish(state="failed", error=NASTY),
        lambda p, c: c.turns()[0].error),
    "outbox.error": (
        lambda p, c: _unsent(p, c, NASTY), lambda p, c: p.deliveries()[0].error),
    "model_call.error": (
        lambda p, c: _turn(c).record(call=1, result=CallResult(state="failed", error=NASTY)),
        lambda p, c: c.calls()[0].error),
    "model_call.prefix_hash": (
        lambda p, c: _turn(c).record(call=1, result=CallResult(prefix_hash=NASTY)),
        lambda p, c: c.calls()[0].prefix_hash),
    "approval.by": (
        lambda p, c: _asked(c, "c1").answer_call("c1", True, by=NASTY),
        lambda p, c: c.approvals()[0].by),
    "todo.text": (
        lambda p, c: c.set_todos([clew.Todo(NASTY)]), lambda p, c: c.todos()[0].text),
    "goal.text": (lambda p, c: c.set_goal(NASTY), lambda p, c: c.goal().text),  # pyright: ignore
    "presence.label": (
        lambda p, c: c.beat("o", NASTY), lambda p, c: c.presence()[0].label),
}  # fmt: skip
"""Texts for people: written, and read back clean."""

KEPT: dict[str, tuple[Write, Read | None]] = {
    "conversation.meta": (
        lambda p, c: p.create(id="m", meta={NASTY: NASTY}),
        lambda p, c: (p.open("m").info().meta or {}).get(NASTY)),
    "message.meta": (
        lambda p, c: c.append([clew.user("x", meta={"k": NASTY})]),
        lambda p, c: (c.message(1).meta or {})["k"]),
    "inbox.meta": (
        lambda p, c: _waiting(c, meta={"k": NASTY}), lambda p, c: (c.inbox()[0].meta or {})["k"]),
    "compaction.receipt": (
        lambda p, c: c.record_foreign_compaction(clew.Proposal(
            covers_to=len(talk(c, "a")), body=(), tokens_before=1, tokens_after=1,
            receipt={"k": NASTY})),
        lambda p, c: (c.compactions()[0].receipt or {})["k"]),
    "model_call.settings": (
        lambda p, c: c.plan_call(CallPlan(model="m", settings={"k": NASTY})), None),
    "model_call.partial": (
        lambda p, c: _turn(c).save_partial(1, NASTY), lambda p, c: c.calls()[0].partial),
    "outbox.payload": (
        lambda p, c: _turn(c).finish(deliveries=[clew.Delivery("r", {"k": NASTY})]),
        lambda p, c: c.deliveries(1)[0].payload["k"]),
    "inbound.result": (
        lambda p, c: p.receive("r", [], source="s", account="a", key="k", result=NASTY),
        lambda p, c: p.receive("r", [], source="s", account="a", key="k").result),
    "toolset.names": (
        lambda p, c: c.set_prompt(NASTY, ({"name": NASTY},)),
        lambda p, c: (c.context_inputs().toolset or ())[0]["name"]),
}  # fmt: skip
"""JSON in a TEXT column: escaped there, read back as it was."""

REFUSED: dict[str, Callable[[clew.Profile, clew.Conversation, str], Any]] = {
    "conversation.id": lambda p, c, bad: p.create(id=bad),
    "conversation.source": lambda p, c, bad: p.create(source=bad),
    "conversation.end_reason": lambda p, c, bad: c.end(bad),
    "conversation.holder": lambda p, c, bad: c.begin_turn([clew.user("x")], holder=bad),
    "message.key": lambda p, c, bad: c.append([clew.user("x", key=bad)]),
    "inbox.key": lambda p, c, bad: _waiting(c, key=bad),
    "turn.key": lambda p, c, bad: c.begin_turn([clew.user("x")], key=bad),
    "model_call.model": lambda p, c, bad: c.plan_call(CallPlan(model=bad)),
    "model_call.api_group": lambda p, c, bad: p.importing().land([_spending(c.id, bad)]),
    "inbound.account": lambda p, c, bad: p.receive("r", [], source="s", account=bad, key="k"),
    "inbound.key": lambda p, c, bad: p.receive("r", [], source="s", account="a", key=bad),
    "inbound.source": lambda p, c, bad: p.receive("r", [], source=bad, account="a", key="k"),
    "binding.key": lambda p, c, bad: p.conversation(bad),
    "binding.source": lambda p, c, bad: p.conversation("k", source=bad),
    "alias.source": lambda p, c, bad: c.claim_alias(bad, "f"),
    "alias.foreign_id": lambda p, c, bad: c.claim_alias("s", bad),
    "presence.owner": lambda p, c, bad: c.beat(bad),
    "outbox.route": lambda p, c, bad: _turn(c).finish(deliveries=[clew.Delivery(bad, 1)]),
    "approval.call_id": lambda p, c, bad: _asked(c, bad),
    "approval.name": lambda p, c, bad: _asked(c, "c1", bad),
    "boundary.to_id": lambda p, c, bad: c.commit_attempt(
        c.open_attempt().number, proposal(len(talk(c, "a"))), segment=("s", bad)
    ),
    "subscriber.name": lambda p, c, bad: p.subscribe(bad),
    "todo.state": lambda p, c, bad: c.set_todos([clew.Todo("t", bad)]),  # pyright: ignore
}
"""Names: what is compared has to be stored exactly, so it is refused."""


def _spending(id: str, group: str) -> Landing:
    spend = Spend(group, Spent(model="m", usage=Usage()), 0, 0)
    return Landing(id, "s", (spend,), None, 0, None, None)


OURS = {
    "meta.name", "meta.value", "end_reason.reason", "conversation.profile", "conversation.kind",
    "conversation.affinity", "conversation.attribution", "attempt.state", "attempt.trigger",
    "compaction.cuts", "compaction.kind", "turn.state", "model_call.purpose", "model_call.state",
    "inbox.state", "inbound.profile", "inbound.conversation", "binding.profile",
    "binding.conversation", "alias.profile", "alias.conversation", "alias.kind", "alias.state",
    "goal.state", "outbox.state", "approval.state", "job.name", "job.holder", "change.conversation",
    "change.profile", "change.kind", "change.detail", "subscriber.profile", "boundary.profile",
    "boundary.subscriber", "boundary.kind", "boundary.reason", "boundary.source",
    "boundary.from_id",
}  # fmt: skip
"""Made by clew, or a name that another column above has refused already."""


@pytest.mark.requires("engine", "presence")
@pytest.mark.parametrize("column", CLEANED)
def test_a_text_for_people_is_cleaned(
    raw: Raw, place, profile: clew.Profile, conv: clew.Conversation, column: str
) -> None:
    write, read = CLEANED[column]
    write(profile, conv)
    if read is not None:
        assert read(profile, conv).split() == CLEAN.split()
    assert _held(raw, place) == []


@pytest.mark.requires("engine")
@pytest.mark.parametrize("column", KEPT)
def test_json_in_a_text_column_comes_back(
    raw: Raw, place, profile: clew.Profile, conv: clew.Conversation, column: str
) -> None:
    write, read = KEPT[column]
    write(profile, conv)
    if read is not None:
        assert read(profile, conv) == NASTY
    assert _held(raw, place) == []


@pytest.mark.requires("engine", "presence")
@pytest.mark.parametrize("bad", ["a\0b", "a\ud800b"], ids=["nul", "surrogate"])
@pytest.mark.parametrize("column", REFUSED)
def test_a_name_that_cannot_be_stored_exactly_is_refused(
    raw: Raw, place, profile: clew.Profile, conv: clew.Conversation, column: str, bad: str
) -> None:
    """By clew, before any engine is asked: all would say it in another way, or not at all."""
    with pytest.raises(clew.InputError) as refused:
        REFUSED[column](profile, conv, bad)
    assert "PostgreSQL" not in str(refused.value)
    assert not isinstance(refused.value.__cause__, psycopg.Error)
    assert _held(raw, place) == []


@pytest.mark.requires("jobs")
def test_job_names_and_profiles_are_names(store: clew.Store) -> None:
    for use in (lambda: store.claim_job(NASTY), lambda: store.profile(NASTY)):
        with pytest.raises(clew.InputError):
            use()


@pytest.mark.requires("engine")
def test_every_text_column_has_a_case(store: clew.Store, raw: Raw, place) -> None:
    with raw.connect(place) as run:
        columns = {f"{table}.{column}" for table, column in _text_columns(run, raw)}
    assert columns == CLEANED.keys() | KEPT.keys() | REFUSED.keys() | OURS | raw.own_texts


def test_looking_for_a_nasty_name_finds_nothing(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a", "b")
    compact(conv, 2)
    for look in (
        lambda: profile.open(NASTY),
        lambda: profile.resolve(NASTY),
        lambda: conv.message(NASTY),
        lambda: profile.pending(NASTY),
    ):
        with pytest.raises((clew.NotFound, clew.InputError)):
            look()
    for name in ("title", "source", "model", "project", "git_branch"):
        with pytest.raises(clew.InputError):
            profile.list(clew.ListFilter(**{name: "x\0"}))


def _text_columns(run: Run, raw: Raw) -> list[tuple[str, str]]:
    return [(table, column) for table, column, kind in run(raw.columns) if kind == "TEXT"]


def _held(raw: Raw, place: Any) -> list[tuple[str, str, str]]:
    """Texts in any TEXT column with NUL or a lone surrogate in them."""
    bad: list[tuple[str, str, str]] = []
    with raw.connect(place) as run:
        for table, column in _text_columns(run, raw):
            as_bytes = raw.words["as_bytes"].format(column=f'"{column}"')
            for (value,) in run(f"SELECT {as_bytes} FROM {table}"):
                if value is not None and re.search(rb"\x00|\xed[\xa0-\xbf]", value):
                    bad.append((table, column, repr(value)))
    return bad


def test_surrogates_stay_apart_in_meta(
    store: clew.Store, profile: clew.Profile, conv: clew.Conversation
) -> None:
    conv.append([clew.user("x", meta={PAIR: PAIR})])
    assert conv.message(1).meta == {PAIR: PAIR}
    assert profile.create(meta={"k": PAIR}).info().meta == {"k": PAIR}
