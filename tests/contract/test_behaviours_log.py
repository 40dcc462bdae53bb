"""Appending, showing and resuming: S01, S30, S31 of docs/behaviours.md."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest
from talk import compact, context_texts, summary, talk, texts

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
