"""Counting texts: exact, offline, whatever is in them; estimates within the bounds they state."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.context.tokens import WHOLE, count_parts, count_text, estimate_text

ROOT = Path(__file__).parents[3]
RANDOM = random.Random(7)
ENCODINGS = ("o200k_base", "cl100k_base", "llama3", "qwen3")

ENGLISH = "".join(
    path.read_text("utf-8") for path in sorted((ROOT / "docs" / "decisions").glob("000*.md"))
)
CODE = (ROOT / "src" / "clew" / "store" / "conversation.py").read_text("utf-8")
JSON = "".join(
    path.read_text("utf-8")
    for path in sorted((ROOT / "tests" / "data" / "transcripts" / "claude-code").rglob("*.jsonl"))
)[:200_000]
CHINESE = (
    "当会话超过模型的窗口时,旧的部分会被替换成一段简短的文字,保留重要的内容。"
    "日志保持完整,每个被省略的细节都可以再次读取。工具的输出最先被缩短,用户的要求逐字保留。"
) * 30
JAPANESE = (
    "会話がモデルの窓より長くなると、古い部分は短い文章に置き換えられます。"
    "記録はそのまま残り、省かれた内容はあとから読み直すことができます。"
) * 30
RUSSIAN = (
    "Когда разговор становится длиннее окна модели, старая часть заменяется коротким текстом. "
    "Журнал остаётся целым, и каждую пропущенную подробность можно прочитать снова. "
) * 30
LOG = "\n".join(
    f"2026-11-{RANDOM.randint(1, 30):02d}T10:{n % 60:02d}:07.{n:03d}Z INFO worker-{n % 8} request "
    f"id={RANDOM.getrandbits(32):08x} took {RANDOM.random() * 100:.2f}ms status=200"
    for n in range(400)
)
HEX = "\n".join(RANDOM.randbytes(20).hex() for _ in range(400))
SAMPLES = {
    "english": ENGLISH, "code": CODE, "json": JSON, "chinese": CHINESE, "japanese": JAPANESE,
    "russian": RUSSIAN, "log": LOG, "hex": HEX,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("2 + 2 = 4", 7),
        ("antidisestablishmentarianism", 6), ("お誕生日おめでとう", 8),
    ],
)  # fmt: skip
def test_known_counts(text: str, tokens: int) -> None:
    """As published for this encoding, or counted with the reference implementation."""
    assert count_text(text) == tokens


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "word", ["<|endoftext|>", "<|im_start|>", "<|start|>", "<|begin_of_text|>", "<|fim_prefix|>"]
)
def test_special_tokens_are_text(encoding: str, word: str) -> None:
    """Raised, or counted as one, they would make a message of a user something else."""
    assert 3 <= count_text(word, encoding) <= 10
    assert count_text(f"a {word} b", encoding) >= count_text(word, encoding)


@given(st.text(st.characters(), max_size=300))
def test_every_text_has_a_count(text: str) -> None:
    """Lone surrogates, NUL, unassigned characters."""
    size = len(text.encode("utf-8", "surrogatepass"))
    for encoding in ENCODINGS:
        assert (size > 0) <= count_text(text, encoding) <= size
        assert 0 <= estimate_text(text, encoding) <= 2 * size


def test_a_lone_surrogate_counts_as_what_replaces_it() -> None:
    assert count_text("a\ud800b") == count_text("a?b")


@given(st.lists(st.sampled_from([*SAMPLES.values()]).map(lambda text: text[:500]), max_size=6))
def test_texts_that_stand_apart_add_up(texts: list[str]) -> None:
    """A count of parts can be kept for each message."""
    parts = tuple(map(Text, texts))
    assert count_parts(parts) == sum(count_text(text) for text in texts)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_estimate_is_within_a_quarter(kind: str, encoding: str) -> None:
    """Characters divided by four are a third too low for JSON, and two thirds for Chinese."""
    exact = count_text(SAMPLES[kind], encoding)
    assert abs(estimate_text(SAMPLES[kind], encoding) / exact - 1) < 0.25


@pytest.mark.parametrize("kind", ["english", "code", "json", "log", "hex"])
def test_the_estimate_of_the_unit_is_within_a_tenth(kind: str) -> None:
    exact = count_text(SAMPLES[kind])
    assert abs(estimate_text(SAMPLES[kind]) / exact - 1) < 0.1


def exact_count(text: str) -> int:
    return sum(count_text(text[at : at + WHOLE]) for at in range(0, len(text), WHOLE))


@settings(max_examples=8)
@given(st.lists(st.sampled_from([*SAMPLES]), min_size=2, max_size=5), st.randoms())
def test_a_huge_text_is_sampled(kinds: list[str], random: random.Random) -> None:
    """Even one that changes its kind on the way, where its beginning says nothing of its end."""
    text = "".join((SAMPLES[k] * 200)[: random.randint(200_000, 900_000)] for k in kinds)
    assert abs(count_text(text) / exact_count(text) - 1) < 0.06


def test_what_parts_say_is_counted() -> None:
    parts = (
        Reasoning("thinking about it"), Text("hello"), ToolCall("call-1", "read", '{"path":"a"}'),
        ToolResult("call-1", "the result"), ToolResult("call-2", (Text("one"), Text("two"))),
    )  # fmt: skip
    said = ("thinking about it", "hello", "read", '{"path":"a"}', "the result", "one\ntwo")
    assert count_parts(parts) == sum(map(count_text, said))


PACKED = base64.b64encode(RANDOM.randbytes(60_000)).decode()
SHAPES = {
    "data": Image(data=RANDOM.randbytes(60_000)),
    "hash": Image(hash="00" * 32, size=60_000),
    "url": Image(url="https://example.com/a.png"),
    "data url": Image(url=f"data:image/png;base64,{PACKED}"),
    "file": File(data=RANDOM.randbytes(60_000), media_type="application/pdf"),
    "in a result": ToolResult("c", (Image(url=f"data:image/png;base64,{PACKED}"),)),
    "anthropic": Unknown({"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": PACKED}}),
    "responses": Unknown({"type": "input_image", "image_url": f"data:image/png;base64,{PACKED}"}),
    "chat with more": Unknown({"type": "image_url", "image_url": {
        "url": f"data:image/png;base64,{PACKED}", "x": 1}}),
    "gemini": Unknown({"inlineData": {"mimeType": "image/png", "data": PACKED}}),
    "mcp": Unknown({"type": "image", "mimeType": "image/png", "data": PACKED}),
    "audio": Unknown({"type": "input_audio", "input_audio": {"data": PACKED, "format": "wav"}}),
    "url-safe": Unknown({"data": PACKED.replace("+", "-").replace("/", "_")}),
    "lines": Unknown({"data": "\n".join(PACKED[at : at + 76] for at in range(0, 80_000, 76))}),
    "unknown in a result": ToolResult("c", (Unknown({"blob": PACKED}),)),
    "list": Unknown([[PACKED], {"a": [PACKED]}]),
    "bare": Unknown(PACKED),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_are_not_counted_as_text(shape: str) -> None:
    """As base64 text such an image would be 60,000 tokens."""
    assert count_parts((SHAPES[shape],)) < 60


def test_the_text_of_an_unknown_piece_is_counted() -> None:
    """As JSON, in its own letters."""
    value = {"type": "search_result", "title": "窗口", "text": CODE[:2000], "rank": 3}
    counted = count_parts((Unknown(value),))
    assert counted == count_text(json.dumps(value, ensure_ascii=False))
    assert count_parts((ToolResult("c", (Unknown(value),)),)) == counted


@pytest.mark.parametrize("text", [ENGLISH[:3000], "word " * 500, "窗口" * 400, " " * 3000])
def test_prose_in_an_unknown_piece_is_no_image(text: str) -> None:
    assert count_parts((Unknown({"text": text}),)) >= count_text(text)


def test_an_unknown_piece_may_be_nested_without_end() -> None:
    value: object = "x"
    for _ in range(50_000):
        value = [value]
    assert count_parts((Unknown(value),)) < 1000
