"""Which sessions of Hermes are one conversation: each rule of the strict lineage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.importers.formats.hermes_lineage import (
    Chain,
    Children,
    Lineage,
    Row,
    children_of,
    lineages,
    walk,
)


def rotated(id: str, parent: str | None = None, **more: object) -> Row:
    return Row(id=id, parent=parent, ended=1.0, reason="compression", **more)  # type: ignore[arg-type]


def live(id: str, parent: str | None = None, **more: object) -> Row:
    return Row(id=id, parent=parent, **more)  # type: ignore[arg-type]


def live_tip(start: Row | None, children: Children) -> str | None:
    """The live session in which the rotated session `start` goes on; None when there is none, or
    none beyond doubt."""
    if start is None or not isinstance(start.id, str) or not start.id or not start.is_rotated:
        return None
    match walk(start, children):
        case Chain(ids=ids, end="live"):
            return ids[-1]
        case _:
            return None


def tip(*rows: Row, of: str = "a") -> str | None:
    return live_tip(next((row for row in rows if row.id == of), None), children_of(rows))


def chains(*rows: Row) -> list[tuple[str, ...]]:
    return [each.ids for each in lineages(rows)[0]]


def of(id: str, *rows: Row) -> Lineage:
    return next(each for each in lineages(rows)[0] if id in each.ids)


CHAIN = (rotated("a"), rotated("b", "a"), live("c", "b"))


def test_a_chain_of_rotations_is_one_conversation_and_its_tip_is_the_live_session() -> None:
    assert tip(*CHAIN) == "c"
    assert tip(*CHAIN, of="b") == "c"
    found, warnings = lineages(CHAIN)
    assert [(each.ids, each.kind, each.is_live) for each in found] == [
        (("a", "b", "c"), "root", True)
    ]
    assert warnings == []


def test_a_session_that_is_missing_live_or_ended_otherwise_has_no_tip() -> None:
    assert live_tip(None, {}) is None
    assert tip(live("a"), live("b", "a")) is None
    assert tip(Row(id="a", ended=1.0, reason="user_exit"), live("b", "a")) is None
    assert tip(rotated("a"), live("b", "a"), of="") is None


@pytest.mark.parametrize(
    "decoy",
    [
        live("x", "a", source="tool", config="no JSON"),
        live("x", "a", source="TOOL"),
        live("x", "a", config='{"_branched_from": "a"}'),
        live("x", "a", config='{"_delegate_from": "a"}'),
    ],
)
def test_decoys_are_passed_over_at_every_hop(decoy: Row) -> None:
    assert tip(rotated("a"), live("b", "a"), decoy) == "b"
    below = Row(id="x", parent="b", source=decoy.source, config=decoy.config)
    if decoy.config in (None, "no JSON"):
        assert tip(rotated("a"), live("b", "a"), below) == "b"
    else:  # its mark names another session than its parent
        assert tip(rotated("a"), live("b", "a"), below) is None


def test_valid_decoys_below_the_live_tip_do_not_disturb() -> None:
    below = (
        live("x", "b", config='{"_branched_from": "b"}'),
        live("y", "b", config='{"_delegate_from": "b"}'),
        live("z", "b", source="tool"),
    )
    assert tip(rotated("a"), live("b", "a"), *below) == "b"


@pytest.mark.parametrize(
    "child",
    [
        live("x", "a", source=None),
        live("x", "a", source=""),
        live("x", "a", source=b"cli"),
        live("x", "a", config=b"{}"),
        live("x", "a", config=7),
        live("x", "a", config="{"),
        live("x", "a", config=""),
        live("x", "a", config="[]"),
        live("x", "a", config="null"),
        live("x", "a", config="[" * 100_000),
        live("x", "a", config='{"a": "\ud800"}'),
        live("x", "a", config='{"_branched_from": "a", "_delegate_from": "a"}'),
        live("x", "a", config='{"_branched_from": null}'),
        live("x", "a", config='{"_branched_from": 1}'),
        live("x", "a", config='{"_delegate_from": ""}'),
        live("x", "a", config='{"_delegate_from": "b"}'),
    ],
)
def test_a_malformed_child_fails_the_whole_chain_whatever_else_is_there(child: Row) -> None:
    rows = (rotated("r"), rotated("a", "r"), live("b", "a"), child)
    assert tip(*rows, of="r") is None
    assert tip(rotated("a"), child) is None
    found, warnings = lineages(rows)
    assert sorted(each.ids for each in found) == [("a",), ("b",), ("r",), ("x",)]
    assert all(each.kind == "root" for each in found)
    assert len(warnings) == 1
    assert "'r', 'a'" in warnings[0]
    assert "malformed" in warnings[0]


@pytest.mark.parametrize("reason", [None, "agent_close", "compression"])
def test_two_continuations_are_in_doubt_even_when_one_of_them_is_closed(
    reason: str | None,
) -> None:
    other = Row(id="x", parent="a", ended=None if reason is None else 2.0, reason=reason)
    rows = (rotated("a"), live("b", "a"), other)
    assert tip(*rows) is None
    found, (warning,) = lineages(rows)
    assert sorted(each.ids for each in found) == [("a",), ("b",), ("x",)]
    assert "'a', 'b', 'x'" in warning
    assert [of(id, *rows).claimed for id in "abx"] == [None, "a", "a"]


def test_a_rotated_session_without_a_child_has_no_tip_and_is_a_conversation() -> None:
    assert tip(rotated("a")) is None
    assert lineages([rotated("a")]) == ([Lineage(ids=("a",))], [])


def test_a_chain_behind_one_that_broke_is_a_chain() -> None:
    rows = (rotated("a"), rotated("b", "a"), live("x", "b"), rotated("y", "b"), live("z", "y"))
    assert sorted(chains(*rows)) == [("a",), ("b",), ("x",), ("y", "z")]
    assert len(lineages(rows)[1]) == 1


def test_a_live_session_in_the_middle_is_in_doubt() -> None:
    rows = (rotated("a"), live("b", "a"), live("c", "b"))
    assert tip(*rows) is None
    found, (warning,) = lineages(rows)
    assert sorted(each.ids for each in found) == [("a",), ("b",), ("c",)]
    assert all(each.kind == "root" for each in found)
    assert "'a', 'b', 'c'" in warning


def test_a_session_with_a_reason_that_has_not_ended_is_in_doubt() -> None:
    assert tip(rotated("a"), Row(id="b", parent="a", reason="compression")) is None
    assert tip(rotated("a"), Row(id="b", parent="a", reason="user_exit")) is None


def test_a_chain_that_ended_is_one_conversation_without_a_live_tip() -> None:
    rows = (rotated("a"), Row(id="b", parent="a", ended=2.0, reason="user_exit"))
    assert tip(*rows) is None
    assert lineages(rows) == ([Lineage(ids=("a", "b"))], [])


def test_a_circle_ends() -> None:
    rows = (rotated("a", "b"), rotated("b", "a"))
    assert tip(*rows) is None
    found, (warning,) = lineages(rows)
    assert sorted(each.ids for each in found) == [("a",), ("b",)]
    assert "came before" in warning
    assert tip(rotated("a", "a")) is None
    assert chains(rotated("a", "a")) == [("a",)]


@pytest.mark.parametrize("id", [None, "", 7, b"b"])
def test_a_continuation_without_an_id_fails_the_chain(id: object) -> None:
    rows = (rotated("a"), live(id, "a"))  # type: ignore[arg-type]
    assert tip(*rows) is None
    assert chains(*rows) == [("a",)]


@pytest.mark.parametrize("hops", [99, 100, 128, 5000])
def test_there_is_no_longest_chain(hops: int) -> None:
    ids = [f"s{at}" for at in range(hops + 1)]
    rows = [rotated(id, parent) for id, parent in zip(ids, [None, *ids], strict=False)]
    rows[-1] = live(ids[-1], ids[-2])
    assert tip(*rows, of="s0") == ids[-1]
    assert chains(*reversed(rows)) == [tuple(ids)]


def test_children_of_a_session_that_was_not_rotated_are_branches_and_delegates() -> None:
    rows = (
        live("a"),
        live("b", "a", config='{"_branched_from": "a"}'),
        live("d", "a", config='{"_delegate_from": "a"}'),
        live("t", "a", source="tool"),
        live("s", "a", source="subagent"),
    )
    assert [of(id, *rows).kind for id in "abdts"] == [
        "root", "branch", "delegate", "delegate", "delegate",
    ]  # fmt: skip
    assert {of(id, *rows).parent for id in "bdts"} == {"a"}
    old = (Row(id="a", ended=1.0, reason="branched"), live("b", "a"))
    assert of("b", *old).kind == "branch"


def test_a_malformed_child_of_a_live_session_stands_alone_and_is_named() -> None:
    found, (warning,) = lineages([live("a"), live("b", "a", config="[]")])
    assert [(each.ids, each.kind, each.claimed) for each in found] == [
        (("a",), "root", None),
        (("b",), "root", "a"),
    ]
    assert "'b'" in warning


def test_what_others_come_from_comes_before_them() -> None:
    rows = (
        live("c", "b", config='{"_delegate_from": "b"}'),
        live("b", "a2", config='{"_branched_from": "a2"}'),
        live("a2", "a"),
        rotated("a"),
    )
    assert chains(*rows) == [("a", "a2"), ("b",), ("c",)]


def test_what_comes_from_itself_comes_from_nothing() -> None:
    rows = (
        live("x", "y", config='{"_delegate_from": "y"}'),
        live("y", "x", config='{"_branched_from": "x"}'),
    )
    found, (warning,) = lineages(rows)
    assert [(each.ids, each.kind) for each in found] == [(("y",), "root"), (("x",), "delegate")]
    assert "itself" in warning


def test_a_parent_that_is_gone_is_only_a_claim() -> None:
    found, warnings = lineages([live("b", "gone", config='{"_branched_from": "gone"}')])
    assert found == [Lineage(ids=("b",), claimed="gone", is_live=True)]
    assert warnings == []


IDS = st.sampled_from(["a", "b", "c", "d", "", None, 3, b"x"])
ROWS = st.builds(
    Row,
    id=IDS,
    source=st.sampled_from(["cli", "tool", "", None, b"cli", 1]),
    parent=IDS,
    config=st.none()
    | st.binary(max_size=3)
    | st.text(max_size=5)
    | st.sampled_from(
        ['{"_branched_from": "a"}', '{"_delegate_from": "b"}', "{}", "[]", '{"_branched_from": 1}']
    ),
    ended=st.sampled_from([None, 1.0, "x"]),
    reason=st.sampled_from([None, "compression", "branched", b"compression", 5]),
)


@settings(max_examples=12 * settings.default.max_examples)
@given(st.lists(ROWS, max_size=8))
def test_whatever_the_rows_are_each_session_is_in_one_conversation_after_its_origin(
    rows: list[Row],
) -> None:
    found, _ = lineages(rows)
    ids = [id for each in found for id in each.ids]
    assert sorted(ids) == sorted({row.id for row in rows if isinstance(row.id, str) and row.id})
    seen: set[str] = set()
    for each in found:
        assert each.parent is None or each.parent in seen
        seen.update(each.ids)
        for start in each.ids:
            first = next(row for row in rows if row.id == start)
            end = live_tip(first, children_of({row.id: row for row in reversed(rows)}.values()))
            assert end is None or end == each.ids[-1]
