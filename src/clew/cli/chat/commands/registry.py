"""The commands of a chat by name, and how the one that was typed is found and loaded.

A module of clew.cli.chat.commands is loaded when a command in it is called for, or completed: a
chat that starts must not pay for an export.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib import import_module
from inspect import getdoc
from typing import Any, NamedTuple, cast

from clew.cli.chat.api import Chat, Command
from clew.cli.text import one_line
from clew.errors import ClewError, Stale

PACKAGE = "clew.cli.chat.commands"
Run = Callable[[Chat, str], Awaitable[None]]
Complete = Callable[[Chat, str], Awaitable[Sequence[str]]]


class Entry(NamedTuple):
    """Where a command is: the function `name` of `module`, and `complete_name` if it has one."""

    module: str
    usage: str
    summary: str
    during: bool = False
    aliases: tuple[str, ...] = ()


COMMANDS = {
    "new": Entry("conversations", "", "Begin a new conversation; this one stays."),
    "resume": Entry("conversations", "[ID|N|TEXT]", "Go on in another conversation.",
                    aliases=("open", "r")),
    "list": Entry("conversations", "[TEXT]", "List conversations, newest activity first.", True,
                  ("ls",)),
    "search": Entry("finding", "WORDS", "Find messages in all conversations.", True, ("find",)),
    "undo": Entry("history", "", "Take the last exchange out."),
    "redo": Entry("history", "", "Put back what /undo took out."),
    "retry": Entry("history", "[MODEL]", "Have the last message answered again.",
                   aliases=("regenerate",)),
    "edit": Entry("history", "[TEXT]", "Change your last message, and have it answered."),
    "branch": Entry("conversations", "[TITLE] [@SEQ]", "Go on in a copy; this one stays as it is.",
                    aliases=("fork",)),
    "title": Entry("labels", "[TEXT|-]", "Show the title, or set yours.", True, ("rename",)),
    "model": Entry("models", "[NAME]", "Show the models, or have another one answer."),
    "tools": Entry("tools", "[reload|allow NAME|deny NAME|show N]",
                   "Show the tools, or decide about one."),
    "context": Entry("context", "", "Show what the model sees, and how much room it takes.", True),
    "compact": Entry("context", "[undo]", "Make the old part short, for the model only."),
    "todo": Entry("notes", "[add TEXT|start N|done N|drop N|clear]",
                  "Show or change the todo list.", True, ("todos",)),
    "goal": Entry("notes", "[TEXT|done|clear]", "Show or set what this conversation is for.", True),
    "queue": Entry("turns", "TEXT", "Send a message for the next turn, not this one.", True),
    "stop": Entry("turns", "", "End the running turn; what was said is kept.", True),
    "status": Entry("turns", "", "Show conversation, model, turn and what waits.", True),
    "usage": Entry("spending", "", "Show tokens and cost, here and today.", True, ("cost",)),
    "export": Entry("export", "[FORMAT] [FILE]", "Write this conversation to a file.",
                    aliases=("save",)),
    "help": Entry("help", "[COMMAND]", "Show the commands, or one of them.", True, ("h", "?")),
    "quit": Entry("turns", "", "Leave; everything is kept.", True, ("q", "exit", "bye")),
}  # fmt: skip


def names() -> list[tuple[str, str, str]]:
    """(name, usage, summary) of each command; loads nothing."""
    return [(name, entry.usage, entry.summary) for name, entry in COMMANDS.items()]


def find(name: str) -> Command | None:
    """The command of a name (with or without its slash, in any case), of an alias, or of a
    beginning that only one name has. None: there is none, or several; `unknown` says which.

    What the command refuses (a ClewError, an OSError) it says in one line by itself."""
    full = _full_name(_plain(name))
    return None if full is None else _load(full)


def aliases(name: str) -> tuple[str, ...]:
    """Other names of a command."""
    return COMMANDS[name].aliases


def description(name: str) -> str:
    """What a command does, in a few sentences on one line."""
    module: Any = import_module(f"{PACKAGE}.{COMMANDS[name].module}")
    return " ".join((getdoc(getattr(module, name)) or "").split())


def unknown(name: str) -> str:
    """One line for a name that `find` knows nothing for, with what may be meant."""
    typed = _plain(name)
    near = [known for known in COMMANDS if known.startswith(typed)] if typed else []
    near = near or [known for known in COMMANDS if _near(known, typed)]
    meant = " or ".join(f"/{known}" for known in near)
    hint = f"did you mean {meant}?" if near else "/help shows them"
    return f"there is no command /{one_line(typed)}; {hint}"


def _plain(name: str) -> str:
    return name.strip().removeprefix("/").lower()


def _full_name(typed: str) -> str | None:
    if typed in COMMANDS:
        return typed
    for name, entry in COMMANDS.items():
        if typed in entry.aliases:
            return name
    begun = [name for name in COMMANDS if name.startswith(typed)] if typed else []
    return begun[0] if len(begun) == 1 else None


def _near(known: str, typed: str) -> bool:
    """The same beginning, or the same letters with one more, less or swapped."""
    return known[:2] == typed[:2] or (len(typed) > 2 and len(set(known) ^ set(typed)) <= 1)


def _load(name: str) -> Command:
    entry = COMMANDS[name]
    module: Any = import_module(f"{PACKAGE}.{entry.module}")
    run = cast(Run, getattr(module, name))
    complete = cast("Complete | None", getattr(module, f"complete_{name}", None))
    offered = None if complete is None else _offered(complete)
    return Command(name, entry.usage, entry.summary, _said(run), offered, entry.during)


def _said(run: Run) -> Run:
    """The command, saying itself what it refuses."""

    async def guarded(chat: Chat, given: str) -> None:
        try:
            await run(chat, given)
        except ClewError as error:
            chat.write((_sentence(error), "red"))
        except OSError as error:  # of a file that is exported, say
            where = f"{one_line(str(error.filename))}: " if error.filename else ""
            chat.write((f"{where}{error.strerror}; check the path and its permissions.", "red"))

    return guarded


def _offered(complete: Complete) -> Complete:
    """The candidates; none where they cannot be had: nobody wants an error while they type."""

    async def guarded(chat: Chat, typed: str) -> Sequence[str]:
        try:
            return await complete(chat, typed)
        except (ClewError, OSError):
            return ()

    return guarded


def _sentence(error: ClewError) -> str:
    if isinstance(error, Stale):
        return "The conversation changed meanwhile, so nothing was done. Look, and try again."
    text = one_line(str(error)).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def all_names() -> Iterator[str]:
    """Names and aliases."""
    for name, entry in COMMANDS.items():
        yield name
        yield from entry.aliases
