"""All tools of a host: what there is, what may run, and a call of one.

A tool that cannot run is still answered: the model reads what is wrong and goes on. Nothing here
knows a conversation but by the context of a call; which tools one has, in which order, is stored
with it, and changes by `pin` alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from clew.config.values import McpConfig, ToolsConfig
from clew.domain.parts import ToolCall, ToolResult
from clew.errors import InputError
from clew.providers.api import ToolSpec
from clew.store.aio.database import hop
from clew.tools import output
from clew.tools.api import Source, Tool, ToolCallContext, Verdict
from clew.tools.arguments import decode
from clew.tools.builtin import BUILT_IN, Builtins
from clew.tools.pin import fold
from clew.tools.policy import decide
from clew.tools.roster import Roster, Shelf
from clew.tools.running import run
from clew.tools.server import Server
from clew.tools.status import ToolStatus

_NAMED = 40
"""Names of tools that an error lists."""
_STRICT: tuple[Verdict, ...] = ("allow", "ask", "deny")


class Toolbox:
    """The tools of the built-ins, of configured MCP servers in their order, and of `sources`.

    Servers are started at first use. One loop of asyncio uses it; `close` stops what was started.
    """

    def __init__(
        self, config: ToolsConfig, servers: Mapping[str, McpConfig] = {}, *,
        sources: Sequence[Source] = (),
    ) -> None:  # fmt: skip
        self._config = config
        self._servers = {name: each for name, each in servers.items() if each.enabled}
        builtins, started = Builtins(), [Server(n, each) for n, each in self._servers.items()]
        shelves = [Shelf(builtins, known=builtins.all)] if config.builtin else []
        shelves += [Shelf(server, prefixed=True) for server in started]
        shelves += [Shelf(source) for source in sources]
        self._roster, self._started = Roster(shelves), started

    async def pin(self, pinned: Sequence[ToolSpec] | None) -> tuple[ToolSpec, ...]:
        """What there is now, folded on the pinned order (S35.3); None: all, built-ins first.

        A pinned tool whose server cannot be reached stays as it was pinned; one that is gone is
        dropped; new ones come last. Every server is asked, also one that failed a moment ago where
        tools are pinned already, because a person may have asked for it."""
        for server in self._started:
            server.settle()
        await self._roster.ask_all(force=pinned is not None)
        there = (tool.spec for _, tool in self._roster.offered())
        return fold(pinned, there, lambda name: bool(self._roster.away(name)))

    async def prepare(self, names: Iterable[str]) -> None:
        """Ask the servers of these tools that were not asked yet, so that `verdict` knows what
        their tools say of themselves. Without it a tool of a server that was not asked is "ask".
        """
        await self._roster.ask_for(names)

    def verdict(self, name: str, allowed: Collection[str] = ()) -> Verdict:
        """Whether a call may run. `allowed`: names that a person allowed for good here.

        A name that nobody can have is "allow": the call gives an error and does nothing."""
        tool = self._roster.find(name)
        if tool is not None:
            return decide(self._config.policy, name, tool.origin, tool.default, allowed)
        owners = [shelf.source.name for shelf in self._roster.unasked(name)]
        if not owners:
            return decide(self._config.policy, name, None, "allow", allowed)
        said: list[Verdict] = [
            decide(self._config.policy, name, owner, "ask", allowed) for owner in owners
        ]
        return max(said, key=lambda verdict: _STRICT.index(verdict))

    def is_read_only(self, name: str) -> bool:
        """Whether calling it twice does no harm, so that it may be called again after a crash."""
        tool = self._roster.find(name)
        return tool is not None and tool.read_only

    async def call(self, call: ToolCall, where: ToolCallContext) -> ToolResult:
        """Run a tool and give its result, whatever happens. Raises CancelledError only."""
        await self._roster.ask_for((call.name,))
        tool = self._roster.find(call.name)
        if tool is None:
            return output.failure(call, self._missing(call.name))
        try:
            arguments = decode(call.arguments)
        except InputError as error:
            return output.failure(call, f"{error}.")
        if tool.origin != BUILT_IN and (wrong := await _faults(tool, arguments)):
            told = "".join(f"\n- {fault}" for fault in wrong)
            return output.failure(
                call, f"{call.name} was not called, its arguments are wrong:{told}\nMend them and "
                "call it again."
            )  # fmt: skip
        answer = await run(tool, arguments, where, self._limit(tool.origin))
        return output.result(call, answer, self._config.output)

    async def status(self) -> tuple[ToolStatus, ...]:
        """All tools in order; for a server that never answered, one line that says why."""
        await self._roster.ask_new()
        seen: set[str] = set()
        found: list[ToolStatus] = []
        for shelf, tool in self._roster.offered():
            error = str(shelf.trouble) if shelf.trouble else None
            if tool.spec.name in seen:
                error = "another tool has this name; rename the server"
            seen.add(tool.spec.name)
            found.append(_status(tool, error))
        return (*found, *self.silent())

    def changed(self) -> tuple[str, ...]:
        """Servers that said that their tools have changed since the last `pin`. A pinned
        tool set stays as it is: it is a person who reloads it (S35.1)."""
        return tuple(server.name for server in self._started if server.changed)

    def silent(self) -> tuple[ToolStatus, ...]:
        """Servers that could not be reached when they were last asked, and whose tools are
        therefore missing where tools are pinned anew."""
        return tuple(_silent(shelf) for shelf in self._roster.away() if not shelf.tools)

    async def close(self) -> None:
        """Stop the servers that were started."""
        await self._roster.close()

    def _limit(self, origin: str) -> float:
        server = self._servers.get(origin)
        return max(self._config.timeout, server.timeout if server else 0.0)

    def _missing(self, name: str) -> str:
        """Why there is no such tool, and what to do."""
        away = [shelf.trouble for shelf in self._roster.away(name)]
        if away:
            return f"{name} cannot be called now: {away[0]} Go on without it, or try later."
        names = list(dict.fromkeys(tool.spec.name for _, tool in self._roster.offered()))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        listed = ", ".join(names[:_NAMED]) or "none"
        return f"there is no tool {name!r} now. There are: {listed}{more}."


async def _faults(tool: Tool, arguments: dict[str, object]) -> tuple[str, ...]:
    """What the tool's schema says against the arguments. Its checker is loaded when needed."""
    module = await hop(importlib.import_module, "clew.tools.schema")
    found: tuple[str, ...] = module.faults(tool.spec.parameters, arguments)
    return found


def _status(tool: Tool, error: str | None) -> ToolStatus:
    return ToolStatus(
        name=tool.spec.name, origin=tool.origin, read_only=tool.read_only,
        available=error is None, error=error,
    )  # fmt: skip


def _silent(shelf: Shelf) -> ToolStatus:
    name = shelf.source.name
    return ToolStatus(name=f"{name}.*", origin=name, available=False, error=str(shelf.trouble))
