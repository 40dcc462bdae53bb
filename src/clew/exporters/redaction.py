"""A transcript, or lines of clew's JSONL, without what a redaction takes out.

Done on values, before anything is rendered: so no rule has to know how a format escapes, shortens
or joins. Every text in them goes through the rules, of whatever field; what names rows does not.
Three things cannot be looked into, and are left out: files that are no picture, a provider's signed
or encrypted thinking, and what a provider wants back with a call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, cast

from msgspec import Struct, structs

from clew.context.entries import Entry
from clew.domain.conversations import ConversationInfo
from clew.domain.parts import File, Image, Part, Parts, Reasoning, Text, ToolCall, ToolResult
from clew.domain.redaction import Redaction
from clew.exporters.text import RASTER, attachment
from clew.exporters.transcript import Transcript
from clew.store.codec import escape_json
from clew.store.transfer_lines import (
    BlobLine,
    CallLine,
    Content,
    Facts,
    MessageLine,
    PromptLine,
    ToolsetLine,
    TurnLine,
)
from clew.store.transfer_rows import line_hashes

NAMES = frozenset((
    "id", "conversation", "origin", "uid", "hash", "prompt_hash", "toolset_hash", "prefix_hash",
    "affinity", "attribution", "kind", "state", "role", "trigger", "purpose", "type", "call_id",
    "api_group", "source", "media_type", "model", "verdict", "end_reason", "title_origin",
    "foreign_id", "prompt", "toolset",
))  # fmt: skip
"""Fields that name rows and kinds: another text there would be another row."""
CUT = frozenset(("title", "title_derived", "title_llm", "preview"))
"""Fields whose text may have been cut off in the middle of a key."""
S = TypeVar("S", bound=Struct)
L = TypeVar("L", Facts, CallLine)


def redacted(source: Transcript, redaction: Redaction) -> Transcript:
    """A conversation without what the rules name."""

    def entries() -> Iterator[Entry]:
        return (entry_of(entry, redaction) for entry in source.entries())

    return source._replace(
        info=info_of(source.info, redaction),
        prompt=None if source.prompt is None else redaction(source.prompt),
        toolset=_value(source.toolset, redaction),
        entries=entries,
        compactions=_value(source.compactions, redaction),
        cuts=_value(source.cuts, redaction),
        calls=_value(source.calls, redaction),
        children=tuple(info_of(child, redaction) for child in source.children),
    )


def info_of(info: ConversationInfo, redaction: Redaction) -> ConversationInfo:
    """What is told of a conversation. Its id and source stay."""
    return _struct(info, redaction)


def entry_of(entry: Entry, redaction: Redaction) -> Entry:
    """A message, without the messages' own texts."""
    return entry._replace(
        parts=parts_of(entry.parts, redaction),
        author=_author(entry.author, redaction),
        meta=_value(entry.meta, redaction),
    )


def parts_of(parts: Parts, redaction: Redaction) -> Parts:
    """Parts of a message."""
    return tuple(_part(part, redaction) for part in parts)


def _part(part: Part, redaction: Redaction) -> Part:
    match part:
        case Reasoning():
            return Reasoning(text=redaction(part.text), model=part.model)
        case ToolCall():
            return structs.replace(part, arguments=redaction(part.arguments), extra=None)
        case ToolResult(content=tuple(pieces)):
            content = cast(Any, tuple(_part(piece, redaction) for piece in pieces))
            return structs.replace(part, content=content)
        case Image() if part.media_type.lower() not in RASTER or _is_inline(part):
            return _left_out(part, redaction)
        case File():
            return _left_out(part, redaction)
        case Image(url=str(url)) if url.startswith("data:"):
            return part
        case _:
            return _struct(part, redaction)


def _left_out(part: Image | File, redaction: Redaction) -> Text:
    return Text(f"[{redaction(attachment(part))}: left out]")


def _is_inline(part: Image) -> bool:
    """Whether its URL is its bytes: of a picture, or of anything that says so."""
    url = part.url or ""
    return url.startswith("data:") and not url.startswith(tuple(f"data:{kind};" for kind in RASTER))


