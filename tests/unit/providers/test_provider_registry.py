"""Which model is meant, what it takes to use it, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from clew.config.known import KNOWN
from clew.config.secrets import KeyringUnavailable, variables
from clew.config.values import Config, ModelConfig, ProviderConfig
from clew.providers.api import Model
from clew.providers.errors import NotConfigured, ServerFailed
from clew.providers.places import KINDS, Places
from clew.providers.registry import Providers
from clew.testing import ScriptedProvider
from provider_server.asking import asked


class Local(NamedTuple):
    kind: str
    base_url: str
    models: Sequence[str]


OLLAMA = Local("ollama", "http://127.0.0.1:11434/v1", ("qwen3", "llama3.1:8b"))


def made(config: Config | None = None, *local: Local, **environ: str) -> Providers:
    """As the command makes them, of such an environment and such servers on this machine."""

    def secrets(name: str, section: ProviderConfig) -> str | None:
        return next((environ[each] for each in variables(name, section) if each in environ), None)

    async def find() -> Sequence[Local]:
        return local

    return Providers(config or Config(), secrets, find=find)


def meant(providers: Providers, name: str | None = None) -> Model:
    return asyncio.run(providers.resolve(name))[1]


def shown(providers: Providers, name: str | None = None) -> str:
    return meant(providers, name).shown


def refused(providers: Providers, name: str | None = None) -> str:
    with pytest.raises(NotConfigured) as caught:
        asyncio.run(providers.resolve(name))
    return str(caught.value)


# ---------------------------------------------------------------------- nobody chose


def test_with_nothing_at_all_it_is_the_archivist() -> None:
    model = meant(made())
    assert (model.shown, model.window) == ("archivist/archivist", 1_000_000)
    assert not model.tools


def test_a_key_in_the_environment_is_enough() -> None:
    assert shown(made(ANTHROPIC_API_KEY="k")).startswith("anthropic/claude-")
    assert shown(made(OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")).startswith("openai/gpt-")
    assert shown(made(GOOGLE_API_KEY="k")).startswith("gemini/gemini-")
    for name, known in KNOWN.items():
        for variable in known.keys:
            assert shown(made(None, **{variable: "k"})).startswith(f"{name}/")


def test_the_configuration_comes_before_the_environment() -> None:
    named = Config(model="groq/openai/gpt-oss-20b")
    assert shown(made(named, OPENAI_API_KEY="k", GROQ_API_KEY="k")) == "groq/openai/gpt-oss-20b"
    section = Config(providers={"mistral": ProviderConfig()})
    assert shown(made(section, OPENAI_API_KEY="k", MISTRAL_API_KEY="k")).startswith("mistral/")


def test_a_section_without_a_key_does_not_stop_the_rest() -> None:
    section = Config(providers={"mistral": ProviderConfig()})
    assert shown(made(section, OPENAI_API_KEY="k")).startswith("openai/")


def test_a_model_that_the_configuration_speaks_of_is_the_one_of_its_provider() -> None:
    config = Config(
        providers={"work": ProviderConfig(base_url="http://10.0.0.1/v1")},
        models={"work/our-model": ModelConfig(window=20_000)},
    )
    model = meant(made(config))
    assert (model.shown, model.window, model.source) == ("work/our-model", 20_000, "config")


def test_a_server_on_this_machine_comes_after_keys() -> None:
    config = Config(models={"ollama/qwen3": ModelConfig(window=9_000)})
    assert shown(made(config, OLLAMA)) == "ollama/qwen3"
    assert shown(made(config, OLLAMA, OPENAI_API_KEY="k")).startswith("openai/")


def test_keys_are_looked_for_before_any_server_is() -> None:
    async def find() -> Sequence[Any]:
        raise AssertionError("nobody may look")

    providers = Providers(Config(), lambda name, section: "k", find=find)
    assert shown(providers).startswith("openai/")


def test_the_archivist_can_be_chosen_though_there_are_keys() -> None:
    config = Config(providers={"memory": ProviderConfig(kind="archivist")})
    assert shown(made(config, OPENAI_API_KEY="k")) == "memory/archivist"
    assert shown(made(Config(model="archivist"), OPENAI_API_KEY="k")) == "archivist/archivist"


def test_a_server_that_has_no_model_is_passed_over() -> None:
    assert shown(made(None, Local("vllm", "http://127.0.0.1:8000/v1", ()))) == (
        "archivist/archivist"
    )


def test_what_was_written_and_cannot_be_used_is_said() -> None:
    """Whoever configured a model shall not talk to the archivist without knowing why."""
    text = refused(made(Config(providers={"mistral": ProviderConfig()})))
    assert "export MISTRAL_API_KEY=" in text
    work = Config(providers={"work": ProviderConfig(base_url="http://10.0.0.1/v1")})
    assert 'model = "work/NAME"' in refused(made(work))
    assert "clew config edit" in refused(made(work))


def test_a_program_may_bring_its_own() -> None:
    providers = made(OPENAI_API_KEY="k")
    scripted = ScriptedProvider(model=Model(name="m", provider="scripted", window=5_000))
    providers.add(scripted)

    async def run() -> tuple[Any, Model]:
        return await providers.resolve()

    provider, model = asyncio.run(run())
    assert provider is scripted
    assert (model.shown, model.window) == ("scripted/m", 5_000)
    assert shown(providers, "scripted/m") == "scripted/m"
    assert shown(providers, "openai/gpt-5.4") == "openai/gpt-5.4"
    asyncio.run(providers.close())
    assert scripted.closed


# ---------------------------------------------------------------------- names


def test_a_name_is_that_of_a_provider_and_of_a_model() -> None:
    keys = {"OPENROUTER_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    name = "openrouter/meta-llama/llama-4-maverick"
    config = Config(models={name: ModelConfig(window=9_000)})
    model = meant(made(config, **keys), name)
    assert (model.provider, model.name) == ("openrouter", "meta-llama/llama-4-maverick")
    assert shown(made(**keys), "archivist") == "archivist/archivist"
    assert shown(made(None, OLLAMA, **keys), "ollama/qwen3") == "ollama/qwen3"


def test_a_bare_name_means_the_provider_it_is_written_with_its_maker_or_the_only_one() -> None:
    config = Config(models={"work/mine": ModelConfig(window=9_000)}, providers={
        "work": ProviderConfig(base_url="http://10.0.0.1/v1")
    })  # fmt: skip
    both = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert shown(made(config, **both), "mine") == "work/mine"
    assert shown(made(**both), "claude-sonnet-4-6") == "anthropic/claude-sonnet-4-6"
    assert shown(made(OPENAI_API_KEY="k"), "gpt-4o") == "openai/gpt-4o"
    text = refused(made(**both), "some-model")
    assert "openai/some-model, anthropic/some-model" in text
    assert "PROVIDER/NAME" in refused(made(), "some-model")


def test_a_provider_alone_is_its_own_model_and_no_model_of_another() -> None:
    config = Config(models={"work/mine": ModelConfig(window=9_000)}, providers={
        "work": ProviderConfig(base_url="http://10.0.0.1/v1")
    })  # fmt: skip
    assert shown(made(config), "work") == "work/mine"
    assert shown(made(OPENAI_API_KEY="k"), "openai").startswith("openai/gpt-")
    assert "ANTHROPIC_API_KEY" in refused(made(config), "anthropic")
    bare = Config(providers={"work": ProviderConfig(base_url="http://10.0.0.1/v1")})
    assert "work/NAME" in refused(made(bare), "work")


def test_an_unknown_provider_is_said_with_those_there_are() -> None:
    text = refused(made(), "opnai/gpt-5.4")
    assert "'opnai'" in text
    assert "openai, anthropic" in text
    assert "[providers.opnai]" in text


def test_a_missing_key_is_said_with_the_command_that_gives_it() -> None:
    assert "export OPENAI_API_KEY=" in refused(made(), "openai/gpt-5.4")
    own = Config(providers={"work": ProviderConfig(base_url="http://x/v1", key_env="WORK_KEY")})
    assert "export WORK_KEY=" in refused(made(own), "work/m")
    ring = Config(providers={"work": ProviderConfig(base_url="http://x/v1", keyring=True)})
    assert "clew config key work" in refused(made(ring), "work/m")


def test_a_keyring_that_cannot_be_asked_is_said_when_it_matters() -> None:
    def secrets(name: str, section: ProviderConfig) -> str | None:
        if section.keyring:
            raise KeyringUnavailable("the keyring is locked; unlock it")
        return None

    config = Config(providers={"work": ProviderConfig(base_url="http://x/v1", keyring=True)})
    assert "unlock it" in refused(Providers(config, secrets), "work/m")


def test_a_missing_extra_is_said_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "anthropic" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    named = refused(made(ANTHROPIC_API_KEY="k"), "anthropic/claude-sonnet-4-6")
    assert "pip install 'clew[anthropic]'" in named
    assert "pip install 'clew[anthropic]'" in refused(made(ANTHROPIC_API_KEY="k"))
    assert shown(made(ANTHROPIC_API_KEY="k", GROQ_API_KEY="k")).startswith("groq/")


# ---------------------------------------------------------------------- what a server says


class Asking(ScriptedProvider):
    """One that counts how often it is asked what it knows."""

    described = 0

    async def describe(self, model: str) -> Model | None:
        self.described += 1
        if model == "broken":
            raise ServerFailed("no", provider=self.name)
        return Model(name=model, provider=self.name, window=77_000, source="server")


def test_the_server_is_asked_once_of_a_model_that_nobody_knows() -> None:
    provider, providers = Asking(), made()
    providers.add(provider)
    for _ in range(3):
        model = meant(providers, "scripted/unheard-of")
        assert (model.window, model.source) == (77_000, "server")
    assert provider.described == 1
    assert meant(providers, "scripted/broken").source == "default"


def test_all_models_of_all_that_can_be_used() -> None:
    async def run(providers: Providers) -> tuple[str, ...]:
        providers.add(ScriptedProvider())
        return await providers.all_models()

    config = Config(
        model="scripted/big", fallback=["scripted/small"],
        models={"work/mine": ModelConfig()},
    )  # fmt: skip
    assert asyncio.run(run(made(config))) == (
        "scripted/big", "scripted/small", "work/mine", "archivist/archivist", "scripted/scripted",
    )  # fmt: skip
    assert "openai/gpt-5.4" in made(OPENAI_API_KEY="k").known_models()

    async def alone(providers: Providers) -> tuple[str, ...]:
        return await providers.all_models()

    assert "ollama/llama3.1:8b" in asyncio.run(alone(made(None, OLLAMA)))


# ---------------------------------------------------------------------- loading


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_made_and_renders(kind: str) -> None:
    """As one loaded by name: a class that was renamed would be missed only by who uses it."""
    config = Config(
        providers={"mine": ProviderConfig(kind=kind, base_url="http://127.0.0.1:1/v1")},  # type: ignore[arg-type]
        models={"mine/m": ModelConfig(window=9_000)},
    )

    async def run() -> str:
        providers = made(config)
        provider, model = await providers.resolve("mine/m")
        body = await asyncio.to_thread(provider.render, asked())
        await providers.close()
        return f"{provider.name} {body.payload['model']} {model.shown}"

    assert asyncio.run(run()) == "mine test-model mine/m"


def test_no_secret_is_shown() -> None:
    provider, _ = asyncio.run(made(OPENAI_API_KEY="sk-very-secret").resolve())
    assert "secret" not in repr(provider)


def test_choosing_imports_no_sdk() -> None:
    """A chat is at its prompt before any of them would be loaded."""
    program = """
import asyncio, sys
from clew.config.values import Config
from clew.providers.registry import Providers
from clew.providers.models import shipped
async def main():
    for name in ("openai/gpt-5.4", "anthropic/claude-sonnet-4-6", None):
        await Providers(Config(), lambda name, section: "k").resolve(name)
asyncio.run(main())
print(sorted({"openai", "anthropic", "mcp", "httpx", "httpx2", "keyring"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_headers_may_name_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no file need hold a token. One that is not set is named before anything is sent."""
    section = ProviderConfig(base_url="http://localhost:1/v1", headers={"x-team": "${TEAM_TOKEN}"})
    config = Config(providers={"mine": section})
    monkeypatch.delenv("TEAM_TOKEN", raising=False)
    with pytest.raises(NotConfigured, match="TEAM_TOKEN"):
        asyncio.run(Providers(config, lambda name, section: "k").resolve("mine/m"))
    monkeypatch.setenv("TEAM_TOKEN", "t-1")
    place = Places(config, lambda name, section: "k").place("mine")
    assert place.section.headers == {"x-team": "t-1"}
    assert place.trouble is None
