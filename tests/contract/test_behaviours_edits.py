"""Inheritance, rewinding, opening and titles: S25, S29, S32 to S34 of docs/behaviours.md."""

from __future__ import annotations

import pytest
from talk import compact, talk, texts

import clew


def test_a_branch_inherits_its_workspace(profile: clew.Profile) -> None:
    """S25: where it names none of its own; it stays in its origin's profile."""
    place = clew.Workspace("/p/sub", "/p", "main")
    conv = profile.create(source="cli", workspace=place, model="m")
    talk(conv, "a")
    info = conv.branch().info()
    assert (info.cwd, info.git_root, info.git_branch, info.model) == ("/p/sub", "/p", "main", "m")
    assert (info.source, info.profile) == ("cli", "me")
    other = clew.NewConversation(source="cli", workspace=clew.Workspace(git_branch="fix"))
    assert conv.branch(new=other).info().git_branch == "fix"


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


def test_a_rewind_names_a_message_and_what_was_seen(conv: clew.Conversation) -> None:
    """S29: unknown, hidden or malformed targets, and old pictures, cut nothing."""
    messages = talk(conv, "a", "b", "c", "d")
    seen = conv.info()
    with pytest.raises(clew.NotFound):
        conv.cut("00" * 16)
    with pytest.raises(clew.InputError):
        conv.cut("3")
    talk(conv, "e")
    with pytest.raises(clew.Stale) as stale:
        conv.cut(messages[2].uid, head=seen.head, view=seen.view)
    assert (stale.value.what, stale.value.expected, stale.value.actual) == ("head", 4, 5)
    assert texts(conv) == ["a", "b", "c", "d", "e"]
    assert conv.cuts() == ()
    outcome = conv.cut(messages[2].uid, head=5, view=seen.view)
    assert (outcome.from_seq, outcome.to_seq) == (3, 5)
    with pytest.raises(clew.InputError):
        conv.cut(messages[3].uid)
    assert texts(conv) == ["a", "b"]


def test_every_read_gives_the_same_uids(profile: clew.Profile) -> None:
    """S29: after a restart, in pages, in a branch, in the context."""
    conv = profile.create()
    wanted = [message.uid for message in talk(conv, "a", "b", "c")]
    assert [m.uid for m in conv.log(order="newest").items] == wanted[::-1]
    assert [m.uid for m in conv.context_inputs().messages] == wanted
    assert [m.uid for m in conv.branch().messages()] == wanted
    assert [m.uid for m in profile.open(conv.id).messages()] == wanted


def test_an_edit_that_fails_sends_nothing(conv: clew.Conversation) -> None:
    """S29: cut and append are one transaction; a repeated edit cuts once."""
    messages = talk(conv, "a", "b", "c")
    with pytest.raises(clew.NotFound):
        conv.edit("00" * 16, clew.user("x"))
    with pytest.raises(clew.Stale):
        conv.edit(messages[2].uid, clew.user("x"), head=99)
    assert texts(conv) == ["a", "b", "c"]
    done = conv.edit(messages[2].uid, clew.user("C", key="edit-1"))
    assert conv.edit(messages[2].uid, clew.user("C", key="edit-1")).seqs == done.seqs
    assert texts(conv) == ["a", "b", "C"]
    assert len(conv.cuts()) == 1


def test_a_name_opens_the_conversation_it_was_given_to(profile: clew.Profile) -> None:
    """S32, S33: id, old ids and a beginning of either open one row; titles are labels."""
    conv, other = profile.create(title="Plans"), profile.create(title="Plans")
    talk(conv, "a", "b")
    attempt = conv.open_attempt().number
    conv.commit_attempt(
        attempt, clew.Proposal(covers_to=1, body=(), tokens_before=9, tokens_after=1),
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


def test_no_robot_overwrites_a_persons_title(conv: clew.Conversation) -> None:
    """S34: three columns; shown is user, then llm, then derived."""
    talk(conv, "how do I bake bread")
    assert conv.info().title == "how do I bake bread"
    conv.set_title("Baking", "llm")
    conv.set_title("Bread for Ada")
    conv.set_title("Baking again", "llm")
    conv.set_title("derived again", "derived")
    assert (conv.info().title, conv.info().title_origin) == ("Bread for Ada", "user")
    compact(conv, 1)
    assert conv.info().title == "Bread for Ada"
    conv.set_title(None)
    assert (conv.info().title, conv.info().title_origin) == ("Baking again", "llm")


def test_a_locked_title_moves_for_nobody(profile: clew.Profile) -> None:
    """S34: and another conversation of the same name stays renameable."""
    bot, other = profile.create(), profile.create(title="Bot")
    bot.lock_title("Bot")
    for origin in ("user", "llm", "derived"):
        assert not bot.set_title("Other", origin)
    assert bot.info().title == "Bot"
    assert bot.info().title_locked
    assert other.set_title("Mine")
    assert other.info().title == "Mine"
    assert bot.lock_title("Bot", locked=False)
    assert bot.set_title("Free")
