"""What an import did, and what it left out."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from msgspec import Struct, field

State = Literal["new", "grown", "unchanged", "deleted"]
NAMED, LONGEST = 200, 100
"""Damaged places, warnings and kinds that are named (more are only counted); characters of one."""


class ChatReport(Struct, kw_only=True):
    """What became of one conversation of a source."""

    chat: str
    """Its id in the tool."""
    conversation: str | None = None
    """Its id here."""
    title: str | None = None
    state: State = "unchanged"
    messages: int = 0
    """Added by this run."""
    branches: int = 0
    cuts: int = 0
    compactions: int = 0
    sub_agent: bool = False


class Place(Struct, frozen=True):
    """Something in a file: where and what about it."""

    where: str
    reason: str


class SourceReport(Struct, kw_only=True):
    """What became of one file or folder."""

    source: str
    format: str | None = None
    error: str | None = None
    """Why nothing (more) of it was read."""
    chats: list[ChatReport] = field(default_factory=list[ChatReport])
    new: int = 0
    """Conversations that were not here; of clew's own files they are not told one by one."""
    grown: int = 0
    unchanged: int = 0
    messages: int = 0
    """Added by this run."""
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """What was not imported, by kind."""
    damaged: list[Place] = field(default_factory=list[Place])
    damaged_count: int = 0
    warnings: list[str] = field(default_factory=list[str])
    warning_count: int = 0

    def count(self) -> None:
        """Add up the conversations."""
        states = Counter(chat.state for chat in self.chats)
        self.new, self.grown = states["new"], states["grown"]
        self.unchanged = states["unchanged"]
        self.messages = sum(chat.messages for chat in self.chats)

    def skip(self, kind: str, count: int = 1) -> None:
        """Count what is left out. The source chooses the words, so there is an end to them."""
        kind = kind[:LONGEST]
        if kind not in self.skipped and len(self.skipped) >= NAMED:
            kind = "other kinds"
        self.skipped[kind] = self.skipped.get(kind, 0) + count

    def damage(self, where: str, reason: str) -> None:
        """Name what cannot be read."""
        self.damaged_count += 1
        if len(self.damaged) < NAMED:
            self.damaged.append(Place(where, reason))

    def warn(self, text: str) -> None:
        """Name what a person should know."""
        self.warning_count += 1
        if len(self.warnings) < NAMED and text not in self.warnings:
            self.warnings.append(text)


class Totals(Struct, kw_only=True):
    """Of a whole run."""

    sources: int = 0
    failed: int = 0
    conversations: int = 0
    """New ones, sub-agents included."""
    sub_agents: int = 0
    grown: int = 0
    unchanged: int = 0
    deleted: int = 0
    messages: int = 0
    branches: int = 0
    cuts: int = 0
    compactions: int = 0
    damaged: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])


def totals(reports: list[SourceReport]) -> Totals:
    """Add up."""
    for report in reports:
        if report.chats:
            report.count()
    chats = [chat for report in reports for chat in report.chats]
    skipped: Counter[str] = Counter()
    for report in reports:
        skipped.update(report.skipped)
    return Totals(
        sources=len(reports), failed=sum(report.error is not None for report in reports),
        conversations=sum(report.new for report in reports),
        sub_agents=sum(chat.sub_agent and chat.state == "new" for chat in chats),
        grown=sum(report.grown for report in reports),
        unchanged=sum(report.unchanged for report in reports),
        deleted=sum(chat.state == "deleted" for chat in chats),
        messages=sum(report.messages for report in reports),
        branches=sum(chat.branches for chat in chats), cuts=sum(chat.cuts for chat in chats),
        compactions=sum(chat.compactions for chat in chats),
        damaged=sum(report.damaged_count for report in reports), skipped=dict(skipped),
    )  # fmt: skip
