"""Transcripts to export, as values; nothing of them is in a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import clew
from clew.context.entries import entry_of, joined
from clew.domain.messages import Draft, Message
from clew.domain.turns import ModelCall, Usage
from clew.exporters.transcript import Transcript

PNG = b"\x89PNG\r\n\x1a\n"
BLOBS = {"ab" * 32: PNG}
CALL = clew.ToolCall(id="c1", name="look", arguments='{"at": "x"}')
EVIL = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> [x](javascript:alert(3)) "
    "\" ' ' onmouseover=alert(4) </pre></details><iframe> &lt;b&gt; \u202egnp.exe \x1b[31m\x07\0 "
    "\x9b\ud83d"
)


def info(**given: Any) -> clew.ConversationInfo:
    """Facts of a conversation."""
    values: dict[str, Any] = {
        "id": "conv-1", "profile": "p", "kind": "root", "source": "cli", "title": "A talk",
        "title_origin": "user", "preview": None, "message_count": 1, "waiting": 0, "turn": None,
        "cwd": None, "git_root": None, "git_branch": None, "model": "gpt-5", "pinned": False,
        "archived": False, "created_at": 1_760_000_000_000_000,
        "active_at": 1_760_000_100_000_000, "ended_at": None, "end_reason": None, "origin": None,
        "base": 0, "head": 1, "view": 0, "generation": 0, "fence": 0, "title_locked": False,
        "affinity": "a", "attribution": None, "automation": False, "read_only": False,
        "imported_at": None, "reopened_at": None, "meta": None,
    }  # fmt: skip
    known = clew.ConversationInfo.__struct_fields__
    values |= {name: None for name in known if name not in values} | given
    return clew.ConversationInfo(**values)


def of(
    drafts: Sequence[Draft], *, about: dict[str, Any] | None = None, prompt: str | None = None,
    **given: Any,
) -> Transcript:  # fmt: skip
    """A transcript of these messages."""
    messages = [
        Message.of(
            seq=seq, uid=f"{seq:032x}", role=draft.role, parts=draft.parts, author=draft.author,
            created_at=draft.created_at or 1_760_000_000_000_000 + seq, meta=draft.meta,
            api_group=draft.api_group,
        )
        for seq, draft in enumerate(drafts, 1)
    ]  # fmt: skip
    count = len(messages)
    facts = info(**{"head": count, "message_count": count, **(about or {})})
    return Transcript(
        info=facts, prompt=prompt, toolset=given.pop("toolset", None),
        entries=lambda: joined(map(entry_of, messages)), blob=lambda digest: BLOBS[digest], **given,
    )  # fmt: skip


def assistant(*parts: Any, **fields: Any) -> Draft:
    return Draft(role=clew.Role.ASSISTANT, parts=parts, **fields)


def user(*parts: Any, **fields: Any) -> Draft:
    return Draft(role=clew.Role.USER, parts=parts, **fields)


def result(call: str, content: Any, **fields: Any) -> Draft:
    return Draft(role=clew.Role.TOOL, parts=(clew.ToolResult(call, content, **fields),))


def call(number: int, up_to_seq: int, **given: Any) -> ModelCall:
    """A model call that is done."""
    values: dict[str, Any] = {
        "number": number, "turn": None, "purpose": "turn", "model": "gpt-5", "state": "done",
        "generation": 0, "up_to_seq": up_to_seq, "usage": Usage(100, 20, 60, 5), "cost": 0.25,
        "latency": None, "started_at": 0,
    }  # fmt: skip
    return ModelCall(**values | given)


IMAGE = clew.Image(media_type="image/png", hash="ab" * 32, size=len(PNG))

TALK = (
    user(clew.Text("Look at "), IMAGE),
    assistant(clew.Reasoning(text="Hm.", id="rs_1", data="opaque"), clew.Text("I look."), CALL,
              api_group="m1"),
    result("c1", "seen", name="look"),
    assistant(clew.ToolCall(id="c2", name="shell", arguments="ls -l", kind="custom"),
              api_group="m1"),
    result("c2", (clew.Text("a"), IMAGE, clew.Unknown({"odd": 1}))),
    Draft(role=clew.Role.SYSTEM, parts=(clew.Text("be brief"),)),
    Draft(role=clew.Role.DEVELOPER, parts=(clew.Text("and exact"),)),
    assistant(clew.ToolCall(id="c3", name="broken", arguments="{not json")),
    result("c3", "no", is_error=True),
    result("c1", "late"),
    user(clew.Text("a file"), clew.File(name="a.pdf", file_id="f-1"),
         clew.File(name="b.txt", url="https://example.com/b.txt")),
    assistant(clew.Text("Done."), IMAGE),
    user(),
)  # fmt: skip
"""One of each."""
