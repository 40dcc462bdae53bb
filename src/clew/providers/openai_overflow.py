"""How servers say that a request does not fit the model. Each puts it in words of its own."""

from __future__ import annotations

import re

CODES = frozenset(
    ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length",
     "model_context_window_exceeded", "1261")
)  # fmt: skip
"""Of the fields `code` and `type`: OpenAI and those that copy it; llama.cpp; OpenAI again, for one
message; z.ai in words and as a number."""

TEXTS: tuple[tuple[str, str], ...] = (
    ("OpenAI, vLLM, DeepSeek, OpenRouter, Mistral", "maximum context length"),
    ("OpenAI Responses", "exceeds the context window"),
    ("OpenAI, Groq: more than a minute's tokens", "(?:request|input) too large for"),
    ("OpenAI, Groq", "reduce the length of the (?:messages|prompt|input)"),
    ("vLLM, of the prompt alone", "longer than the maximum model length"),
    ("llama.cpp", "exceeds the available context size"),
    ("llama.cpp, while it answers", "context size has been exceeded"),
    ("LM Studio", "context length of only"),
    ("LM Studio", "greater than the context length"),
    ("LM Studio", "context the overflows"),
    ("Ollama", "(?:input|prompt)(?: length)? exceeds (?:the )?(?:maximum )?context length"),
    ("Text Generation Inference, Together", r"`?inputs`? tokens \+ `?max_new_tokens`? must be"),
    ("Anthropic", "prompt is too long"),
    ("Amazon Bedrock", "input is too long for requested model"),
    ("Gemini", "input token count.*exceeds the maximum"),
    ("xAI", "maximum prompt length is"),
    ("Mistral", "too large for model with"),
    ("GitHub Copilot", r"exceeds the limit of \d+"),
    ("Moonshot", "exceeded model token limit"),
    ("MiniMax", "context window exceeds limit"),
    ("DashScope", "range of input length should be"),
    ("z.ai", "prompt exceeds max length"),
    ("gateways", "context[ _](?:length|window)[ _](?:was )?exceeded"),
)
"""(whose words, a piece of them), in lower case. As their documents, sources or reports of users
have them."""

_ANY = re.compile("|".join(f"(?:{piece})" for _, piece in TEXTS), re.DOTALL)


def is_overflow(text: str, *codes: str) -> bool:
    """Whether an error says that the request is too large: by one of its codes, or its words."""
    return not CODES.isdisjoint(codes) or _ANY.search(text.lower()) is not None
