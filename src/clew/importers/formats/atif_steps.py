"""The steps of an ATIF trajectory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from clew.domain.compactions import Inline
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Part, Reasoning, ToolCall, ToolResult
from clew.domain.turns import Usage
from clew.importers.fields import (
    BLOB,
    arguments,
    canonical,
    ident,
    image_at,
    listed,
    mapping,
    media,
    meta,
    moment,
    number,
    text,
    unknown,
    whole,
)
from clew.importers.pieces import Piece, content
from clew.importers.records import Compacted, Damaged, Event, Kept, Record, Skipped, Spent
from clew.importers.source import Source

_ROLES = {"system": Role.SYSTEM, "user": Role.USER, "agent": Role.ASSISTANT}
_AGENTS = ("tool_calls", "metrics", "model_name", "llm_call_count", "reasoning_content")
"""Fields that only a step of the agent has."""
_IDS = ("prompt_token_ids", "completion_token_ids", "logprobs")


class Steps:
    """Reads the steps of one conversation, of one file after the other."""

    def __init__(self, source: Source, chat: str, model: str | None) -> None:
        self.source, self.chat, self.model = source, chat, model
        self.has_spent = False
        self.calls: dict[str, str | None] = {}
        """Of embedded trajectories, by id: the call that they answer."""
        self.files: list[tuple[str, str | None]] = []
        """Of those in files: the path, and the call."""
        self.ids: set[str] = set()
        self.known: dict[bytes, str] = {}
        """What a step says, and the id of its message."""
        self.skipped: Counter[str] = Counter()

    def begun(self, steps: list[Any]) -> int | None:
        """The first time that is told."""
        times = (moment(mapping(step).get("timestamp")) for step in steps)
        return next((at for at in times if at is not None), None)

    def left(self) -> Iterator[Event]:
        for kind, count in self.skipped.items():
            yield Skipped(kind, count)

    def take(self, steps: list[Any], prefix: str = "") -> Iterator[Event]:
        """Records of the steps. Copies of earlier steps stand for a compaction; where there is
        nothing earlier they are all there is, and are messages."""
        copied: list[Kept | Inline] = []
        is_first = not self.ids
        for at, given in enumerate(steps, 1):
            step = mapping(given)
            if not step:
                yield Damaged(f"{prefix}step {at}", "no object")
                continue
            if step.get("is_copied_context") is True and not is_first:
                copied.append(self.copy(step))
                continue
            id = f"{prefix}{ident(step.get('step_id')) or at}"
            id = id if id not in self.ids else f"{prefix}step {at}"
            self.ids.add(id)
            if copied:
                yield self.compacted(copied, id)
                copied = []
            yield from self.step(step, id)
        if copied:
            yield self.compacted(copied, f"{prefix}end")

    def compacted(self, copied: list[Kept | Inline], id: str) -> Compacted:
        return Compacted(chat=self.chat, id=f"compaction:{id}", body=tuple(copied))

    def copy(self, step: dict[str, Any]) -> Kept | Inline:
        if known := self.known.get(_key(step)):
            return Kept(known, known)
        model = ident(step.get("model_name")) or self.model
        return Inline(role=_role(step), parts=tuple(self.said(step, model)))

    # ------------------------------------------------------------------ one step

    def step(self, step: dict[str, Any], id: str) -> Iterator[Event]:
        role = _role(step)
        model = (ident(step.get("model_name")) or self.model) if role is Role.ASSISTANT else None
        parts = self.said(step, model)
        results = [
            mapping(each) for each in listed(mapping(step.get("observation")).get("results"))
        ]
        self.refer(results)
        if role is not Role.ASSISTANT:
            parts += [piece for each in results for piece in self.pieces(each.get("content"))]
            results = []
        spent = self.spent(mapping(step.get("metrics")), model)
        self.has_spent = self.has_spent or spent is not None
        self.known.setdefault(_key(step), id)
        if step.get("extra"):
            self.skipped["steps.extra"] += 1
        at = moment(step.get("timestamp"))
        source = text(step.get("source"))
        yield Record(
            chat=self.chat,
            role=role,
            parts=tuple(parts),
            id=id,
            created_at=at,
            model=model,
            spent=spent,
            meta=meta(
                source=None if source in _ROLES else source,
                copied_context=step.get("is_copied_context") is True,
                llm_call_count=whole(step.get("llm_call_count")),
                reasoning_effort=step.get("reasoning_effort"),
            ),
        )
        yield from self.observed(parts, results, id, at)

    def said(self, step: dict[str, Any], model: str | None) -> list[Part]:
        parts: list[Part] = []
        if thought := text(step.get("reasoning_content")):
            parts.append(Reasoning(text=thought, model=model))
        parts += self.pieces(step.get("message"))
        for each in listed(step.get("tool_calls")):
            call = mapping(each)
            parts.append(
                ToolCall(
                    ident(call.get("tool_call_id")) or "",
                    ident(call.get("function_name")) or "",
                    arguments(call.get("arguments")),
                )
            )
        return parts

    def observed(
        self, parts: list[Part], results: list[dict[str, Any]], id: str, at: int | None
    ) -> Iterator[Record]:
        """The results of the calls as one message; what answers no call as another."""
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        answers: list[Part] = []
        others: list[Part] = []
        for place, each in enumerate(results):
            call = ident(each.get("source_call_id"))
            if call is None and len(calls) == len(results):
                call = calls[place]
            pieces = self.pieces(each.get("content"))
            if call is not None and call in calls:
                answers.append(ToolResult(call, text(each.get("content")) or tuple(pieces) or ""))
            else:
                others += pieces
        for role, found, name in ((Role.TOOL, answers, "result"), (Role.USER, others, "observed")):
            if found:
                yield Record(
                    chat=self.chat,
                    role=role,
                    parts=tuple(found),
                    id=f"{id}/{name}",
                    created_at=at,
                    meta=meta(observation=role is Role.USER),
                )

    def refer(self, results: list[dict[str, Any]]) -> None:
        """Remember the sub-agents that a step's results name."""
        for each in results:
            call = ident(each.get("source_call_id"))
            given = each.get("subagent_trajectory_ref")
            for ref in map(mapping, listed(given) or [given]):
                path = text(ref.get("trajectory_path"))
                if inner := ident(ref.get("trajectory_id")):
                    self.calls.setdefault(inner, call)
                if path:
                    self.files.append((path, call))
                elif inner is None and ref:
                    self.skipped["subagent_trajectory_ref"] += 1

    def spent(self, given: dict[str, Any], model: str | None) -> Spent | None:
        for name in _IDS:
            if given.get(name):
                self.skipped[f"metrics.{name}"] += 1
        usage = Usage(
            input=whole(given.get("prompt_tokens")) or 0,
            output=whole(given.get("completion_tokens")) or 0,
            cached=whole(given.get("cached_tokens")) or 0,
            reasoning=whole(mapping(given.get("extra")).get("reasoning_tokens")) or 0,
        )
        cost = number(given.get("cost_usd"))
        if usage == Usage() and not cost:
            return None
        return Spent(model=model or "unknown", usage=usage, cost=cost)

    # ------------------------------------------------------------------ content

    def pieces(self, given: object) -> list[Piece]:
        if several := listed(given):
            return [piece for each in several for piece in self.piece(each)]
        return list(content(given))

    def piece(self, given: object) -> tuple[Piece, ...]:
        piece = mapping(given)
        at = mapping(piece.get("source"))
        path, kind = text(at.get("path")), piece.get("type")
        if path is None or kind not in ("image", "audio"):
            return content([given])
        if path.startswith(("http://", "https://", "data:")):
            found = image_at(path) if kind == "image" else None
            return (found or File(media(at.get("media_type"), "audio/wav"), url=path),)
        data = self.source.asset(path.replace("\\", "/").rsplit("/", 1)[-1], BLOB)
        if data is None:
            return (unknown(given),)
        if kind == "image":
            return (Image(media(at.get("media_type"), "image/png"), data=data),)
        return (File(media(at.get("media_type"), "audio/wav"), data=data),)


def _role(step: dict[str, Any]) -> Role:
    """Of a source that is none of the three: the agent's where only an agent has such fields."""
    known = _ROLES.get(text(step.get("source")) or "")
    if known is not None:
        return known
    is_agents = any(step.get(name) is not None for name in _AGENTS)
    return Role.ASSISTANT if is_agents else Role.SYSTEM


def _key(step: dict[str, Any]) -> bytes:
    return canonical([step.get("source"), step.get("message"), step.get("tool_calls")])
