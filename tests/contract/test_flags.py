"""Pinned, archived, marked; ended and opened again."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, compact, talk, texts

import clew


def test_flags_are_set_and_taken_away(conv: clew.Conversation) -> None:
    conv.pin()
    conv.archive()
    conv.mark(automation=True)
    info = conv.info()
    assert (info.pinned, info.archived, info.automation, info.read_only) == (
        True, True, True, False,
    )  # fmt: skip
    conv.pin(False)
    conv.mark(read_only=True)
    info = conv.info()
    assert (info.pinned, info.archived, info.automation, info.read_only) == (
        False, True, True, True,
    )  # fmt: skip


def test_b52_an_archived_conversation_leaves_the_list_alone(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a", "b")
    compact(conv, 2)
    branch = conv.branch()
    conv.archive()
    assert [row.id for row in profile.list().items] == [branch.id]
    assert [row.id for row in profile.list(clew.ListFilter(archived=True)).items] == [conv.id]
    talk(conv, "c")
    assert texts(profile.open(conv.id)) == ["a", "b", "c"]


def test_a_read_only_conversation_takes_no_messages(conv: clew.Conversation) -> None:
    conv.append([clew.user("a", key="k")])
    conv.mark(read_only=True)
    for write in (
        lambda: conv.append([clew.user("b")]),
        lambda: conv.begin_turn([clew.user("b")]),
        lambda: conv.pop(),
        lambda: conv.replace([]),
    ):
        with pytest.raises(clew.ReadOnly) as refused:
            write()
        assert refused.value.conversation == conv.id
    assert conv.append([clew.user("a", key="k")]).new == 0
    branch = conv.branch()
    talk(branch, "b")
    assert (texts(conv), texts(branch)) == (["a"], ["a", "b"])


@pytest.mark.parametrize("reason", ["closed", "idle", "daily", "finished"])
def test_s01_5_an_append_to_an_ended_conversation_is_refused(
    conv: clew.Conversation, reason: str
) -> None:
    """S02.3."""
    talk(conv, "a")
    before = conv.info().message_count
    assert conv.end(reason)
    for write in (
        lambda: conv.append([clew.user("b")]),
        lambda: conv.begin_turn([clew.user("b")]),
    ):
        with pytest.raises(clew.Ended) as refused:
            write()
        assert (refused.value.conversation, refused.value.reason) == (conv.id, reason)
    assert (texts(conv), conv.info().message_count) == (["a"], before)


def test_s01_11_the_first_end_stays(conv: clew.Conversation) -> None:
    assert conv.end("idle")
    first = conv.info()
    assert not conv.end("closed")
    assert (conv.info().ended_at, conv.info().end_reason) == (first.ended_at, "idle")


def test_s02_4_an_unknown_reason_is_not_written(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    for reason in ("", "tui_shutdown", "\ud800"):
        with pytest.raises(clew.InputError):
            conv.end(reason)
    assert not conv.info().ended
    turn.finish()


def test_an_end_interrupts_the_open_turn(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    conv.end()
    with pytest.raises(clew.RightLost):
        turn.finish([clew.assistant("late")])
    assert [t.state for t in conv.turns()] == ["interrupted"]


@pytest.mark.parametrize("reason", ["stale", "imported"])
def test_s02_5_what_a_sweeper_ended_the_next_message_opens(
    conv: clew.Conversation, reason: str
) -> None:
    conv.end(reason)
    talk(conv, "a")
    info = conv.info()
    assert (info.ended, info.end_reason, info.reopened_at is not None) == (False, None, True)


def test_a_person_opens_any_end_again(profile: clew.Profile) -> None:
    conv = profile.conversation("chat")
    conv.end()
    new = profile.conversation("chat")
    assert conv.reopen()
    assert not conv.reopen()
    talk(conv, "a")
    assert profile.conversation("chat").id == new.id  # it restores no binding


def test_a_deleted_conversation_is_gone_for_its_handles(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a")
    profile.delete(conv.id)
    for use in (
        lambda: conv.info(),
        lambda: conv.append([clew.user("b")]),
        lambda: list(conv.messages()),
        lambda: conv.end(),
        lambda: conv.branch(),
        lambda: profile.open(conv.id),
        lambda: profile.delete(conv.id),
    ):
        with pytest.raises(clew.NotFound):
            use()
