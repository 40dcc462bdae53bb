"""How servers refuse: status, headers and body as they send them. Each text is the server's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Failure:
    """An answer that is none. A body that is a text is sent as a web page."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def _openai(message: str, type: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


_RATE = _openai("Rate limit reached for requests.", "requests", "rate_limit_exceeded")
_OVERFLOW = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
    "tokens. Please reduce the length of the messages."
)

FAIL: dict[str, Failure] = {
    "429": Failure(429, _RATE, {"retry-after": "7"}),
    "429-ms": Failure(429, _RATE, {"retry-after-ms": "1500", "retry-after": "2"}),
    "429-bare": Failure(429, _RATE),
    "429-now": Failure(429, _RATE, {"retry-after-ms": "10"}),
    "429-text": Failure(
        429,
        _openai(
            "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit "
            "30000, Used 29000, Requested 2000. Please try again in 1m2.5s.",
            "tokens",
            "rate_limit_exceeded",
        ),
    ),
    "429-large": Failure(
        429,
        _openai(
            "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit "
            "30000, Requested 31000. The input or output tokens must be reduced in order to run "
            "successfully.",
            "tokens",
            "rate_limit_exceeded",
        ),
    ),
    "quota": Failure(
        429,
        _openai(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
    ),
    "402": Failure(402, {"error": {"message": "Insufficient Balance", "code": "invalid_request"}}),
    "500": Failure(500, _openai("The server had an error.", "server_error", None)),
    "503": Failure(
        503, _openai("The engine is overloaded.", "server_error", None), {"retry-after": "3"}
    ),
    "401": Failure(
        401,
        _openai(
            "Incorrect API key provided: sk-secr****************7890.",
            "invalid_request_error",
            "invalid_api_key",
        ),
    ),
    "403": Failure(
        403, _openai("You are not allowed to sample from this model.", "request_forbidden", None)
    ),
    "404": Failure(
        404,
        _openai("The model `nope` does not exist.", "invalid_request_error", "model_not_found"),
    ),
    "404-page": Failure(404, "<html><body>404 page not found</body></html>"),
    "400": Failure(
        400,
        _openai("Invalid value for 'temperature'.", "invalid_request_error", None, "temperature"),
    ),
    "400-cache-key": Failure(
        400,
        _openai("property 'prompt_cache_key' is unsupported", "invalid_request_error", None),
    ),
    "html": Failure(502, "<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "overflow-openai": Failure(
        400,
        _openai(_OVERFLOW, "invalid_request_error", "context_length_exceeded", "messages"),
    ),
    "overflow-responses": Failure(
        400,
        _openai(
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again.",
            "invalid_request_error",
            "context_length_exceeded",
            "input",
        ),
    ),
    "overflow-llamacpp": Failure(
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9001,
                "n_ctx": 8192,
            }
        },
    ),
    "overflow-vllm": Failure(
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 8192 tokens. However, you requested "
            "9001 tokens (8001 in the messages, 1000 in the completion). Please reduce the length "
            "of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "overflow-ollama": Failure(
        400,
        _openai("the input length exceeds the context length", "invalid_request_error", None),
    ),
    "overflow-lmstudio": Failure(
        400,
        {
            "error": "Trying to keep the first 9001 tokens when context the overflows. However, "
            "the model is loaded with context length of only 4096 tokens, which is not enough. "
            "Try to load the model with a larger context length, or provide a shorter input"
        },
    ),
    "overflow-413": Failure(413, "<html><body>413 Request Entity Too Large</body></html>"),
}
"""By a short name."""
