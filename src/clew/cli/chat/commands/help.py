"""/help."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from clew.cli.chat.api import Chat
from clew.cli.chat.commands import registry
from clew.errors import InputError


async def help(chat: Chat, given: str) -> None:
    """Shows all commands, or what one does. A beginning of a name is enough where only one command
    begins so."""
    if not given:
        rows = [(f"/{name} {usage}".rstrip(), text) for name, usage, text in registry.names()]
        chat.table(("COMMAND", "WHAT IT DOES"), rows)
        chat.write(("More about one: /help COMMAND", "dim"))
        return
    command = registry.find(given)
    if command is None:
        raise InputError(registry.unknown(given))
    chat.write((f"/{command.name}", "bold"), f" {command.usage}")
    for row in wrap(registry.description(command.name) or command.summary, 76):
        chat.write(f"  {row}")
    if others := registry.aliases(command.name):
        chat.write((f"  Also: {', '.join(f'/{other}' for other in others)}", "dim"))
    if command.during:
        chat.write(("  Works while a turn runs.", "dim"))


async def complete_help(chat: Chat, typed: str) -> Sequence[str]:
    """Names of commands."""
    return [name for name, _, _ in registry.names() if name.startswith(typed.removeprefix("/"))]
