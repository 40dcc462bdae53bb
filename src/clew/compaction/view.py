"""What a compaction looks at: the context inputs, laid out and measured for one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from clew.compaction.policy import due
from clew.context.budget import Budget, budget_for
from clew.context.measure import Measure, Reading, measure_for
from clew.context.sections import Layout, borders, lay_out, notice_item
from clew.context.shrink import Room
from clew.domain.compactions import Ref, Trigger
from clew.domain.messages import Message, Role
from clew.domain.turns import ModelCall
from clew.store.conversation import Conversation
from clew.store.reading import ContextInputs

READINGS = 50
"""How many of the newest model calls tell what a token of ours is for the model."""


PAGES = 50
"""How far back the last message of a person is looked for, in pages of 100."""


class View(NamedTuple):
    """One conversation as it is now, for one model."""

    inputs: ContextInputs
    layout: Layout
    budget: Budget
    measure: Measure
    model: str | None
    readings: tuple[Reading, ...]

    def due(self) -> Trigger | None:
        """Which attempt it calls for (`policy.due`). What is said beside the messages counts as
        `build.fit` counts it: else a context that is not due would be shortened."""
        layout, notice = self.layout, self.layout.notice
        tokens, size = layout.tokens, layout.bytes
        if notice is not None:
            room = Room(self.budget.room - layout.system, self.budget.bytes - layout.system_bytes)
            left = room.beside(notice)
            tokens += room.tokens - left.tokens - notice.tokens
            size += room.bytes - left.bytes - notice.bytes
        return due(tokens, self.budget, size)

    def told(self, notices: Sequence[str]) -> View:
        """The same with what a host has to say in one request. A compaction looks at the view
        without it: it is gone with the request."""
        if not notices:
            return self
        notice = notice_item(self.inputs, self.measure, notices)
        return self._replace(layout=self.layout._replace(notice=notice))


def look(conv: Conversation, budget: Budget | None = None, model: str | None = None) -> View:
    """Read a conversation. `model`: the conversation's own when None; `budget`: that of the
    model's family."""
    readings = tuple(map(_reading, conv.calls(READINGS)))
    inputs = _with_request(conv, conv.context_inputs())
    model = model or inputs.conversation.model
    measure = measure_for(model, readings)
    return View(
        inputs, lay_out(inputs, measure), budget or budget_for(model), measure, model, readings
    )


def _with_request(conv: Conversation, inputs: ContextInputs) -> ContextInputs:
    """The inputs, the last message of a person among them.

    A compaction leaves it verbatim behind its ledger. But a cut above the cover may have withdrawn
    that one: then the last is one that only the ledger tells of.
    """
    if inputs.compaction is None:
        return inputs
    head, cover = borders(inputs)
    shown = [m for _, named in inputs.covered for m in named if m.place > head]
    if any(_asks(message) for message in (*shown, *inputs.messages)):
        return inputs
    cursor: str | None = None
    for _ in range(PAGES):
        page = conv.log(order="newest", last=cover, cursor=cursor)
        for message in page.items:
            if _asks(message) and message.place > head:
                item = (Ref(message.place, message.place), (message,))
                return replace(inputs, covered=(*inputs.covered, item))
        cursor = page.next
        if cursor is None:
            break
    return inputs


def _asks(message: Message) -> bool:
    return message.role is Role.USER and bool(message.parts)


def _reading(call: ModelCall) -> Reading:
    """Of a call nobody counted beforehand, the size is known and the scale is not."""
    done = call.purpose == "turn" and call.state == "done"
    return Reading(
        call.model, call.expected or 0, call.usage.input if done else 0, call.after_attempt or 0
    )
