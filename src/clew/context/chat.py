"""A context as Chat Completions messages.

Tool results follow their calls; a call without a result gets a synthetic one, in the rendering
only; thinking goes only to the model that made it. The budget is a later concern: what the
compaction in effect and the log say is rendered whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from clew.domain.chat import BlobReader, chat_of, split_results
from clew.domain.compactions import Inline, Ref, Stub
from clew.domain.messages import Message, Role
from clew.domain.parts import Parts, Reasoning, Text, ToolResult, answered_ids, call_ids

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

INTERRUPTED = "[interrupted: this call did not finish]"

Entry = tuple[Role, Parts, str | None, Any]
"""(role, parts, author, meta)"""


def chat_context(
    inputs: ContextInputs, blob: BlobReader, model: str | None = None
) -> list[dict[str, Any]]:
    """System prompt, what stands for the covered part, then every message above it."""
    rendered: list[dict[str, Any]] = []
    if inputs.prompt is not None:
        rendered.append({"role": "system", "content": inputs.prompt})
    for role, parts, author, meta in closed_calls(_entries(inputs)):
        for piece in split_results(_for_model(parts, model)):
            if piece:
                rendered.append(chat_of(role, piece, blob, author, meta))
    return rendered


def _entries(inputs: ContextInputs) -> Iterator[Entry]:
    for item, messages in inputs.covered:
        match item:
            case Inline(role=role, parts=parts):
                yield role, parts, None, None
            case Stub(text=text):
                yield _stub(messages[0], text)
            case Ref():
                yield from map(_entry, messages)
    yield from map(_entry, inputs.messages)


def _entry(message: Message) -> Entry:
    return message.role, message.parts, message.author, message.meta


def _stub(message: Message, text: str) -> Entry:
    """A shortened message keeps its calls, and answers the calls it answered."""
    parts: Parts = tuple(
        ToolResult(part.call_id, text, part.name, part.is_error)
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    calls: Parts = tuple(part for part in message.parts if not isinstance(part, Text | ToolResult))
    return message.role, parts or (Text(text), *calls), message.author, None


def closed_calls(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, each run of tool results completed before anything else follows."""
    wanted: list[str] = []
    for entry in entries:
        role, parts, _, _ = entry
        if role is not Role.TOOL and wanted:
            yield _interrupted(wanted)
            wanted = []
        if role is Role.TOOL:
            answered = answered_ids(parts)
            if not set(answered) & set(wanted):
                continue  # its call is gone: no provider accepts the result alone
            wanted = [call for call in wanted if call not in answered]
        yield entry
        if role is Role.ASSISTANT:
            wanted = list(call_ids(parts))
    if wanted:
        yield _interrupted(wanted)


def _interrupted(calls: list[str]) -> Entry:
    results = tuple(ToolResult(call, INTERRUPTED, is_error=True) for call in calls)
    return Role.TOOL, results, None, None


def _for_model(parts: Parts, model: str | None) -> Parts:
    return tuple(
        part for part in parts
        if not isinstance(part, Reasoning) or part.model is None or part.model == model
    )  # fmt: skip
