"""What servers say of a model: its window, price and what it takes. Each in fields of its own."""

from __future__ import annotations

import re
from typing import cast

from clew.providers.api import Model, Price
from clew.providers.errors import BadRequest, NotConfigured
from clew.providers.openai_client import Connection
from clew.providers.openai_fields import Json, count_of, object_of, objects_of

UNLOADED = 4096
"""Tokens that Ollama and LM Studio give a model which nobody told a window, when they load it.
Ollama cuts what is longer without a word, so nothing larger is assumed before the model runs."""
_WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "context_window",
            "max_context_length", "max_input_tokens")  # fmt: skip
"""Fields of a row of /models: vLLM; LM Studio; OpenRouter, Together, Fireworks; Groq; Mistral;
Anthropic."""
_NOTHING: Json = {}
_NUM_CTX = re.compile(r"(?m)^\s*num_ctx\s+(\d+)")


async def names_of(connection: Connection) -> tuple[str, ...]:
    """Names of the models that a server lists; none where it has no list."""
    try:
        rows = _rows(await connection.get("/models"))
    except (NotConfigured, BadRequest) as error:
        if error.status in (404, 405):
            return ()
        raise
    return tuple(name for row in rows if isinstance(name := row.get("id"), str))


async def description(connection: Connection, provider: str, model: str) -> Model | None:
    """What a server says of a model; None when it does not tell the window. Ollama, llama.cpp and
    LM Studio are asked at their own addresses, where the API of OpenAI says nothing."""
    listed = _rows(await connection.ask("/models"))
    row = next((r for r in listed if r.get("id") in (model, f"{model}:latest")), _NOTHING)
    if (found := described(row, provider, model)) is not None:
        return found
    if connection.is_official or not connection.url.startswith("http://"):
        return None
    root = connection.url.removesuffix("/v1")
    props = object_of(await connection.ask(f"{root}/props"))
    if (found := _llamacpp(provider, model, row, props)) is not None:
        return found
    rows = _rows(await connection.ask(f"{root}/api/v0/models"))
    row = next((each for each in rows if each.get("id") == model), _NOTHING)
    if (found := described(row, provider, model)) is not None:
        return found
    shown = object_of(await connection.ask(f"{root}/api/show", {"model": model}))
    return _ollama(provider, model, shown, object_of(await connection.ask(f"{root}/api/ps")))


def described(row: Json, provider: str, model: str) -> Model | None:
    """Of a row in a list of models."""
    top = object_of(row.get("top_provider"))
    windows = [count_of(row.get(name)) for name in _WINDOWS]
    window = next(filter(None, windows), 0)
    window = min(window, count_of(top.get("context_length")) or window)
    if not window:
        return None
    if row.get("state") == "not-loaded":  # LM Studio
        window = min(window, UNLOADED)
    takes, kinds = row.get("supported_parameters"), object_of(row.get("architecture"))
    sees = kinds.get("input_modalities")
    return Model(
        name=model, provider=provider, window=window, source="server",
        reply=count_of(top.get("max_completion_tokens")),
        price=_price(object_of(row.get("pricing"))),
        tools=not isinstance(takes, list) or "tools" in takes,
        images=row.get("type") != "llm" and (not isinstance(sees, list) or "image" in sees),
    )  # fmt: skip


def _price(pricing: Json) -> Price | None:
    """OpenRouter's, in dollars for a token."""
    sent, got = _dollars(pricing.get("prompt")), _dollars(pricing.get("completion"))
    if sent is None or got is None:
        return None
    return Price(input=sent, output=got, cached=_dollars(pricing.get("input_cache_read")))


def _dollars(value: object) -> float | None:
    """For a million, of a price for one. A negative one says that it varies."""
    try:
        price = float(cast(str, value)) * 1e6
    except (TypeError, ValueError):
        return None
    return round(price, 9) if price >= 0 else None


def _llamacpp(provider: str, model: str, row: Json, props: Json) -> Model | None:
    """The window of a slot, as the running server has it; what the model was trained for says
    nothing of that."""
    slot = count_of(object_of(props.get("default_generation_settings")).get("n_ctx"))
    window = (
        slot or count_of(props.get("n_ctx")) or count_of(object_of(row.get("meta")).get("n_ctx"))
    )
    sees = object_of(props.get("modalities")).get("vision") is not False
    if not window:
        return None
    return Model(name=model, provider=provider, window=window, images=sees, source="server")


def _ollama(provider: str, model: str, shown: Json, running: Json) -> Model | None:
    info = object_of(shown.get("model_info"))
    largest = next((count_of(v) for k, v in info.items() if k.endswith(".context_length")), 0)
    set_to = _NUM_CTX.search(str(shown.get("parameters") or ""))
    rows = objects_of(running.get("models"))
    now = next(
        (count_of(row.get("context_length")) for row in rows
         if row.get("name") in (model, f"{model}:latest")), 0,
    )  # fmt: skip
    window = now or (int(set_to[1]) if set_to else min(largest, UNLOADED))
    if not window:
        return None
    can = shown.get("capabilities")
    return Model(
        name=model, provider=provider, window=window, source="server",
        tools=not isinstance(can, list) or "tools" in can,
        images=not isinstance(can, list) or "vision" in can,
    )  # fmt: skip


def _rows(listed: object) -> list[Json]:
    """The rows of a list of models; some servers give the list alone."""
    return objects_of(object_of(listed).get("data")) or objects_of(listed)
