"""ATIF, the Agent Trajectory Interchange Format, versions 1.0 to 1.8.

A step of the agent holds its calls and their results: it becomes a message and one of results.
Trajectories of sub-agents, embedded or in files beside this one, are delegates; a trajectory that
goes on in another file is read as one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.domain.turns import Usage
from clew.importers.decode import decode
from clew.importers.fields import canonical, ident, listed, mapping, meta, number, text, whole
from clew.importers.format import Format
from clew.importers.formats.atif_steps import Steps
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Skipped, Spent, Used, Warned
from clew.importers.source import Source

_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
_CONTINUES = re.compile(r"(?P<base>.+)\.cont-\d+(?P<suffix>(\.\w+)+)")


def matches(probe: Probe) -> bool:
    return b'"ATIF-v' in probe.head and bool(probe.keys & {"schema_version", "steps"})


def read(source: Source) -> Iterator[Event]:
    """The trajectory of the file, what it goes on in, and its sub-agents'."""
    if _is_continuation(source):
        yield Skipped("continuation, read with what it continues")
        return
    document = _document(source)
    if isinstance(document, Damaged):
        yield document
        return
    version = text(document.get("schema_version")) or ""
    if not _KNOWN.fullmatch(version):
        yield Warned(f"{version or 'no version'} is none that is known; what is known is read")
    yield from _Reader(source).trajectory(document, _id(document, source))


def _document(source: Source) -> dict[str, Any] | Damaged:
    try:
        found = mapping(decode(source.document()))
    except ValueError as error:
        return Damaged(source.path.name, str(error))
    return found or Damaged(source.path.name, "no object")


def _id(document: dict[str, Any], source: Source) -> str:
    """A session's id may be shared by several trajectories: it takes how this one begins too."""
    if own := ident(document.get("trajectory_id")):
        return own
    session = ident(document.get("session_id"))
    if session is None:
        return source.id
    agent = mapping(document.get("agent"))
    begins = [agent.get("name"), agent.get("version"), *listed(document.get("steps"))[:1]]
    return f"{session}:{hashlib.sha256(canonical(begins)).hexdigest()[:16]}"


def _is_continuation(source: Source) -> bool:
    """Whether the file that goes on in this one is beside it."""
    match = _CONTINUES.fullmatch(source.path.name)
    if match is None or source.member is not None:
        return False
    return (source.path.parent / (match["base"] + match["suffix"])).is_file()


class _Reader:
    """Reads trajectories, each file once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.seen = {source.path.name}

    def trajectory(
        self,
        document: dict[str, Any],
        chat: str,
        origin: str | None = None,
        call: str | None = None,
    ) -> Iterator[Event]:
        agent = mapping(document.get("agent"))
        tools = tuple(mapping(tool) for tool in listed(agent.get("tool_definitions")))
        steps = Steps(self.source, chat, ident(agent.get("model_name")))
        given = listed(document.get("steps"))
        yield Chat(
            id=chat,
            created_at=steps.begun(given),
            model=steps.model,
            tools=tools or None,
            origin=origin,
            call=call,
            meta=meta(
                agent=agent.get("name"),
                version=agent.get("version"),
                session=document.get("session_id"),
                notes=document.get("notes"),
                agent_extra=agent.get("extra"),
                schema=document.get("schema_version"),
            ),
        )
        yield from steps.take(given)
        documents = [document]
        for continuation in self.continuations(document):
            if isinstance(continuation, Damaged):
                yield continuation
                break
            documents.append(continuation)
            yield from steps.take(listed(continuation.get("steps")), f"cont-{len(documents) - 1}:")
        yield from steps.left()
        if not steps.has_spent and (spent := _total(documents[-1], steps.model)) is not None:
            yield Used(chat=chat, group="final", spent=spent)
        for each in documents:
            if each.get("extra"):
                yield Skipped("extra")
            yield from self.embedded(each, chat, steps.calls)
        yield from self.referenced(chat, steps)

    def continuations(self, document: dict[str, Any]) -> Iterator[dict[str, Any] | Damaged]:
        while (beside := self.beside(document.get("continued_trajectory_ref"))) is not None:
            found = _document(beside)
            yield found
            if isinstance(found, Damaged):
                return
            document = found

    def embedded(
        self, document: dict[str, Any], chat: str, calls: dict[str, str | None]
    ) -> Iterator[Event]:
        for at, each in enumerate(listed(document.get("subagent_trajectories")), 1):
            inner = mapping(each)
            if not inner:
                yield Damaged(f"subagent_trajectories {at}", "no object")
                continue
            id = ident(inner.get("trajectory_id")) or str(at)
            yield from self.trajectory(inner, f"{chat}:agent:{id}", chat, calls.get(id))

    def referenced(self, chat: str, steps: Steps) -> Iterator[Event]:
        for path, call in steps.files:
            if (beside := self.beside(path)) is None:
                yield Skipped("subagent_trajectory_ref")
                continue
            found = _document(beside)
            if isinstance(found, Damaged):
                yield found
            else:
                yield from self.trajectory(found, _id(found, beside), chat, call)

    def beside(self, given: object) -> Source | None:
        """A file in the same folder that was not read yet; never one elsewhere."""
        name = text(given)
        if name is None or self.source.member is not None or name in self.seen:
            return None
        name = name.removeprefix("./")
        if not name or name != Path(name).name or name.startswith(".") or "\0" in name:
            return None
        path = self.source.path.parent / name
        if name in self.seen or not _is_file(path):
            return None
        self.seen.add(name)
        return Source(path)


def _is_file(path: Path) -> bool:
    """Whether there is a file that is no link; a name that no file system takes names none."""
    try:
        return not path.is_symlink() and path.is_file()
    except OSError:
        return False


def _total(document: dict[str, Any], model: str | None) -> Spent | None:
    given = mapping(document.get("final_metrics"))
    usage = Usage(
        input=whole(given.get("total_prompt_tokens")) or 0,
        output=whole(given.get("total_completion_tokens")) or 0,
        cached=whole(given.get("total_cached_tokens")) or 0,
    )
    cost = number(given.get("total_cost_usd"))
    if usage == Usage() and not cost:
        return None
    return Spent(model=model or "unknown", usage=usage, cost=cost)


FORMAT = Format(name="atif", label="ATIF", matches=matches, read=read)
