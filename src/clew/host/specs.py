"""Tools as values: as the store keeps them, and as a model is told of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from clew.providers.api import ToolSpec

Toolset = tuple[dict[str, Any], ...]


def toolset_of(specs: Iterable[ToolSpec]) -> Toolset:
    """Tools as the store keeps them."""
    return tuple(
        {"name": s.name, "description": s.description, "parameters": s.parameters} for s in specs
    )


def specs_of(toolset: Sequence[Mapping[str, Any]] | None) -> tuple[ToolSpec, ...]:
    """The tools of a stored set; also of one that another tool wrote, in the form of any of the
    APIs. What has no name is left out: nobody could call it."""
    found = (_spec(tool) for tool in toolset or ())
    return tuple(spec for spec in found if spec is not None)


def _spec(tool: Mapping[str, Any]) -> ToolSpec | None:
    inner = tool.get("function")
    if isinstance(inner, Mapping):
        tool = cast("Mapping[str, Any]", inner)
    name, description = tool.get("name"), tool.get("description")
    schema = tool.get("parameters", tool.get("input_schema"))
    if not isinstance(name, str) or not name:
        return None
    parameters = cast("dict[str, Any]", schema) if isinstance(schema, dict) else _NOTHING
    return ToolSpec(name, description if isinstance(description, str) else "", parameters)


_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
