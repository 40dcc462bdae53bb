"""mini-swe-agent's trajectories, `*.traj.json`: a list of messages, or an object that has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.domain.messages import Role, known_role
from clew.domain.parts import Parts
from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import canonical, ident, listed, mapping, meta, moment, number, text
from clew.importers.format import Format
from clew.importers.pieces import calls, content, result, thoughts, usage_of
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent, Used
from clew.importers.source import Source

_MARKS = (b"mswea_bash_command", b"<returncode>", b"mini-swe-agent", b"mini_version")
_IN_LISTS = (b"mswea_bash_command", b"<returncode>")
"""What only its tool says: a list of messages may well name it."""
_WHOLE = {"trajectory_format", "messages", "info"}


def matches(probe: Probe) -> bool:
    if "trajectory_format" in probe.keys:
        return b'"mini-swe-agent' in probe.head or bool(probe.keys & {"messages", "info"})
    if {"messages", "info"} <= probe.keys:
        return any(mark in probe.head for mark in _MARKS)
    is_named = probe.name.endswith(".traj.json")
    return "role" in probe.item_keys and (is_named or any(m in probe.head for m in _IN_LISTS))


def read(source: Source) -> Iterator[Event]:
    """The one conversation of the file."""
    try:
        document: object = decode(source.document())
    except ValueError as error:
        yield Damaged("the document", str(error))
        return
    whole = mapping(document)
    info = mapping(whole.get("info"))
    model = ident(mapping(mapping(info.get("config")).get("model")).get("model_name"))
    stats = mapping(info.get("model_stats"))
    yield Chat(
        id=source.id,
        model=model,
        meta=meta(
            exit_status=info.get("exit_status"),
            version=info.get("mini_version"),
            trajectory_format=whole.get("trajectory_format"),
            api_calls=stats.get("api_calls"),
        ),
    )
    counted = False
    for at, given in enumerate(listed(document) or listed(whole.get("messages")), 1):
        event = _message(mapping(given), at, source.id, model)
        counted = counted or (isinstance(event, Record) and event.spent is not None)
        yield event
    cost = number(stats.get("instance_cost"))
    if cost and not counted:
        spent = Spent(model=model or "unknown", usage=Usage(), cost=cost)
        yield Used(chat=source.id, group="run", spent=spent)
    for name in sorted(info.keys() & {"submission", "config"}):
        if info[name]:
            yield Skipped(f"info.{name}")
    for name in sorted(whole.keys() - _WHOLE):
        yield Skipped(name)


def _message(message: dict[str, Any], at: int, chat: str, model: str | None) -> Event:
    role = message.get("role")
    if not message:
        return Damaged(f"message {at}", "no object")
    if not known_role(role):
        return Skipped(f"message/{text(role) or text(message.get('type')) or 'without a role'}")
    extra = mapping(message.get("extra"))
    response = mapping(extra.get("response"))
    made_by = ident(response.get("model")) or model
    is_answer = role == "assistant"
    usage = usage_of(response.get("usage")) if is_answer else None
    cost = number(extra.get("cost"))
    return Record(
        chat=chat,
        role=Role(role),
        parts=_parts(message, Role(role), made_by),
        content=canonical({name: value for name, value in message.items() if name != "extra"}),
        created_at=moment(extra.get("timestamp", message.get("timestamp"))),
        model=made_by if is_answer else None,
        spent=Spent(model=made_by or "unknown", usage=usage or Usage(), cost=cost)
        if is_answer and (usage or cost)
        else None,
        meta=meta(response=ident(response.get("id")), returncode=extra.get("returncode")),
    )


def _parts(message: dict[str, Any], role: Role, model: str | None) -> Parts:
    said = message.get("content")
    if role is Role.TOOL:
        return (result(message.get("tool_call_id"), said, message.get("name")),)
    if role is not Role.ASSISTANT:
        return content(said)
    plain = text(message.get("reasoning_content"))
    thinking = thoughts(listed(message.get("thinking_blocks")), plain, model)
    return (*thinking, *content(said), *calls(message.get("tool_calls")))


FORMAT = Format(
    name="mini-swe-agent",
    label="mini-swe-agent",
    matches=matches,
    read=read,
    places=(
        ".config/mini-swe-agent/*.traj.json",
        "Library/Application Support/mini-swe-agent/*.traj.json",
    ),
)
