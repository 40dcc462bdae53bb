"""`recall` and `search` as tools of an agent: their schemas, and what a call of them answers.

An answer is always text for the model. What is wrong with a call is said in it, with what would be
right: a model reads that and mends the call. Only what the store itself raises goes to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from clew.compaction.lookup import MOST, TOP, Found, Searches, search
from clew.compaction.recall import heading, recall
from clew.compaction.refs import HOW
from clew.errors import InputError

if TYPE_CHECKING:
    from clew.store.reader import ConversationReader

Format = Literal["chat", "responses", "anthropic"]

_RECALL = (
    "Read earlier messages of this conversation word for word. Use it when a shortened output or a "
    "note names a message, as [@12] or recall(12), and its exact text matters."
)
_SEARCH = (
    "Find earlier messages of this conversation by words or by a question, also those that are no "
    "longer shown. Gives the best matches with their numbers for recall."
)
_REF = f"Which messages: {HOW}. An answer that is not complete names the ref of the rest."
_QUERY = "Words that the messages hold, or a question. Put an exact phrase in double quotes."
_SCHEMAS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("recall", _RECALL, {
        "type": "object",
        "properties": {"ref": {"type": "string", "description": _REF}},
        "required": ["ref"],
        "additionalProperties": False,
    }),
    ("search", _SEARCH, {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": _QUERY},
            "top": {
                "type": "integer", "minimum": 1, "maximum": MOST,
                "description": f"How many messages at most, {TOP} when left out.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }),
)  # fmt: skip
NAMES = tuple(name for name, _, _ in _SCHEMAS)


def tools(format: Format = "chat") -> list[dict[str, Any]]:
    """The schemas of both tools, in the form of Chat Completions, Responses or Anthropic Messages.

    New values each time, in the same order. Raises InputError for another format.
    """
    if format not in ("chat", "responses", "anthropic"):
        raise InputError(f"format is {format!r}; give 'chat', 'responses' or 'anthropic'")
    return [_schema(format, *schema) for schema in _SCHEMAS]


def call(
    conv: ConversationReader, profile: Searches | None, name: str,
    arguments: str | dict[str, Any],
) -> str:  # fmt: skip
    """What a call of one of the tools answers: text for the tool result.

    `arguments`: as the model gave them, JSON or decoded. `profile`: the one that the conversation
    is in; see `search`. Raises only what the store raises.
    """
    try:
        if name == "recall":
            return recall(conv, _argument("ref", arguments)).text
        if name == "search":
            query, top = _argument("query", arguments), _top(arguments)
            return _told(search(conv, profile, str(query), top=top))
    except InputError as error:
        return f"Error: {error}."
    return f"Error: there is no tool {name!r} here; call {' or '.join(NAMES)}."


def _schema(format: Format, name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    parameters = msgspec.json.decode(msgspec.json.encode(schema))  # the caller's own
    if format == "anthropic":
        return {"name": name, "description": text, "input_schema": parameters}
    function = {"name": name, "description": text, "parameters": parameters}
    if format == "responses":
        return {"type": "function", **function}
    return {"type": "function", "function": function}


def _argument(name: str, arguments: str | dict[str, Any]) -> Any:
    """The one argument that a tool needs. A model that leaves the object out gives it alone."""
    values = _values(arguments)
    if not isinstance(values, dict):
        given: Any = values
    else:
        given = cast(dict[str, Any], values).get(name)
    if isinstance(given, list):
        given = ",".join(str(each) for each in cast(list[Any], given))
    if given is None or given == "" or isinstance(given, dict | bool | float):
        example = '{"ref": "12-40"}' if name == "ref" else '{"query": "which port did we choose"}'
        raise InputError(f"{name} is missing or no text; call with {example}")
    return given


def _top(arguments: str | dict[str, Any]) -> int:
    values = _values(arguments)
    top: Any = cast(dict[str, Any], values).get("top") if isinstance(values, dict) else None
    if top is None:
        return TOP
    if isinstance(top, str) and len(top) < 10 and top.strip().isdecimal():
        top = int(top)
    if isinstance(top, bool) or not isinstance(top, int):
        raise InputError(f"top is no number; give one from 1 to {MOST}")
    return max(1, min(MOST, top))


def _values(arguments: str | dict[str, Any]) -> Any:
    """What a model gave, decoded; a text that is no JSON is itself."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, ValueError, RecursionError):
        if arguments.lstrip().startswith("{"):
            raise InputError(
                "the arguments are no JSON object; mend its quotes and braces"
            ) from None
        return arguments


def _told(found: tuple[Found, ...]) -> str:
    if not found:
        return "Nothing was found. Try other words, or fewer: names, numbers and paths are best."
    texts = [f"{heading(one.seq, one.role, one.created_at)}:\n{one.text}" for one in found]
    best = found[0].seq
    around = f"{max(1, best - 2)}-{best + 2}"
    more = f"[recall({best}) gives all of it, recall({around}) also what stands around it]"
    return "\n\n".join([*texts, more])
