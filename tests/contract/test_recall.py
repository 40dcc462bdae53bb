"""Reading messages back, and finding them, on every store."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import calls, compact, result, talk

import clew
from clew import Draft, Role, Text, ToolCall, ToolResult
from clew.compaction.lookup import WHOLE, search
from clew.compaction.recall import LEAST, Recalled, message_text, recall
from clew.compaction.tools import call
from clew.domain.parts import Image, Reasoning, Unknown, searchable
from clew.errors import InputError
from clew.testing.clock import FakeClock

BLACK = Image("image/png", data=b"\x89PNG", width=2, height=2)


def pages(conv: clew.ConversationReader, ref: int | str, **options: Any) -> list[Recalled]:
    """The answer to a ref and all that follow it."""
    found = [recall(conv, ref, **options)]
    while (following := found[-1].next) is not None:
        assert following != ref
        ref = following
        found.append(recall(conv, ref, **options))
    return found


def read(conv: clew.ConversationReader, ref: int | str, **options: Any) -> dict[int, str]:
    """What the answers say of each message, put together again."""
    texts: dict[int, str] = defaultdict(str)
    for page in pages(conv, ref, **options):
        for piece in page.pieces:
            assert piece.start == len(texts[piece.seq])
            assert piece.text in page.text
            texts[piece.seq] += piece.text
            assert piece.of >= len(texts[piece.seq])
    return dict(texts)


def test_a_message_is_read_back_word_for_word(conv: clew.Conversation) -> None:
    """With who said it and when, its calls and its results."""
    call_ = ToolCall("c1", "bash", '{"command": "ls -la"}')
    conv.append(
        [
            clew.user("List the files, please.\n\n  Indented."),
            Draft(role=Role.ASSISTANT, parts=(Text("Looking."), call_)),
            Draft(role=Role.TOOL, parts=(ToolResult("c1", "a.py\nb.py\n", "bash"),)),
        ]
    )
    found = recall(conv, "1-3")
    assert found.next is None
    assert [piece.role for piece in found.pieces] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert found.text.startswith("[@1] user, 20")
    assert "List the files, please.\n\n  Indented." in found.text
    assert '(call c1) bash {"command": "ls -la"}' in found.text
    assert "(result c1 of bash)\na.py\nb.py\n" in found.text


def test_what_was_compacted_is_read_back_exactly(conv: clew.Conversation) -> None:
    said = talk(conv, "the port is 6543", "noted", "go on", "yes")
    compact(conv, 3, clew.Ref(1, 1), clew.Stub(2, "…"))
    assert [recall(conv, seq).pieces[0].text for seq in (1, 2, 3, 4)] == [m.text for m in said]


def test_a_long_message_is_read_in_pieces(conv: clew.Conversation) -> None:
    long = "".join(f"line {n}\n" for n in range(2000))
    talk(conv, "first", long, "last")
    first = recall(conv, 2, limit=5000)
    assert first.next == f"2+{len(first.pieces[0].text)}"
    assert f"[more: recall({first.next})]" in first.text
    assert f"{len(long):,} characters, of which 0 to " in first.text
    assert read(conv, "2", limit=5000) == {2: long}
    assert read(conv, "1-3", limit=5000) == {1: "first", 2: long, 3: "last"}
    assert recall(conv, f"2+{len(long) - 5}").pieces[0].text == long[-5:]
    assert recall(conv, f"2+{len(long) + 5}").pieces[0].text == ""


def test_a_message_that_fits_into_an_answer_is_not_cut(conv: clew.Conversation) -> None:
    talk(conv, "a" * 600, "b" * 600, "c" * 600)
    first, second, third = pages(conv, "1-3", limit=1100)
    assert [page.pieces[0].text[0] for page in (first, second, third)] == ["a", "b", "c"]
    assert [page.next for page in (first, second, third)] == ["2-3", "3", None]


@pytest.mark.parametrize("first", range(670, 801, 10))
def test_an_answer_keeps_its_limit_where_little_is_left(
    conv: clew.Conversation, first: int
) -> None:
    """A long message begins in what is left, or in the next answer."""
    talk(conv, "a" * first, "b" * 3000)
    assert all(len(page.text) <= LEAST for page in pages(conv, "1-2", limit=LEAST))
    assert read(conv, "1-2", limit=LEAST) == {1: "a" * first, 2: "b" * 3000}


def test_what_a_cut_hides_stays_hidden(conv: clew.Conversation) -> None:
    said = talk(conv, "one", "two", "a secret", "another")
    conv.cut(said[2].uid, head=4)
    talk(conv, "five", "six")
    assert read(conv, "1-6") == {1: "one", 2: "two", 5: "five", 6: "six"}
    assert "[messages 3-4 were withdrawn]" in recall(conv, "1-6").text
    for ref in ("3", "3-4", "2-4", "3+2", "1-9"):
        assert "secret" not in recall(conv, ref).text
    assert recall(conv, 3) == Recalled("[message 3 was withdrawn]", ())


def test_a_cut_at_the_end_stays_hidden(conv: clew.Conversation) -> None:
    said = talk(conv, "one", "two", "a secret")
    conv.cut(said[2].uid, head=3)
    assert recall(conv, 3).text == "[message 3 was withdrawn]"
    assert recall(conv, "1-").pieces[-1].seq == 2
    assert "secret" not in recall(conv, "1-3").text
    assert "the newest message is [@2]" in recall(conv, "2-3").text


def test_what_is_not_there_is_said(conv: clew.Conversation) -> None:
    assert "there is none" in recall(conv, 1).text
    talk(conv, "one", "two")
    assert recall(conv, 7).text == "[no message 7: the newest message is [@2]]"
    assert recall(conv, "2-7").text.endswith("[no messages 3-7: the newest message is [@2]]")
    assert recall(conv, "2-").text.endswith("two")
    assert recall(conv, "0").pieces == ()


def test_a_snapshot_reads_nothing_behind_its_end(conv: clew.Conversation) -> None:
    talk(conv, "one", "two", "three")
    snapshot = conv.snapshot(2)
    assert read(snapshot, "1-3") == {1: "one", 2: "two"}
    assert recall(snapshot, 3).pieces == ()


def test_a_branch_reads_what_it_inherits(conv: clew.Conversation) -> None:
    talk(conv, "one", "two", "three")
    branch = conv.branch(conv.message(2).uid)
    talk(branch, "other")
    assert read(branch, "1-3") == {1: "one", 2: "two", 3: "other"}


def test_a_message_that_replaces_another_is_found_by_either(conv: clew.Conversation) -> None:
    talk(conv, "one", "partial", "three")
    conv.append([Draft(role=Role.ASSISTANT, parts=(Text("complete"),), replaces=2)])
    assert read(conv, "1-4") == {1: "one", 4: "complete", 3: "three"}
    assert recall(conv, 4).pieces[0].text == "complete"
    assert recall(conv, 2).pieces[0].text == "complete"


def test_thinking_is_read_only_when_asked_for(conv: clew.Conversation) -> None:
    parts = (Reasoning("Hm, 6543?", model="m"), Text("6543."))
    conv.append([Draft(role=Role.ASSISTANT, parts=parts)])
    assert recall(conv, 1).pieces[0].text == "6543."
    assert recall(conv, 1, reasoning=True).pieces[0].text == "(thinking) Hm, 6543?\n6543."


def test_images_and_unknown_pieces_are_named(conv: clew.Conversation) -> None:
    conv.append([Draft(role=Role.USER, parts=(BLACK, Unknown({"type": "audio"})))])
    assert recall(conv, 1).pieces[0].text == '(image/png 2x2, 4 bytes)\n{"type":"audio"}'


def test_limits_and_refs_are_checked(conv: clew.Conversation) -> None:
    with pytest.raises(InputError, match="limit is 999"):
        recall(conv, 1, limit=LEAST - 1)
    with pytest.raises(InputError, match='"12-40"'):
        recall(conv, "the first")


drafts = st.lists(
    st.one_of(
        st.text(alphabet="ab c\n\u00e9服\ud800", max_size=900).map(clew.user),
        st.text(alphabet="xyz \n", min_size=1, max_size=3000).map(clew.assistant),
        st.lists(st.text(max_size=500), max_size=3).map(
            lambda said: Draft(role=Role.USER, parts=(*map(Text, said), BLACK, Reasoning("hm")))
        ),
    ),
    min_size=1,
    max_size=12,
)


@given(drafts, st.integers(LEAST, 4000), st.data())
def test_following_what_is_next_reads_every_visible_word_once(
    profile: clew.Profile, said: list[Draft], limit: int, data: st.DataObject
) -> None:
    """Each answer within its limit, in any log, with cuts or without."""
    conv = profile.create()
    conv.append(said)
    if data.draw(st.booleans()):
        first = data.draw(st.integers(1, len(said)))
        conv.cut(conv.message(first).uid, head=len(said))
        conv.append([clew.user("again")])
    visible = {message.seq: message for message in conv.messages()}
    assert read(conv, f"1-{len(said) + 1}", limit=limit) == {
        seq: message_text(message) for seq, message in visible.items()
    }
    assert all(len(page.text) <= limit for page in pages(conv, "1-", limit=limit))
    for message in visible.values():
        text = message_text(message, reasoning=True)
        assert all(part in text for part in searchable(message.parts))


# ---------------------------------------------------------------------- search


def test_a_question_finds_the_message_that_answers_it(conv: clew.Conversation) -> None:
    talk(conv, "The staging database listens on port 6543.", "Noted.", "Go on.", "Done.")
    found = search(conv, None, "Which port does the staging database use?")
    assert (found[0].seq, found[0].text) == (1, "The staging database listens on port 6543.")


def test_search_finds_nothing_that_a_cut_hides(conv: clew.Conversation) -> None:
    said = talk(conv, "The port is 6543.", "Noted.")
    conv.cut(said[0].uid, head=2)
    talk(conv, "Which port is it?")
    assert [found.seq for found in search(conv, None, "port")] == [3]


def test_search_and_recall_of_their_own_answers_are_no_source(conv: clew.Conversation) -> None:
    talk(conv, "The port is 6543.")
    for number in range(2):
        id = f"c{number}"
        asked = ToolCall(id, "search", '{"query": "port 6543"}')
        answer = call(conv, None, "search", asked.arguments)
        conv.append([Draft(role=Role.ASSISTANT, parts=(asked,)), result(id, answer)])
        conv.append([calls(f"r{number}"), result(f"r{number}", call(conv, None, "recall", "1"))])
    assert [found.seq for found in search(conv, None, "port 6543")] == [1]


@pytest.mark.requires("search")
def test_a_long_conversation_is_searched_by_the_index(
    profile: clew.Profile, clock: FakeClock
) -> None:
    """Old and rare, in another form of the word, among thousands that share a common one; and
    nothing of another conversation or behind a cut."""
    conv = profile.create()
    conv.append([clew.user("We agreed: uploads are retried three times, port 6543.")])
    for _ in range(3):
        conv.append([clew.user(f"the upload of part {n} is done") for n in range(WHOLE // 3 + 1)])
    last = conv.append([clew.user("uploads are retried nine times"), clew.user("no")])
    conv.cut(conv.message(last.seqs[0]).uid, head=last.head)
    talk(profile.create(), "uploads are retried five times")
    found = search(conv, profile, "How many retries of an upload did we agree on?")
    assert found[0].seq == 1
    assert all("nine" not in each.text and "five" not in each.text for each in found)
    assert "6543" in call(conv, profile, "search", {"query": "agreed retry"})
