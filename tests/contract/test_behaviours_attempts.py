"""One attempt from its beginning to its end: S05, S06, S14 to S17 of docs/behaviours.md."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from long_talk import BUDGET, compactor, fill, seen, work
from talk import HOLDER, begun, calls, context_texts, result, texts

import clew
from clew.testing.clock import FakeClock
from clew.testing.summarizer import SAYS, Gate, ScriptedSummarizer

STEPS = ("guard", "open", "read", "plan", "ledger", "summary", "check", "commit")
MODES: list[dict[str, Any]] = [{}, {"rotate": lambda info: ("host", f"{info.id}-next")}]
EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=["in-place", "rotating"])


def state(conv: clew.Conversation) -> tuple[Any, ...]:
    """All that an attempt without effect must leave as it was."""
    info = conv.info()
    return (
        info.view, info.generation, info.head, info.message_count, info.ended, texts(conv),
        context_texts(conv), conv.compactions(), conv.aliases(), conv.children(),
    )  # fmt: skip


def at(step: str, do: Callable[[], object]) -> Callable[[str], None]:
    """What a watcher does before one step."""

    def watch(name: str) -> None:
        if name == step:
            do()

    return watch


# ---------------------------------------------------------------------- S05


@pytest.mark.parametrize("wrong", [object(), None, "id"])
def test_s05_2_what_is_no_conversation_is_an_error_and_not_an_old_version(wrong: Any) -> None:
    """S05.1, S05.3, S05.4, T11: nothing is looked up to find out what a store can do."""
    with pytest.raises((AttributeError, TypeError)):
        compactor().compact(wrong)


@pytest.mark.requires("engine")
def test_s05_5_a_store_that_fails_inside_changes_nothing(
    place: Any, conv: clew.Conversation, clock: FakeClock
) -> None:
    """T12, T23, T24, S18.10, S18.11: its own error comes out; there is nothing to be put back."""
    fill(conv)
    before = state(conv)
    for step in STEPS[2:]:
        with clew.open(place, clock=clock) as other:
            engine = compactor(summarizer=ScriptedSummarizer(), watch=at(step, other.close))
            with pytest.raises(clew.StoreClosed):
                engine.compact(other.profile("me").open(conv.id))
        assert state(conv) == before
        clock.advance(600_000_000)
    assert compactor().compact(conv, "soft").state == "committed"


def test_s05_6_a_summariser_may_take_whatever_it_likes(conv: clew.Conversation) -> None:
    """S05.7, S05.8, S05.9: it is called with one value, and not looked at before."""

    class Loose:
        model = "loose"

        def __call__(self, *args: Any, **kwargs: Any) -> str:
            assert (len(args), kwargs) == (1, {})
            return SAYS

    fill(conv)
    done = compactor(summarizer=Loose()).compact(conv)
    assert done.receipt is not None
    assert done.receipt.summary is not None
    assert done.receipt.summary.state == "used"


# ---------------------------------------------------------------------- S06, S13


@EVERY_MODE
def test_s06_2_compacting_what_was_just_compacted_changes_nothing(
    conv: clew.Conversation, mode: dict[str, Any]
) -> None:
    """S06.6, S06.8, S06.13: whatever object says the same again."""
    fill(conv)
    engine = compactor(**mode)
    assert engine.compact(conv).state == "committed"
    before = state(conv)
    for _ in range(3):
        again = engine.compact(conv, "soft")
        assert again.state in ("refused", "failed")
        assert (again.compaction, again.receipt) == (None, None)
        assert state(conv) == before


@EVERY_MODE
@pytest.mark.parametrize("step", STEPS)
def test_s06_3_an_error_anywhere_leaves_everything_as_it_was(
    conv: clew.Conversation, step: str, mode: dict[str, Any]
) -> None:
    """S06.4, S06.11, S13.6, S14.7: and comes out as what it is; the next append works."""
    fill(conv)
    before = state(conv)

    def boom() -> None:
        raise InterruptedError(f"signal in {step}")

    engine = compactor(summarizer=ScriptedSummarizer(), watch=at(step, boom), **mode)
    with pytest.raises(InterruptedError, match=step):
        engine.compact(conv)
    assert state(conv) == before
    conv.append([clew.user("goes on")])


def test_s06_9_nothing_rotates_unless_it_was_asked_for(conv: clew.Conversation) -> None:
    """S06.10, S14.1: the id is the same in both modes; a rotation is seen by its alias."""
    fill(conv)
    name = conv.info().id
    assert compactor().compact(conv).state == "committed"
    assert (conv.info().id, conv.aliases()) == (name, ())
    fill(conv, 0.5)
    assert compactor(rotate=lambda _: ("host", "next")).compact(conv).state == "committed"
    assert (conv.info().id, [alias.foreign_id for alias in conv.aliases()]) == (name, ["next"])


def test_s06_11_a_rotation_that_cannot_be_named_is_none(conv: clew.Conversation) -> None:
    """S14.7: an error while the new name is made changes nothing."""
    fill(conv)
    before = state(conv)

    def nameless(_: object) -> tuple[str, str]:
        raise LookupError("no more ids")

    with pytest.raises(LookupError):
        compactor(rotate=nameless).compact(conv)
    assert state(conv) == before
    assert conv.attempts()[-1].state == "failed"
    assert compactor().compact(conv).state == "committed"


class _Late(Gate):
    """A gate that tells when it has answered."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.answered = threading.Event()

    def __call__(self, request: Any) -> str:
        text = super().__call__(request)
        self.answered.set()
        return text


