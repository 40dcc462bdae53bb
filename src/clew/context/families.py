"""What is known of models, by the beginnings of their names.

A family shares a tokenizer, a rule for images and a window. The windows are the input that the
least generous usual host takes; whoever knows better gives their own.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from clew.context.tokens import UNIT


class Family(Struct, frozen=True, kw_only=True):
    """Models that count alike.

    `encoding`: in which its texts are counted exactly; None: counted in the unit. `scale`: tokens
    of the model for one so counted, as a first guess. `window`: tokens. `images`: a name of
    images.RULES. `alternates`: the API wants user and assistant in turn.
    """

    name: str
    encoding: str | None = None
    scale: float = 1.0
    window: int = 128_000
    images: str = "open"
    alternates: bool = True


def _openai(name: str, window: int, images: str, encoding: str = UNIT) -> Family:
    return Family(name=name, encoding=encoding, window=window, images=images, alternates=False)


def _open(name: str, encoding: str, window: int = 128_000, images: str = "open") -> Family:
    return Family(name=name, encoding=encoding, window=window, images=images)


def _other(name: str, scale: float, window: int = 128_000, images: str = "open") -> Family:
    return Family(name=name, scale=scale, window=window, images=images)


_ANY = _openai("any", 128_000, "gpt-4o")
"""Of a model that nobody named: counted in the unit."""

_KNOWN: tuple[tuple[Family, str], ...] = (
    (_openai("gpt-3.5", 16_000, "gpt-4o", "cl100k_base"), "gpt-3.5 gpt-35"),
    (_openai("gpt-4", 8_000, "gpt-4o", "cl100k_base"), "gpt-4"),
    (_openai("gpt-4-turbo", 128_000, "gpt-4o", "cl100k_base"),
     "gpt-4-turbo gpt-4-1106 gpt-4-0125 gpt-4-vision"),
    (_openai("gpt-4o", 128_000, "gpt-4o"), "gpt-4o chatgpt-4o gpt-4.5"),
    (_openai("gpt-4o-mini", 128_000, "gpt-4o-mini"), "gpt-4o-mini"),
    (_openai("gpt-4.1", 1_000_000, "gpt-4o"), "gpt-4.1"),
    (_openai("gpt-4.1-mini", 1_000_000, "mini"), "gpt-4.1-mini"),
    (_openai("gpt-4.1-nano", 1_000_000, "nano"), "gpt-4.1-nano"),
    (_openai("o1-mini", 128_000, "o-series"), "o1-mini o1-preview"),
    (_openai("o-series", 200_000, "o-series"), "o1 o3"),
    (_openai("o-mini", 200_000, "mini"), "o3-mini o4-mini codex-mini"),
    (_openai("gpt-5", 272_000, "gpt-5"), "gpt-5 gpt-5.1"),
    (_openai("gpt-5-chat", 128_000, "gpt-5"), "gpt-5-chat gpt-5.1-chat gpt-5.2-chat"),
    (_openai("gpt-5-mini", 272_000, "mini"), "gpt-5-mini gpt-5.4-mini"),
    (_openai("gpt-5-nano", 272_000, "nano"), "gpt-5-nano gpt-5.4-nano"),
    (_openai("gpt-5.2", 272_000, "gpt-5.2"), "gpt-5. gpt-6 gpt-"),
    (_open("gpt-oss", UNIT), "gpt-oss"),
    (_other("claude", 1.2, 200_000, "claude"),
     "claude-2 claude-3 claude-instant claude-sonnet-4 claude-opus-4 claude-haiku-4 claude-4"),
    (_other("claude-4.6", 1.2, 1_000_000, "claude"),
     "claude-opus-4-6 claude-opus-4.6 claude-sonnet-4-6 claude-sonnet-4.6"),
    (_other("claude-new", 1.45, 200_000, "claude-high"), "claude"),
    (_other("claude-4.7", 1.45, 1_000_000, "claude-high"),
     "claude-opus-4-7 claude-opus-4.7 claude-opus-4-8 claude-opus-4.8"),
    (_other("gemini", 1.15, 1_000_000, "gemini"), "gemini"),
    (_other("gemini-3", 1.15, 1_000_000, "gemini-3"), "gemini-3 gemini-4"),
    (_other("gemini-1.0", 1.15, 30_000, "gemini"), "gemini-1.0 gemini-pro"),
    (_other("gemma", 1.15, 8_000, "gemini"), "gemma"),
    (_other("gemma-3", 1.15, 128_000, "gemini"), "gemma-3 gemma3 gemma-4 gemma4"),
    (_open("llama-3", "llama3", 8_000, "llama"), "llama-3 llama3 meta-llama-3"),
    (_open("llama-3.1", "llama3", 128_000, "llama"),
     "llama-3.1 llama-3.2 llama-3.3 llama3.1 llama3.2 llama3.3 llama3-1 llama3-2 llama3-3 "
     "llama-v3p1 llama-v3p2 llama-v3p3 meta-llama-3.1 meta-llama-3.2 meta-llama-3.3 hermes-3 "
     "hermes-4 deepseek-r1-distill-llama"),
    (_other("llama-4", 1.0, 128_000, "llama"), "llama-4 llama4 meta-llama-4"),
    (_other("llama-2", 1.3, 4_000), "llama-2 llama2 codellama vicuna"),
    (_open("qwen", "qwen3", 32_000, "qwen"), "qwen qwq hermes-4-14b deepseek-r1-distill-qwen"),
    (_open("qwen-large", "qwen3", 128_000, "qwen"),
     "qwen-max qwen-plus qwen-turbo qwen3-max qwen3-coder qwen3-next qwen3-235b"),
    (_other("qwen-3.5", 1.15, 128_000, "qwen"), "qwen3.5 qwen-3.5 qwen3.6 qwen3.7"),
    (_other("mistral", 1.15),
     "mistral ministral magistral devstral codestral pixtral open-mistral-nemo"),
    (_other("mistral-old", 1.3, 32_000), "mistral-7b mixtral open-mistral open-mixtral"),
    (_other("deepseek", 1.1, 64_000), "deepseek"),
    (_other("deepseek-v3", 1.1), "deepseek-v3.1 deepseek-v3.2 deepseek-v4 deepseek-chat-v3.1"),
    (_other("kimi", 1.1), "kimi moonshot"),
    (_other("glm", 1.1), "glm chatglm"),
    (_other("minimax", 1.1, 190_000), "minimax"),
    (_other("grok", 1.15, 128_000, "grok"), "grok"),
    (_other("grok-4", 1.15, 256_000, "grok"), "grok-4 grok-5 grok-code"),
    (_other("command", 1.15), "command"),
    (_other("nova", 1.2, 128_000), "nova"),
    (_open("phi-4", "cl100k_base", 16_000), "phi-4 phi4"),
)  # fmt: skip

_BEGINNINGS = sorted(
    ((beginning, family) for family, names in _KNOWN for beginning in names.split()),
    key=lambda each: -len(each[0]),
)
_HOST = re.compile(
    r"((us|eu|ap|apac|jp|au|global|us-gov|anthropic|meta|amazon|mistral|cohere|deepseek|qwen|google|"
    r"openai|moonshot|minimax|zai)\.)+"
)
"""As Amazon Bedrock writes before a name."""


def family_of(model: str | None) -> Family:
    """The family of a model by its name, however a host writes it: `openai/gpt-5.1`,
    `us.anthropic.claude-sonnet-4-5-20250929-v1:0`, `ft:gpt-4o:acme`. The longest beginning that is
    known wins. An unknown name is a family of its own, counted in the unit with a margin."""
    if model is None:
        return _ANY
    name = _bare(model)
    for beginning, family in _BEGINNINGS:
        rest = name[len(beginning) :]
        if name.startswith(beginning) and not (beginning[-1].isdigit() and rest[:1].isdigit()):
            return family
    return replace(_ANY, name=name, encoding=None, scale=1.15, images="open", alternates=True)


def _bare(model: str) -> str:
    """A name without what hosts put before it."""
    name = model.strip().lower().removeprefix("ft:").rsplit("/", 1)[-1].replace("_", "-")
    return _HOST.sub("", name, count=1) if _HOST.match(name) else name
