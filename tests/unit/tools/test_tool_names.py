"""The names by which a model calls tools of servers."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from clew.tools.names import prefix, tool_name

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
pieces = st.text("ab_-.é ", max_size=4) | st.text("a_", min_size=20, max_size=80)


def test_a_plain_name_is_server_and_tool() -> None:
    assert tool_name("github", "create_issue") == "github__create_issue"
    assert tool_name("my-server", "a__b") == "my-server__a__b"


def test_one_that_is_changed_carries_a_hash_so_that_two_stay_two() -> None:
    dotted, plain = tool_name("fs", "read.file"), tool_name("fs", "read_file")
    assert plain == "fs__read_file"
    assert re.fullmatch(r"fs__read_file_[0-9a-f]{8}", dotted)
    long = [tool_name("fs", "x" * 80 + end) for end in "ab"]
    assert len(set(long)) == 2
    assert [len(name) for name in long] == [64, 64]


def test_servers_whose_names_end_in_the_divider_cannot_take_others_names() -> None:
    assert tool_name("a", "b__c") == "a__b__c"
    assert tool_name("a__b", "c") != "a__b__c"
    assert tool_name("a_", "b") != tool_name("a", "_b")


@given(st.sets(st.tuples(pieces, pieces), max_size=30))
def test_names_are_valid_unique_and_begin_with_their_servers(pairs: set[tuple[str, str]]) -> None:
    names = {pair: tool_name(*pair) for pair in pairs}
    assert len(set(names.values())) == len(pairs)
    for (server, _), name in names.items():
        assert VALID.fullmatch(name)
        assert name.startswith(prefix(server))