def test_s06_12_a_late_answer_neither_commits_nor_disturbs_the_newer_attempt(
    conv: clew.Conversation,
) -> None:
    """The stalled route answers after the fallback's commit; the end is said once."""
    fill(conv)
    slow = _Late('{"narrative": "the late words"}')
    steps: list[str] = []
    engine = compactor(
        summarizer=ScriptedSummarizer(slow), fallback=ScriptedSummarizer(model="other"),
        patience=0.2, watch=steps.append,
    )  # fmt: skip
    assert engine.compact(conv).state == "committed"
    before = state(conv)
    slow.open.set()
    assert slow.answered.wait(10)
    assert state(conv) == before
    assert "the late words" not in "\n".join(seen(engine.peek(conv)))
    assert steps.count("committed") == 1


def test_s06_7_what_was_written_is_the_first_thing_of_the_new_context(
    conv: clew.Conversation,
) -> None:
    """Behind the system prompt and the protected head."""
    fill(conv)
    before = seen(compactor().peek(conv))
    context = compactor().context(conv)
    sections = [item.section for item in context.items]
    assert sections == sorted(sections, key=["head", "ledger", "kept", "tail"].index)
    assert "ledger" in sections
    assert seen(context) != before


# ---------------------------------------------------------------------- S14, S15


@pytest.mark.parametrize("step", STEPS)
def test_s14_4_what_is_appended_at_any_step_is_in_the_next_context(
    conv: clew.Conversation, step: str
) -> None:
    """In its order, behind all that the compaction wrote, and never covered twice."""
    fill(conv)
    late = [f"{step} {n}" for n in range(3)]

    def append() -> None:
        conv.append([clew.user(text) for text in late])

    engine = compactor(summarizer=ScriptedSummarizer(), watch=at(step, append))
    assert engine.compact(conv).state == "committed"
    shown = seen(engine.peek(conv))
    assert shown[-3:] == late
    assert [text for text in shown if text in late] == late


def test_s14_4_a_turn_that_begins_and_ends_meanwhile_is_whole(conv: clew.Conversation) -> None:
    """Its calls stand with their results."""
    fill(conv)

    def meanwhile(_: object) -> str:
        turn = begun(conv.begin_turn([clew.user("quick one", key="q")], holder=HOLDER))
        turn.record([calls("late")])
        turn.record([result("late", "its output")])
        turn.finish([clew.assistant("quick answer")])
        return SAYS

    engine = compactor(summarizer=ScriptedSummarizer(meanwhile))
    assert engine.compact(conv).state == "committed"
    roles = [message["role"] for message in engine.peek(conv).chat(conv.blob)]
    assert roles[-4:] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.requires("search")
