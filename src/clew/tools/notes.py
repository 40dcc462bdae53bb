"""todo and goal: what stands beside the log, set by the agent.

Each call says the whole state that is wanted, so that one which is repeated after a crash changes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from clew.domain.notes import Todo
from clew.errors import InputError
from clew.providers.api import ToolSpec
from clew.tools.api import ToolCallContext, ToolOutput

State = Literal["pending", "active", "done", "dropped"]
STATES: tuple[str, ...] = get_args(State)
ACTIONS = ("set", "done", "clear")
MOST = 100
"""Items of a list."""

TODO = ToolSpec(
    "todo",
    "Keep a list of what is to be done in this conversation. Give the whole list each time: it "
    "replaces the one before, and is shown to you with each message. Use it for work of several "
    "steps; mark one item active while you work on it, and done at once when it is.",
    {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "maxItems": MOST,
                "description": "The whole list, in order. An empty one clears it.",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "description": "What is to be done."},
                        "state": {"type": "string", "enum": list(STATES)},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["items"],
        "additionalProperties": False,
    },
)
GOAL = ToolSpec(
    "goal",
    "Set, finish or clear the goal of this conversation: one sentence that says what it is for. It "
    "is shown to you with each message, also when early messages no longer are. Set it when the "
    "person states what they want in the end; mark it done when they have it.",
    {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": list(ACTIONS)},
            "text": {"type": "string", "description": "The goal; for set only."},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
)


async def set_todos(arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
    """Make the list equal to the given one. Raises InputError for what is no list of items."""
    todos = _items(arguments.get("items"))
    await where.conversation.set_todos(todos)
    counts = {state: sum(todo.state == state for todo in todos) for state in STATES}
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return ToolOutput(
        f"The list has {len(todos)} items: {told}." if todos else "The list is empty."
    )


async def set_goal(arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
    """Set, finish or clear the goal. Raises InputError for another action, or a missing text."""
    action, text = arguments.get("action"), arguments.get("text")
    if action == "set":
        if not isinstance(text, str) or not text.strip():
            raise InputError('text is missing; call with {"action": "set", "text": "the goal"}')
        goal = await where.conversation.set_goal(text.strip())
        return ToolOutput(f"The goal is set: {goal.text}")
    if action not in ACTIONS:
        raise InputError(f"action is {action!r}; give one of {', '.join(ACTIONS)}")
    if not await where.conversation.close_goal(done=action == "done"):
        return ToolOutput("There is no goal now; none was active.")
    return ToolOutput("The goal is done." if action == "done" else "The goal is cleared.")


def _items(given: object) -> list[Todo]:
    if not isinstance(given, list):
        raise InputError(
            'items is no list; call with {"items": [{"text": "do this", "state": "pending"}]}'
        )
    items = cast(list[Any], given)
    if len(items) > MOST:
        raise InputError(f"the list has {len(items)} items, the limit is {MOST}; join some")
    return [_item(number, item) for number, item in enumerate(items)]


def _item(number: int, item: object) -> Todo:
    """One item; a text alone is one that is pending."""
    values = cast(dict[str, Any], item) if isinstance(item, dict) else {"text": item}
    text, state = values.get("text"), values.get("state") or "pending"
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"items.{number} has no text")
    if state not in STATES:
        raise InputError(f"items.{number}.state is {state!r}; give one of {', '.join(STATES)}")
    return Todo(text.strip(), cast(State, state))
