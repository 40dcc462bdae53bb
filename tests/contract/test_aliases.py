"""Other ids of a conversation, and the one resolver of everything a person types."""

from __future__ import annotations

import pytest
from talk import talk, texts

import clew


def test_a_claimed_id_opens_the_conversation(profile: clew.Profile) -> None:
    conv = profile.create()
    assert conv.claim_alias("codex", "thread-1", from_seq=3) == "claimed"
    assert conv.claim_alias("codex", "thread-1") == "claimed"
    assert profile.resolve("thread-1").id == conv.id
    (alias,) = conv.aliases()
    assert (alias.source, alias.foreign_id, alias.from_seq) == ("codex", "thread-1", 3)
    assert (alias.kind, alias.state) == ("foreign", "claimed")


def test_the_first_claim_wins_and_a_second_is_told(profile: clew.Profile) -> None:
    """S11.7."""
    one, two = profile.create(id="one"), profile.create(id="two")
    assert one.claim_alias("codex", "t") == "claimed"
    assert two.claim_alias("codex", "t") == "ambiguous"
    assert two.claim_alias("codex", "t") == "ambiguous"
    with pytest.raises(clew.Ambiguous) as refused:
        profile.resolve("t")
    assert refused.value.candidates == ("one", "two")
    assert two.claim_alias("other", "t2") == "claimed"
    assert profile.resolve("t2").id == "two"


def test_the_same_id_of_two_tools_names_two(profile: clew.Profile) -> None:
    one, two = profile.create(id="one"), profile.create(id="two")
    one.claim_alias("codex", "t")
    assert two.claim_alias("goose", "t") == "claimed"
    assert profile.resolve("t", source="goose").id == "two"
    with pytest.raises(clew.Ambiguous):
        profile.resolve("t")


def test_s33_every_old_id_opens_the_same_conversation(profile: clew.Profile) -> None:
    """S33.2: Root, any middle one, the last: one conversation, one title, one row in the list."""
    conv = profile.create(id="root", title="Mine")
    for n, id in enumerate(("middle", "tip"), 1):
        conv.claim_alias("hermes", id, from_seq=n)
    assert {profile.resolve(id).id for id in ("root", "middle", "tip")} == {"root"}
    assert profile.resolve("middle").info().title == "Mine"
    assert [row.id for row in profile.list().items] == ["root"]
    assert [a.foreign_id for a in conv.aliases()] == ["middle", "tip"]


def test_b59_exact_then_unique_prefix_then_the_candidates(profile: clew.Profile) -> None:
    """S32.1."""
    profile.create(id="abcdefgh1")
    profile.create(id="abcdefgh2")
    with pytest.raises(clew.Ambiguous) as refused:
        profile.resolve("abcdefgh")
    assert refused.value.candidates == ("abcdefgh1", "abcdefgh2")
    assert profile.resolve("abcdefgh2").id == "abcdefgh2"
    assert profile.resolve(" abcdefgh1\n").id == "abcdefgh1"
    profile.create(id="abcdefgh")
    assert profile.resolve("abcdefgh").id == "abcdefgh"


def test_a_prefix_may_be_typed_in_capitals(profile: clew.Profile) -> None:
    conv = profile.create()
    assert profile.resolve(conv.id[:8].upper()).id == conv.id


def test_a_prefix_of_a_foreign_id_is_as_good(profile: clew.Profile) -> None:
    conv = profile.create(id="zz")
    conv.claim_alias("codex", "thread-1234")
    assert profile.resolve("thread-12").id == "zz"


def test_an_ambiguous_prefix_lists_twenty(profile: clew.Profile) -> None:
    for n in range(25):
        profile.create(id=f"many-{n:02}")
    with pytest.raises(clew.Ambiguous) as refused:
        profile.resolve("many")
    assert refused.value.candidates == tuple(f"many-{n:02}" for n in range(20))
    assert refused.value.more


@pytest.mark.parametrize("text", ["", "   ", "nobody", "%", "_", "a\0", "\ud800", "'; --"])
def test_a_name_of_nobody_is_not_found(profile: clew.Profile, text: str) -> None:
    """S11.13."""
    profile.create(id="abc")
    with pytest.raises(clew.NotFound):
        profile.resolve(text)


def test_an_import_that_was_deleted_does_not_come_back(profile: clew.Profile) -> None:
    conv = profile.create()
    conv.claim_alias("codex", "t")
    assert not profile.was_deleted("codex", "t")
    profile.delete(conv.id)
    assert profile.was_deleted("codex", "t")
    assert not profile.was_deleted("goose", "t")
    with pytest.raises(clew.NotFound):
        profile.resolve("t")
    new = profile.create()
    assert new.claim_alias("codex", "t") == "claimed"
    assert not profile.was_deleted("codex", "t")


def test_aliases_stay_inside_their_profile(store: clew.Store) -> None:
    one = store.profile("p").create()
    other = store.profile("q").create()
    one.claim_alias("codex", "t")
    assert other.claim_alias("codex", "t") == "claimed"
    assert store.profile("q").resolve("t").id == other.id


def test_a_branch_has_aliases_of_its_own(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a")
    conv.claim_alias("codex", "t")
    branch = conv.branch()
    assert branch.aliases() == ()
    assert texts(profile.resolve("t")) == ["a"]
