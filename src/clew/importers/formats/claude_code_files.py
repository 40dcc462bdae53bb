"""What the place of a Claude Code file tells: its session, and of a sub-agent who called it.

`<project>/<session>.jsonl` is a session; `<project>/<session>/subagents/agent-<id>.jsonl` (of older
versions `<project>/agent-<id>.jsonl`) a sub-agent, with `agent-<id>.meta.json` beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from clew.importers.decode import decode
from clew.importers.fields import ident, mapping, text
from clew.importers.formats.claude_code_blocks import agent_of
from clew.importers.formats.claude_code_lines import Entry, Line, entries
from clew.importers.probe import HEAD
from clew.importers.records import Damaged
from clew.importers.source import Piece, Source

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_AGENT = "agent-"
_SIDECAR = 64 * 1024
"""Bytes of the largest `.meta.json` that is read."""
_SESSION = 64 << 20
"""Bytes of the largest session that is searched for the call of a sub-agent."""


class Spawned(Struct, frozen=True, kw_only=True):
    """How a sub-agent came to be."""

    call: str | None = None
    above: str | None = None
    """The sub-agent that called it; the session itself when None."""
    kind: str | None = None
    about: str | None = None


def session_of(source: Source) -> str | None:
    """The session of a file: its name, or what its first records say. None when neither tells."""
    if _UUID.fullmatch(source.stem):
        return source.stem
    for number, row in enumerate(source.head(HEAD).split(b"\n"), 1):
        for line in _lines(Piece(number, row)):
            if line.session_id:
                return ident(line.session_id)
    return None


def agent_id(source: Source) -> str | None:
    """The sub-agent whose file this is; None of a session's file."""
    return (source.stem.removeprefix(_AGENT) or None) if source.stem.startswith(_AGENT) else None


def spawned(source: Source, session: str | None, agent: str) -> Spawned:
    """How the sub-agent of this file came to be, as far as the files beside it say."""
    facts = _sidecar(source)
    call = ident(facts.get("toolUseId"))
    if call is None and source.member is None and session and _UUID.fullmatch(session):
        call = _call_in_session(source.path, session, agent)
    return Spawned(
        call=call,
        above=ident(facts.get("parentAgentId")),
        kind=text(facts.get("agentType")),
        about=text(facts.get("description")),
    )


def _sidecar(source: Source) -> dict[str, Any]:
    name = f"{source.stem}.meta.json"
    data = None
    if source.member is not None:
        data = source.asset(name, _SIDECAR)
    elif _is_file(path := source.path.with_name(name), _SIDECAR):
        data = path.read_bytes()
    try:
        return mapping(decode(data or b""))
    except ValueError:
        return {}


def _call_in_session(path: Path, session: str, agent: str) -> str | None:
    """The call whose result in the session's file names the sub-agent."""
    folder = path.parents[2] if path.parent.name == "subagents" else path.parent
    beside = folder / f"{session}.jsonl"
    if not _is_file(beside, _SESSION):
        return None
    mark = agent.encode("utf-8", "replace")
    for piece in Source(beside).lines():
        if isinstance(piece, Damaged) or mark not in piece.data:
            continue
        for line in _lines(piece):
            content = line.message.content if line.message else None
            if isinstance(content, list) and agent_of(line) == agent:
                return next((block.tool_use_id for block in content if block.tool_use_id), None)
    return None


def _is_file(path: Path, limit: int) -> bool:
    """Whether there is a file that is no link and not too large."""
    try:
        return not path.is_symlink() and path.is_file() and path.stat().st_size <= limit
    except OSError:
        return False


def _lines(piece: Piece) -> Iterator[Line]:
    if piece.data.strip():
        found = entries(piece)
        yield from (entry.line for entry in found if isinstance(entry, Entry))
