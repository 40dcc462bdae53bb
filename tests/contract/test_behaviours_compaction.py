"""Compactions without a new conversation: S07 to S12, S24, S27 of docs/behaviours.md."""

from __future__ import annotations

import pytest
from talk import HOLDER, OTHER, begun, compact, context_texts, proposal, talk, texts

import clew
from clew.testing.clock import FakeClock

HOUR = 3_600_000_000


def test_a_commit_is_one_record(conv: clew.Conversation) -> None:
    """S07: no child, no end, no message; committing again gives the same compaction."""
    talk(conv, "a", "b", "c")
    before = conv.info()
    number = conv.open_attempt().number
    first = conv.commit_attempt(number, proposal(2))
    assert conv.commit_attempt(number, proposal(2)) == first
    after = conv.info()
    assert (after.id, after.head, after.message_count) == (before.id, 3, 3)
    assert (after.generation, after.ended, conv.children()) == (1, False, ())
    assert texts(conv) == ["a", "b", "c"]
    assert len(conv.compactions()) == 1


def test_a_deleted_conversation_takes_no_commit(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a", "b")
    number = conv.open_attempt().number
    profile.delete(conv.id)
    with pytest.raises(clew.NotFound):
        conv.commit_attempt(number, proposal(1))


def test_s07_7_a_commit_without_items_is_refused(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    number = conv.open_attempt().number
    empty = clew.Proposal(covers_to=1, body=(), tokens_before=9, tokens_after=1)
    with pytest.raises(clew.InvalidCompaction, match="items"):
        conv.commit_attempt(number, empty)
    assert (conv.attempts()[0].state, conv.compactions(), texts(conv)) == ("open", (), ["a", "b"])


@pytest.mark.parametrize("reason", ["stale", "closed"])
def test_an_end_and_a_compaction_do_not_meet(conv: clew.Conversation, reason: str) -> None:
    """S07: a commit neither looks at an end nor clears one, so it cannot be aborted by it."""
    talk(conv, "a", "b")
    number = conv.open_attempt().number
    conv.end(reason)
    conv.commit_attempt(number, proposal(1))
    assert conv.info().end_reason == reason
    assert context_texts(conv) == ["<1-1>", "b"]


def test_attempts_that_fail_add_nothing(conv: clew.Conversation) -> None:
    """S08: 303 messages are 303 messages after any number of attempts, ended or not."""
    conv.append([clew.user(str(number)) for number in range(303)])
    for kind in range(24):
        number = conv.open_attempt("user").number
        match kind % 3:
            case 0:
                conv.fail_attempt(number, "summary", summary_error="timeout")
            case 1:
                conv.cancel_attempt(number)
            case _:
                with pytest.raises(clew.InvalidCompaction):
                    conv.commit_attempt(number, proposal(304))
        if kind == 12:
            conv.end("closed")
    assert (conv.info().head, conv.info().message_count, conv.info().generation) == (303, 303, 0)
    assert len(conv.context_inputs().messages) == 303
    assert conv.children() == ()


def test_a_handle_from_before_goes_on(profile: clew.Profile) -> None:
    """S10: nobody has to adopt anything; what it saved before it does not save again."""
    conv = profile.create()
    stale = profile.open(conv.id)
    drafts = [message.draft() for message in talk(stale, "a", "b")]
    compact(conv, 2)
    assert stale.append([*drafts, clew.user("c")]).new == 1
    assert context_texts(stale) == context_texts(conv) == ["<1-2>", "c"]


def test_any_number_of_compactions_keeps_one_id(profile: clew.Profile) -> None:
    """S10, S11, S33: there is no chain to walk; each segment's id names the conversation."""
    conv = profile.create()
    for number in range(1, 129):
        talk(conv, f"m{number}")
        attempt = conv.open_attempt().number
        conv.commit_attempt(attempt, proposal(number), segment=("tool", f"segment-{number}"))
    talk(conv, "last")
    for name in (conv.id, "segment-1", "segment-64", "segment-128"):
        assert profile.resolve(name).id == conv.id
    assert context_texts(conv) == ["<1-128>", "last"]
    assert len(conv.aliases()) == 128
    assert len(profile.list().items) == 1


def test_branches_and_delegates_do_not_disturb_a_name(profile: clew.Profile) -> None:
    """S11, S32: what kind a conversation is is a column, not a guess from its data."""
    conv = profile.create()
    talk(conv, "a", "b")
    conv.claim_alias("tool", "foreign-1")
    branch, delegate = conv.branch(), conv.delegate()
    profile.create(meta={"_branched_from": None, "_delegate_from": ["{not-json"]})
    assert profile.resolve("foreign-1").id == conv.id
    assert (branch.info().kind, delegate.info().kind) == ("branch", "delegate")
    assert profile.resolve(conv.id).id == conv.id


@pytest.mark.parametrize(
    "text", ["", "  ", "\0", "\ud800", "'; --", "{}", "[]", "null", "%", "_", "é" * 5000, "🙂"]
)
def test_no_text_breaks_the_resolver(profile: clew.Profile, text: str) -> None:
    profile.create()
    with pytest.raises(clew.NotFound):
        profile.resolve(text)


def test_a_long_line_of_branches_reads_as_one(profile: clew.Profile) -> None:
    """S11: no depth is too deep, and there is no cycle: an origin is older than its branch."""
    line = profile.create()
    talk(line, "0")
    for number in range(1, 129):
        line = line.branch()
        talk(line, str(number))
    assert texts(line) == [str(number) for number in range(129)]
    assert line.info().message_count == 129


def test_a_turn_that_cannot_begin_writes_nothing(profile: clew.Profile) -> None:
    """S12: one transaction opens it: right, messages, turn and first planned call, or none."""
    ended, sealed = profile.create(), profile.create(read_only=True)
    ended.end("closed")
    for conv, error in ((ended, clew.Ended), (sealed, clew.ReadOnly)):
        with pytest.raises(error):
            conv.begin_turn([clew.user("x")], call=clew.CallPlan(model="m"))
        assert (conv.turns(), conv.calls(), conv.info().head) == ((), (), 0)
        assert conv.info().turn is None


def test_a_holder_that_was_replaced_cannot_write(conv: clew.Conversation, clock: FakeClock) -> None:
    """S12: the right is decided inside each write; the error names the fence."""
    old = begun(conv.begin_turn([clew.user("x")], holder=HOLDER))
    with pytest.raises(clew.TurnOpen):
        conv.resume_turn(holder=OTHER)
    clock.advance(HOUR)
    new = conv.resume_turn(holder=OTHER)
    for write in (old.renew, lambda: old.record([clew.assistant("late")]), old.finish):
        with pytest.raises(clew.RightLost) as lost:
            write()
        assert lost.value.fence == old.right.fence < new.right.fence
    new.finish([clew.assistant("done")])
    assert texts(conv) == ["x", "done"]


def test_the_right_ends_with_the_turn(conv: clew.Conversation) -> None:
    """S12: the last step, the end of the turn and the release are one transaction."""
    turn = begun(conv.begin_turn([clew.user("x")], call=clew.CallPlan(model="m"), holder=HOLDER))
    ended = turn.finish(
        [clew.assistant("y")], call=turn.call,
        result=clew.CallResult(usage=clew.Usage(input=3)), state="done",
    )  # fmt: skip
    assert ended.state == "done"
    assert conv.calls()[0].usage.input == 3
    with pytest.raises(clew.RightLost):
        turn.record([clew.assistant("more")])
    begun(conv.begin_turn([clew.user("next")], holder=OTHER)).finish()


def test_a_goal_stays_with_its_conversation(conv: clew.Conversation) -> None:
    """S24: keyed by the conversation, one active at most; a branch has none."""
    goal = conv.set_goal("ship it")
    talk(conv, "a", "b")
    compact(conv, 1)
    assert conv.goal() == goal
    assert conv.set_goal("ship it") == goal
    assert conv.branch().goal() is None
    assert conv.close_goal(done=False)
    assert not conv.close_goal()
    assert conv.goal() is None


@pytest.mark.requires("presence")
def test_presence_stays_with_its_conversation(conv: clew.Conversation) -> None:
    """S27: there is no archived parent to look busy for ever."""
    talk(conv, "a", "b")
    conv.beat("host", "compacting")
    before = conv.info().active_at
    compact(conv, 1)
    assert [(p.owner, p.label) for p in conv.presence()] == [("host", "compacting")]
    conv.beat("host", "idle")
    assert [p.label for p in conv.presence()] == ["idle"]
    conv.leave("host")
    assert conv.presence() == ()
    assert conv.info().active_at == before
