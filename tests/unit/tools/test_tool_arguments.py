"""The arguments of a call, as a model writes them, and what it is told when they are wrong."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from clew.errors import InputError
from clew.tools.arguments import decode
from clew.tools.schema import faults

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert decode(text) == {}


def test_an_object_is_what_it_says() -> None:
    assert decode('{"a": {"b": [1, 2.5, null]}}') == {"a": {"b": [1, 2.5, None]}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"path": "a', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"path": "\\ud800"}', "no JSON"),
        ("[1]", "are an array"),
        ('"a"', "are a string"),
        ("null", "are null"),
        ("true", "are a boolean"),
        ("1.5", "are a number"),
    ],
)
def test_what_is_no_object_is_told(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as raised:
        decode(text)
    assert "send one JSON object" in str(raised.value)
    assert len(str(raised.value)) < 600


def test_all_faults_are_named_with_their_place() -> None:
    found = faults(SCHEMA, {"lines": [1, "two"], "mode": "r"})
    assert len(found) == 3
    assert "lines.1: 'two' is not of type 'integer'" in found
    assert any("'path' is a required property" in fault for fault in found)
    assert faults(SCHEMA, {"path": "a", "lines": []}) == ()


def test_a_fault_does_not_hold_the_whole_value() -> None:
    (found,) = faults(SCHEMA, {"path": ["x" * 100_000]})
    assert len(found) < 400


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"properties": {"path": {"$ref": "https://example.invalid/schema.json"}}},
        {"properties": {"path": {"$ref": "#/$defs/nothing"}}},
        {"properties": {"path": {"pattern": "("}}},
        {"$ref": "#"},
        {"$schema": "https://example.invalid/draft", "type": "object"},
    ],
)
def test_a_broken_schema_checks_nothing_and_fetches_nothing(schema: dict[str, Any]) -> None:
    """The tool itself will say."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert faults(schema, {"path": "a"}) == ()
