"""A context as Chat Completions messages.

What was one message of an API is one again; tool results follow their calls; a call without a
result gets a synthetic one, in the rendering only; thinking goes only to the model that made it.
The budget is a later concern: what the compaction in effect and the log say is rendered whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from clew.context.entries import Entry, entry_of, joined
from clew.domain.chat import BlobReader, chat_of, has_more, is_function_result, split_results
from clew.domain.compactions import Inline, Ref, Stub
from clew.domain.messages import Message, Role
from clew.domain.parts import Parts, Reasoning, Text, ToolResult, call_ids

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

INTERRUPTED = "[interrupted: this call did not finish]"


def chat_context(
    inputs: ContextInputs, blob: BlobReader, model: str | None = None
) -> list[dict[str, Any]]:
    """System prompt, what stands for the covered part, then every message above it."""
    rendered: list[dict[str, Any]] = []
    if inputs.prompt is not None:
        rendered.append({"role": "system", "content": inputs.prompt})
    for role, parts, author, meta, _, _ in closed_calls(joined(_entries(inputs))):
        shown = _for_model(parts, model)
        if parts and not shown and not has_more(meta):
            continue  # nothing but another model's thinking
        for piece in split_results(shown):
            rendered.append(chat_of(role, piece, blob, author, meta))
    return rendered


def _entries(inputs: ContextInputs) -> Iterator[Entry]:
    for item, messages in inputs.covered:
        match item:
            case Inline(role=role, parts=parts):
                if parts:
                    yield Entry(role, parts)
            case Stub(text=text):
                yield _stub(messages[0], text)
            case Ref():
                yield from map(entry_of, messages)
    yield from map(entry_of, inputs.messages)


def _stub(message: Message, text: str) -> Entry:
    """A shortened message keeps its calls, and answers the calls it answered."""
    parts: Parts = tuple(
        ToolResult(part.call_id, text, part.name, part.is_error)
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    calls: Parts = tuple(part for part in message.parts if not isinstance(part, Text | ToolResult))
    shown = parts or (Text(text), *calls)
    return Entry(message.role, shown, message.author, None, message.api_group, (message,))


def closed_calls(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, each call followed by its result wherever that was stored, or a synthetic one.

    A result answers the newest call of its id before it that no other result has answered; one
    whose call is gone is left out, since no provider accepts it alone.
    """
    listed = list(entries)
    unanswered: dict[int, list[str]] = {}
    """By the place of the message that made the calls."""
    behind: dict[int, list[Entry]] = {}
    open_calls: dict[str, list[int]] = {}
    for at, entry in enumerate(listed):
        if entry.role is Role.ASSISTANT and (ids := call_ids(entry.parts)):
            unanswered[at], behind[at] = list(ids), []
            for call in ids:
                open_calls.setdefault(call, []).append(at)
        elif _is_results(entry):
            for place, results in _by_call(entry, open_calls).items():
                for result in results:
                    unanswered[place].remove(result.call_id)
                behind[place].append(entry._replace(parts=tuple(results)))
    for at, entry in enumerate(listed):
        if not _is_results(entry):
            yield entry
        if at in behind:
            yield from behind[at]
            if unanswered[at]:
                yield _interrupted(unanswered[at])


def _is_results(entry: Entry) -> bool:
    return entry.role is Role.TOOL and not is_function_result(entry.meta)


def _by_call(entry: Entry, open_calls: dict[str, list[int]]) -> dict[int, list[ToolResult]]:
    """The results of a message by the place of the call that each of them answers."""
    found: dict[int, list[ToolResult]] = {}
    for part in entry.parts:
        if isinstance(part, ToolResult) and (places := open_calls.get(part.call_id)):
            found.setdefault(places.pop(), []).append(part)
    return found


def _interrupted(calls: list[str]) -> Entry:
    results = tuple(ToolResult(call, INTERRUPTED, is_error=True) for call in calls)
    return Entry(Role.TOOL, results)


def _for_model(parts: Parts, model: str | None) -> Parts:
    return tuple(
        part for part in parts
        if not isinstance(part, Reasoning) or part.model is None or part.model == model
    )  # fmt: skip
