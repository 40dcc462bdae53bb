"""One source on its way into the log: its events become plans, its plans landings."""

from __future__ import annotations

from collections.abc import Iterator

from clew.errors import ImportOvertaken
from clew.importers import naming
from clew.importers.chat import ChatPlan
from clew.importers.format import Format
from clew.importers.records import (
    Compacted,
    Event,
    Named,
    Paused,
    Record,
    Rewound,
    Titled,
    Used,
)
from clew.importers.report import ChatReport, SourceReport
from clew.importers.source import Source
from clew.store.landing import Append, Landing


class Job:
    """What is known of a source that is being read, or that waits to land. A followed one (see
    `clew.importers.following`) is read on, with what is known of it, each time it has grown."""

    def __init__(self, source: Source, format: Format) -> None:
        self.source, self.format = source, format
        self.report = SourceReport(source=source.id, format=format.name)
        self.plans: dict[str, ChatPlan] = {}
        self.names: set[str] = set()
        """Names that its plans claim and that have not landed."""
        self.copies: dict[str, str] = {}
        """Of forked chats that copied their beginning from a chat that is here: its last record,
        until it was passed."""
        self._landed: dict[str, ChatReport] = {}
        """Of an earlier reading: what it landed before somebody else came between."""
        self._touched: dict[str, ChatPlan] = {}
        """Plans that something may have been added to since they landed, of maybe thousands."""
        self._awake: dict[str, ChatPlan] = {}
        """Plans that can be added to; others have to be woken."""
        self._events: Iterator[Event] | None = None
        self.is_paused = False
        """Whether the source is a followed one that was read as far as it went, and may grow."""
        self.is_resumed = False
        """Whether it was read on after a pause. What landed before is told; it is not begun again
        when somebody else came between, but given up."""
        self.is_overtaken = False
        """Whether it was given up for that."""

    def events(self) -> Iterator[Event]:
        """What the source says, from where the last reading paused."""
        if self._events is None:
            self._events = self.format.read(self.source)
        elif self.is_paused:
            self.is_paused, self.is_resumed, self._landed = False, True, {}
        for event in self._events:
            if isinstance(event, Paused):
                self.is_paused = True
                return
            yield event

    def add(self, plan: ChatPlan) -> None:
        """Take in the plan of a chat."""
        id = plan.chat.id
        self.plans[id] = self._touched[id] = self._awake[id] = plan
        self.names.add(naming.chat_name(id))
        self.report.chats.append(plan.report)

    def plan(self, chat: str) -> ChatPlan | None:
        """The plan of a chat, to be added to."""
        plan = self.plans.get(chat)
        if plan is not None and chat not in self._touched:
            self._touched[chat] = plan
            if chat not in self._awake:
                self._awake[chat] = plan
                plan.wake()
        return plan

    def is_copy(self, event: Record | Compacted | Rewound | Titled | Used) -> bool:
        """Whether this stands in a beginning that was copied from a chat that is here."""
        last = self.copies.get(event.chat)
        if last is not None and isinstance(event, Record) and event.id == last:
            del self.copies[event.chat]
        return last is not None

    @property
    def pending(self) -> int:
        """Messages planned that have not landed."""
        return sum(plan.pending for plan in self._touched.values())

    def landings(self) -> list[Landing]:
        """The plans so far, in the order in which they have to land: a chat that another comes from
        was touched before that one began."""
        return [landing for plan in self._touched.values() for landing in plan.landings()]

    def took_place(self) -> None:
        """The landings given out last are in the log."""
        self.names.clear()
        for plan in self._touched.values():
            plan.landed()
        for chat in self._awake.keys() - self._touched.keys():
            self._awake.pop(chat).rest()
        self._touched = {}

    def begin_again(self) -> None:
        """Forget all plans: the source is read once more, from its beginning."""
        for chat in self.report.chats:
            before = self._landed.get(chat.chat)
            landed = self.plans[chat.chat].landed_messages
            if landed or before:
                self._landed[chat.chat] = ChatReport(
                    chat=chat.chat, state=before.state if before else chat.state,
                    messages=landed + (before.messages if before else 0),
                )  # fmt: skip
        fresh = SourceReport(source=self.source.id, format=self.format.name)
        for name in SourceReport.__struct_fields__:
            setattr(self.report, name, getattr(fresh, name))
        self.plans, self.names, self._touched, self.copies = {}, set(), {}, {}
        self._events, self.is_paused, self.source.done = None, False, 0

    def give_up(self, error: ImportOvertaken) -> None:
        """What the source says cannot be landed now."""
        self.report.error, self.is_overtaken = str(error), True

    def finish(self) -> None:
        """The source has been read to its end, or as far as it goes: say what became of each
        chat."""
        if not self.is_paused:
            self._touched = dict(self.plans)  # finishing looks nothing up, so they may rest
        for plan in self._touched.values():
            if not self.is_paused:
                plan.finish()
            report, before = plan.report, self._landed.get(plan.chat.id)
            if before is not None:
                report.messages += before.messages
                report.state = before.state if before.state == "new" else "grown"
            if plan.deleted:
                report.state = "deleted"
            elif report.state == "unchanged" and (
                report.messages or report.cuts or report.compactions
            ):
                report.state = "grown"


def count(landings: list[Landing]) -> int:
    """Messages that landings bring."""
    return sum(
        len(step.prepared)
        for landing in landings
        for step in landing.steps
        if isinstance(step, Append)
    )


def tell(plan: ChatPlan, event: Compacted | Rewound | Titled | Named | Used) -> None:
    """Pass an event on that is no record."""
    match event:
        case Compacted():
            plan.compacted(event)
        case Rewound():
            plan.rewound(event)
        case Titled():
            plan.titled(event)
        case Named():
            plan.named(event)
        case Used():
            plan.used(event)
