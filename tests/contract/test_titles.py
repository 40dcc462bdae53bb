"""Titles: three origins, and no robot over a person."""

from __future__ import annotations

import pytest
from talk import talk

import clew


def shown(conv: clew.Conversation) -> tuple[str | None, str | None]:
    info = conv.info()
    return info.title, info.title_origin


def test_a_title_is_derived_from_the_first_request(conv: clew.Conversation) -> None:
    assert shown(conv) == (None, None)
    conv.append([clew.assistant("hello"), clew.user("  plan\n a trip "), clew.user("other")])
    assert shown(conv) == ("plan a trip", "derived")


def test_s34_1_a_person_wins_over_a_model_and_that_over_a_derived_one(
    conv: clew.Conversation,
) -> None:
    talk(conv, "derived")
    conv.set_title("model's", "llm")
    assert shown(conv) == ("model's", "llm")
    conv.set_title("mine")
    conv.set_title("model's again", "llm")
    conv.set_title("derived again", "derived")
    assert shown(conv) == ("mine", "user")
    conv.set_title(None)
    assert shown(conv) == ("model's again", "llm")
    conv.set_title(None, "llm")
    assert shown(conv) == ("derived again", "derived")


def test_s34_3_a_locked_title_moves_for_nobody(conv: clew.Conversation) -> None:
    assert conv.lock_title("Bot Chat")
    for origin in ("user", "llm", "derived"):
        assert not conv.set_title("x", origin)
    assert not conv.lock_title("y")
    assert (shown(conv), conv.info().title_locked) == (("Bot Chat", "user"), True)
    assert conv.lock_title("free", locked=False)
    assert conv.set_title("mine")
    assert shown(conv) == ("mine", "user")


def test_b61_titles_are_labels_not_keys(profile: clew.Profile) -> None:
    one, two = profile.create(source="cli", title="Foo"), profile.create(source="api")
    assert two.set_title("Foo")
    assert [row.title for row in profile.list().items] == ["Foo", "Foo"]
    assert one.id != two.id


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\n b\t c ", "a b c"),
        ("x" * 90, "x" * 79 + "…"),
        ("nul \0 and \ud800", "nul \ufffd and \ufffd"),
        ("标题 🎉", "标题 🎉"),
    ],
)
def test_a_title_is_one_short_clean_line(conv: clew.Conversation, given: str, kept: str) -> None:
    conv.set_title(given)
    assert conv.info().title == kept


@pytest.mark.parametrize("title", ["", " ", "\n\t"])
def test_a_title_is_not_empty(conv: clew.Conversation, title: str) -> None:
    with pytest.raises(clew.InputError):
        conv.set_title(title)
    with pytest.raises(clew.InputError):
        conv.lock_title(title)


def test_s34_5_a_compaction_changes_no_title(conv: clew.Conversation) -> None:
    talk(conv, "a", "b")
    conv.set_title("mine")
    conv.commit_attempt(
        conv.open_attempt().number,
        clew.Proposal(covers_to=2, body=(clew.Ref(1, 2),), tokens_before=2, tokens_after=1),
    )
    assert shown(conv) == ("mine", "user")
