"""Appending, repeating, showing and resuming: S01, S21, S30, S31, S51 of docs/behaviours.md."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from talk import begun, compact, context_texts, summary, talk, texts

import clew
from clew.store import migrate
from clew.store.migrate import Migration
from clew.store.sqlite import SqliteBackend


@pytest.mark.requires("file")
def test_an_older_file_is_brought_up_to_date_and_keeps_its_rows(tmp_path: Path, backend) -> None:
    """S01: the schema version is the number of the newest migration; rows are kept."""
    path = tmp_path / "store.db"
    with clew.open(path) as store:
        talk(store.profile("me").create(), "a", "b")
    added = "ALTER TABLE conversation ADD COLUMN extra TEXT DEFAULT 'yes'"
    newer = Migration(len(migrate.known()) + 1, False, "0002_pre_extra.sqlite.sql", lambda: added)

    SqliteBackend(path, migrations=[*migrate.known(), newer]).close()
    SqliteBackend(path, migrations=[*migrate.known(), newer]).close()

    with closing(apsw.Connection(str(path))) as raw:
        version = raw.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchall()
    assert version == [(str(newer.number),)]
    with clew.open(path) as store:  # the migration was harmless to this code
        (found,) = store.profile("me").list().items
        assert texts(store.profile("me").open(found.id)) == ["a", "b"]


def test_each_fact_of_a_conversation_has_one_home(conv: clew.Conversation) -> None:
    conv.set_workspace(clew.Workspace("/p/sub", "/p", "main"), model="m")
    conv.set_prompt("Be brief.", ({"name": "zeta"}, {"name": "alpha"}))
    number = conv.open_attempt().number
    conv.fail_attempt(number, "summary", summary_error="429")
    info, inputs = conv.info(), conv.context_inputs()
    assert (info.cwd, info.git_root, info.git_branch, info.model) == ("/p/sub", "/p", "main", "m")
    assert inputs.prompt == "Be brief."
    assert [tool["name"] for tool in inputs.toolset or ()] == ["zeta", "alpha"]
    assert [(a.verdict, a.summary_error) for a in conv.attempts()] == [("summary", "429")]


def test_a_message_keeps_its_uid(conv: clew.Conversation) -> None:
    done = conv.append([clew.user("a"), clew.assistant("b")])
    assert [m.uid for m in conv.messages()] == list(done.uids)
    conv.cut(done.uids[1])
    assert conv.message(done.uids[1]).text == "b"
    assert [m.uid for m in conv.branch().messages(hidden=True)] == list(done.uids)


@pytest.mark.parametrize("outcome", ["open", "cancelled", "failed", "committed"])
def test_an_append_never_waits_for_a_compaction(conv: clew.Conversation, outcome: str) -> None:
    """S01, S06: an attempt holds nothing, and a compaction ends nothing."""
    talk(conv, "a", "b", "c")
    number = conv.open_attempt().number
    match outcome:
        case "cancelled":
            conv.cancel_attempt(number)
        case "failed":
            conv.fail_attempt(number, "summary")
        case "committed":
            compact(conv, 2)
        case _:
            pass
    assert conv.append([clew.user("next")]).seqs == (4,)
    assert not conv.info().ended


def test_an_append_after_an_end_writes_nothing(conv: clew.Conversation) -> None:
    talk(conv, "a")
    conv.end("closed")
    with pytest.raises(clew.Ended) as refused:
        conv.append([clew.user("late")])
    assert (refused.value.conversation, refused.value.reason) == (conv.id, "closed")
    assert conv.info().message_count == 1
    assert texts(conv) == ["a"]


def test_replace_makes_the_log_equal_to_a_list(conv: clew.Conversation) -> None:
    talk(conv, "a", "b", "c")
    wanted = [clew.user("a"), clew.assistant("B"), clew.user("C"), clew.assistant("d")]
    conv.replace(wanted)
    assert [(m.role, m.text) for m in conv.messages()] == [
        ("user", "a"), ("assistant", "B"), ("user", "C"), ("assistant", "d"),
    ]  # fmt: skip
    assert next(m.seq for m in conv.messages()) == 1  # what both share stays


def test_replace_is_not_misled_by_names_that_are_taken(conv: clew.Conversation) -> None:
    """What a cut hides keeps its keys; a list that brings them again is visible all the same."""
    drafts = [clew.user("a", key="1"), clew.assistant("b", key="2"), clew.user("c", key="3")]
    conv.append(drafts)
    conv.replace([clew.user("A", key="1"), *drafts[1:]])
    assert texts(conv) == ["A", "b", "c"]


def test_a_deletion_takes_only_its_own(profile: clew.Profile) -> None:
    """S01, S44: branches and delegates stay; what is gone is gone, and its scope is not reused."""
    conv = profile.conversation("key")
    talk(conv, "a", "b")
    branch, delegate, scope = conv.branch(), conv.delegate(), conv.info().affinity
    profile.delete(conv.id)
    with pytest.raises(clew.NotFound):
        profile.open(conv.id)
    assert texts(branch) == ["a", "b"]
    assert branch.info().origin is None
    assert profile.open(delegate.id).info().origin is None
    assert profile.conversation("key").info().affinity != scope


def test_the_first_end_wins(conv: clew.Conversation) -> None:
    assert conv.end("closed")
    before = conv.info()
    assert not conv.end("reset")
    assert (conv.info().ended_at, conv.info().end_reason) == (before.ended_at, "closed")


def test_saving_a_transcript_again_adds_nothing(conv: clew.Conversation) -> None:
    """S21: whether a message is stored is a question to the store, by uid or key."""
    drafts = [m.draft() for m in talk(conv, "a", "b", "c")]
    again = conv.append(drafts)
    assert (again.new, again.seqs, again.head) == (0, (1, 2, 3), 3)
    grown = conv.append([*drafts, clew.assistant("d")])
    assert (grown.new, grown.seqs) == (1, (1, 2, 3, 4))
    assert texts(conv) == ["a", "b", "c", "d"]


def test_equal_texts_are_two_messages(conv: clew.Conversation) -> None:
    """S21: a twin is told by its name, never by what it says."""
    first = conv.append([clew.user("yes", key="1")])
    second = conv.append([clew.user("yes", key="2")])
    assert (first.seqs, second.seqs) == ((1,), (2,))
    assert conv.append([clew.user("yes", key="1")]).seqs == (1,)


def test_a_compaction_inside_a_turn_leaves_its_request_once(conv: clew.Conversation) -> None:
    """S21: the turn's own messages lie above any cover, and are not copied."""
    talk(conv, "old", "older")
    turn = begun(conv.begin_turn([clew.user("ask", key="update-1")]))
    compact(conv, 2)
    turn.finish([clew.assistant("done")])
    assert texts(conv) == ["old", "older", "ask", "done"]
    assert context_texts(conv) == ["<1-2>", "ask", "done"]
    assert isinstance(conv.begin_turn([clew.user("ask", key="update-1")]), clew.TurnKnown)


