"""Tool loops: the same calls with the same results, over and over. Pure.

A step of a turn is a message of the model with its calls and their results. A loop is a run of
equal steps at the turn's end (A A A), or of equal rounds of two or three steps (A B A B). What the
model says beside its calls does not count, and neither does the order of calls in one step. A call
that has another result each time is no loop: something moves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, ToolResult, result_text

LONGEST = 3
"""Steps of a round."""

_Call = tuple[str, str, bool, str]
"""Name, arguments, whether it failed, what came of it."""
Step = tuple[_Call, ...]


class Loop(Struct, frozen=True):
    """A turn that goes round in circles. `calls`: names of the tools of one round, in order."""

    times: int
    calls: tuple[str, ...]

    @property
    def shown(self) -> str:
        """For the person, and as the error of the turn for the model in the next one."""
        return (
            f"The model made the same call {self.times} times with the same result "
            f"({self._named}), so the turn was stopped. Tell it what to do differently; "
            "limits.repeats in the configuration says after how often."
        )

    @property
    def _named(self) -> str:
        return ", then ".join(self.calls)


def repeats(messages: Sequence[Message]) -> int:
    """How often the last round of calls came in a row, with the same results: 1 when it is new, 0
    when the turn has made no call. `messages`: of the turn, in order; only its end is looked at."""
    return _longest(messages, len(messages))[0]


def find(messages: Sequence[Message], limit: int) -> Loop | None:
    """The loop a turn is in when the same round came `limit` times in a row; 0: never. Looks at no
    more than the steps that takes."""
    if not limit:
        return None
    times, size = _longest(messages, limit * LONGEST)
    if times < limit:
        return None
    last = reversed(list(islice(_steps(messages), size)))
    return Loop(times, tuple(name for step in last for name in _names(step)))


def _longest(messages: Sequence[Message], most: int) -> tuple[int, int]:
    """(times, steps of a round): of the most frequent round at the end, the shortest such one."""
    found = 0, 0
    for size in range(1, LONGEST + 1):
        times = _rounds(islice(_steps(messages), most), size)
        if times > found[0]:
            found = times, size
    return found


def _rounds(steps: Iterable[Step], size: int) -> int:
    """How often the last `size` steps came in a row. `steps`: the newest first, as far as they are
    looked at."""
    last: list[Step] = []
    same = 0
    for step in steps:
        if len(last) < size:
            last.append(step)
        elif step != last[same % size]:
            break
        same += 1
    return same // size


def _steps(messages: Sequence[Message]) -> Iterator[Step]:
    """The steps whose calls were all answered, the newest first, back to the last message of a
    person: what was said meanwhile changes what the same calls mean."""
    results: dict[str, ToolResult] = {}
    for message in reversed(messages):
        if message.role is Role.USER:
            return
        results |= {part.call_id: part for part in message.parts if isinstance(part, ToolResult)}
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if calls and all(call.id in results for call in calls):
            yield tuple(sorted(_call(call, results.pop(call.id)) for call in _once(calls)))


def _once(calls: Sequence[ToolCall]) -> Iterable[ToolCall]:
    """By id: a provider that gives two calls one id gets one result for them."""
    return {call.id: call for call in calls}.values()


def _call(call: ToolCall, result: ToolResult) -> _Call:
    return call.name, canonical(call.arguments), result.is_error, _content(result)


def _content(result: ToolResult) -> str:
    """What tells two results apart: the text, and the bytes of images by their hashes."""
    if isinstance(result.content, str):
        return result.content
    return result_text(result) + repr(result.content)


def canonical(arguments: str) -> str:
    """Arguments without what means nothing in JSON: spaces, the order of keys. Text that is no JSON
    stays as it is."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return arguments.strip()


def _names(step: Step) -> list[str]:
    return list(dict.fromkeys(call[0] for call in step))