def test_s14_2_what_was_compacted_is_read_and_found_as_before(
    profile: clew.Profile, conv: clew.Conversation
) -> None:
    conv.append([clew.user("the password hint is marmalade"), clew.assistant("noted")])
    fill(conv)
    before = [message.to_dict() for message in conv.messages()]
    assert compactor().compact(conv).state == "committed"
    assert [message.to_dict() for message in conv.messages()] == before
    assert [hit.seq for hit in profile.search("marmalade").hits] == [1]


def test_s14_5_of_two_that_commit_the_second_writes_nothing(conv: clew.Conversation) -> None:
    """S15.3: the second is overtaken inside its own commit, wherever it comes from."""
    fill(conv)

    def other() -> None:
        assert compactor().compact(conv).state == "committed"

    done = compactor(watch=at("commit", other)).compact(conv)
    assert done.state == "overtaken"
    assert [row.state for row in conv.attempts()] == ["overtaken", "committed"]
    assert len(conv.compactions()) == 1


def test_s15_1_no_commit_makes_a_context_larger(conv: clew.Conversation) -> None:
    """S15.4, S15.5: refused at the door, whoever made the proposal; so is one of equal size."""
    conv.append([clew.user(str(n)) for n in range(426)])
    body = (clew.Inline(clew.Role.USER, (clew.Text("a long summary"),)),)
    for after in (688_000, 379_000):
        number = conv.open_attempt("hard").number
        proposal = clew.Proposal(
            covers_to=400, body=body, tokens_before=379_000, tokens_after=after
        )
        with pytest.raises(clew.InvalidCompaction):
            conv.commit_attempt(number, proposal)
        conv.cancel_attempt(number)
    assert (conv.info().message_count, conv.info().view, conv.compactions()) == (426, 0, ())


def test_s15_2_both_sides_are_measured_alike(conv: clew.Conversation) -> None:
    """And as the context itself is, before and after."""
    fill(conv)
    engine = compactor()
    before = engine.peek(conv).tokens
    done = engine.compact(conv)
    assert done.receipt is not None
    assert done.compaction is not None
    after = engine.peek(conv).tokens
    assert (done.receipt.tokens["before"], done.receipt.tokens["after"]) == (before, after)
    assert (done.compaction.tokens_before, done.compaction.tokens_after) == (before, after)


def test_s15_6_what_frees_too_little_is_a_strike_and_said(conv: clew.Conversation) -> None:
    """A person is told in a sentence that nothing was dropped; nothing was."""
    fill(conv, 0.45)
    before = state(conv)
    done = compactor().compact(conv, "soft")
    assert (done.state, conv.attempts()[-1].verdict) == ("failed", "ineffective")
    assert "too little" in done.reason
    assert state(conv) == before


# ---------------------------------------------------------------------- S16, S17


@pytest.mark.parametrize("model", [False, True], ids=["ledger", "summary"])
@pytest.mark.parametrize("step", STEPS[:-1])
def test_s17_7_a_stop_at_any_step_before_the_commit_has_no_effect(
    conv: clew.Conversation, step: str, model: bool
) -> None:
    """S16.3, S16.6, S17.1, S17.2: and the next attempt works."""
    fill(conv)
    before = state(conv)
    stop = threading.Event()
    summarizer = ScriptedSummarizer() if model else None
    engine = compactor(summarizer=summarizer, watch=at(step, stop.set))
    done = engine.compact(conv, stop=stop)
    assert done.state == ("committed" if step == "summary" and not model else "cancelled")
    if done.state == "cancelled":
        assert state(conv) == before
        opened = [] if step == "guard" else ["cancelled"]
        assert [row.state for row in conv.attempts()] == opened
        assert compactor().compact(conv).state == "committed"


def test_s16_6_a_stop_from_before_holds_nothing_up(conv: clew.Conversation) -> None:
    """A model that never answers is not waited for; the context is given without it."""
    fill(conv)
    stop, gate = threading.Event(), Gate()
    stop.set()
    engine = compactor(summarizer=ScriptedSummarizer(gate))
    assert engine.compact(conv, stop=stop).state == "cancelled"
    assert engine.context(conv, stop=stop).generation == 0
    gate.open.set()


