"""Requests: open until the agent has answered, then done, and never asked again by the text."""

from __future__ import annotations

import pytest
from talks import agent, call, epoch, result, rows, said, user

from clew.compaction.ledger import Add, Close, Operation, Supersede, rows_of, write_epoch
from clew.domain.messages import Message


def states(talk: list[Message]) -> list[tuple[int, str, str | None]]:
    return [(row.seq, row.kind, row.state) for row in rows(talk, "ask", "done")]


def test_an_answer_ends_a_request() -> None:
    talk = [
        user(1, "Fix the login bug."),
        call(2, "edit", path="a.py"),
        result(3, "ok"),
        agent(4, "Done! The login works again since tokens are refreshed."),
    ]
    assert states(talk) == [(1, "done", "done")]
    text = epoch(talk).text
    assert "2025-11-29:\nFix the login bug. [@1] -> The login works again" in text


def test_an_acknowledgement_is_no_answer() -> None:
    assert states(said("Fix the login bug.")) == [(1, "ask", "open")]


def test_a_text_in_the_middle_of_work_is_no_answer() -> None:
    talk = [
        user(1, "Fix the login bug."),
        agent(2, "The cause is the clock, it is an hour late."),
        call(3, "edit", path="a.py"),
        result(4, "ok"),
    ]
    assert states(talk) == [(1, "ask", "open")]


def test_a_request_that_is_taken_back() -> None:
    talk = [*said("Fix the login bug."), user(3, "Never mind.")]
    assert states(talk) == [(1, "done", "withdrawn")]


def test_an_earlier_epochs_request_is_told_to_be_done() -> None:
    old = epoch([user(1, "Fix the login bug."), call(2, "read", path="a.py"), result(3, "x")])
    assert "## Open\nFix the login bug. [@1]" in old.text
    new = epoch([agent(4, "The login bug is fixed by a new clock.")], old, number=2)
    assert "No longer holds: Fix the login bug. [@1]." in new.text
    assert "## Open" not in new.text
    assert "## Done" in new.text


def test_the_rows_tell_which_are_open() -> None:
    talk = [
        user(1, "Fix it, please."),
        agent(2, "It is fixed, all tests pass."),
        user(3, "Ship it?"),
    ]
    assert [row.seq for row in rows_of(talk) if row.kind == "ask"] == [3]


def with_operations(talk: list[Message], *operations: Operation) -> str:
    return write_epoch(
        [], talk, number=1, room=9_000, count=len, narrative="We fixed a login.",
        operations=operations,
    ).text  # fmt: skip


def test_a_model_may_add_close_and_supersede() -> None:
    talk = said(
        "Fix the login bug.", "Snacks are in the left drawer, box 4.", "Box 9, right drawer."
    )
    plain = with_operations(talk)
    assert "## Open" in plain
    text = with_operations(talk, Close(1), Supersede(3, 5), Add("decision", "Snacks moved.", 5))
    assert "## Open" not in text
    assert "box 4" not in text
    assert "Snacks moved. " in text
    assert "## Narrative (by a model, not checked against the log)\nWe fixed a login." in text


def test_a_model_cannot_supersede_one_of_several_rules_it_does_not_name() -> None:
    talk = said("Never push to main. Always write tests.", "Pushing is fine from Monday on.")
    text = with_operations(talk, Supersede(1, 3))
    assert "Never push to main." in text
    assert "Always write tests." in text


def test_a_narrative_has_its_share_and_no_more() -> None:
    long = "\n".join(f"Line {n} of a story that has no end." for n in range(500))
    made = write_epoch(
        [], said("Never push to main."), number=1, room=1_200, count=len, narrative=long
    )
    assert len(made.text) <= 1_200
    assert "Line 0 of" in made.text
    assert "Never push to main." in made.text


@pytest.mark.parametrize("answer", [
    "I looked, but I cannot find where it is imported.", "The migration failed with exit code 3.",
    "Not yet: I need the list of changes first.", "CI is still running, I will wait for it.",
    "Which region should it run in?", "I have not started on the guide yet.",
])  # fmt: skip
def test_an_answer_that_leaves_the_work_undone_leaves_the_request_open(answer: str) -> None:
    talk = [user(1, "Please run the migration of the billing tables."), agent(2, answer)]
    assert states(talk) == [(1, "ask", "open")]
