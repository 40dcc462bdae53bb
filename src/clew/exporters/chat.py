"""Chat Completions: the log as the messages of a request, each of a form that the API takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.context.chat import hoisted, messages_of
from clew.exporters.text import json_list
from clew.exporters.transcript import Transcript


def messages(source: Transcript) -> Iterator[dict[str, Any]]:
    """The system prompt, then every message, one for each tool result."""
    if source.prompt is not None:
        yield {"role": "system", "content": source.prompt}
    for entry in hoisted(source.entries(), source.blob):
        yield from messages_of(entry, source.blob)


def text(source: Transcript) -> Iterator[str]:
    """The file: {"model", "messages", "tools"}."""
    fields = {} if source.info.model is None else {"model": source.info.model}
    tools = source.toolset or ()
    usable = tools and all("function" in schema for schema in tools)
    return json_list(messages(source), fields, "messages", {"tools": tools} if usable else {})
