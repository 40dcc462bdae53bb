"""A context laid out: its messages in order, each with the section it stands in and its size.

The order never changes, since a provider's cache holds what begins alike: system and tools | head |
ledger | kept | tail. Head: the first messages, verbatim for ever. Ledger: what compactions wrote,
byte for byte as they wrote it. Kept: covered messages that stay, whole or shortened. Tail:
everything above the cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from clew.context.entries import Entry
from clew.context.measure import FRAME, FRAME_BYTES, Measure, bytes_of
from clew.context.notices import notices_of
from clew.context.wire import entries_of
from clew.domain.compactions import Inline, Ref
from clew.domain.messages import Role
from clew.domain.parts import Text
from clew.domain.values import escape_text

if TYPE_CHECKING:
    from clew.store.reading import ContextInputs

Name = Literal["system", "head", "ledger", "kept", "tail"]
NAMES: tuple[Name, ...] = ("system", "head", "ledger", "kept", "tail")


class Item(NamedTuple):
    """One message of a context."""

    entry: Entry
    section: Name
    tokens: int
    bytes: int

    @property
    def first(self) -> int | None:
        """The first seq it is made of; None of what a compaction made."""
        return self.entry.messages[0].seq if self.entry.messages else None

    @property
    def last(self) -> int | None:
        return self.entry.messages[-1].seq if self.entry.messages else None


class Layout(NamedTuple):
    """All of a context before anything was shortened to fit."""

    system: int
    """Tokens of the system prompt and of the tools' schemas."""
    system_bytes: int
    items: tuple[Item, ...]
    notice: Item | None = None
    """What is said beside them: goal, open todos, notices of the host. It counts as tail."""

    @property
    def tokens(self) -> int:
        return self.system + sum(item.tokens for item in self.told)

    @property
    def bytes(self) -> int:
        return self.system_bytes + sum(item.bytes for item in self.told)

    @property
    def told(self) -> tuple[Item, ...]:
        """The items, and the notice behind them if there is one."""
        return self.items if self.notice is None else (*self.items, self.notice)

    def section(self, name: Name) -> int:
        """Tokens of one section."""
        if name == "system":
            return self.system
        return sum(item.tokens for item in self.told if item.section == name)


def lay_out(inputs: ContextInputs, measure: Measure, notices: Sequence[str] = ()) -> Layout:
    """The layout of a context as the log and the compaction in effect give it. `notices`: what
    the host has to say in this one request."""
    system = inputs.prompt or ""
    tools = escape_text(inputs.toolset) if inputs.toolset else ""
    texts = [text for text in (system, tools) if text]
    tokens = sum(measure.text(text) + FRAME for text in texts)
    size = sum(len(text.encode("utf-8", "replace")) + FRAME_BYTES for text in texts)
    head, cover = borders(inputs)
    items = tuple(_items(entries_of(inputs), head, cover, measure))
    return Layout(tokens, size, items, notice_item(inputs, measure, notices))


def notice_item(
    inputs: ContextInputs, measure: Measure, notices: Sequence[str] = ()
) -> Item | None:
    """What is said beside the messages, with its size; None when that is nothing."""
    text = notices_of(inputs.todos, inputs.goal, notices)
    return None if text is None else sized(Entry(Role.USER, (Text(text),)), "tail", measure)


def borders(inputs: ContextInputs) -> tuple[int, int]:
    """The last seq of the head, and of what the compaction in effect covers; 0 where there is
    none. A head is what stands before a ledger: before the first ledger it may still change."""
    record = inputs.compaction
    if record is None:
        return 0, 0
    match record.body:
        case (Ref(last=head), Inline(), *_) if record.kind == "ours":
            return head, record.covers_to
        case _:
            return 0, record.covers_to


def _items(entries: Iterable[Entry], head: int, cover: int, measure: Measure) -> Iterator[Item]:
    for entry in entries:
        section: Name
        if not entry.messages:
            section = "ledger"
        elif entry.messages[0].place > cover:
            section = "tail"
        else:
            section = "head" if entry.messages[0].place <= head else "kept"
        yield sized(entry, section, measure)


def sized(entry: Entry, section: Name, measure: Measure) -> Item:
    """An entry with its size. The counts that messages carry are used where their parts stand
    unchanged."""
    messages = entry.messages
    if messages and entry.parts == tuple(part for m in messages for part in m.parts):
        tokens = sum(measure.message(message) for message in messages)
    else:
        tokens = measure.parts(entry.parts) + FRAME
    return Item(entry, section, tokens, bytes_of(entry.parts) + FRAME_BYTES)


def inlines(inputs: ContextInputs) -> list[Inline]:
    """What the compaction in effect wrote, in its order."""
    return [item for item, _ in inputs.covered if isinstance(item, Inline)]
