"""Providers that are known by name: no section of the file is needed to use one."""

from __future__ import annotations

from msgspec import Struct

from clew.config.values import Kind


class Known(Struct, frozen=True):
    """A provider that everybody names alike."""

    kind: Kind = "openai"
    base_url: str | None = None
    """None: the default of the SDK."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold its key, in this order; none for a local server."""


KNOWN: dict[str, Known] = {
    "openai": Known("openai", None, ("OPENAI_API_KEY",)),
    "anthropic": Known("anthropic", None, ("ANTHROPIC_API_KEY",)),
    "gemini": Known(
        "openai", "https://generativelanguage.googleapis.com/v1beta/openai/",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "openrouter": Known("openai", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "groq": Known("openai", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistral": Known("openai", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "deepseek": Known("openai", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    "xai": Known("openai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
    "together": Known("openai", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "fireworks": Known("openai", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "cerebras": Known("openai", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    "ollama": Known("openai", "http://127.0.0.1:11434/v1"),
    "lmstudio": Known("openai", "http://127.0.0.1:1234/v1"),
    "llamacpp": Known("openai", "http://127.0.0.1:8080/v1"),
    "vllm": Known("openai", "http://127.0.0.1:8000/v1"),
    "archivist": Known("archivist"),
}  # fmt: skip
