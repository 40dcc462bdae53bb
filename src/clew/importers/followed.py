"""The files that are read on where they ended, with what is known of them; the latest few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from clew.importers.following import FollowedSource
from clew.importers.format import Format
from clew.importers.job import Job
from clew.importers.report import ChatReport, SourceReport
from clew.importers.run import Importer

KEPT, BYTES = 64, 1 << 30
"""Files that are followed at once, and what they may come to together."""
RECENT = 600_000_000
"""Microseconds. A file that was written within them when it is first read is likely to grow."""


class _Kept(NamedTuple):
    source: FollowedSource
    job: Job


class Followed:
    """Jobs that are kept from one reading to the next."""

    def __init__(self, now: Callable[[], int]) -> None:
        """`now`: the time, microseconds."""
        self._now = now
        self._kept: dict[Path, _Kept] = {}
        """The one read last is last."""
        self._known: set[Path] = set()
        self._overtaken: set[Path] = set()

    def read(self, importer: Importer, path: Path, format: Format) -> Callable[[], SourceReport]:
        """Read a file from where it ended last time, or all of it; gives what tells, once all has
        landed, what came in."""
        kept = self._kept.pop(path, None)
        if kept is not None and kept.job.format is format:
            before = _Counts.of(kept.job.report)
            importer.read(kept.job)
            if not kept.source.is_lost:
                return lambda: self._ended(path, kept, before)
        kept = self._begun(path, format)
        importer.read(kept.job)
        return lambda: self._ended(path, kept, _Counts())

    def forget(self, path: Path) -> None:
        """The file is gone."""
        self._kept.pop(path, None)
        self._known.discard(path)

    def was_overtaken(self, path: Path) -> bool:
        """Whether the last reading failed only because somebody else wrote to the conversation."""
        return path in self._overtaken

    def _begun(self, path: Path, format: Format) -> _Kept:
        """A file that changes is kept; of those that are read for the first time, recent ones."""
        written = path.stat().st_mtime_ns // 1000
        stays = path in self._known or self._now() - written < RECENT
        self._known.add(path)
        source = FollowedSource(path, stays)
        return _Kept(source, Job(source, format))

    def _ended(self, path: Path, kept: _Kept, before: _Counts) -> SourceReport:
        job = kept.job
        self._overtaken.discard(path)
        if job.is_overtaken:
            self._overtaken.add(path)
        elif job.report.error is None and job.is_paused and not kept.source.is_lost:
            self._kept[path] = kept
            self._make_room()
        return before.until(job.report)

    def _make_room(self) -> None:
        """Let the smallest go, which are soon read again; of too many bytes those read longest
        ago."""
        while len(self._kept) > KEPT:
            del self._kept[min(self._kept, key=lambda path: self._kept[path].source.done)]
        while len(self._kept) > 1 and sum(k.source.done for k in self._kept.values()) > BYTES:
            del self._kept[next(iter(self._kept))]


class _Counts(NamedTuple):
    """What a report said at some time, to tell what it says since."""

    chats: dict[str, tuple[int, int, int, int]] = {}  # noqa: RUF012 - never changed
    skipped: dict[str, int] = {}  # noqa: RUF012 - never changed
    damaged: int = 0
    warnings: int = 0

    @classmethod
    def of(cls, report: SourceReport) -> _Counts:
        chats = {chat.chat: _numbers(chat) for chat in report.chats}
        return cls(chats, dict(report.skipped), report.damaged_count, report.warning_count)

    def until(self, now: SourceReport) -> SourceReport:
        """What came since."""
        skipped = {kind: count - self.skipped.get(kind, 0) for kind, count in now.skipped.items()}
        return SourceReport(
            source=now.source, format=now.format, error=now.error,
            chats=[self._chat(chat) for chat in now.chats if self._has_changed(chat)],
            skipped={kind: count for kind, count in skipped.items() if count},
            damaged=now.damaged[self.damaged :], damaged_count=now.damaged_count - self.damaged,
            warnings=now.warnings[self.warnings :],
            warning_count=now.warning_count - self.warnings,
        )  # fmt: skip

    def _has_changed(self, chat: ChatReport) -> bool:
        return self.chats.get(chat.chat) != _numbers(chat)

    def _chat(self, chat: ChatReport) -> ChatReport:
        before = self.chats.get(chat.chat)
        if before is None:
            return chat
        messages, branches, cuts, compactions = (
            new - old for new, old in zip(_numbers(chat), before, strict=True)
        )
        return ChatReport(
            chat=chat.chat, conversation=chat.conversation, title=chat.title, state="grown",
            messages=messages, branches=branches, cuts=cuts, compactions=compactions,
            sub_agent=chat.sub_agent,
        )  # fmt: skip


def _numbers(chat: ChatReport) -> tuple[int, int, int, int]:
    return chat.messages, chat.branches, chat.cuts, chat.compactions
