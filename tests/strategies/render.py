"""Logs of any kind: what no honest loop would write, and a file that was brought may hold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clew.domain.chat import SHAPE
from clew.domain.messages import Message, Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown

PNG = b"\x89PNG\r\n\x1a\n"
MODELS = (None, "model-a", "model-b")

ids = st.sampled_from(("a", "b", "c.1", "c_1", "", "x" * 70, "toolu_01", "ü"))
texts = st.sampled_from(("", " ", "yes", "done \n", "\ud83d half", "\u0085", "{}", "<notes>"))
names = st.sampled_from(("run", "fs.read", "", "n" * 80))
arguments = st.sampled_from(
    ("{}", "", '{"a": 1}', "[1]", "not json", '{"a": NaN}', '"\\ud83d"', "[" * 2000)
)
images = st.sampled_from((
    Image(data=PNG), Image(url="https://example.org/a.png"),
    Image(media_type="image/tiff", data=PNG),
    Image(hash="0" * 64), File(name="a.pdf", media_type="application/pdf", data=b"%PDF-1"),
    File(name="a.txt", media_type="text/plain", data=b"hi"), File(file_id="file-1"),
    Image(data=b""),
))  # fmt: skip
unknowns = st.sampled_from((
    Unknown({"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                         "data": "iVBORw0KGgo="}}),
    Unknown({"type": "text", "text": "cached", "cache_control": {"type": "ephemeral"}}),
    Unknown({"type": "odd"}), Unknown(None), Unknown([1]),
    Unknown({"type": "web_search_call", "id": "ws_1", "status": "completed",
             "action": {"type": "search", "query": "q"}}),
))  # fmt: skip
thinking = st.builds(
    Reasoning,
    text=texts,
    model=st.sampled_from(MODELS),
    signature=st.sampled_from((None, "sig")),
    data=st.sampled_from((None, "opaque")),
)
calls = st.builds(
    ToolCall, id=ids, name=names, arguments=arguments, kind=st.sampled_from(("function", "custom"))
)
contents: Any = texts | st.lists(st.builds(Text, texts) | images, max_size=3).map(tuple)
results = st.builds(
    ToolResult,
    call_id=ids,
    content=contents,
    name=st.none() | st.just("run"),
    is_error=st.booleans(),
)
_some = st.builds(Text, texts)
_of_role: dict[Role, Any] = {
    Role.USER: _some | images | unknowns | results,
    Role.ASSISTANT: _some | thinking | calls | calls | images | unknowns | results,
    Role.TOOL: results | results | _some,
    Role.SYSTEM: _some | images,
    Role.DEVELOPER: _some,
}
_metas = st.none() | st.sampled_from((
    {"chat": {SHAPE: {"content": "list"}, "refusal": None, "annotations": []}},
    {"chat": {"refusal": "no"}}, {"chat": {"function_call": {"name": "run", "arguments": "{}"}}},
    {"chat": {SHAPE: {"role": "function"}}}, {"import": {"x": 1}},
))  # fmt: skip


@st.composite
def logs(draw: st.DrawFn, most: int = 12) -> tuple[Message, ...]:
    """Messages; each of a user begins with words of its own, `request 3`."""
    kinds = st.sampled_from([*Role, Role.ASSISTANT, Role.TOOL, Role.USER])
    found: list[Message] = []
    for seq, role in enumerate(draw(st.lists(kinds, max_size=most)), 1):
        parts = tuple(draw(st.lists(_of_role[role], max_size=4)))
        if role is Role.USER and draw(st.booleans()):
            parts = (Text(f"request {seq}"), *parts)
        found.append(
            Message.of(
                seq=seq, uid=f"{seq:032x}", role=role, parts=parts, created_at=seq,
                author=draw(st.sampled_from((None, "Ada", "Ada L./"))), meta=draw(_metas),
                api_group=draw(st.sampled_from((None, "g", "h"))),
            )
        )  # fmt: skip
    return tuple(found)


@st.composite
def talks(draw: st.DrawFn) -> tuple[Message, ...]:
    """Messages of an honest loop: no call without its result."""
    found: list[tuple[Role, tuple[Any, ...]]] = []
    count = 0
    for turn in range(draw(st.integers(1, 4))):
        found.append((Role.USER, (Text(f"request {turn}"),)))
        for _ in range(draw(st.integers(0, 2))):
            width = draw(st.integers(1, 3))
            made = [f"call.{draw(st.integers(0, 3))}" for _ in range(width)]
            count += width
            thought = draw(st.lists(thinking, max_size=1))
            asked = tuple(ToolCall(id, "run", draw(arguments)) for id in made)
            found.append((Role.ASSISTANT, (*thought, *asked)))
            found.extend((Role.TOOL, (ToolResult(id, draw(contents)),)) for id in made)
        found.append((Role.ASSISTANT, (Text(f"answer {turn} \n"),)))
        if draw(st.booleans()):
            found.append((Role.SYSTEM, (Text("be brief"),)))
    return tuple(
        Message.of(seq=seq, uid=f"{seq:032x}", role=role, parts=parts, created_at=seq)
        for seq, (role, parts) in enumerate(found, 1)
    )
