"""What messages hold: every part comes back as it went in; bytes are kept once."""

from __future__ import annotations

import hashlib

import pytest
from talk import talk

import clew
from clew import Draft, File, Image, Reasoning, Role, Text, ToolCall, ToolResult, Unknown

PARTS = [
    Text("plain"),
    Text(""),
    Reasoning("thinking", model="m1", signature="sig", id="r1"),
    Reasoning(data="opaque", model="m1"),
    ToolCall("c1", "run", '{"x": 1}'),
    ToolCall("c2", "run", "not json {"),
    Image(url="https://example.com/a.png", detail="low", width=3, height=4),
    File(file_id="file-1", name="a.pdf", media_type="application/pdf"),
    Unknown({"type": "audio", "data": [1, 2.5, None, {"k": True}]}),
    ToolResult("c1", "text", "run"),
    ToolResult("c2", (Text("a"), Image(url="x:y"), Unknown({"type": "z"})), is_error=True),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_comes_back_unchanged(conv: clew.Conversation, part: clew.Part) -> None:
    conv.append([Draft(role=Role.ASSISTANT, parts=(part,))])
    assert conv.message(1).parts == (part,)


def test_parallel_calls_and_results_keep_their_order(conv: clew.Conversation) -> None:
    parts = tuple(ToolCall(str(n), "run", str(n)) for n in range(5))
    answers = tuple(ToolResult(str(n), f"out {n}") for n in (3, 1, 4, 0, 2))
    conv.append([Draft(role=Role.ASSISTANT, parts=parts), Draft(role=Role.TOOL, parts=answers)])
    assert conv.message(1).parts == parts
    assert conv.message(2).parts == answers
    assert [m["tool_call_id"] for m in conv.context() if m["role"] == "tool"] == list("31402")


def test_bytes_stand_outside_and_are_read_by_their_hash(conv: clew.Conversation) -> None:
    data = bytes(range(256))
    picture = Image(media_type="image/webp", data=data, detail="high")
    inside = ToolResult("c", (File(name="f", data=data), Image(data=b"other")))
    conv.append([Draft(role=Role.USER, parts=(picture,)), Draft(role=Role.TOOL, parts=(inside,))])
    (stored,) = conv.message(1).parts
    digest = hashlib.sha256(data).hexdigest()
    assert stored == Image(media_type="image/webp", hash=digest, size=256, detail="high")
    assert conv.blob(digest) == data
    (answer,) = conv.message(2).parts
    assert isinstance(answer, ToolResult)
    assert answer.content[0] == File(name="f", hash=digest, size=256)
    with pytest.raises(clew.NotFound):
        conv.blob("0" * 64)


def test_a_hash_alone_refers_to_bytes_that_are_here(profile: clew.Profile) -> None:
    conv, other = profile.create(), profile.create()
    conv.append([Draft(role=Role.USER, parts=(Image(data=b"png"),))])
    (stored,) = conv.message(1).parts
    conv.append([Draft(role=Role.USER, parts=(stored,))])
    assert conv.message(2).parts == (stored,)
    with pytest.raises(clew.InputError):
        other.append([Draft(role=Role.USER, parts=(stored,))])
    with pytest.raises(clew.InputError):
        other.append([Draft(role=Role.USER, parts=(Image(hash="beef"),))])
    assert other.info().head == 0


@pytest.mark.requires("engine")
def test_the_same_picture_is_kept_once(conv: clew.Conversation, place, raw) -> None:
    data = bytes(500_000)
    for n in range(20):
        conv.append([Draft(role=Role.USER, parts=(Image(data=data), Text(str(n))))])
    with raw.connect(place) as run:
        assert run("SELECT count(*), sum(length(bytes)) FROM blob") == [(1, len(data))]
        assert run("SELECT count(*) FROM message WHERE length(parts) > 500") == [(0,)]


class TestLimits:
    @pytest.fixture
    def limits(self) -> clew.Limits:
        return clew.Limits(message=1000, blob=1000, batch=2, label=50, key=30, meta=100)

    @pytest.mark.parametrize(
        ("what", "draft"),
        [
            ("message", clew.user("x" * 1000)),
            ("message", clew.user("é" * 500)),
            ("image", Draft(role=Role.USER, parts=(Image(data=bytes(1001)),))),
            ("file", Draft(role=Role.USER, parts=(File(data=bytes(1001)),))),
            ("author", clew.user("x", author="a" * 51)),
            ("message key", clew.user("x", key="k" * 31)),
            ("meta", clew.user("x", meta={"a": "b" * 100})),
        ],
    )
    def test_a_value_over_its_limit_is_refused(
        self, conv: clew.Conversation, what: str, draft: Draft
    ) -> None:
        """However well it would be compressed."""
        with pytest.raises(clew.TooLarge) as refused:
            conv.append([clew.user("first"), draft])
        assert refused.value.what == what
        assert refused.value.size > refused.value.limit
        assert conv.info().head == 0

    def test_a_value_at_its_limit_is_kept(self, conv: clew.Conversation) -> None:
        text = "x" * (1000 - len('[{"type":"text","text":""}]'))
        conv.append([clew.user(text, key="k" * 30, author="a" * 50)])
        conv.append([Draft(role=Role.USER, parts=(Image(data=bytes(1000)),))])
        assert conv.message(1).text == text
        assert conv.blob(hashlib.sha256(bytes(1000)).hexdigest()) == bytes(1000)


@pytest.mark.parametrize("size", [1, 200, 256, 300, 5000, 300_000])
def test_sizes_around_compression_come_back(conv: clew.Conversation, size: int) -> None:
    dense = hashlib.shake_256(b"seed").hexdigest(size)
    conv.append([clew.user("y" * size), clew.user(dense)])
    assert [m.text for m in conv.messages()] == ["y" * size, dense]


def test_b106_thinking_goes_to_the_model_that_made_it(conv: clew.Conversation) -> None:
    parts = (Reasoning("secret", model="A", signature="s"), Text("answer"))
    conv.append([clew.user("q"), Draft(role=Role.ASSISTANT, parts=parts)])
    assert conv.message(2).parts == parts
    assert conv.context("A")[1]["reasoning_content"] == "secret"
    assert "reasoning_content" not in conv.context("B")[1]


def test_values_are_read_as_dictionaries_too(conv: clew.Conversation) -> None:
    talk(conv, "a")
    fields = conv.message(1).to_dict()
    assert (fields["seq"], fields["role"]) == (1, "user")
    assert list(fields["parts"]) == [{"type": "text", "text": "a"}]
    assert "author" not in fields
