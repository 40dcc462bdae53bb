"""Requests of OpenAI's APIs: the messages or items that they hold, and what stands beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

from clew.importers.fields import ident, listed, mapping, text


class Asked(NamedTuple):
    """What a request says."""

    items: list[dict[str, Any]]
    model: str | None = None
    prompt: str | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    previous: str | None = None
    """Id of the response that it goes on from."""
    conversation: str | None = None


def asked_chat(request: dict[str, Any]) -> Asked:
    """A request of Chat Completions."""
    tools = tuple(mapping(tool) for tool in listed(request.get("tools")))
    return Asked(
        [mapping(message) for message in listed(request.get("messages"))],
        text(request.get("model")),
        tools=tools or None,
    )


def asked_responses(request: dict[str, Any]) -> Asked:
    """A request of the Responses API, or a response that tells its input."""
    given = request.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else listed(given)
    conversation = request.get("conversation")
    return Asked(
        [mapping(item) for item in items],
        text(request.get("model")),
        text(request.get("instructions")),
        tuple(tool for each in listed(request.get("tools")) if (tool := _tool(mapping(each))))
        or None,
        ident(request.get("previous_response_id")),
        ident(conversation) or ident(mapping(conversation).get("id")),
    )


def _tool(tool: dict[str, Any]) -> dict[str, Any] | None:
    """A function in the form of Chat Completions; hosted tools have none."""
    if tool.get("type") != "function" or "name" not in tool:
        return None
    names = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {k: tool[k] for k in names if tool.get(k) is not None}}
