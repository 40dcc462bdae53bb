"""Lines of keys, in TOML and in JSON."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from clew.config.scan import Key, lines_of

TEXT = '''\
# a comment with = and [brackets]
model = "openai/gpt-5" # [x]
"quoted key".'and.this' = 1
fallback = [ # what
  "a",   # "b"
  'c # d',
]
system = """
[limits]
not = "a key" \\""" still
"""
raw = \'\'\'
[x] = 'y\'\'\'
when = 2026-01-01T10:00:00Z

[limits]
steps = 5
[ models . "openai/gpt-5" ] # spaces
price = { input = 1, output = { deep = [1, {x = 2}] } }
[[list]]
a = 1
[[list]]
a = 2
'''


def test_each_key_has_its_line() -> None:
    assert lines_of(TEXT) == {
        ("model",): 2, ("quoted key",): 3, ("quoted key", "and.this"): 3, ("fallback",): 4,
        ("fallback", 0): 5, ("fallback", 1): 6, ("system",): 8, ("raw",): 12, ("when",): 14,
        ("limits",): 16, ("limits", "steps"): 17, ("models", "openai/gpt-5"): 18,
        ("models", "openai/gpt-5", "price"): 19, ("models", "openai/gpt-5", "price", "input"): 19,
        ("models", "openai/gpt-5", "price", "output"): 19,
        ("models", "openai/gpt-5", "price", "output", "deep"): 19,
        ("models", "openai/gpt-5", "price", "output", "deep", 0): 19,
        ("models", "openai/gpt-5", "price", "output", "deep", 1): 19,
        ("models", "openai/gpt-5", "price", "output", "deep", 1, "x"): 19,
        ("list",): 20, ("list", 0): 20, ("list", 0, "a"): 21, ("list", 1): 22, ("list", 1, "a"): 23,
    }  # fmt: skip


def test_json_has_lines_too() -> None:
    text = '{\n "mcpServers": {\n  "a": {"command": "x",\n   "args": ["y",\n "z"]}}\n}'
    assert lines_of(text) == {
        ("mcpServers",): 2, ("mcpServers", "a"): 3, ("mcpServers", "a", "command"): 3,
        ("mcpServers", "a", "args"): 4, ("mcpServers", "a", "args", 0): 4,
        ("mcpServers", "a", "args", 1): 5,
    }  # fmt: skip


def places(value: Any, at: Key = ()) -> set[Key]:
    """All ways to something in plain data."""
    found = {at} if at else set[Key]()
    listed = enumerate(value) if isinstance(value, list) else ()
    for name, inner in value.items() if isinstance(value, dict) else listed:
        found |= places(inner, (*at, name))
    return found


KEYS = st.text(st.characters(codec="utf-8"), max_size=5)
PLAIN = st.recursive(
    st.integers() | st.booleans() | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, PLAIN, max_size=4), st.sampled_from([None, 1]))
def test_every_key_of_any_json_is_found(data: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(data, indent=indent)
    assert lines_of(text).keys() == places(json.loads(text))


@given(st.lists(st.tuples(KEYS, st.integers() | st.lists(KEYS, max_size=3)), max_size=5))
@example([("[", ["]"]), ("#", 1), ("=", ["{", "}"])])
def test_every_key_of_any_toml_is_found(pairs: list[tuple[str, Any]]) -> None:
    data = dict(pairs)
    lines = [f"{json.dumps(key)} = {json.dumps(value)} # {{[\"'" for key, value in data.items()]
    text = "[table]\n" + "\n".join(lines)
    if any("\\ud" in line or "\x7f" in line for line in lines):  # JSON escapes that TOML has not
        return
    read = tomllib.loads(text)
    found = lines_of(text)
    assert found.keys() == places(read)
    assert [found["table", key] for key in read["table"]] == [*range(2, 2 + len(data))]


@given(st.text(max_size=60))
def test_what_is_no_toml_gives_fewer_lines_and_no_error(text: str) -> None:
    assert all(line >= 1 for line in lines_of(text).values())


def test_depth_has_an_end() -> None:
    assert lines_of("a = " + "[" * 100_000) is not None
