"""What is known of models, and who knows better."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from clew.config.known import KNOWN
from clew.config.values import Config, ModelConfig, PriceConfig, ProviderConfig
from clew.context.budget import Budget
from clew.domain.turns import Usage
from clew.providers.api import Model, Price
from clew.providers.models import choice_of, fact_of, model_of, section_of, shipped, vendor_of


def test_every_entry_names_a_source_with_a_date() -> None:
    data = shipped()
    assert data.models
    for entry in (*data.models, *data.defaults):
        assert entry.source in data.sources
    for source in data.sources.values():
        assert date.fromisoformat(source.date) > date(2026, 1, 1)
        assert source.url


def test_the_data_makes_sense() -> None:
    """No model is there twice; prices and windows are in the units they should be in."""
    facts = shipped().models
    assert len({(fact.by, fact.name) for fact in facts}) == len(facts)
    for fact in facts:
        Budget(window=fact.window)
        assert 0 <= fact.reply < fact.window
        assert fact.price is None or fact.by in KNOWN
        if fact.price is not None and fact.by != "archivist":
            assert 0 < fact.price.input <= fact.price.output < 1000
            assert fact.price.cached is None or 0 < fact.price.cached < fact.price.input
        if fact.dearer_above is not None:
            assert fact.price is not None
            assert fact.dearer_above < fact.window


def test_every_known_provider_with_a_key_has_a_model_that_calls_tools() -> None:
    for name, known in KNOWN.items():
        choice = choice_of(name)
        assert (choice is not None) == bool(known.keys), name
        if choice is not None:
            fact = fact_of(choice.model, name)
            assert fact is not None  # choosing asks no server
            assert fact.tools


def test_the_document_lists_what_the_data_have() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "models.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| `[A-Z_]+`.*\| `([^`]+)` \|$", text, re.MULTILINE))
    assert rows == {each.name: each.model for each in shipped().defaults}
    assert list(rows) == [name for name, known in KNOWN.items() if known.keys]
    assert f"{len(shipped().models)} entries" in text


@pytest.mark.parametrize(
    ("model", "vendor", "name"),
    [("gpt-5.4", "openai", "gpt-5.4"),
     ("gpt-5.4-2026-03-05", "openai", "gpt-5.4"),
     ("gpt-5.4-mini", "openai", "gpt-5.4-mini"),
     ("claude-haiku-4-5-20251001", "anthropic", "claude-haiku-4-5"),
     ("anthropic/claude-haiku-4.5", "openrouter", "claude-haiku-4-5"),
     ("openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b")],
)  # fmt: skip
def test_a_version_of_a_known_model_is_known(model: str, vendor: str, name: str) -> None:
    fact = fact_of(model, vendor)
    assert fact is not None
    assert fact.name == name


@pytest.mark.parametrize(
    ("model", "vendor"),
    [("gpt-5.44", "openai"), ("gpt-5.4-turbo", "openai"), ("gpt-4-0125-preview", "openai"),
     ("openai/gpt-oss-120b", "openrouter"), ("llama3", None), ("", None)],
)  # fmt: skip
def test_another_model_is_not_taken_for_a_known_one(model: str, vendor: str | None) -> None:
    """A wrong price is worse than none."""
    assert fact_of(model, vendor) is None


def test_a_price_is_only_that_of_its_own_vendor() -> None:
    own = model_of("anthropic", "claude-haiku-4-5", Config())
    assert own.price == Price(input=1.0, output=5.0, cached=0.1)
    assert own.price.cost(Usage(input=1000, cached=500, output=100)) == pytest.approx(0.00105)
    other = model_of("openrouter", "anthropic/claude-haiku-4.5", Config())
    assert (other.window, other.price) == (200_000, None)


def test_the_configuration_knows_best_then_the_server_then_the_data_then_the_family() -> None:
    name = "gpt-4o"
    data = model_of("openai", name, Config())
    assert (data.window, data.source) == (128_000, f"data {shipped().sources['tables'].date}")
    said = Model(name=name, provider="openai", window=64_000, tools=False, source="server")
    server = model_of("openai", name, Config(), said)
    assert (server.window, server.tools, server.source) == (64_000, False, "server")
    assert server.price == data.price
    mine = ModelConfig(window=32_000, tools=True, price=PriceConfig(input=1, output=2))
    config = model_of("openai", name, Config(models={"openai/gpt-4o": mine}), said)
    assert (config.window, config.tools, config.source) == (32_000, True, "config")
    assert config.price == Price(input=1, output=2)
    family = model_of("work", "qwen3-unheard-of", Config())
    assert (family.window, family.source) == (32_000, "default")


def test_what_the_configuration_leaves_out_stays_as_it_was() -> None:
    mine = Config(models={"openai/gpt-4o": ModelConfig(images=False)})
    found = model_of("openai", "gpt-4o", mine)
    assert (found.images, found.window) == (False, 128_000)
    assert found.source.startswith("data")


def test_a_reply_never_takes_more_than_half_of_the_window() -> None:
    mine = Config(models={"openai/gpt-4o": ModelConfig(window=8_000, reply=16_000)})
    found = model_of("openai", "gpt-4o", mine)
    assert Budget(window=found.window, reply=found.reply).reply == 4_000


def test_a_reply_keeps_an_eighth_of_the_window_free_at_most() -> None:
    """What a model can say in one go would be half of some windows."""
    assert model_of("anthropic", "claude-haiku-4-5", Config()).reply == 25_000
    assert model_of("openai", "gpt-4o", Config()).reply == 16_000
    assert model_of("openai", "gpt-4-turbo", Config()).reply == 4_096
    mine = Config(models={"anthropic/claude-haiku-4-5": ModelConfig(reply=64_000)})
    assert model_of("anthropic", "claude-haiku-4-5", mine).reply == 64_000


def test_a_section_is_completed_by_what_is_known_of_its_name() -> None:
    groq = section_of("groq", Config(providers={"groq": ProviderConfig(timeout=5)}))
    assert groq is not None
    assert (groq.base_url, groq.timeout) == (KNOWN["groq"].base_url, 5)
    assert section_of("xai", Config()).affinity_header == "x-grok-conv-id"  # type: ignore[union-attr]
    assert section_of("nobody", Config()) is None
    own = ProviderConfig(base_url="http://10.0.0.1/v1")
    assert section_of("groq", Config(providers={"groq": own})) == own


def test_whose_server_it_is() -> None:
    def vendor(**fields: object) -> str | None:
        return vendor_of("work", Config(providers={"work": ProviderConfig(**fields)}))  # type: ignore[arg-type]

    assert vendor() == "openai"
    assert vendor(kind="anthropic") == "anthropic"
    assert vendor(base_url="https://api.groq.com/openai/v1") == "groq"
    assert vendor(base_url="http://127.0.0.1:11434/v1") is None
    assert vendor_of("openai", Config()) == "openai"
    assert vendor_of("nobody", Config()) is None