def _author(author: str | None, redaction: Redaction) -> str | None:
    if author is None:
        return None
    return redaction.rules.mark if redaction.rules.people else redaction(author)


# ---------------------------------------------------------------- any value


def _struct(value: S, redaction: Redaction) -> S:
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        before: object = getattr(value, name)
        after = _field(name, before, redaction)
        if after is not before:
            changed[name] = after
    return structs.replace(value, **changed) if changed else value


def _field(name: str, value: object, redaction: Redaction) -> object:
    if name in NAMES:
        return value
    if isinstance(value, str) and name in CUT:
        return redaction.cut(value)
    return _value(value, redaction)


def _value(value: Any, redaction: Redaction) -> Any:
    """Any value of a record: each text in it, keys of dictionaries too."""
    if type(value) is str:
        return redaction(value)
    if isinstance(value, Part):
        return _part(value, redaction)
    if isinstance(value, Struct):
        return _struct(value, redaction)
    if isinstance(value, dict):
        fields = cast(dict[Any, Any], value).items()
        return {_value(key, redaction): _value(inner, redaction) for key, inner in fields}
    if isinstance(value, tuple | list):
        found = [_value(inner, redaction) for inner in cast(Iterable[Any], value)]
        return tuple(found) if isinstance(value, tuple) else found
    return value


# ---------------------------------------------------------------- clew's own JSONL


class Lines:
    """The lines of conversations, one after another. Prompts and tool sets are named by a hash of
    their text, so those that change get another name, and what refers to them is told; a file that
    is left out takes its bytes with it."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._names: dict[str, str] = {}
        self._facts: Facts | None = None
        self._prompts: list[PromptLine | ToolsetLine] = []
        self._blobs: dict[bytes, BlobLine] = {}

    def __call__(self, line: Facts | Content) -> Iterator[Facts | Content]:
        """What stands in the place of a line; of the first one, as soon as its prompts are
        known."""
        if isinstance(line, Facts):
            self._facts, self._blobs = line, {}
        elif isinstance(line, PromptLine | ToolsetLine):
            self._prompts.append(self._named(line))
        elif isinstance(line, BlobLine):
            self._blobs[bytes.fromhex(line.hash)] = line
        else:
            yield from self.rest()
            fresh = self._line(line)
            for digest in line_hashes(fresh) & self._blobs.keys():
                yield self._blobs.pop(digest)
            yield fresh

    def rest(self) -> Iterator[Facts | Content]:
        """What is still held: of a conversation without messages all."""
        if self._facts is not None:
            facts, prompts = self._facts, self._prompts
            self._facts, self._prompts = None, []
            yield self._referring(facts)
            yield from prompts

    def _named(self, line: PromptLine | ToolsetLine) -> PromptLine | ToolsetLine:
        body = _value(line.text if isinstance(line, PromptLine) else line.schemas, self._redaction)
        name = self._names[line.hash] = hashlib.sha256(escape_json(body)).hexdigest()
        if isinstance(line, PromptLine):
            return structs.replace(line, hash=name, text=body)
        return structs.replace(line, hash=name, schemas=body)

    def _line(self, line: Content) -> Content:
        if isinstance(line, CallLine):
            return self._referring(line)
        fresh = _struct(line, self._redaction)
        if isinstance(line, MessageLine):
            author = _author(line.author, self._redaction)
            fresh = structs.replace(cast(MessageLine, fresh), author=author)
        return _without_key(line, fresh)

    def _referring(self, line: L) -> L:
        return structs.replace(
            _struct(line, self._redaction),
            prompt=self._names.get(line.prompt or "", line.prompt),
            toolset=self._names.get(line.toolset or "", line.toolset),
        )


def _without_key(line: Content, fresh: Content) -> Content:
    """Without the caller's key if that had something to hide: two could become one."""
    if not isinstance(line, MessageLine | TurnLine):
        return fresh
    kept = cast(MessageLine | TurnLine, fresh)
    return kept if kept.key == line.key else structs.replace(kept, key=None)
