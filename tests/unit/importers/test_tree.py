"""Trees of messages: where each node is put."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.importers.nested import split
from clew.importers.records import ROOT
from clew.importers.tree import Node, Placed, orphans, placed


def test_the_path_to_the_current_node_comes_first() -> None:
    nodes = {
        "a": Node(None, True),
        "b": Node("a", True),
        "c": Node("b", True),
        "d": Node("a", True),
        "e": Node("d", True),
    }
    assert [each.id for each in placed(nodes, "e")] == ["a", "d", "e", "b", "c"]
    assert [each.id for each in placed(nodes, "b")] == ["a", "b", "c", "d", "e"]


def test_without_a_current_node_the_newest_leaf_stands_for_it() -> None:
    nodes = {
        "a": Node(None, True, 1),
        "b": Node("a", True, 9),
        "c": Node("b", True, None),
        "d": Node("a", True, 5),
    }
    for current in (None, "gone"):
        assert [each.id for each in placed(nodes, current)] == ["a", "b", "c", "d"]


def test_skipped_nodes_are_bridged() -> None:
    nodes = {
        "root": Node(None, False),
        "a": Node("root", True),
        "hidden": Node("a", False),
        "hidden too": Node("hidden", False),
        "b": Node("hidden too", True),
        "c": Node("hidden", True),
    }
    assert placed(nodes, "b") == [Placed("a", ROOT), Placed("b", "a"), Placed("c", "a")]
    assert placed(nodes, "hidden")[0] == Placed("a", ROOT)


def test_cycles_and_missing_parents_lose_nothing() -> None:
    nodes = {
        "a": Node("c", True),
        "b": Node("a", True),
        "c": Node("b", True),
        "self": Node("self", True),
        "orphan": Node("gone", True),
        "child": Node("orphan", True),
    }
    found = placed(nodes, None)
    assert sorted(each.id for each in found) == sorted(nodes)
    assert [each.id for each in found if each.parent == ROOT] == ["orphan", "b", "self"]
    assert orphans(nodes) == 1


names = st.sampled_from([f"n{at}" for at in range(12)])
trees = st.dictionaries(names, st.builds(Node, st.none() | names, st.booleans(), st.none()))


@settings(max_examples=12 * settings.default.max_examples, deadline=None)
@given(trees, st.none() | names)
def test_every_kept_node_comes_once_and_after_its_parent(
    nodes: dict[str, Node], current: str | None
) -> None:
    found = placed(nodes, current)
    assert sorted(each.id for each in found) == sorted(id for id in nodes if nodes[id].kept)
    seen = {ROOT}
    for each in found:
        assert each.parent in seen
        seen.add(each.id)
    if current in nodes and nodes[current].kept:
        path = [current]
        parents = {each.id: each.parent for each in found}
        while (above := parents[path[0]]) != ROOT:
            path.insert(0, above)
        assert [each.id for each in found[: len(path)]] == path


def test_a_long_chain_costs_no_depth() -> None:
    nodes = {f"{at}": Node(f"{at - 1}" if at else None, at % 2 == 0) for at in range(20_000)}
    found = placed(nodes, "19998")
    assert found[-1] == Placed("19998", "19996")


def test_a_document_is_taken_apart_at_its_messages() -> None:
    document = {
        "id": 1,
        "messages": [
            {"m": "a", "children": [{"m": "b", "args": {"children": [{"not": "one"}]}}], "z": 1},
            {"m": '"children":[', "text": "messages"},
        ],
        "after": {"messages": [{"not": "one"}]},
    }
    whole, *pieces = split(json.dumps(document).encode())
    assert json.loads(whole.data) == {"id": 1, "messages": 0, "after": document["after"]}
    assert [(each.above, json.loads(each.data)) for each in pieces] == [
        (0, {"m": "a", "children": 0, "z": 1}),
        (1, {"m": "b", "args": {"children": [{"not": "one"}]}}),
        (0, {"m": '"children":[', "text": "messages"}),
    ]


@settings(max_examples=6 * settings.default.max_examples, deadline=None)
@given(st.text(alphabet='{}[]",:\\ab', max_size=60), st.booleans())
def test_no_text_stops_the_splitter(text: str, begun: bool) -> None:
    data = (b'{"messages":[{"children":[' if begun else b"") + text.encode()
    pieces = split(data)
    assert all(each.above < max(at, 1) for at, each in enumerate(pieces))


def test_an_open_string_is_passed_once() -> None:
    assert len(split(b'{"messages":[' + b'{"\\"' * 200_000)) == 2
