"""What is left open: until somebody says that it is done, or it is old."""

from __future__ import annotations

from talks import agent, epoch, rows, user

from clew.compaction.ledger import Close, fold, write_epoch
from clew.compaction.ledger.pending import MOST_AGE
from clew.domain.messages import Message

LEFT = "The retry test for the uploader is still missing."


def talk_of(count: int, first: int) -> list[Message]:
    """Requests with their answers."""
    out: list[Message] = []
    for seq in range(first, first + 2 * count, 2):
        out.append(user(seq, f"Rename the helper number {seq}."))
        out.append(agent(seq + 1, f"I gave helper number {seq} a better name."))
    return out


def open_now(talk: list[Message]) -> list[int]:
    return [row.seq for row in rows(talk, "ask")]


def test_what_an_agent_left_open_stays_open() -> None:
    assert open_now([agent(1, LEFT), *talk_of(3, 2)]) == [1]


def test_it_ends_when_the_agent_says_that_it_is_done() -> None:
    talk = [agent(1, LEFT), agent(2, "I added the missing retry test for the uploader, it passes.")]
    assert not open_now(talk)
    (done,) = rows(talk, "done")
    assert (done.seq, done.slot) == (1, "answer:2")
    assert done.value is not None
    assert done.value.startswith("I added the missing retry test")


def test_it_ends_when_a_person_says_that_it_is_done() -> None:
    assert not open_now([agent(1, LEFT), user(2, "The uploader's retry test is in place now.")])


def test_it_ends_with_a_request_for_it_that_was_answered() -> None:
    talk = [
        agent(1, LEFT),
        user(2, "Write the retry test for the uploader."),
        agent(3, "There it is, with three cases."),
    ]
    assert not open_now(talk)


def test_other_work_done_leaves_it_open() -> None:
    for text in (
        "I added the retry test for the downloader page and the mailer.",
        "The uploader works again since its clock is right.",
        "The retry test for the uploader is not done.",
        "If the retry test for the uploader passes, we can ship.",
    ):
        assert 1 in open_now([agent(1, LEFT), agent(2, text)]), text


def test_the_same_left_open_again_is_one() -> None:
    assert open_now([agent(1, LEFT), *talk_of(1, 2), agent(4, LEFT)]) == [4]


def test_a_persons_own_request_ends_with_its_answer() -> None:
    talk = [
        user(1, "read the guide in full. we still need to port over the selector"),
        agent(2, "I ported the selector after the pattern of the guide."),
    ]
    assert not open_now(talk)
    assert [row.state for row in rows(talk, "done")] == ["done"]


def test_old_ones_are_counted_and_not_shown() -> None:
    young = epoch([agent(1, LEFT), *talk_of(MOST_AGE - 1, 2)])
    assert LEFT in young.text
    old = epoch([agent(1, LEFT), *talk_of(MOST_AGE, 2)])
    assert "Open" not in old.text
    assert old.left_out == 1


def test_an_earlier_epoch_is_told_of_those_that_ended_or_are_old() -> None:
    first = epoch([agent(1, LEFT)])
    assert LEFT in first.text
    done = epoch([agent(2, "The uploader's retry test is written and passes.")], first, number=2)
    later = epoch(talk_of(MOST_AGE, 2), first, number=2)
    for made in (done, later):
        assert [one.seq for one in made.gone] == [1]
        assert "## Open" not in made.text


def test_a_fold_drops_old_ones_and_counts_them() -> None:
    first = epoch([agent(1, LEFT), *talk_of(MOST_AGE // 2, 2)])
    second = epoch(talk_of(MOST_AGE // 2 - 1, 40), first, number=2)
    third = epoch(talk_of(1, 90), first, second, number=3)
    assert LEFT in fold([first, second], number=4, room=20_000, count=len).text
    assert LEFT not in fold([first, second, third], number=4, room=20_000, count=len).text


def test_a_model_may_close_one() -> None:
    made = write_epoch([], [agent(1, LEFT)], number=1, room=9_000, count=len, operations=[Close(1)])
    assert "## Open" not in made.text


def test_an_app_for_todos_leaves_nothing_open() -> None:
    assert not open_now([agent(1, "The TODO app has three components and a reducer.")])
    assert open_now([agent(1, "TODO: the reducer of the app has no tests.")]) == [1]
