"""Chat Completions as people keep them: a list of messages, a request, lines of either (such as
files for fine-tuning), and recordings of the API.

Nothing in them has an id. A file is one conversation, or one for each line that has `messages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clew.importers.decode import decode, loose_keys
from clew.importers.fields import mapping, text
from clew.importers.format import Format
from clew.importers.formats import mini_swe_agent
from clew.importers.formats.api_requests import asked_chat
from clew.importers.formats.chat_messages import KEYS, chat_about, chat_said
from clew.importers.formats.har import api_of, read_har
from clew.importers.formats.responses_items import has_items
from clew.importers.formats.steps import Walk
from clew.importers.objects import Object, document, objects
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Skipped
from clew.importers.source import Source

_REQUEST = frozenset((
    "messages", "model", "tools", "tool_choice", "parallel_tool_calls", "functions",
    "function_call", "temperature", "top_p", "n", "stream", "stream_options", "stop", "max_tokens",
    "max_completion_tokens", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs",
    "top_logprobs", "user", "seed", "response_format", "metadata", "store", "reasoning_effort",
    "reasoning", "service_tier", "modalities", "audio", "prediction", "verbosity",
    "safety_identifier", "prompt_cache_key", "web_search_options", "extra_body", "top_k", "min_p",
))  # fmt: skip
_BATCH = frozenset(("custom_id", "method", "url", "body"))
_HEAD = 64 * 1024


def matches(probe: Probe) -> bool:
    """Messages or requests of Chat Completions, or a recording of them."""
    if mini_swe_agent.matches(probe):  # lists of messages, too
        return False
    if probe.head.lstrip()[:1] == b"[":
        return "role" in probe.item_keys <= KEYS and not has_items(probe.head)
    if probe.keys == frozenset(("log",)):
        return api_of(probe) == "chat"
    return _is_request(probe.keys) or _is_message(probe)


def _is_request(keys: frozenset[str]) -> bool:
    return keys == _BATCH or ("messages" in keys and keys <= _REQUEST)


def _is_message(probe: Probe) -> bool:
    """Whether every line is a message."""
    return "role" in probe.keys <= KEYS and bool(probe.records) and not has_items(probe.head)


def read(source: Source) -> Iterator[Event]:
    """All conversations of a file."""
    head = source.head(_HEAD).lstrip()
    if head[:1] == b"[":
        yield from _messages(source.id, objects(source.items(), "message"))
        return
    keys = loose_keys(head)
    if keys == frozenset(("log",)):
        yield from read_har(source)
    elif "role" in keys:
        yield from _messages(source.id, objects(source.lines()))
    elif _is_lines(head):
        yield from _lines(source)
    else:
        yield from _document(source)


def _is_lines(head: bytes) -> bool:
    """Whether every line is a request of its own: the first is an object, or longer than the head,
    or it is damaged and one of those after it is a request. (A message that stands on a line of a
    document is none.)"""
    first, end, rest = head.partition(b"\n")
    try:
        return not end or isinstance(decode(first), dict)
    except ValueError:
        lines = (line for line in rest.split(b"\n") if line.startswith(b"{"))
        return any(_is_request(loose_keys(line)) and line.endswith(b"}") for line in lines)


def _document(source: Source) -> Iterator[Event]:
    value = document(source)
    if isinstance(value, Damaged):
        yield value
    else:
        yield from _request(source.id, value)


def _lines(source: Source) -> Iterator[Event]:
    for line in objects(source.lines()):
        if isinstance(line, Damaged):
            yield line
        else:
            name = source.id if line.number == 1 else f"{source.id}#{line.number}"
            yield from _request(name, line.value)


def _request(chat: str, value: dict[str, Any]) -> Iterator[Event]:
    """A request, or one of a batch."""
    given = mapping(value.get("body")) if value.keys() >= _BATCH else value
    asked = asked_chat(given)
    if not asked.items:
        yield Skipped("object without messages")
        return
    messages = (Object(at, message) for at, message in enumerate(asked.items, 1))
    yield from _messages(chat, messages, asked.model, asked.tools)


def _messages(
    chat: str,
    messages: Iterable[Object | Damaged],
    model: str | None = None,
    tools: tuple[dict[str, Any], ...] | None = None,
) -> Iterator[Event]:
    walk = Walk(chat)
    yield Chat(id=chat, model=model, tools=tools)
    for message in messages:
        if isinstance(message, Damaged):
            yield message
            continue
        said = chat_said(message.value, model)
        if said is None:
            role = text(message.value.get("role")) or "none"
            yield Skipped(f"message of the role {role[:100]!r}")
            continue
        walk.begin_answer()
        yield walk.step(said, model=model, meta=chat_about(message.value))


FORMAT = Format(
    name="openai-chat",
    label="Chat Completions",
    matches=matches,
    read=read,
)
