"""OpenHands' event streams: an array of events, or the folder of a conversation with a file for
each event.

Here are the events of version 0, actions and observations; those of version 1 in `openhands_sdk`.
An action of the agent is a tool call, an observation its result. What a delegate does stands in
the same stream between its action and its observation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from clew.domain.conversations import Workspace
from clew.domain.messages import Role
from clew.domain.parts import Part, Parts, ToolCall, ToolResult
from clew.errors import TooLarge
from clew.importers.decode import decode
from clew.importers.fields import (
    compact,
    ident,
    image_at,
    listed,
    mapping,
    meta,
    moment,
    text,
)
from clew.importers.format import Format
from clew.importers.formats.openhands_context import Level, condensed
from clew.importers.formats.openhands_sdk import take, usages
from clew.importers.pieces import calls, content, result_content, thoughts, usage_of
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent
from clew.importers.source import Source

_SILENT = frozenset(
    ("null", "change_agent_state", "agent_state_changed", "recall", "condensation_request",
     "start", "pause", "resume", "stop", "condense", "loop_recovery")
)  # fmt: skip
"""Actions and observations that steer the program and say nothing."""
_FAILED = ("error", "user_rejected")
_FOLDER = frozenset(("metadata.json", "agent_state.pkl", "llm_registry.json", "base_state.json"))
_NUMBER = re.compile(r"(event[-_])?(\d{1,18})([-_].*)?")
_STATES = ("base_state.json", "meta.json")


def matches(probe: Probe) -> bool:
    if probe.entries:
        is_flat = any(name.startswith("event_") for name in probe.entries)
        if "meta.json" in probe.entries and is_flat:
            return True
        return "events" in probe.entries and bool(probe.entries & _FOLDER)
    keys = probe.item_keys
    if not {"id", "source"} <= keys:
        return False
    is_new = {"kind", "timestamp"} <= keys
    return is_new or {"action", "args"} <= keys or "observation" in keys


def read(source: Source) -> Iterator[Event]:
    """The conversation of the file, and those of its delegates."""
    state = _state(source) if source.is_folder else {}
    chat = ident(state.get("id")) or (source.path.name if source.is_folder else source.id)
    llm = mapping(mapping(state.get("agent")).get("llm"))
    model = ident(llm.get("model")) or ident(state.get("llm_model"))
    yield Chat(
        id=chat,
        title=text(state.get("title")) or None,
        created_at=moment(state.get("created_at")),
        workspace=Workspace(
            cwd=text(mapping(state.get("workspace")).get("working_dir")),
            git_root=text(state.get("selected_repository")),
            git_branch=text(state.get("selected_branch")),
        ),
        model=model,
    )
    stream = _Stream(chat, model)
    for where, data in _events(source):
        if isinstance(data, str):
            yield Damaged(where, data)
            continue
        try:
            event = mapping(decode(data))
        except ValueError as error:
            yield Damaged(where, str(error))
            continue
        if event:
            yield from stream.take(event)
        else:
            yield Damaged(where, "no object")
    yield from usages(state, chat)


def _state(source: Source) -> dict[str, Any]:
    """What is kept of the whole conversation; empty where nothing is, or it cannot be read."""
    for name in _STATES:
        for file in source.files(name):
            try:
                return mapping(decode(file.document()))
            except (ValueError, TooLarge, OSError):
                pass
    return {}


def _events(source: Source) -> Iterator[tuple[str, bytes | str]]:
    """Each event and where it stands; a text instead says why there is none."""
    if not source.is_folder:
        for piece in source.items():
            if isinstance(piece, Damaged):
                yield piece.where, piece.reason
            else:
                yield f"element {piece.number}", piece.data
        return
    files = [*source.files("events/*.json"), *source.files("event_*.json")]
    numbered = [(int(match[2]), file) for file in files if (match := _NUMBER.fullmatch(file.stem))]
    for _, file in sorted(numbered, key=lambda each: (each[0], each[1].path.name)):
        where = str(file.path.relative_to(source.path))
        found: bytes | str
        try:
            found = file.document()
        except (TooLarge, OSError) as error:
            found = str(error)
        yield where, found


class _Stream:
    """What is remembered from event to event."""

    def __init__(self, chat: str, model: str | None) -> None:
        self.chat, self.model = chat, model
        self.levels = [Level(chat)]
        self.open: dict[str, str] = {}
        """Of actions without an answer so far: the id of the call."""
        self.group: str | None = None

    @property
    def level(self) -> Level:
        return self.levels[-1]

    def take(self, event: dict[str, Any]) -> Iterator[Event]:
        if isinstance(kind := event.get("kind"), str):
            yield from take(self.level, event, kind, self.model)
            return
        action, observation = event.get("action"), event.get("observation")
        id = ident(event.get("id"))
        if id is None:
            yield Skipped("event without an id")
        elif isinstance(action, str):
            yield from self.action(action, event, id)
        elif isinstance(observation, str):
            yield from self.observation(observation, event, id)
        else:
            yield Skipped("event that is neither action nor observation")

    def record(
        self, event: dict[str, Any], id: str, role: Role, parts: Parts, **more: Any
    ) -> Record:
        self.level.records.append((id, False))
        kind = text(event.get("action")) or text(event.get("observation"))
        return Record(
            chat=self.level.chat,
            role=role,
            parts=parts,
            id=id,
            created_at=moment(event.get("timestamp")),
            meta=meta(kind=kind, source=text(event.get("source"))),
            **more,
        )

    # ------------------------------------------------------------------ actions

    def action(self, kind: str, event: dict[str, Any], id: str) -> Iterator[Event]:
        args = mapping(event.get("args"))
        is_agents = event.get("source") != "user"
        if kind in _SILENT:
            yield Skipped(f"action/{kind}")
        elif kind == "condensation":
            yield condensed(self.level, args, id, moment(event.get("timestamp")))
        elif kind == "system":
            tools = tuple(mapping(tool) for tool in listed(args.get("tools")))
            yield Chat(
                id=self.level.chat,
                tools=tools or None,
                meta=meta(version=args.get("openhands_version"), agent=args.get("agent_class")),
            )
            yield self.record(event, id, Role.SYSTEM, content(args.get("content")))
        elif not is_agents or (kind == "message" and "tool_call_metadata" not in event):
            role = Role.ASSISTANT if is_agents else Role.USER
            yield self.record(event, id, role, _said(args))
        else:
            yield from self.call(kind, args, event, id)

    def call(
        self, kind: str, args: dict[str, Any], event: dict[str, Any], id: str
    ) -> Iterator[Event]:
        """An action of the agent: with the answer of the model that asked for it, or without."""
        about = mapping(event.get("tool_call_metadata"))
        response = mapping(about.get("model_response"))
        group, model = ident(response.get("id")), ident(response.get("model"))
        call = ident(about.get("tool_call_id")) or f"action:{id}"
        name = ident(about.get("function_name")) or kind
        message = mapping(mapping(next(iter(listed(response.get("choices"))), None)).get("message"))
        asked = [each for each in calls(message.get("tool_calls")) if each.id == call]
        own = {key: value for key, value in args.items() if key != "thought"}
        parts: list[Part] = []
        if group is None or group != self.group:
            plain = text(message.get("reasoning_content"))
            parts += thoughts(listed(message.get("thinking_blocks")), plain, model)
            parts += content(message.get("content")) or content(args.get("thought"))
        parts.append(asked[0] if asked else ToolCall(call, name, compact(own)))
        self.group = group
        self.open[id] = call
        usage = usage_of(response.get("usage"))
        spent = None if usage is None else Spent(model=model or "unknown", usage=usage)
        yield self.record(
            event, id, Role.ASSISTANT, tuple(parts), api_group=group, model=model, spent=spent
        )
        if kind == "delegate":
            chat = f"{self.chat}:delegate:{id}"
            yield Chat(
                id=chat, origin=self.level.chat, call=call, meta=meta(agent=args.get("agent"))
            )
            self.levels.append(Level(chat, call))

    # ------------------------------------------------------------------ observations

    def observation(self, kind: str, event: dict[str, Any], id: str) -> Iterator[Event]:
        cause = ident(event.get("cause"))
        call = self.open.pop(cause, None) if cause is not None else None
        if kind in _SILENT:
            yield Skipped(f"observation/{kind}")
            return
        if kind == "delegate" and len(self.levels) > 1:
            call = call or self.level.call
            self.levels.pop()
        about = mapping(event.get("tool_call_metadata"))
        call = ident(about.get("tool_call_id")) or call
        said = event.get("content")
        if kind == "delegate" and not said:
            said = compact(mapping(event.get("extras")).get("outputs"))
        if call is None:  # of a command that the user ran, or a word of the program
            role = Role.USER if event.get("source") == "user" else Role.SYSTEM
            yield self.record(event, id, role, content(said))
            return
        pictures = listed(mapping(event.get("extras")).get("image_urls"))
        seen = [image for url in pictures if (image := image_at(url)) is not None]
        answer = ToolResult(
            call,
            (*content(said), *seen) if seen else result_content(said),
            ident(about.get("function_name")),
            kind in _FAILED,
        )
        yield self.record(event, id, Role.TOOL, (answer,))


def _said(args: dict[str, Any]) -> Parts:
    """A message, or a command that the user ran himself."""
    said = args.get("content", args.get("command", args.get("code")))
    pictures = (image_at(url) for url in listed(args.get("image_urls")))
    return (*content(said), *(picture for picture in pictures if picture is not None))


FORMAT = Format(
    name="openhands",
    label="OpenHands",
    matches=matches,
    read=read,
    places=(
        ".openhands/conversations/*",
        ".openhands/sessions/*",
        ".openhands-state/sessions/*",
    ),
)
