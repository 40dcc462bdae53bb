"""Whether a call may run."""

from __future__ import annotations

import pytest

from clew.tools.api import Verdict
from clew.tools.names import tool_name
from clew.tools.policy import decide


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({}, "ask"),
        ({"fs__write": "allow"}, "allow"),
        ({"fs.*": "deny"}, "deny"),
        ({"fs__*": "allow"}, "allow"),
        ({"fs.*": "deny", "fs__write": "allow"}, "allow"),
        ({"fs.*": "deny", "fs.write": "allow"}, "allow"),
        ({"fs.write": "allow", "fs__write": "deny"}, "deny"),
        ({"fs__read": "allow", "other.*": "allow"}, "ask"),
    ],
)
def test_the_exact_name_then_the_server_then_the_tool_itself(
    policy: dict[str, Verdict], wanted: Verdict
) -> None:
    assert decide(policy, "fs__write", "fs", "ask") == wanted


def test_a_person_can_allow_what_is_asked_and_not_what_is_denied() -> None:
    """The configuration has the last word."""
    assert decide({}, "fs__write", "fs", "ask", ("fs__write",)) == "allow"
    assert decide({"fs.*": "ask"}, "fs__write", "fs", "allow", {"fs__write"}) == "allow"
    assert decide({"fs.*": "deny"}, "fs__write", "fs", "ask", {"fs__write"}) == "deny"
    assert decide({}, "fs__write", "fs", "ask", {"fs__read"}) == "ask"


def test_a_server_is_meant_by_its_name_in_the_configuration_or_in_its_tools() -> None:
    for key in ("my.server.*", "my.server__*", "my_server__*"):
        assert decide({key: "deny"}, "my_server__x_12345678", "my.server", "ask") == "deny"


def test_a_tool_whose_name_had_to_be_changed_is_meant_by_its_own() -> None:
    name = tool_name("fs", "read.file")
    assert decide({"fs.read.file": "allow"}, name, "fs", "ask") == "allow"
    assert decide({"fs.read_file": "allow"}, name, "fs", "ask") == "ask"