@pytest.mark.parametrize("step", STEPS[2:])
def test_s16_5_another_host_cancels_at_any_step(
    profile: clew.Profile, conv: clew.Conversation, step: str
) -> None:
    """S16.2, T03: by the store alone; and whoever it was takes its place at once."""
    fill(conv)
    before = state(conv)
    other = profile.open(conv.id)

    def cancel() -> None:
        assert compactor().cancel(other) == [1]

    done = compactor(summarizer=ScriptedSummarizer(), watch=at(step, cancel)).compact(conv)
    assert (done.state, state(conv)) == ("cancelled", before)
    assert compactor().compact(other, "soft").state == "committed"


@pytest.mark.requires("engine")
@pytest.mark.parametrize("how", ["cancel", "cut", "undo"])
def test_s16_5_who_waits_for_a_model_is_told_within_seconds(
    profile: clew.Profile, conv: clew.Conversation, how: str
) -> None:
    """S17.1: of what another process did; the model is not waited for, nor what it says used."""
    fill(conv, 0.5)
    compactor().compact(conv)
    fill(conv, 0.3)
    gate = Gate()
    engine = compactor(summarizer=ScriptedSummarizer(gate), patience=60.0)
    outcomes: list[clew.Outcome] = []
    waiting = threading.Thread(target=lambda: outcomes.append(engine.compact(conv)))
    waiting.start()
    try:
        assert gate.asked.wait(30)
        other = profile.open(conv.id)
        match how:
            case "cancel":
                compactor().cancel(other)
            case "cut":
                other.cut(other.message(other.info().head).uid)
            case _:
                compactor().undo(other)
        waiting.join(30)
        assert [done.state for done in outcomes] == ["cancelled"]
    finally:
        gate.open.set()
    assert len(conv.compactions()) == 1


@pytest.mark.requires("engine")
def test_s16_7_commit_and_cancel_at_the_same_moment_have_one_winner(
    profile: clew.Profile,
) -> None:
    """S17.7, S17.8: again and again, both in a hurry; who lost is told, nothing is half done."""
    for _ in range(12):
        conv = profile.create()
        fill(conv, 0.6)
        done, cancelled = _raced(conv, profile.open(conv.id))
        assert (done.state, cancelled) in (("committed", []), ("cancelled", [1]))
        assert len(conv.compactions()) == (done.state == "committed")
        assert conv.attempts()[0].state == done.state


def _raced(mine: clew.Conversation, theirs: clew.Conversation) -> tuple[clew.Outcome, list[int]]:
    """Commit through one handle while the other cancels; gives what each of them was told."""
    ready = threading.Barrier(2)
    cancelled: list[int] = []

    def cancel() -> None:
        ready.wait(30)
        cancelled.extend(compactor().cancel(theirs))

    rival = threading.Thread(target=cancel)
    rival.start()
    done = compactor(watch=at("commit", lambda: ready.wait(30))).compact(mine)
    rival.join(30)
    return done, cancelled


def test_s17_10_a_stop_is_an_outcome_and_no_exception(conv: clew.Conversation) -> None:
    """S17.4, S17.5: there is no state of an engine to be put back, so no object to be kept."""
    fill(conv)
    stop = threading.Event()

    def stopped(request: Any) -> str:
        assert not request.cancelled()
        stop.set()
        assert request.cancelled()
        raise RuntimeError("the provider's client was closed")

    engine = compactor(summarizer=ScriptedSummarizer(stopped, SAYS))
    first = engine.compact(conv, stop=stop)
    assert (first.state, first.compaction) == ("cancelled", None)
    stop.clear()
    second = engine.compact(conv, stop=stop)
    assert second.receipt is not None
    assert second.receipt.summary is not None
    assert second.receipt.summary.state == "used"


def test_s17_6_only_the_event_stops_a_compaction(conv: clew.Conversation) -> None:
    """Interrupting the turn that is at work is no stop of it."""
    fill(conv)
    turn = begun(conv.begin_turn([clew.user("the live one", key="u")], holder=HOLDER))

    def meanwhile(request: Any) -> str:
        conv.interrupt_turn("never mind")
        assert not request.cancelled()
        return SAYS

    done = compactor(summarizer=ScriptedSummarizer(meanwhile)).compact(conv)
    assert done.state == "committed"
    assert done.compaction is not None
    assert done.compaction.covers_to < turn.turn.first_seq
    work(conv, 1)
    assert BUDGET.room > compactor().peek(conv).tokens
