"""The label of what a provider's cache can hold of a request."""

from __future__ import annotations

import copy
import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.prefix import continues, prefix_of

CHAT = {
    "model": "m-1", "temperature": 0.3, "max_tokens": 90, "stream": True,
    "tools": [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": "Be exact."}, {"role": "user", "content": "go"},
        {"role": "assistant", "content": "well"}, {"role": "user", "content": "on"},
    ],
}  # fmt: skip


def changed(payload: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(dict(payload)), **fields}


def test_it_is_a_short_label_of_all_messages_but_the_last() -> None:
    label = prefix_of(CHAT, "messages")
    count, digest = label.split(":")
    assert count == "3"
    assert len(digest) == 40
    int(digest, 16)
    assert prefix_of(changed(CHAT), "messages") == label


def test_a_request_that_grew_begins_as_the_one_before() -> None:
    label = prefix_of(CHAT, "messages")
    more = [*CHAT["messages"][:3], {"role": "user", "content": "on!"}, {"role": "tool"}]
    assert continues(label, CHAT, "messages")
    assert continues(label, changed(CHAT, messages=more), "messages")
    assert continues(label, changed(CHAT, messages=more[:3]), "messages")
    assert not continues(label, changed(CHAT, messages=more[:2]), "messages")
    assert not continues(label, changed(CHAT, messages=more[::-1]), "messages")
    assert not continues(label, changed(CHAT, messages=[]), "messages")


@pytest.mark.parametrize("field", ["model", "tools", "system", "instructions"])
def test_what_stands_before_the_messages_counts(field: str) -> None:
    other = changed(CHAT, **{field: "another"})
    assert prefix_of(other, "messages") != prefix_of(CHAT, "messages")
    assert not continues(prefix_of(CHAT, "messages"), other, "messages")


def test_how_to_answer_does_not_count() -> None:
    other = changed(CHAT, temperature=1, max_tokens=4, stream=False, metadata={"a": 1})
    assert prefix_of(other, "messages") == prefix_of(CHAT, "messages")


def test_marks_of_a_cache_do_not_count_wherever_they_stand() -> None:
    """They move from request to request."""

    def request(mark: dict[str, Any]) -> dict[str, Any]:
        inner = {"type": "text", "text": "out", **mark}
        result = {"type": "tool_result", "tool_use_id": "a", "content": [inner], **mark}
        return {
            "model": "c", "system": [{"type": "text", "text": "Be exact.", **mark}],
            "tools": [{"name": "run", "input_schema": {"type": "object"}, **mark}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "go", **mark}]},
                {"role": "user", "content": [result]}, {"role": "user", "content": "last"},
            ],
        }  # fmt: skip

    bare, marked = request({}), request({"cache_control": {"type": "ephemeral"}})
    before = copy.deepcopy(marked)
    assert prefix_of(bare, "messages") == prefix_of(marked, "messages")
    assert continues(prefix_of(marked, "messages"), bare, "messages")
    assert marked == before


def test_the_order_of_keys_does_not_count_and_that_of_tools_does() -> None:
    turned = json.loads(json.dumps(CHAT), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert prefix_of(turned, "messages") == prefix_of(CHAT, "messages")
    two = [{"name": "a"}, {"name": "b"}]
    first, second = changed(CHAT, tools=two), changed(CHAT, tools=two[::-1])
    assert prefix_of(first, "messages") != prefix_of(second, "messages")


@pytest.mark.parametrize(
    "given", ["", "x", "3", "3:", ":abc", "-1:a", "٣:a", "9" * 5_000 + ":a", "3:a"]
)
def test_what_is_no_label_of_a_request_continues_nothing(given: str) -> None:
    assert not continues(given, CHAT, "messages")


@pytest.mark.parametrize("messages", [None, [], "words"])
def test_a_request_of_one_message_has_what_stands_before_it(messages: Any) -> None:
    payload = {"model": "m", "instructions": "Be exact.", "input": messages}
    label = prefix_of(payload, "input")
    assert label.startswith("0:")
    assert continues(label, changed(payload, input=[{"role": "user"}]), "input")


def test_arguments_of_any_depth_are_taken() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = {"a": [deep]}
    payload = {"messages": [{"content": deep}, {}]}
    assert continues(prefix_of(payload, "messages"), payload, "messages")


def test_a_picture_is_not_copied() -> None:
    """Its base64 may take most of a request."""
    payload = {"messages": [{"content": [{"url": "data:image/png;base64," + "A" * 8_000_000}]}, {}]}
    prefix_of(payload, "messages")
    tracemalloc.start()
    try:
        prefix_of(payload, "messages")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("x" * 5_000)
    | st.just("\ud83d"),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3) | st.just("cache_control"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
lists = st.lists(values, max_size=6)


def bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "cache_control"}
    return [bare(v) for v in value] if isinstance(value, list) else value


@given(lists, lists, values)
def test_it_says_whether_one_list_begins_as_the_other(
    one: list[Any], other: list[Any], tools: Any
) -> None:
    first, second = ({"tools": tools, "input": each} for each in (one, other))
    kept = [json.dumps(bare(each), sort_keys=True) for each in one[:-1]]
    begins = [json.dumps(bare(each), sort_keys=True) for each in other[: len(kept)]] == kept
    assert continues(prefix_of(first, "input"), second, "input") is begins


@given(lists, lists)
def test_what_follows_the_beginning_does_not_count(one: list[Any], more: list[Any]) -> None:
    label = prefix_of({"messages": [*one, None]}, "messages")
    assert continues(label, {"messages": one + more}, "messages")
    assert len(label) <= 200
