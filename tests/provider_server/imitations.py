"""What local servers answer besides the API of OpenAI: by method and path. Pure.

Shapes as their documents and sources have them: Ollama's docs/api.md, llama.cpp's
tools/server/README.md, LM Studio's REST API v0, vLLM's `ModelCard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Imitation = Literal["ollama", "llamacpp", "lmstudio", "vllm", "openrouter", "stranger"]
Json = dict[str, Any]


def model_card(name: str, imitate: Imitation | None, window: int | None) -> Json:
    """A row of /v1/models."""
    row: Json = {"id": name, "object": "model", "created": 1, "owned_by": "test"}
    match imitate:
        case "vllm":
            row |= {"owned_by": "vllm", "root": name, "parent": None, "max_model_len": window}
        case "llamacpp":
            meta = {"vocab_type": 1, "n_vocab": 32000, "n_ctx_train": 131072, "n_params": 1}
            row |= {"owned_by": "llamacpp", "meta": meta}
        case "ollama":
            row |= {"owned_by": "library"}
        case "openrouter":
            row |= {
                "context_length": window,
                "pricing": {
                    "prompt": "0.000003", "completion": "0.000015",
                    "input_cache_read": "0.0000003",
                },
                "architecture": {"input_modalities": ["text"]},
                "supported_parameters": ["tools"],
                "top_provider": {"context_length": window, "max_completion_tokens": 64000},
            }  # fmt: skip
        case _ if window is not None:
            row |= {"context_window": window}
        case _:
            pass
    return row


def page(
    imitate: Imitation | None, method: str, path: str, models: Sequence[str], window: int | None
) -> Json | str | None:
    """What a server of this kind answers; None: 404. A text is a web page."""
    match imitate, method, path:
        case _, "GET", "/v1/models" if imitate != "stranger":
            rows = [model_card(name, imitate, window) for name in models]
            return {"object": "list", "data": rows}
        case "ollama", "GET", "/api/tags":
            return {"models": [{"name": name, "model": name, "size": 1} for name in models]}
        case "ollama", "GET", "/":
            return "Ollama is running"
        case "ollama", "POST", "/api/show":
            given = {} if window is None else {"parameters": f'stop "x"\nnum_ctx    {window}'}
            info = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
            return {**given, "model_info": info, "capabilities": ["completion", "tools"]}
        case "llamacpp", "GET", "/props":
            return {
                "default_generation_settings": {"n_ctx": window or 4096}, "total_slots": 1,
                "build_info": "b1-test", "modalities": {"vision": False, "audio": False},
            }  # fmt: skip
        case "lmstudio", "GET", "/api/v0/models":
            return {"object": "list", "data": [_lmstudio(name, window) for name in models]}
        case "stranger", _, _:
            return "<html><title>It works!</title></html>"
        case _:
            return None


def _lmstudio(name: str, window: int | None) -> Json:
    loaded = {} if window is None else {"loaded_context_length": window}
    return {
        "id": name, "object": "model", "type": "llm", "arch": "llama",
        "state": "not-loaded" if window is None else "loaded", "max_context_length": 131072,
        **loaded,
    }  # fmt: skip
