"""/todo and /goal: what stands beside a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from msgspec.structs import replace

from clew.cli.chat.api import Chat
from clew.cli.chat.commands.showing import first_word, number
from clew.cli.text import one_line
from clew.domain.notes import Todo
from clew.errors import InputError

TODO = "/todo add TEXT, start N, done N, drop N or clear"
SIGNS = {"pending": "[ ]", "active": "[>]", "done": "[x]", "dropped": "[-]"}
STATES = {"start": "active", "done": "done", "drop": "dropped", "open": "pending"}


async def todo(chat: Chat, given: str) -> None:
    """Shows the list that you and the model keep, or changes it. The model sees it with each
    message, and has a tool to change it."""
    todos = [*await chat.conv.todos()]
    verb, rest = first_word(given)
    if given:
        todos = _changed(todos, verb, rest)
        await chat.conv.set_todos(todos)
    if not todos:
        chat.write(("The list is empty; /todo add TEXT adds to it.", "dim"))
    for at, item in enumerate(todos, 1):
        over = item.state in ("done", "dropped")
        chat.write(
            (f"{at:>3} {SIGNS[item.state]} ", "dim"), (one_line(item.text), "dim" if over else "")
        )


async def complete_todo(chat: Chat, typed: str) -> Sequence[str]:
    """Verbs."""
    return [verb for verb in ("add", *STATES, "clear") if verb.startswith(typed)]


def _changed(todos: list[Todo], verb: str, rest: str) -> list[Todo]:
    if verb == "clear" and not rest:
        return []
    if verb == "add" and rest:
        return [*todos, Todo(rest)]
    if verb not in STATES:
        raise InputError(f"/todo does not know {one_line(verb)!r}; type {TODO}")
    at = number(rest, f"/todo {verb} N")
    if at > len(todos):
        raise InputError(f"there is no todo {at}; /todo shows them")
    state = cast(Literal["pending", "active", "done", "dropped"], STATES[verb])
    return [replace(t, state=state) if n == at else t for n, t in enumerate(todos, 1)]


async def goal(chat: Chat, given: str) -> None:
    """Shows what this conversation is for, or sets it. The model sees it with each message, however
    long ago it was set; `done` and `clear` take it off."""
    if given in ("done", "clear"):
        if not await chat.conv.close_goal(done=given == "done"):
            raise InputError("no goal is set; /goal TEXT sets one")
        chat.write("The goal is reached." if given == "done" else "The goal is taken off.")
        return
    if given:
        await chat.conv.set_goal(given)
    active = await chat.conv.goal()
    if active is None:
        chat.write(("No goal is set; /goal TEXT sets one.", "dim"))
    else:
        chat.write("Goal: ", (one_line(active.text), "bold"))


async def complete_goal(chat: Chat, typed: str) -> Sequence[str]:
    """What ends a goal."""
    return [word for word in ("done", "clear") if word.startswith(typed)]
