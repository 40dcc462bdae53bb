"""Families by name, however a host writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.budget import budget_for
from clew.context.families import family_of
from clew.context.images import RULES
from clew.context.tokens import count_text

NAMES = [
    ("gpt-4o-2024-08-06", "gpt-4o"), ("openai/gpt-4o", "gpt-4o"), ("gpt-4o-mini", "gpt-4o-mini"),
    ("ft:gpt-4o:acme::abc", "gpt-4o"), ("azure/gpt-4o", "gpt-4o"), ("gpt-4-0613", "gpt-4"),
    ("gpt-4-turbo-2024-04-09", "gpt-4-turbo"), ("gpt-35-turbo", "gpt-3.5"),
    ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"), ("openai/gpt-5.1", "gpt-5"),
    ("gpt-5-mini", "gpt-5-mini"), ("gpt-5.1-codex-max", "gpt-5"), ("gpt-5.2", "gpt-5.2"),
    ("gpt-7-turbo", "gpt-5.2"), ("o3", "o-series"), ("o1-preview", "o1-mini"),
    ("o4-mini", "o-mini"), ("openai/gpt-oss-120b", "gpt-oss"),
    ("anthropic/claude-sonnet-4-5", "claude"), ("anthropic/claude-3.5-sonnet", "claude"),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude"),
    ("bedrock/global.anthropic.claude-opus-4-7-v1:0", "claude-4.7"),
    ("claude-opus-4-5@20251101", "claude"), ("claude-sonnet-4-6", "claude-4.6"),
    ("claude-sonnet-6", "claude-new"), ("gemini-2.5-pro", "gemini"),
    ("models/gemini-3-pro-preview", "gemini-3"), ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1"),
    ("meta-llama/Meta-Llama-3-8B", "llama-3"), ("meta.llama3-1-70b-instruct-v1:0", "llama-3.1"),
    ("accounts/fireworks/models/llama-v3p1-405b-instruct", "llama-3.1"),
    ("llama3.1:8b", "llama-3.1"), ("Qwen/Qwen2.5-72B-Instruct", "qwen"),
    ("qwen/qwen3-coder:free", "qwen-large"), ("mistralai/mistral-large-2411", "mistral"),
    ("mistral.mistral-7b-instruct-v0:2", "mistral-old"), ("deepseek-ai/DeepSeek-V3.1",
    "deepseek-v3"), ("deepseek-r1-distill-llama-70b", "llama-3.1"), ("x-ai/grok-4-fast", "grok-4"),
    ("nousresearch/hermes-4-405b", "llama-3.1"), (None, "any"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "family"), NAMES)
def test_the_longest_beginning_wins(model: str | None, family: str) -> None:
    assert family_of(model).name == family


@pytest.mark.parametrize("model", ["my-model", "o100", "", "/", "house/model-x", "gpu", "...", "é"])
def test_an_unknown_model_is_a_family_of_its_own(model: str) -> None:
    """What is learnt of one says nothing about another."""
    family = family_of(model)
    assert family.name == model.split("/")[-1]
    assert (family.encoding, family.window, family.alternates) == (None, 128_000, True)
    assert family.scale > 1


@given(st.text(max_size=40))
def test_any_name_has_a_family(model: str) -> None:
    family = family_of(model)
    assert family.images in RULES
    assert budget_for(model).window == family.window


@pytest.mark.parametrize(("model", "name"), NAMES)
def test_every_family_can_be_used(model: str | None, name: str) -> None:
    family = family_of(model)
    assert family.images in RULES
    assert 0.5 <= family.scale <= 1.5
    assert family.encoding is None or (count_text("one two", family.encoding) == 2)
    assert family.encoding is None or family.scale == 1


def test_who_wants_turns_in_alternation() -> None:
    wants = {m for m in ("gpt-4o", "o3", "claude-sonnet-4-5", "gemini-2.5-pro", "llama3.1", "qwen3")
             if family_of(m).alternates}  # fmt: skip
    assert wants == {"claude-sonnet-4-5", "gemini-2.5-pro", "llama3.1", "qwen3"}
    assert not family_of(None).alternates
