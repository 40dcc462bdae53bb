"""(log, compactions, budget) -> Context: the exact list that is sent to a model. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from clew.context.anthropic import anthropic_messages
from clew.context.budget import Budget
from clew.context.chat import chat_messages
from clew.context.entries import Entry
from clew.context.measure import Measure
from clew.context.responses import responses_items
from clew.context.sections import Item, Layout, Name, lay_out, sized
from clew.context.shown import seen
from clew.context.shrink import (
    REST,
    Digest,
    Room,
    fitted,
    handle,
    largest,
    plain_digest,
    without_giants,
    without_images,
)
from clew.domain.chat import BlobReader
from clew.domain.messages import Role
from clew.domain.parts import plain_text
from clew.errors import ContextTooLarge

if TYPE_CHECKING:
    from clew.store.prompts import ToolSchemas
    from clew.store.reading import ContextInputs


class Context(Struct, frozen=True, kw_only=True):
    """What a model is sent. `tokens` and `bytes` are our own counts of it, `limit` the tokens
    there are: the window less what is kept for the reply."""

    prompt: str | None
    toolset: ToolSchemas | None
    items: tuple[Item, ...]
    """As a model sees them, in their order; the notice, if there is one, stands last here."""
    model: str | None
    generation: int
    up_to_seq: int
    system: int
    tokens: int
    bytes: int
    limit: int
    expected: int
    """The same in tokens of no model in particular: what `CallPlan.expected` takes, so that the
    usage which the provider reports corrects the count of the next contexts."""
    alternates: bool
    shortened: int = 0
    """Messages that were shortened to fit."""
    notice: str | None = None
    """What is said beside the conversation: goal, open todos, notices of the host. The renderings
    put it into the last message."""

    def section(self, name: Name) -> int:
        """Tokens of a section."""
        if name == "system":
            return self.system
        return sum(item.tokens for item in self.items if item.section == name)

    def chat(self, blob: BlobReader) -> list[dict[str, Any]]:
        """As Chat Completions messages, the system prompt first. `blob`: bytes by their hash,
        as `conv.blob`."""
        return chat_messages(
            self.prompt, self._entries, blob, self.model, alternate=self.alternates,
            notice=self.notice,
        )  # fmt: skip

    def responses(self, blob: BlobReader) -> list[dict[str, Any]]:
        """As input items of the Responses API; the prompt goes into `instructions`."""
        return responses_items(self._entries, blob, self.model, self.notice)

    def anthropic(self, blob: BlobReader) -> list[dict[str, Any]]:
        """As Anthropic Messages; the prompt goes into `system`."""
        return anthropic_messages(self._entries, blob, self.model, self.notice)

    @property
    def _entries(self) -> list[Entry]:
        """What is said in the conversation itself."""
        end = len(self.items) - (self.notice is not None)
        return [item.entry for item in self.items[:end]]


def build(
    inputs: ContextInputs, budget: Budget, measure: Measure, *, model: str | None = None,
    digest: Digest = plain_digest, notices: Sequence[str] = (),
) -> Context:  # fmt: skip
    """The context, always within the budget.

    Raises ContextTooLarge: it names the message that is too large alone, or says that the log
    wants a compaction.
    """
    layout = lay_out(inputs, measure, notices)
    return fit(inputs, layout, budget, measure, model=model, digest=digest)


def fit(
    inputs: ContextInputs, layout: Layout, budget: Budget, measure: Measure, *,
    model: str | None = None, digest: Digest = plain_digest,
) -> Context:  # fmt: skip
    """As `build`, of a layout that is there already."""
    room = Room(budget.room - layout.system, budget.bytes - layout.system_bytes)
    items = without_giants(layout.items, room, measure)
    room = room.beside(layout.notice)
    if not _holds(items, room):
        items = fitted(items, room, inputs.conversation.turn, measure, digest)
    if sum(item.bytes for item in items) > room.bytes:
        items = _images_as_handles(items, room, measure)
    shortened = _shortened(layout.items, items)
    items = [*map(_as_seen, items), *(() if layout.notice is None else (layout.notice,))]
    _check(items, layout, budget)
    tokens = layout.system + sum(item.tokens for item in items)
    return Context(
        prompt=inputs.prompt, toolset=inputs.toolset, items=tuple(items), model=model,
        generation=0 if inputs.compaction is None else inputs.compaction.generation,
        up_to_seq=inputs.conversation.head, system=layout.system,
        tokens=tokens, expected=round(tokens / measure.scale),
        bytes=layout.system_bytes + sum(item.bytes for item in items),
        limit=budget.room, alternates=measure.family.alternates, shortened=shortened,
        notice=None if layout.notice is None else plain_text(layout.notice.entry.parts),
    )  # fmt: skip


def _as_seen(item: Item) -> Item:
    """With long results as they are shown; its size is that of these already."""
    entry = seen(item.entry)
    return item if entry is item.entry else item._replace(entry=entry)


def _holds(items: list[Item], room: Room) -> bool:
    return room.holds(sum(item.tokens for item in items), sum(item.bytes for item in items))


def _images_as_handles(items: list[Item], room: Room, measure: Measure) -> list[Item]:
    """The last resort of a byte budget: pictures give way from the oldest on, but not those of the
    last message of a person. Down to well below the budget, so that it is not for each request."""
    users = [at for at, item in enumerate(items) if item.entry.role is Role.USER]
    spared = users[-1] if users else len(items)
    goal, size = room.bytes * REST, sum(item.bytes for item in items)
    found = list(items)
    for at, item in enumerate(items):
        if size <= goal:
            break
        if at == spared or not item.entry.messages:
            continue
        shown = seen(item.entry)
        parts = without_images(shown.parts, handle(item.entry.messages))
        if parts != shown.parts:
            found[at] = sized(item.entry._replace(parts=parts), item.section, measure)
            size += found[at].bytes - item.bytes
    return found


def _check(items: list[Item], layout: Layout, budget: Budget) -> None:
    system = layout.system
    tokens = system + sum(item.tokens for item in items)
    size = layout.system_bytes + sum(item.bytes for item in items)
    if tokens <= budget.room and size <= budget.bytes:
        return
    most = largest(items)
    alone = most is not None and most.tokens + system > budget.room
    raise ContextTooLarge(
        tokens, budget.room, size, budget.bytes,
        most.first if most is not None and alone else None,
        most.tokens if most is not None else 0, system,
    )  # fmt: skip


def _shortened(before: tuple[Item, ...], after: list[Item]) -> int:
    shown = {item.first: item.entry.parts for item in after if item.first is not None}
    return sum(
        1 for item in before
        if item.first is not None and shown.get(item.first) != item.entry.parts
    )  # fmt: skip
