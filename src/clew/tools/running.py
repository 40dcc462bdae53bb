"""One call of a tool, within its time, with whatever comes of it as an output."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from clew.errors import ClewError
from clew.tools.api import Tool, ToolCallContext, ToolOutput

_GRACE = 5.0
"""Seconds that a tool which is stopped has to end, before it is left to itself."""


async def run(
    tool: Tool, arguments: Mapping[str, Any], where: ToolCallContext, seconds: float
) -> ToolOutput:
    """Call a tool. An error of it, a time-out and a stop are outputs, too.

    Raises CancelledError only, once the tool has been cancelled.
    """
    work = asyncio.ensure_future(_called(tool, arguments, where))
    stopped = asyncio.ensure_future(where.stop.wait())
    try:
        await asyncio.wait({work, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return await _ended(work, tool.spec.name, seconds, stopped.done())
    except asyncio.CancelledError:
        await _cancel(work)
        raise
    finally:
        stopped.cancel()
    return _outcome(work)


async def _called(tool: Tool, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
    return await tool.call(arguments, where)  # also one that raises before it is awaited


async def _ended(
    work: asyncio.Future[ToolOutput], name: str, seconds: float, stopped: bool
) -> ToolOutput:
    """Of one that had no answer. What it gives at the last moment counts."""
    await _cancel(work)
    if work.done() and not work.cancelled() and work.exception() is None:
        return work.result()
    if stopped:
        return _error(f"{name} was stopped by the person; what it did until then stays done.")
    return _error(
        f"{name} gave no answer within {seconds:g} seconds and was stopped; what it did until then "
        "stays done. Ask for less at once, or do without it."
    )


async def _cancel(work: asyncio.Future[ToolOutput]) -> None:
    """End a tool; one that does not end is left alone, and what it raises is nobody's."""
    work.cancel()
    await asyncio.wait({work}, timeout=_GRACE)
    work.add_done_callback(_seen)


def _seen(work: asyncio.Future[ToolOutput]) -> None:
    if not work.cancelled():
        work.exception()


def _outcome(work: asyncio.Future[ToolOutput]) -> ToolOutput:
    if work.cancelled():
        return _error("the tool was cancelled.")
    error = work.exception()
    if error is None:
        return _checked(work.result())
    said = str(error).strip() or "no more is known"
    return _error(said if isinstance(error, ClewError) else f"{type(error).__name__}: {said}")


def _checked(given: object) -> ToolOutput:
    """What a tool gave, whose author may have had no type checker."""
    if isinstance(given, ToolOutput):
        return given
    return _error(f"the tool gave a {type(given).__name__} where it must give a ToolOutput.")


def _error(text: str) -> ToolOutput:
    return ToolOutput(f"Error: {text}", is_error=True)