def test_display_is_the_log_and_context_what_stands_for_it(conv: clew.Conversation) -> None:
    """S30: two reads, no flag. A message that several compactions cover is shown once."""
    talk(conv, "a", "b", "c", "d", "e")
    compact(conv, 2)
    compact(conv, 4, summary("all"), clew.Ref(2, 2))
    assert texts(conv) == ["a", "b", "c", "d", "e"]
    assert context_texts(conv) == ["<all>", "b", "e"]
    conv.cut(conv.message(5).uid)
    assert texts(conv) == ["a", "b", "c", "d"]
    assert texts(list(conv.messages(hidden=True))) == ["a", "b", "c", "d", "e"]


def test_a_page_is_all_that_a_resume_reads(conv: clew.Conversation) -> None:
    """S31: no length is too long to resume; only a page has a limit."""
    for start in range(0, 3000, 500):
        conv.append([clew.user(str(start + number)) for number in range(500)])
        compact(conv, start + 400)
    page = conv.log(limit=50, order="newest")
    assert [m.seq for m in page.items] == list(range(3000, 2950, -1))
    following = conv.log(limit=50, order="newest", cursor=page.next)
    assert following.items[0].seq == 2950
    assert [m.seq for m in conv.context_inputs().messages] == list(range(2901, 3001))
    with pytest.raises(clew.TooLarge, match="page"):
        conv.log(limit=100_000)


@pytest.mark.requires("stats")
def test_a_branch_holds_only_its_own_messages(profile: clew.Profile) -> None:
    conv = profile.create()
    talk(conv, "a", "b", "c")
    talk(conv.branch(), "d")
    assert profile.stats().messages == 4


@pytest.mark.requires("file")
def test_a_reader_cannot_write(tmp_path: Path, backend) -> None:
    """S51: reads have connections of their own, which refuse to write."""
    opened = SqliteBackend(tmp_path / "store.db")
    with pytest.raises(clew.StoreError):
        opened.read(lambda tx: tx.run("dictionary_insert", version=1, bytes=b"", at=0))
    assert opened.write(lambda tx: tx.rows("dictionary_all")) == []
    opened.close()


@pytest.mark.requires("file")
def test_a_late_write_is_a_typed_error_and_a_new_open_goes_on(tmp_path: Path, backend) -> None:
    store = clew.open(tmp_path / "store.db")
    conv = store.profile("me").conversation("key")
    talk(conv, "a")
    store.close()
    store.close()
    with pytest.raises(clew.StoreClosed):
        talk(conv, "late")
    with clew.open(tmp_path / "store.db") as again:
        same = again.profile("me").conversation("key")
        talk(same, "late")
        assert texts(same) == ["a", "late"]
