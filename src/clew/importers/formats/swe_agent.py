"""SWE-agent's trajectories, `*.traj`: one run on one problem.

`history` is what the model was sent and said, `trajectory` the same once more as steps with the
state of the environment. The steps are read where the history is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.conversations import Workspace
from clew.domain.messages import Role, known_role
from clew.domain.parts import Parts, Text
from clew.domain.turns import Usage
from clew.importers.fields import (
    canonical,
    ident,
    json_of,
    listed,
    mapping,
    meta,
    number,
    text,
    whole,
)
from clew.importers.format import Format
from clew.importers.objects import document
from clew.importers.pieces import calls, content, result, thoughts, unspoken
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent, Used
from clew.importers.source import Source

_IN_HISTORY = (b'"message_type"', b'"agent"', b'"is_demo"')
_IN_STEPS = (b'"response"', b'"observation"')


def matches(probe: Probe) -> bool:
    keys = probe.keys
    if "steps" in keys or "messages" in keys or "trajectory_format" in keys:
        return False
    if "trajectory" in keys and all(word in probe.head for word in _IN_STEPS):
        return True
    return "history" in keys and any(word in probe.head for word in _IN_HISTORY)


def read(source: Source) -> Iterator[Event]:
    """The one conversation of the file."""
    given = document(source)
    if isinstance(given, Damaged):
        yield given
        return
    chat = source.id
    config, info = _object(given.get("replay_config")), mapping(given.get("info"))
    model = ident(mapping(mapping(config.get("agent")).get("model")).get("name"))
    problem = mapping(config.get("problem_statement"))
    yield Chat(
        id=chat,
        title=ident(problem.get("id")),
        title_origin="derived",
        model=model,
        meta=meta(
            environment=given.get("environment"),
            exit_status=info.get("exit_status"),
            api_calls=whole(mapping(info.get("model_stats")).get("api_calls")),
        ),
    )
    steps = [mapping(step) for step in listed(given.get("trajectory"))]
    if history := listed(given.get("history")):
        yield from _history(history, steps, chat, model)
        if steps:
            yield Skipped("trajectory", len(steps))
    else:
        yield from _steps(steps, chat, model)
    if spent := _spent(mapping(info.get("model_stats")), model):
        yield Used(chat=chat, group="run", spent=spent)
    for name in ("submission", "edited_files30"):
        if info.get(name):
            yield Skipped(f"info.{name}")
    if config:
        yield Skipped("replay_config")


def _object(value: object) -> dict[str, Any]:
    """An object, or the one that a text of JSON holds."""
    return mapping(json_of(value) if isinstance(value, str) else value)


# ---------------------------------------------------------------------- history


def _history(
    history: list[Any], steps: list[dict[str, Any]], chat: str, model: str | None
) -> Iterator[Event]:
    """Each message. The folder that a step names is where its observation was made."""
    step, at = -1, 0
    for at, given in enumerate(history, 1):
        message = mapping(given)
        role = message.get("role")
        if not known_role(role):
            yield unspoken(message, "history", at)
            continue
        is_demo = message.get("is_demo") is True
        if role == "assistant" and not is_demo:
            step += 1
        is_answer = step >= 0 and role in ("user", "tool") and not is_demo
        yield Record(
            chat=chat,
            role=Role(role),
            parts=_parts(message, Role(role), model),
            content=canonical(message),
            author=None,
            workspace=_folder(steps, step) if is_answer else None,
            model=model if role == "assistant" else None,
            meta=meta(
                agent=message.get("agent"), kind=message.get("message_type"), is_demo=is_demo
            ),
        )


def _parts(message: dict[str, Any], role: Role, model: str | None) -> Parts:
    said = message.get("content")
    if role is Role.TOOL:
        asked = listed(message.get("tool_call_ids")) or [message.get("tool_call_id")]
        return tuple(result(id, said if at == 0 else "") for at, id in enumerate(asked))
    if role is not Role.ASSISTANT:
        return content(said)
    thinking = thoughts(listed(message.get("thinking_blocks")), None, model)
    return (*thinking, *content(said), *calls(message.get("tool_calls")))


def _folder(steps: list[dict[str, Any]], step: int) -> Workspace | None:
    if step >= len(steps):
        return None
    folder = text(_object(steps[step].get("state")).get("working_dir"))
    return Workspace(cwd=folder) if folder and folder != "n/a" else None


# ---------------------------------------------------------------------- steps


def _steps(steps: list[dict[str, Any]], chat: str, model: str | None) -> Iterator[Event]:
    """What the first step was asked with, then of each step the answer and the observation."""
    if steps:
        first = listed(steps[0].get("query")) or listed(steps[0].get("messages"))
        asked = next(
            (at for at, each in enumerate(first) if mapping(each).get("role") == "assistant"),
            len(first),
        )
        yield from _history(first[:asked], [], chat, model)
    for at, step in enumerate(steps):
        said = text(step.get("response")) or text(step.get("thought")) or text(step.get("action"))
        asked_for = calls(step.get("tool_calls"))
        yield Record(
            chat=chat,
            role=Role.ASSISTANT,
            parts=(*content(said), *asked_for),
            content=canonical([at, said, step.get("tool_calls")]),
            model=model,
        )
        observed = step.get("observation")
        if observed is None:
            continue
        answers = [result(call.id, observed if n == 0 else "") for n, call in enumerate(asked_for)]
        yield Record(
            chat=chat,
            role=Role.TOOL if answers else Role.USER,
            parts=tuple(answers) or content(observed) or (Text(""),),
            content=canonical([at, observed]),
            workspace=_folder(steps, at),
        )


def _spent(stats: dict[str, Any], model: str | None) -> Spent | None:
    usage = Usage(
        input=whole(stats.get("tokens_sent")) or 0, output=whole(stats.get("tokens_received")) or 0
    )
    cost = number(stats.get("instance_cost"))
    if usage == Usage() and not cost:
        return None
    return Spent(model=model or "unknown", usage=usage, cost=cost)


FORMAT = Format(name="swe-agent", label="SWE-agent", matches=matches, read=read)
