"""System prompts and tool sets: immutable, once by content, changed by an explicit act only."""

from __future__ import annotations

import pytest
from talk import compact, talk

import clew

TOOLS = ({"type": "function", "function": {"name": "b"}}, {"name": "a", "input_schema": {}})


def prompt_of(conv: clew.Conversation) -> str | None:
    return conv.context_inputs().prompt


def test_a_conversation_points_at_its_prompt(profile: clew.Profile) -> None:
    conv = profile.create(prompt="Be brief.", toolset=TOOLS)
    inputs = conv.context_inputs()
    assert inputs.prompt == "Be brief."
    assert inputs.toolset == TOOLS
    assert conv.context() == [{"role": "system", "content": "Be brief."}]


def test_equal_prompts_have_one_hash(profile: clew.Profile) -> None:
    one, two = profile.create(prompt="same"), profile.create(prompt="same")
    other = profile.create(prompt="other")
    assert one.info().prompt_hash == two.info().prompt_hash != other.info().prompt_hash
    assert profile.create().info().prompt_hash is None


def test_a_prompt_changes_by_a_reload_only(profile: clew.Profile) -> None:
    conv = profile.create(prompt="one", toolset=TOOLS)
    talk(conv, "a", "b")
    compact(conv, 2)
    branch = conv.branch()
    conv.set_prompt("two")
    assert (prompt_of(conv), prompt_of(branch)) == ("two", "one")
    assert conv.context_inputs().toolset == TOOLS
    conv.set_prompt(toolset=TOOLS[:1])
    assert (prompt_of(conv), conv.context_inputs().toolset) == ("two", TOOLS[:1])
    conv.set_prompt()
    assert prompt_of(conv) == "two"


def test_prompts_outlive_another_conversation(profile: clew.Profile) -> None:
    """A deletion takes only the prompts that nobody else has ever used."""
    one = profile.create(prompt="shared", toolset=TOOLS)
    two = profile.create(prompt="shared", toolset=TOOLS)
    one.set_prompt("own")
    one.plan_call(clew.CallPlan(model="m"))
    branch = one.branch()
    talk(branch, "x")
    profile.delete(one.id)
    assert (prompt_of(two), two.context_inputs().toolset) == ("shared", TOOLS)
    profile.delete(two.id)
    again = profile.create(prompt="shared", toolset=TOOLS)
    assert prompt_of(again) == "shared"


def test_any_text_is_a_prompt(profile: clew.Profile) -> None:
    text = "nul \0, lone \ud800, 中文, " + "long " * 200
    schema = {"name": "t", "description": text}
    conv = profile.create(prompt=text, toolset=(schema,))
    assert prompt_of(conv) == text
    assert conv.context_inputs().toolset == (schema,)


@pytest.mark.requires("engine")
def test_a_tool_has_a_name_and_a_prompt_a_limit(profile: clew.Profile) -> None:
    for bad in ({}, {"name": 1}, {"function": {}}):
        with pytest.raises(clew.InputError):
            profile.create(toolset=(bad,))
    with pytest.raises(clew.TooLarge):
        profile.create(prompt="x" * (4 * 1024 * 1024))
    assert profile.list().items == ()
