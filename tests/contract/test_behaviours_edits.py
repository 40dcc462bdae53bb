"""Inheritance, rewinding and opening: S25, S29, S32, S33 of docs/behaviours.md."""

from __future__ import annotations

import pytest
from talk import compact, talk

import clew


def test_a_compaction_moves_no_routing(profile: clew.Profile) -> None:
    """S25: the key still finds the conversation; branches and delegates never take it."""
    conv = profile.conversation("chat-1", source="tg")
    talk(conv, "a", "b")
    compact(conv, 1)
    conv.branch()
    conv.delegate()
    bound = profile.bound("chat-1", source="tg")
    assert bound is not None
    assert bound.id == conv.id


def test_every_read_gives_the_same_uids(profile: clew.Profile) -> None:
    """S29: after a restart, in pages, in a branch, in the context."""
    conv = profile.create()
    wanted = [message.uid for message in talk(conv, "a", "b", "c")]
    assert [m.uid for m in conv.log(order="newest").items] == wanted[::-1]
    assert [m.uid for m in conv.context_inputs().messages] == wanted
    assert [m.uid for m in conv.branch().messages()] == wanted
    assert [m.uid for m in profile.open(conv.id).messages()] == wanted


def test_a_name_opens_the_conversation_it_was_given_to(profile: clew.Profile) -> None:
    """S32, S33: id, old ids and a beginning of either open one row; titles are labels."""
    conv, other = profile.create(title="Plans"), profile.create(title="Plans")
    talk(conv, "a", "b")
    attempt = conv.open_attempt().number
    conv.commit_attempt(
        attempt,
        clew.Proposal(covers_to=1, body=(clew.Ref(1, 1),), tokens_before=9, tokens_after=1),
        segment=("tool", "old-2"),
    )  # fmt: skip
    conv.claim_alias("tool", "old-1")
    side = conv.branch()
    found = {profile.resolve(name).id for name in (conv.id, conv.id[:14], "old-1", "old-2")}
    assert found == {conv.id}
    assert side.id != conv.id != other.id
    assert profile.resolve("old-1").info().title == "Plans"
    assert {alias.foreign_id for alias in conv.aliases()} == {"old-1", "old-2"}
    with pytest.raises(clew.NotFound):
        profile.resolve("Plans")
