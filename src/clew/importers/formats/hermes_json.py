"""Hermes' JSON: the snapshots `sessions/session_*.json` of older versions, and archival exports.

A snapshot is the list of messages that the model is sent, without ids; when Hermes compacts, the
list is written anew with a summary in it. An archival export has ids and a state for each message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from clew.domain.compactions import Inline
from clew.domain.conversations import Workspace
from clew.domain.messages import Role, known_role
from clew.domain.parts import Part, Parts, Reasoning, ToolCall
from clew.importers.fields import (
    arguments,
    canonical,
    ident,
    listed,
    mapping,
    meta,
    moment,
    text,
    whole,
)
from clew.importers.format import Format
from clew.importers.formats.hermes_rows import is_summary, spent_of
from clew.importers.objects import document
from clew.importers.pieces import calls, content, result, thoughts, unspoken
from clew.importers.probe import Probe
from clew.importers.records import (
    ROOT,
    Chat,
    Compacted,
    Damaged,
    Event,
    Kept,
    Record,
    Rewound,
    Skipped,
    Used,
)
from clew.importers.source import Source

_ARCHIVE = {"producer", "session_revision_hash"}


def matches(probe: Probe) -> bool:
    return "session_id" in probe.keys and (
        {"session_start", "last_updated"} <= probe.keys or bool(_ARCHIVE & probe.keys)
    )


def read(source: Source) -> Iterator[Event]:
    """The one conversation of the file."""
    given = document(source)
    if isinstance(given, Damaged):
        yield given
        return
    chat = ident(given.get("session_id")) or source.id
    if _ARCHIVE & given.keys():
        yield from _archive(given, chat)
    else:
        yield from _snapshot(given, chat)


# ---------------------------------------------------------------------- snapshots


def _snapshot(document: dict[str, Any], chat: str) -> Iterator[Event]:
    model = ident(document.get("model"))
    tools = tuple(mapping(tool) for tool in listed(document.get("tools")))
    yield Chat(
        id=chat,
        created_at=moment(document.get("session_start")),
        model=model,
        prompt=text(document.get("system_prompt")) or None,
        tools=tools or None,
        meta=meta(platform=document.get("platform"), base_url=document.get("base_url")),
    )
    before: list[Inline] = []
    for at, given in enumerate(listed(document.get("messages")), 1):
        message = mapping(given)
        role = message.get("role")
        if not known_role(role):
            yield unspoken(message, "message", at)
            continue
        parts = _parts(message, Role(role), model)
        inline = Inline(role=Role(role), parts=parts)
        if before and is_summary(text(message.get("content"))):
            before = [*before, inline]
            yield Compacted(chat=chat, id=_name(message), body=tuple(before))
            continue
        before.append(inline)
        yield _record(message, chat, Role(role), parts, model)


def _name(message: dict[str, Any]) -> str:
    return f"compaction:{hashlib.sha256(canonical(message)).hexdigest()[:32]}"


def _record(
    message: dict[str, Any], chat: str, role: Role, parts: Parts, model: str | None
) -> Record:
    lasting = {name: value for name, value in message.items() if not name.startswith("_")}
    return Record(
        chat=chat,
        role=role,
        parts=parts,
        content=canonical(lasting),
        created_at=moment(message.get("timestamp")),
        model=model if role is Role.ASSISTANT else None,
        meta=meta(
            finish_reason=text(message.get("finish_reason")),
            compaction_summary=is_summary(text(message.get("content"))),
            observed=message.get("observed") is True,
        ),
    )


def _parts(message: dict[str, Any], role: Role, model: str | None) -> Parts:
    if role is Role.TOOL:
        name = message.get("tool_name") or message.get("name")
        return (result(message.get("tool_call_id"), message.get("content"), name),)
    said = content(message.get("content"))
    if role is not Role.ASSISTANT:
        return said
    details = listed(message.get("codex_reasoning_items"))
    plain = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    thinking = thoughts(details or listed(message.get("reasoning_details")), plain, model)
    return (*thinking, *said, *calls(message.get("tool_calls")))


# ---------------------------------------------------------------------- archival exports


def _archive(document: dict[str, Any], chat: str) -> Iterator[Event]:
    model = ident(document.get("model"))
    yield Chat(
        id=chat,
        title=text(document.get("title")) or None,
        created_at=moment(document.get("created_at")),
        model=model,
        workspace=Workspace(
            cwd=text(document.get("repository_cwd")),
            git_root=text(document.get("git_repo_root")),
            git_branch=text(document.get("git_branch")),
        ),
        meta=meta(**{name: document.get(name) for name in _FACTS}),
    )
    messages = [mapping(given) for given in listed(document.get("messages"))]
    yield from _states(messages, chat, model)
    usage = mapping(document.get("usage")) | mapping(document.get("cost"))
    if (spent := spent_of(usage, model)) is not None:
        ended = moment(document.get("ended_at"))
        yield Used(chat=chat, group="session", spent=spent, at=ended)


_FACTS = (
    "producer", "profile_id", "end_reason", "archive_state", "parent_session_id",
    "parent_relationship", "handoff_platform", "session_revision_hash",
)  # fmt: skip


def _states(messages: list[dict[str, Any]], chat: str, model: str | None) -> Iterator[Event]:
    """The messages in their order; what was compacted is covered behind the last of it, what was
    rewound is taken back where the next message stands."""
    is_compacted = [message.get("state") == "compacted" for message in messages]
    last = max((at for at, given in enumerate(is_compacted) if given), default=-1)
    rewound: str | None = None
    newest, parent = ROOT, None
    kept: list[Kept] = []
    for at, message in enumerate(messages):
        state, id = message.get("state"), ident(message.get("message_id")) or f"message:{at}"
        if rewound is not None and state != "rewound":
            yield Rewound(chat=chat, first=rewound)
            rewound, parent = None, newest
        role = message.get("role")
        if known_role(role):
            yield _archived(message, chat, id, Role(role), model, parent)
            parent = None
            if state == "rewound":
                rewound = rewound or id
            else:
                newest = id
                if state != "compacted":
                    kept.append(Kept(id, id))
        else:
            yield Skipped(f"message/{text(role) or 'without a role'}")
        if at == last:
            yield Compacted(chat=chat, id=f"compaction:{id}", body=tuple(kept))
    if rewound is not None:
        yield Rewound(chat=chat, first=rewound)


def _archived(
    message: dict[str, Any], chat: str, id: str, role: Role, model: str | None, parent: str | None
) -> Record:
    said = text(message.get("text"))
    parts: list[Part] = []
    if thought := text(message.get("reasoning")):
        parts.append(Reasoning(text=thought, model=model))
    parts += content(said)
    for each in listed(message.get("tool_calls")):
        call = mapping(each)
        given = arguments(call.get("arguments_json"))
        parts.append(
            ToolCall(ident(call.get("action_id")) or "", ident(call.get("tool_name")) or "", given)
        )
    for each in listed(message.get("tool_results")):
        answer = mapping(each)
        output = answer.get("output", answer.get("output_preview"))
        failed = answer.get("is_error") is True
        parts.append(result(answer.get("action_id"), output, answer.get("tool_name"), failed))
    return Record(
        chat=chat,
        role=role,
        parts=tuple(parts),
        id=id,
        parent=parent,
        created_at=moment(message.get("timestamp")),
        model=model if role is Role.ASSISTANT else None,
        meta=meta(
            observed=message.get("state") == "observed", tokens=whole(message.get("token_count"))
        ),
    )


FORMAT = Format(
    name="hermes-json",
    label="Hermes (JSON)",
    matches=matches,
    read=read,
    places=(".hermes/sessions/session_*.json",),
)
