"""The schemas of the agent's tools, and what calls of them answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.compaction.lookup import MOST
from clew.compaction.tools import call, tools
from clew.errors import InputError
from clew.testing.reference import ReferenceStore


@pytest.fixture(scope="module")
def conv() -> Any:
    made = ReferenceStore().profile("me").create()
    made.append([clew.user("The port is 6543."), clew.assistant("Noted."), clew.user("Go on.")])
    return made


def said(conv: Any, name: str, arguments: Any) -> str:
    return call(conv, None, name, arguments)


def test_the_schemas_have_the_form_of_each_api() -> None:
    chat, responses, anthropic = (tools(form) for form in ("chat", "responses", "anthropic"))
    assert [tool["function"]["name"] for tool in chat] == ["recall", "search"]
    assert all(tool["type"] == "function" for tool in (*chat, *responses))
    assert [tool["name"] for tool in responses] == ["recall", "search"]
    assert [tool["name"] for tool in anthropic] == ["recall", "search"]
    for one, other, third in zip(chat, responses, anthropic, strict=True):
        schema = one["function"]["parameters"]
        assert schema == other["parameters"] == third["input_schema"]
        assert set(schema["required"]) <= set(schema["properties"])
    with pytest.raises(InputError, match="'anthropic'"):
        tools("gemini")  # pyright: ignore[reportArgumentType]


def test_the_schemas_are_the_same_each_time_and_the_callers_own() -> None:
    """The same bytes, so that a provider's cache holds; a host that changes one changes its own."""
    first = json.dumps(tools())
    tools()[0]["function"]["parameters"]["properties"].clear()
    assert json.dumps(tools()) == first


def test_a_call_answers_with_text(conv: Any) -> None:
    assert "The port is 6543." in said(conv, "recall", '{"ref": "1"}')
    assert "The port is 6543." in said(conv, "recall", {"ref": 1})
    found = said(conv, "search", '{"query": "which port?", "top": 1}')
    assert found.startswith("[@1] user, ")
    assert "The port is 6543." in found
    assert "Noted." not in found


@pytest.mark.parametrize("arguments", ['"1"', "1", "[@1]", {"ref": ["1", 2]}, '{"ref": [1, 2]}'])
def test_what_a_model_writes_beside_the_schema_is_understood(conv: Any, arguments: Any) -> None:
    assert "The port is 6543." in said(conv, "recall", arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "mend"),
    [
        ("recall", "", '"ref"'),
        ("recall", "{}", '"ref"'),
        ("recall", '{"ref": "the first"}', '"12-40"'),
        ("recall", '{"ref": "1", ', "quotes and braces"),
        ("recall", {"ref": None}, '"ref"'),
        ("recall", {"ref": {"a": 1}}, '"ref"'),
        ("search", "{}", '"query"'),
        ("search", {"query": "?!"}, "has no word"),
        ("search", {"query": "port", "top": "many"}, f"1 to {MOST}"),
        ("recall_all", "{}", "recall or search"),
    ],
)
def test_a_wrong_call_is_told_what_would_be_right(
    conv: Any, name: str, arguments: Any, mend: str
) -> None:
    answer = said(conv, name, arguments)
    assert answer.startswith("Error: ")
    assert mend in answer


def test_a_number_of_hits_out_of_bounds_is_brought_into_them(conv: Any) -> None:
    assert "The port" in said(conv, "search", {"query": "port", "top": 10**9})
    assert "The port" in said(conv, "search", {"query": "port", "top": "0"})


def test_nothing_found_says_what_to_try(conv: Any) -> None:
    assert said(conv, "search", {"query": "zebra"}).startswith("Nothing was found.")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
arguments_of = (
    st.text(max_size=60)
    | json_values.map(json.dumps)
    | st.dictionaries(st.sampled_from(["ref", "query", "top", "x"]), json_values)
)


@given(st.sampled_from(["recall", "search", "other"]), arguments_of)
def test_no_argument_of_a_model_raises(name: str, arguments: Any) -> None:
    made = ReferenceStore().profile("me").create()
    made.append([clew.user("one"), clew.assistant("two")])
    assert isinstance(said(made, name, arguments), str)
