"""/tools: which tools the model has here, who may call them, and what one answered in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.cli.chat.api import Chat
from clew.cli.chat.commands.showing import alone, first_word, number
from clew.cli.text import one_line
from clew.domain.parts import ToolResult, result_text
from clew.errors import InputError

USAGE = "/tools, /tools reload, allow NAME, deny NAME or show N"
VERBS = ("reload", "allow", "deny", "show")


async def tools(chat: Chat, given: str) -> None:
    """Shows the tools that the model has in this conversation, where they come from, and whether
    their calls are allowed, asked about or refused. The set stays the same while a conversation
    goes on, so that the provider's cache holds; `reload` takes what is there now. `allow`
    answers the calls of a tool that wait for you, and those that will come in this conversation;
    `deny` those that wait. `show` prints all of what a tool answered in message N."""
    verb, rest = first_word(given)
    if not given:
        await _list(chat)
    elif verb == "reload":
        alone(rest, "tools reload")
        names = await chat.host.reload_tools(chat.conv)
        chat.write(f"Pinned {len(names):,}: {', '.join(map(one_line, names)) or 'none'}")
    elif verb in ("allow", "deny") and rest:
        await _decide(chat, rest, verb == "allow")
    elif verb == "show" and rest:
        await _show(chat, number(rest, "/tools show N, the number of a message"))
    else:
        raise InputError(f"/tools does not know {one_line(given)!r}; type {USAGE}")


async def complete_tools(chat: Chat, typed: str) -> Sequence[str]:
    """Verbs, then names of tools."""
    verb, rest = first_word(typed)
    if " " in typed and verb in ("allow", "deny"):
        names = [str(tool["name"]) for tool in await chat.host.tools(chat.conv)]
        return [f"{verb} {name}" for name in names if name.startswith(rest)]
    return [word for word in VERBS if word.startswith(typed)]


async def _list(chat: Chat) -> None:
    pinned = await chat.host.tools(chat.conv)
    if not pinned:
        chat.write(("No tools here; the configuration adds servers of them.", "dim"))
        return
    chat.table(("TOOL", "FROM", "CALLS ARE", ""), [_row(tool) for tool in pinned])
    if not all(tool.get("available", True) for tool in pinned):
        chat.write(("What is away answers calls with an error until its server is back.", "dim"))


def _row(tool: dict[str, Any]) -> tuple[str, ...]:
    words = {"allow": "allowed", "ask": "asked about", "deny": "refused"}
    policy = str(tool.get("policy", ""))
    return (
        one_line(str(tool["name"])), one_line(str(tool.get("origin") or "")),
        words.get(policy, policy), "" if tool.get("available", True) else "away",
    )  # fmt: skip


async def _decide(chat: Chat, name: str, allow: bool) -> None:
    """Answer what waits for a person. Without that there is nothing to decide here: the policy of
    a tool stands in the configuration."""
    waiting = [each for each in await chat.conv.approvals() if each.state == "asked"]
    mine = [call for call in waiting if call.name == name]
    if not mine:
        known = {str(tool["name"]) for tool in await chat.host.tools(chat.conv)}
        if name not in known:
            raise InputError(f"there is no tool {one_line(name)!r} here; /tools shows them")
        verdict = "allow" if allow else "deny"
        raise InputError(
            f"no call of {one_line(name)} waits for you; for all conversations the configuration "
            f'decides: [tools.policy] "{one_line(name)}" = "{verdict}"'
        )
    for call in mine:
        await chat.host.answer(chat.conv, call.call_id, allow, always=True, by="chat")
        chat.write("Allowed: " if allow else "Refused: ", (one_line(call.name), "bold"))
    if len(mine) < len(waiting):
        others = ", ".join(sorted({one_line(c.name) for c in waiting if c.name != name}))
        chat.write((f"Calls of {others} wait, too.", "yellow"))
        return
    await chat.go_on()


async def _show(chat: Chat, seq: int) -> None:
    message = await chat.conv.message(seq)
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if not results:
        raise InputError(f"message {seq} is no answer of a tool; name one that is")
    await chat.page("\n\n".join(map(result_text, results)))
