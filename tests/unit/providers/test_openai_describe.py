"""What servers say of their models: lists, windows, prices."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.config.values import ProviderConfig
from clew.providers.api import Model, Price
from clew.providers.errors import BadKey
from clew.providers.openai_chat import OpenAIChat
from clew.providers.openai_responses import OpenAIResponses
from provider_server import ProviderServer


def told(server: ProviderServer, model: str = "test-model", kind: Any = OpenAIChat) -> Model | None:
    made = kind("test", ProviderConfig(base_url=server.base_url), None)

    async def run() -> Model | None:
        found = await made.describe(model)
        await made.close()
        return found

    return asyncio.run(run())


@pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize(
    ("imitate", "window", "wanted"),
    [
        ("vllm", 32768, 32768), ("llamacpp", 16384, 16384), ("lmstudio", 8192, 8192),
        ("lmstudio", None, 4096), ("ollama", 20000, 20000), ("ollama", None, 4096),
        ("openrouter", 200000, 200000), (None, 131072, 131072), (None, None, None),
    ],
)  # fmt: skip
def test_the_window_of_each_server(
    imitate: Any, window: int | None, wanted: int | None, kind: Any
) -> None:
    """What the server has loaded, not what the model could do: Ollama cuts without a word."""
    with ProviderServer(imitate=imitate, window=window) as server:
        found = told(server, kind=kind)
    assert (found and found.window) == wanted
    if found is not None:
        assert (found.name, found.provider, found.source) == ("test-model", "test", "server")


def test_what_a_model_takes() -> None:
    with ProviderServer(imitate="ollama") as server:
        ollama = told(server)
    with ProviderServer(imitate="llamacpp") as server:
        llama = told(server)
    assert ollama is not None
    assert llama is not None
    assert (ollama.tools, ollama.images, llama.images) == (True, False, False)


def test_what_openrouter_tells() -> None:
    with ProviderServer(imitate="openrouter", window=200_000) as server:
        found = told(server)
    assert found is not None
    assert found.price == Price(input=3.0, output=15.0, cached=0.3)
    assert (found.reply, found.tools, found.images) == (64000, True, False)


def test_a_model_that_is_not_there() -> None:
    with ProviderServer(imitate="vllm", window=4096) as server:
        assert told(server, "another") is None


@pytest.mark.parametrize("imitate", [None, "ollama", "stranger"])
def test_names_of_models(imitate: Any) -> None:
    """A server without a list says none."""
    with ProviderServer(imitate=imitate, models=("a", "b")) as server:
        made = OpenAIChat("test", ProviderConfig(base_url=server.base_url), None)

        async def run() -> tuple[str, ...]:
            found = await made.models()
            await made.close()
            return found

        assert asyncio.run(run()) == (() if imitate == "stranger" else ("a", "b"))


def test_a_list_for_which_the_key_is_wrong() -> None:
    with ProviderServer(key="right") as server:
        made = OpenAIChat("test", ProviderConfig(base_url=server.base_url), "wrong")

        async def run() -> None:
            try:
                await made.models()
            finally:
                await made.close()

        with pytest.raises(BadKey):
            asyncio.run(run())


def test_a_description_of_a_server_that_is_away() -> None:
    with ProviderServer() as server:
        server.pause()
        assert told(server) is None
