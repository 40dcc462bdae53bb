"""The built-in tools: recall, search, todo and goal. Calling any of them twice does no harm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from clew.compaction import tools as schemas
from clew.providers.api import ToolSpec
from clew.tools import notes
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.lookups import Lookups

BUILT_IN = "built-in"
"""Origin of these tools."""

Run = Callable[[Mapping[str, Any], ToolCallContext], Awaitable[ToolOutput]]


class BuiltinTool(Struct):
    """A tool that is a function of this package."""

    spec: ToolSpec
    run: Run
    read_only: bool = True
    default: Verdict = "allow"
    origin: str = BUILT_IN

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        return await self.run(arguments, where)


class Builtins:
    """The source of the built-in tools."""

    name = BUILT_IN

    def __init__(self) -> None:
        self._lookups = Lookups()
        self.all: tuple[Tool, ...] = (
            *map(self._lookup, schemas.tools("anthropic")),
            *_NOTES,
        )

    async def tools(self) -> tuple[Tool, ...]:
        """Always the same, in the same order."""
        return self.all

    async def close(self) -> None:
        self._lookups.close()

    def _lookup(self, schema: dict[str, Any]) -> BuiltinTool:
        name = schema["name"]
        spec = ToolSpec(name, schema["description"], schema["input_schema"])

        async def run(arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
            return await self._lookups.call(name, arguments, where)

        return BuiltinTool(spec, run)


_NOTES = (
    BuiltinTool(notes.TODO, notes.set_todos),
    BuiltinTool(notes.GOAL, notes.set_goal),
)
