"""Chat Completions: entries as the messages of a request.

`chat_context` gives a caller's own messages back as they were, with what they lack to be valid;
`chat_messages` gives any log in a form that the API takes. Only a user's message holds images and
files there: those that tools returned follow in a message of a user, behind all results of that
step; elsewhere, or without their bytes, they are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from clew.context.entries import Entry
from clew.context.lawful import lawful
from clew.context.media import bytes_of, dumps, label, words
from clew.context.notices import noticed
from clew.context.wire import (
    CONTINUES,
    closed_calls,
    entries_of,
    folded,
    for_model,
    merged,
    silent,
    system_text,
)
from clew.domain.chat import BlobReader, chat_of, has_more, split_results
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Part, Text, ToolResult, Unknown

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

RETURNED = "Images and files that tools returned:"
UNANSWERED = "[no reply]"
"""Said by the assistant where a provider wants its word between a result and the next request."""

LONGEST_ID = 40
_SYSTEM = (Role.SYSTEM, Role.DEVELOPER)
_DETAILS = ("auto", "low", "high")
_CONTENT = {
    Role.USER: ("text", "image_url", "input_audio", "file"), Role.ASSISTANT: ("text", "refusal"),
}  # fmt: skip
"""Kinds of content pieces that a role's message may hold; of the others only text."""
_NO_NAME = re.compile(r"[\s<|\\/>]+")

ChatDict = dict[str, Any]


def chat_context(
    inputs: ContextInputs, blob: BlobReader, model: str | None = None
) -> list[ChatDict]:
    """System prompt, what stands for the covered part, then every message above it; each as it was
    added, where it was added as a Chat Completions message."""
    rendered = _prompt(inputs.prompt)
    for entry in closed_calls(entries_of(inputs)):
        shown = for_model(entry.parts, model)
        if entry.parts and not shown and not has_more(entry.meta):
            continue  # nothing but another model's thinking
        for piece in split_results(shown):
            rendered.append(chat_of(entry.role, piece, blob, entry.author, entry.meta))
    return rendered


def chat_messages(
    prompt: str | None, entries: Iterable[Entry], blob: BlobReader, model: str | None = None,
    alternate: bool = False, notice: str | None = None,
) -> list[ChatDict]:  # fmt: skip
    """The messages of a request, of any log, the notice in the last of them. With `alternate` for a
    provider that wants the roles in strict turn: one system message, then user and assistant by
    turns, tool steps between."""
    made = (_spoken(entry) for entry in lawful(entries, model, LONGEST_ID))
    sent = [e for e in hoisted(made, blob) if e.role is Role.USER or not _useless(e)]
    if alternate:
        prompt, shown = _by_turns(prompt, sent, notice)
    else:
        shown = noticed(sent, notice, blank=True)
    return [*_prompt(prompt), *chain.from_iterable(messages_of(entry, blob) for entry in shown)]


def _prompt(prompt: str | None) -> list[ChatDict]:
    return [] if prompt is None else [{"role": "system", "content": prompt}]


def _spoken(entry: Entry) -> Entry:
    """The author as a name the API takes; foreign pieces in words."""
    name = _NO_NAME.sub("_", entry.author or "")[:64]
    kinds = _CONTENT.get(entry.role, ())
    parts = tuple(
        Text(words(part.value))
        if isinstance(part, Unknown) and _kind(part.value) not in kinds
        else part
        for part in entry.parts
    )
    if (name or None) != entry.author:
        entry = entry._replace(author=name or None)
    return entry.having(parts)


def _useless(entry: Entry) -> bool:
    """An assistant's audio is a field of its own."""
    return silent(entry) and not (entry.meta and entry.meta["chat"].get("audio"))


# ---------------------------------------------------------------------- alternation


def _by_turns(
    prompt: str | None, entries: list[Entry], notice: str | None
) -> tuple[str | None, Iterable[Entry]]:
    """System text at the head joins the prompt; that between the messages becomes the user's."""
    head = list(takewhile(lambda entry: entry.role in _SYSTEM, entries))
    texts = [*([] if prompt is None else [prompt]), *map(system_text, head)]
    said = [e for e in entries[len(head) :] if e.role is not Role.USER or not silent(e)]
    turns = merged(folded(noticed(said, notice)))
    return "\n\n".join(texts) if texts else None, _answered(turns)


def _answered(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The user begins, and speaks only behind a word of the assistant."""
    before: Entry | None = None
    for entry in entries:
        if before is None and entry.role is not Role.USER:
            yield Entry(Role.USER, (Text(CONTINUES),))
        if before is not None and before.role is Role.TOOL and entry.role is Role.USER:
            yield Entry(Role.ASSISTANT, (Text(UNANSWERED),))
        yield entry
        before = entry


# ---------------------------------------------------------------------- forms that the API takes


def hoisted(entries: Iterable[Entry], blob: BlobReader) -> Iterator[Entry]:
    """The entries with what the API takes of them. What tools returned and may not hold follows in
    an entry of a user, behind all results of the step."""
    returned: list[Part] = []
    for entry in entries:
        if entry.role is not Role.TOOL and returned:
            yield _returned(returned)
            returned = []
        found: list[Part] = []
        parts = tuple(_allowed(part, entry.role, blob, found) for part in entry.parts)
        returned += found
        yield entry.having(parts)
    if returned:
        yield _returned(returned)


def messages_of(entry: Entry, blob: BlobReader) -> Iterator[ChatDict]:
    """One message, or one for each result."""
    for piece in split_results(entry.parts):
        message = chat_of(entry.role, piece, blob, entry.author, entry.meta)
        if message.get("content") is None and message["role"] != "assistant":
            message["content"] = ""  # only an assistant may say nothing
        yield message


def _returned(parts: list[Part]) -> Entry:
    return Entry(Role.USER, (Text(RETURNED), *parts))


def _allowed(part: Part, role: Role, blob: BlobReader, returned: list[Part]) -> Part:
    """A part that the role's message may hold. What tools returned and theirs may not goes to
    `returned`."""
    match part:
        case Image() | File():
            named = part.url is not None or getattr(part, "file_id", None) is not None
            if not named and bytes_of(part, blob) is None:
                return Text(label(part))
            if isinstance(part, Image) and part.detail not in _DETAILS:
                part = structs.replace(part, detail=None)
            if role is Role.TOOL:
                returned.append(part)
            return part if role is Role.USER else Text(label(part))
        case Unknown():
            kinds = _CONTENT.get(role, ("text",))
            return part if _kind(part.value) in kinds else Text(dumps(part.value))
        case ToolResult(content=tuple(pieces)):
            content = tuple(_allowed(piece, Role.TOOL, blob, returned) for piece in pieces)
            return structs.replace(part, content=cast(Any, content))
        case _:
            return part


def _kind(value: object) -> object:
    return cast(dict[str, object], value).get("type") if isinstance(value, dict) else None
