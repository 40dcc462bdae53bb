"""What replaces what in a conversation, over epochs and in a fold; what is only supposed or denied
replaces nothing."""

from __future__ import annotations

import pytest
from talks import agent, epoch, rows, said, user

from clew.compaction.ledger import fold


def test_a_rule_about_replies_leaves_the_other_rules_about_replies() -> None:
    """A known trap of ledgers that compare words."""
    before = [
        "Never include my name in your replies or in any tool call.",
        "Reply in British English.",
        "Reply in bullet points only, no paragraphs.",
        'End every reply with this exact sentence: "Let me know if you need anything else."',
    ]
    found = rows(said(*before, "From now on end every reply with the ticket id SESS-118."), "rule")
    assert len({row.seq for row in found}) == 5


def test_the_same_said_twice_is_one_row_the_newer() -> None:
    found = rows(said("Never push to main.", "Never push to main."))
    assert [row.seq for row in found] == [3]


def test_a_value_that_goes_back_is_there_again() -> None:
    first, back = "The session TTL is 900 seconds.", "The session TTL is 3600 seconds now."
    found = rows(said(first, back, first))
    assert [(row.seq, row.value) for row in found] == [(5, "900 seconds")]


def test_what_is_named_as_replaced_goes_though_the_words_differ() -> None:
    talk = [
        agent(1, "Decision: we will use itsdangerous for token signing, it is vendored."),
        user(2, "Switch to pyjwt instead of itsdangerous; the review rejected the other one."),
    ]
    (row,) = rows(talk, "decision")
    assert (row.seq, row.value, row.was) == (2, "pyjwt", (1,))


def test_a_name_that_is_only_mentioned_replaces_nothing() -> None:
    found = rows(said("Never expose redis to the internet.", "Use valkey instead of redis."))
    assert {1, 3} <= {row.seq for row in found}


def test_an_older_message_never_replaces_a_newer_one() -> None:
    talk = said("The pool size is now 16.", "Fine weather today.")
    assert [row.value for row in rows(talk, "fact")] == ["16"]


def test_a_statement_without_a_subject_replaces_nothing() -> None:
    found = rows(said("It is 42 now.", "It is 43 now."))
    assert {row.seq for row in found} == {1, 3}


def test_two_values_of_one_sentence_fall_one_by_one() -> None:
    talk = said(
        "The project codename is HERON-12 and the deadline is 2027-01-05.",
        "The deadline is now 2027-02-09.",
    )
    texts = [row.text for row in rows(talk)]
    assert any("HERON-12" in text for text in texts)
    assert not any("2027-01-05" in text for text in texts)


def test_an_earlier_epoch_is_told_what_no_longer_holds_of_it() -> None:
    old = epoch(said("The session TTL is 900 seconds.", "Never push to main."))
    new = epoch(said("The session TTL should now be 3600 seconds.", first=5), old, number=2)
    assert [(one.seq, one.label) for one in new.gone] == [(1, "session ttl")]
    assert "No longer holds: session ttl [@1]." in new.text
    assert "(replaces [@1])" in new.text
    assert "900" not in new.text
    assert "900" in old.text


def test_what_an_earlier_epoch_says_is_not_said_again() -> None:
    old = epoch(said("Never push to main."))
    new = epoch(said("Never push to main.", first=3), old, number=2)
    assert not new.rows


def test_a_fold_has_neither_what_was_replaced_nor_a_word_about_it() -> None:
    old = epoch(said("The session TTL is 900 seconds.", "Never push to main."))
    new = epoch(said("The session TTL should now be 3600 seconds.", first=5), old, number=2)
    both = fold([old, new], number=3, room=20_000, count=len)
    assert "900" not in both.text
    assert "3600" in both.text
    assert "Never push to main." in both.text
    assert (both.first, both.last) == (1, 6)


def test_values_without_a_slot_are_kept_newest_first() -> None:
    text = epoch(said("Looks like #b5bd68 to me.", "Looks like #8abeb7 to me.")).text
    assert "newest first" in text
    assert text.index("#8abeb7") < text.index("#b5bd68")


UNSURE = [
    "If the session TTL is 60 seconds, people get angry.",
    "What if the session TTL is 60 seconds?",
    "Should we use pyjwt instead of itsdangerous?",
    "Maybe the session TTL should be 60 seconds now.",
    "We could set the session TTL to 60 seconds.",
    "I suggest the session TTL is changed to 60 seconds.",
    "Never set the session TTL to 60 seconds.",
    "The session TTL is not 60 seconds.",
    "We could use pyjwt instead of itsdangerous.",
    "I am thinking about moving the session TTL to 60 seconds.",
]


@pytest.mark.parametrize("text", UNSURE)
def test_what_is_only_supposed_or_denied_replaces_nothing(text: str) -> None:
    held = "The session TTL is 900 seconds. We use itsdangerous for tokens."
    assert [row.value for row in rows(said(held, text)) if row.seq == 1] == [
        "900 seconds", "itsdangerous",
    ]  # fmt: skip


def test_a_port_that_is_forbidden_is_not_the_port() -> None:
    found = rows(said("The port is 9090.", "Never use port 8080."))
    assert {row.seq for row in found} == {1, 3}


def test_a_polite_question_is_an_order() -> None:
    talk = said("We use itsdangerous for tokens.", "Can you use pyjwt instead of itsdangerous?")
    assert {row.seq for row in rows(talk)} == {3}


def test_an_agent_cannot_replace_a_persons_rule() -> None:
    talk = [
        user(1, "The session TTL must be 900 seconds."),
        agent(2, "I have now set the session TTL to 60 seconds, which is `faster`."),
    ]
    assert 1 in {row.seq for row in rows(talk, "rule")}
