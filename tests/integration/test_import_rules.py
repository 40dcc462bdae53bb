"""The rules of an import that hold for every format, on files of Claude Code's kind, on both
engines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import clew
from clew.domain.conversations import ListFilter
from clew.domain.messages import user
from clew.domain.retention import Policy, Rule
from clew.store.conversation import Conversation
from clew.store.importing import Importing
from clew.store.landing import Landing
from clew.store.profile import Profile
from clew.store.store import Store
from imports import conversations, import_into, shown
from servers import empty_database, open_store


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    place = empty_database() if request.param == "postgres" else tmp_path / "s.db"
    opened = open_store(str(place)) if request.param == "postgres" else clew.open(place)
    with opened as store:
        yield store
        assert not store.verify()


@pytest.fixture
def profile(store: Store) -> Profile:
    return store.profile("p")


def uuid(n: int) -> str:
    return str(UUID(int=n << 64 | 0x4000_8000 << 32 | n))


class File:
    """A session file of Claude Code: `say(n, parent)` adds the record n."""

    def __init__(self, folder: Path, session: int) -> None:
        self.session = uuid(session)
        self.path = folder / f"{self.session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def say(self, n: int, parent: int | None, role: str = "", **message: Any) -> File:
        role = role or ("user" if n % 2 else "assistant")
        message = {"role": role, "content": f"text {n}", **message}
        self.write({
            "type": role, "uuid": uuid(n), "parentUuid": parent and uuid(parent),
            "sessionId": self.session, "timestamp": f"2026-01-01T00:00:{n % 60:02}.000Z",
            "isSidechain": False, "cwd": "/repo", "gitBranch": "main", "message": message,
        })  # fmt: skip
        return self

    def chain(self, first: int, last: int, parent: int | None = None) -> File:
        for n in range(first, last + 1):
            self.say(n, n - 1 if n > first else parent)
        return self

    def write(self, *records: dict[str, Any]) -> None:
        with self.path.open("a") as stream:
            for record in records:
                stream.write(json.dumps(record) + "\n")

    def copy(self, session: int) -> File:
        """A resumed copy: the same records in a file of another session."""
        other = File(self.path.parent, session)
        text = self.path.read_text().replace(self.session, other.session)
        other.path.write_text(text)
        return other


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "projects", 7)


def main_of(profile: Profile, file: File) -> Conversation:
    return profile.resolve(file.session, source="claude-code")


def texts(conversation: Conversation) -> list[int]:
    return [int(m.text.removeprefix("text ")) for m in conversation.messages() if m.text]


def test_a_file_that_grew_brings_only_what_is_new(file: File, profile: Profile) -> None:
    file.chain(1, 4)
    assert import_into(profile, file.path).totals.messages == 4
    file.chain(5, 6, parent=4)
    done = import_into(profile, file.path).totals
    assert (done.messages, done.grown, done.conversations) == (2, 1, 0)
    assert texts(main_of(profile, file)) == [1, 2, 3, 4, 5, 6]


def test_a_second_child_is_a_cut_and_an_append(file: File, profile: Profile) -> None:
    file.chain(1, 4).say(5, 2).say(6, 5)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    assert texts(conversation) == [1, 2, 5, 6]
    assert [(c.from_seq, c.to_seq, c.by) for c in conversation.cuts()] == [(3, 4, "claude-code")]
    assert conversation.children() == ()


def test_a_third_child_hides_the_second(file: File, profile: Profile) -> None:
    file.chain(1, 4).say(5, 2).say(7, 2).say(8, 7)
    import_into(profile, file.path)
    assert texts(main_of(profile, file)) == [1, 2, 7, 8]


def test_going_on_from_what_was_hidden_is_a_branch_of_that_line(
    file: File, profile: Profile
) -> None:
    file.chain(1, 4).say(5, 2).say(6, 5).say(9, 4).say(10, 9)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    assert texts(conversation) == [1, 2, 5, 6]
    (branch,) = conversation.children()
    assert texts(profile.open(branch.id)) == [1, 2, 3, 4, 9, 10]
    file.say(11, 10).say(13, 6)
    import_into(profile, file.path)
    assert texts(profile.open(branch.id)) == [1, 2, 3, 4, 9, 10, 11]
    assert texts(conversation) == [1, 2, 5, 6, 13]


def test_parts_of_one_message_and_their_results_are_no_branches(
    file: File, profile: Profile
) -> None:
    def call(id: str) -> dict[str, Any]:
        return {
            "id": "msg_1", "model": "m", "content": [{"type": "tool_use", "id": id, "name": "t",
            "input": {}}], "usage": {"input_tokens": 5, "output_tokens": int(id[1:]) * 10},
        }  # fmt: skip

    def result(id: str) -> dict[str, Any]:
        return {"content": [{"type": "tool_result", "tool_use_id": id, "content": f"out {id}"}]}

    file.say(1, None)
    file.say(2, 1, "assistant", **call("t1")).say(4, 2, "assistant", **call("t2"))
    file.say(3, 2, "user", **result("t1")).say(5, 4, "user", **result("t2"))
    file.say(6, 5)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    assert conversation.cuts() == ()
    assert conversation.children() == ()
    assert conversation.info().message_count == 6
    (usage,) = conversation.usage()
    assert (usage.calls, usage.usage.input, usage.usage.output) == (1, 5, 20)
    roles = [m["role"] for m in conversation.context("m")]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]


def test_messages_of_ours_send_the_source_into_a_branch(file: File, profile: Profile) -> None:
    """I-19."""
    file.chain(1, 4)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    conversation.append([user("text 100")])
    file.chain(5, 6, parent=4)
    done = import_into(profile, file.path).totals
    assert (done.messages, done.branches) == (2, 1)
    assert texts(conversation) == [1, 2, 3, 4, 100]
    (branch,) = conversation.children()
    assert texts(profile.open(branch.id)) == [1, 2, 3, 4, 5, 6]
    file.chain(7, 8, parent=6)
    import_into(profile, file.path)
    assert texts(profile.open(branch.id)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert import_into(profile, file.path).totals.messages == 0


@pytest.mark.parametrize("how", ["cut", "turn", "ended"])
def test_whatever_was_done_here_is_not_overruled(how: str, file: File, profile: Profile) -> None:
    file.chain(1, 4)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    if how == "cut":
        conversation.cut(next(iter(conversation.log(order="newest").items)).uid)
    elif how == "turn":
        conversation.begin_turn([user("text 100")])
    else:
        conversation.end()
    before = dict(shown(profile))
    file.say(5, 4)
    import_into(profile, file.path)
    assert before.items() <= dict(shown(profile)).items()
    (branch,) = conversation.children()
    assert texts(profile.open(branch.id)) == [1, 2, 3, 4, 5]


def test_a_resumed_copy_is_a_branch_and_no_second_chat(file: File, profile: Profile) -> None:
    file.chain(1, 4)
    copy = file.copy(8).chain(15, 16, parent=4)
    file.chain(5, 6, parent=4)
    os.utime(file.path, (1, 1))  # what was written first comes in first
    import_into(profile, file.path.parent)
    (listed,) = [c for c in profile.list().items if c.kind == "root"]
    assert listed.id == main_of(profile, file).id
    assert texts(main_of(profile, file)) == [1, 2, 3, 4, 5, 6]
    branch = profile.resolve(copy.session)
    assert branch.info().origin == listed.id
    assert texts(branch) == [1, 2, 3, 4, 15, 16]
    copy.chain(17, 18, parent=16)
    assert import_into(profile, file.path.parent).totals.messages == 2
    assert texts(branch) == [1, 2, 3, 4, 15, 16, 17, 18]


def test_a_copy_that_is_imported_first_is_the_chat(file: File, profile: Profile) -> None:
    file.chain(1, 4)
    copy = file.copy(8).chain(15, 16, parent=4)
    import_into(profile, copy.path)
    import_into(profile, file.path)
    assert main_of(profile, file).id == profile.resolve(copy.session).id
    file.chain(5, 6, parent=4)
    import_into(profile, file.path)
    assert len([c for c in profile.list().items if c.kind == "root"]) == 1
    assert sorted(texts(c) for c in conversations(profile)) == [
        [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 15, 16],
    ]  # fmt: skip


def test_what_was_deleted_stays_deleted(file: File, profile: Profile) -> None:
    file.chain(1, 4)
    import_into(profile, file.path)
    profile.delete(main_of(profile, file).id)
    file.chain(5, 6, parent=4)
    done = import_into(profile, file.path)
    assert (done.totals.messages, done.totals.deleted) == (0, 1)
    assert profile.list().items == ()
    done = import_into(profile, file.path, again=True)
    assert done.totals.messages == 6
    assert texts(main_of(profile, file)) == [1, 2, 3, 4, 5, 6]
    assert import_into(profile, file.path).totals.messages == 0


def test_what_comes_back_finds_the_branches_that_were_left(file: File, profile: Profile) -> None:
    file.chain(1, 4).say(5, 2).say(9, 4)
    import_into(profile, file.path)
    (branch,) = main_of(profile, file).children()
    profile.delete(main_of(profile, file).id)
    assert import_into(profile, file.path).totals.messages == 0
    import_into(profile, file.path, again=True)
    assert texts(main_of(profile, file)) == [1, 2, 5]
    assert sorted(texts(c) for c in conversations(profile)) == [[1, 2, 3, 4, 9], [1, 2, 5]]
    assert texts(profile.open(branch.id)) == [1, 2, 3, 4, 9]
    assert import_into(profile, file.path).totals.messages == 0


def test_a_deleted_branch_stays_deleted(file: File, profile: Profile) -> None:
    file.chain(1, 4).say(5, 2).say(9, 4)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    profile.delete(conversation.children()[0].id)
    file.say(10, 9).say(6, 5)
    import_into(profile, file.path)
    assert conversation.children() == ()
    assert texts(conversation) == [1, 2, 5, 6]


def test_archived_ones_are_out_of_the_list_and_never_pruned(
    file: File, store: Store, profile: Profile
) -> None:
    file.chain(1, 4)
    import_into(profile, file.path, archive=True)
    assert profile.list().items == ()
    (listed,) = profile.list(ListFilter(archived=True)).items
    assert listed.id == main_of(profile, file).id
    profile.open(listed.id).end()
    assert store.prune(Policy(rules=(Rule(age=1),))).items == ()


def test_two_profiles_know_nothing_of_each_other(file: File, store: Store) -> None:
    file.chain(1, 4)
    for name in ("a", "b"):
        assert import_into(store.profile(name), file.path).totals.messages == 4
    ids = {main_of(store.profile(name), file).id for name in ("a", "b")}
    assert len(ids) == 2


def test_a_file_that_begins_anew_goes_on(file: File, profile: Profile) -> None:
    """Rotated or truncated: what was imported is not in it any more."""
    file.chain(1, 4)
    import_into(profile, file.path)
    file.path.write_text("")
    file.chain(5, 6, parent=4)
    assert import_into(profile, file.path).totals.messages == 2
    assert texts(main_of(profile, file)) == [1, 2, 3, 4, 5, 6]


def test_an_unknown_parent_is_a_continuation_and_told(file: File, profile: Profile) -> None:
    file.chain(1, 4).say(6, 99)
    done = import_into(profile, file.path)
    assert texts(main_of(profile, file)) == [1, 2, 3, 4, 6]
    assert "names a parent that is not there" in done.sources[0].warnings[0]


def test_times_order_and_facts_are_those_of_the_source(file: File, profile: Profile) -> None:
    file.chain(1, 4)
    import_into(profile, file.path)
    info = main_of(profile, file).info()
    second = 1_000_000
    start = 1_767_225_600 * second
    assert (info.created_at, info.active_at) == (start + second, start + 4 * second)
    assert (info.cwd, info.git_branch, info.source) == ("/repo", "main", "claude-code")
    assert info.imported_at is not None
    messages = list(main_of(profile, file).messages())
    assert [m.uid for m in messages] == [uuid(n).replace("-", "") for n in range(1, 5)]
    assert all(m.tokens for m in messages)


def test_a_title_that_a_person_gave_here_stays(file: File, profile: Profile) -> None:
    def name(title: str) -> None:
        file.write({"type": "custom-title", "customTitle": title, "sessionId": file.session})

    file.chain(1, 2)
    name("First")
    import_into(profile, file.path)
    assert main_of(profile, file).info().title == "First"
    name("Second")
    import_into(profile, file.path)
    assert main_of(profile, file).info().title == "Second"
    main_of(profile, file).set_title("Mine")
    name("Third")
    import_into(profile, file.path)
    assert main_of(profile, file).info().title == "Mine"


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6, 7, 8])
def test_titles_are_the_same_whole_and_grown(
    steps: int, file: File, profile: Profile, store: Store
) -> None:
    """Of branches too, and whoever gave which first."""
    records: list[dict[str, Any]] = [
        {"type": "custom-title", "customTitle": "Mine", "sessionId": file.session},
        {"type": "ai-title", "aiTitle": "Robot", "sessionId": file.session},
    ]
    file.write(*records)
    file.chain(1, 2).say(3, 1).say(5, 2)
    file.write({"type": "ai-title", "aiTitle": "Later", "sessionId": file.session})
    file.say(6, 5)
    rows = file.path.read_text().splitlines(keepends=True)
    import_into(store.profile("whole"), file.path)
    file.path.write_text("".join(rows[:steps]))
    import_into(profile, file.path)
    file.path.write_text("".join(rows))
    import_into(profile, file.path)
    assert shown(profile) == shown(store.profile("whole"))
    assert {facts["title"] for _, facts in shown(profile)} == {"Mine"}


def test_a_compaction_that_cannot_be_taken_is_not_taken_later(file: File, profile: Profile) -> None:
    """It stands for a call without its result, and what came later hides that call."""
    call = {"content": [{"type": "tool_use", "id": "t", "name": "x", "input": {}}]}
    file.say(1, None).say(2, 1).say(3, 2).say(4, 3, **call)
    file.write({
        "type": "system", "subtype": "compact_boundary", "uuid": uuid(90), "parentUuid": None,
        "logicalParentUuid": uuid(4), "sessionId": file.session,
        "timestamp": "2026-01-01T00:01:00.000Z", "compactMetadata": {
            "trigger": "auto", "preTokens": 9, "preservedSegment": {
                "headUuid": uuid(4), "anchorUuid": uuid(90), "tailUuid": uuid(4)}},
    })  # fmt: skip
    file.say(5, 2).say(6, 5)
    import_into(profile, file.path)
    before = shown(profile)
    assert [m["content"] for m in main_of(profile, file).context("m")] == [
        "text 1", "text 2", "text 5", "text 6",
    ]  # fmt: skip
    import_into(profile, file.path)
    assert shown(profile) == before


def test_a_file_that_has_not_changed_writes_nothing(
    file: File, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.chain(1, 4).say(5, 2).say(9, 4)
    file.write({"type": "custom-title", "customTitle": "One", "sessionId": file.session})
    file.write({"type": "custom-title", "customTitle": "Two", "sessionId": file.session})
    import_into(profile, file.path)
    monkeypatch.setattr(Importing, "land", lambda *_: pytest.fail("it landed something"))
    assert import_into(profile, file.path).totals.unchanged == 1


@pytest.mark.parametrize("how", ["append", "cut", "end", "turn", "delete", "title"])
def test_what_is_done_between_the_plan_and_its_landing_counts(
    how: str, file: File, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made again, and whatever was done here stands."""
    file.chain(1, 4)
    import_into(profile, file.path)
    conversation = main_of(profile, file)
    land = Importing.land

    def meddle(importing: Importing, landings: Sequence[Landing]) -> None:
        monkeypatch.setattr(Importing, "land", land)
        match how:
            case "append":
                conversation.append([user("text 100")])
            case "cut":
                conversation.cut(conversation.message(3).uid)
            case "end":
                conversation.end()
            case "turn":
                conversation.begin_turn([user("text 100")])
            case "delete":
                profile.delete(conversation.id)
            case _:
                conversation.set_title("Mine")
        importing.land(landings)

    file.say(5, 4)
    file.write({"type": "custom-title", "customTitle": "Theirs", "sessionId": file.session})
    monkeypatch.setattr(Importing, "land", meddle)
    done = import_into(profile, file.path)
    if how == "delete":
        assert profile.list().items == ()
        assert done.totals.deleted == 1
        return
    shown_now = texts(conversation)
    expected = {
        "append": [1, 2, 3, 4, 100], "cut": [1, 2], "end": [1, 2, 3, 4],
        "turn": [1, 2, 3, 4, 100], "title": [1, 2, 3, 4, 5],
    }  # fmt: skip
    assert shown_now == expected[how]
    branches = [texts(profile.open(child.id)) for child in conversation.children()]
    assert branches == ([] if how == "title" else [[1, 2, 3, 4, 5]])
    assert (how == "title") == (conversation.info().title == "Mine")
