"""What went wrong in other tools' imports, exports and resumes, as public reports tell it: each
restated with files of Claude Code's and ChatGPT's kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from exporting import brought, exported, lines
from test_import_rules import File, main_of, texts

import clew
from clew.store.profile import Profile
from imports import conversations, import_into, shown


@pytest.fixture
def profile(tmp_path: Path):
    with clew.open(tmp_path / "s.db") as store:
        yield store.profile("p")
        assert not store.verify()


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "projects", 7)


def node(id: str, parent: str | None, role: str, text: str, **fields: Any) -> dict[str, Any]:
    message = {
        "id": id, "author": {"role": role}, "create_time": 1.0,
        "content": {"content_type": "text", "parts": [text]}, **fields,
    }  # fmt: skip
    return {"id": id, "parent": parent, "children": [], "message": message}


def chatgpt(path: Path, *nodes: dict[str, Any], current: str) -> Path:
    path.write_text(
        json.dumps([{
            "id": "c", "title": "Trip", "create_time": 1000.0, "update_time": 2000.0,
            "current_node": current, "mapping": {each["id"]: each for each in nodes},
        }])
    )  # fmt: skip
    return path


def test_b50_any_id_of_a_line_opens_it(file: File, profile: Profile) -> None:
    file.chain(1, 4)
    copy = file.copy(8)
    import_into(profile, file.path.parent)
    assert profile.resolve(file.session).id == profile.resolve(copy.session).id


def test_b53_a_parent_that_was_never_written_is_a_continuation(
    file: File, profile: Profile
) -> None:
    file.chain(1, 4).say(5, 999).chain(6, 55, parent=5)
    done = import_into(profile, file.path)
    assert texts(main_of(profile, file)) == list(range(1, 56))
    assert len(done.sources[0].warnings) == 1
    assert len(main_of(profile, file).context("m")) == 55


def test_b58_one_bad_record_hides_nothing_behind_it(file: File, profile: Profile) -> None:
    file.chain(1, 39)
    file.write({"type": "user", "uuid": 40, "parentUuid": [], "message": {"content": {"x": 1}}})
    file.say(41, 39).chain(42, 100, parent=41)
    import_into(profile, file.path)
    seen = texts(main_of(profile, file))
    assert [n for n in seen if n != 40] == [*range(1, 40), *range(41, 101)]


def test_b62_a_hit_bears_the_time_of_its_message(file: File, profile: Profile) -> None:
    file.chain(1, 9)
    import_into(profile, file.path)
    (hit,) = profile.search('"text 9"').hits
    assert hit.created_at == main_of(profile, file).message(9).created_at


def test_b76_half_a_line_costs_itself(file: File, profile: Profile) -> None:
    file.chain(1, 2)
    with file.path.open("a") as stream:
        stream.write('{"type":"user","uuid":"half","message":{"role"')
    file.say(3, 2).say(4, 3).say(5, 4)
    done = import_into(profile, file.path)
    assert texts(main_of(profile, file))[-2:] == [4, 5]
    assert done.totals.damaged == 1


def test_b77_a_run_of_nul_bytes_is_passed_over(file: File, profile: Profile) -> None:
    file.chain(1, 3)
    with file.path.open("ab") as stream:
        stream.write(b"\0" * 400 + b"\n")
    file.chain(4, 6, parent=3)
    done = import_into(profile, file.path)
    conversation = main_of(profile, file)
    assert texts(conversation) == [1, 2, 3, 4, 5, 6]
    assert len(conversation.context("m")) == 6
    assert [d.where for d in done.sources[0].damaged] == ["line 4"]


@pytest.mark.parametrize("text", ["ok \ud800 end", "a\0b", "a\u2028b\u2029c\u0085d"])
def test_b83_b85_b86_texts_go_through_import_and_export(
    text: str, file: File, profile: Profile, tmp_path: Path
) -> None:
    file.say(1, None, content=text).chain(2, 6, parent=1)
    import_into(profile, file.path)
    data = exported(profile)
    assert len(lines(data)) == len(data.decode().splitlines())
    with clew.open(tmp_path / "other.db") as other:
        assert brought(other.profile("p"), data).messages == 6
        assert shown(other.profile("p")) == shown(profile)
        assert main_of(other.profile("p"), file).message(1).text == text


def test_b91_children_follow_from_parents(profile: Profile, tmp_path: Path) -> None:
    nodes = [
        node("a", None, "user", "text 1"), node("b", "a", "assistant", "text 2"),
        node("c", "b", "user", "text 3"), node("d", "a", "assistant", "text 4"),
        node("e", "d", "user", "text 5"),
    ]  # fmt: skip
    nodes[0]["children"] = ["e", "nobody"]
    import_into(profile, chatgpt(tmp_path / "c.json", *nodes, current="c"))
    assert sorted(texts(c) for c in conversations(profile)) == [[1, 2, 3], [1, 4, 5]]
    assert texts(profile.resolve("c")) == [1, 2, 3]


def test_b94_order_is_that_of_the_file(file: File, profile: Profile) -> None:
    """Whatever the clocks of those who wrote it said."""
    file.say(5, None).say(2, 5).say(9, 2).say(4, 9)
    import_into(profile, file.path)
    assert texts(main_of(profile, file)) == [5, 2, 9, 4]


def test_b97_nodes_that_are_left_out_are_bridged(profile: Profile, tmp_path: Path) -> None:
    hidden = node("s", "u", "system", "", metadata={"is_visually_hidden_from_conversation": True})
    empty = {"id": "n", "parent": "s", "children": [], "message": None}
    nodes = [
        {"id": "root", "parent": None, "children": [], "message": None},
        node("u", "root", "user", "text 1"), hidden, empty,
        node("x", "n", "assistant", "text 2", create_time=None),
    ]  # fmt: skip
    import_into(profile, chatgpt(tmp_path / "c.json", *nodes, current="x"))
    (conversation,) = conversations(profile)
    assert texts(conversation) == [1, 2]


def test_b98_dates_ids_order_and_titles_survive(profile: Profile, tmp_path: Path) -> None:
    nodes = [node("a", None, "user", "text 1"), node("b", "a", "assistant", "text 2")]
    import_into(profile, chatgpt(tmp_path / "c.json", *nodes, current="b"))
    with clew.open(tmp_path / "other.db") as other:
        brought(other.profile("p"), exported(profile))
        (conversation,) = conversations(other.profile("p"))
        info = conversation.info()
        assert info.id == profile.resolve("c").id
        assert (info.title, info.created_at) == ("Trip", 1000 * 1_000_000)
        assert texts(conversation) == [1, 2]
