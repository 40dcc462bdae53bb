"""Following the files of running tools: what they add is in the log within a second.

The system tells of changes (`notices`); since it does not tell of all, everything is looked at now
and then, too (`sightings`). A file of lines that grows is read on where it ended (`followed`).
Everything else that changed is read again as a whole, and the less often, the longer that takes.
What is there already is found again, so reading too much is slow, never wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from clew.context.tokens import count_text
from clew.errors import ClewError
from clew.importers.bring import Imported, bring_ours, summed
from clew.importers.followed import Followed
from clew.importers.notices import Notices
from clew.importers.report import SourceReport
from clew.importers.run import Importer, Options
from clew.importers.sightings import Sightings
from clew.importers.source import UNREADABLE, Source
from clew.importers.walk import Found, Walk, check_path
from clew.store.profile import Profile

SWEEP, SHARE = 30.0, 500
"""Seconds between two looks at everything, and at least so many times what a look takes."""
REST = 2.0
"""Seconds of quiet after which there is time for something else."""
PATIENCE, MOST = 0.2, 300.0
"""Seconds until what failed is tried again: at first, fourfold each time, and at most."""
BREATH, AGAIN = 4, 2.0
"""A source that is read as a whole is left alone for so many times what the reading took, and one
of a tool that writes its records again and again, as an answer grows, for so many seconds: each
state that is read stays in the log."""
Meter = Callable[[list[Source]], Callable[[Source, int], None]]
"""Makes, for the sources of a pass, what is told how many bytes of each were read."""


class Watch:
    """Imports what is there, then what comes. One thread; `stop` may be called from a signal."""

    def __init__(
        self, profile: Profile, paths: Iterable[str | Path], options: Options | None = None,
        *, wanted: Callable[[Path], bool] | None = None, meter: Meter | None = None,
        rest: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """`wanted`: of the files at these paths those that are meant, if not all. `rest` is called
        when something came in and it has been quiet for a while. InputError when a path is not
        there."""
        roots = [Path(path).expanduser().absolute() for path in paths]
        for root in roots:
            check_path(root)
        self._profile, self._options, self._rest = profile, options or Options(), rest
        self._meter = meter
        self._notices, self._sightings = Notices(roots), Sightings(roots, wanted)
        self._roots = _identities(roots)
        self._followed = Followed(profile.importing().now)
        self._due: dict[Path, float] = {}
        """When to read what has changed."""
        self._free: dict[Path, float] = {}
        """Until when what takes long to read is left alone."""
        self._failures: dict[Path, int] = {}
        self._told: dict[Path, tuple[str | None, int]] = {}
        """Error and damaged places of sources that were told already."""
        self._rest_at: float | None = None
        self._stopped = False

    @property
    def reason(self) -> str | None:
        """Why the system does not tell of changes, if so: then they are looked for."""
        return self._notices.reason

    def stop(self) -> None:
        """End soon; what is read so far and not landed is read again by the next run."""
        self._stopped = True
        self._notices.wake()

    def run(self) -> Iterator[Imported]:
        """What came in: first all that is there, then each time something did, until `stop`."""
        self._notices.start()  # first, so that nothing falls in between
        try:
            yield self._pass(_ordered(self._sightings.sweep()))
            count_text("")  # reads tables for half a second, which the first message would wait
            yield from self._follow()
        except _Stopped:
            return
        finally:
            self._notices.close()

    def _follow(self) -> Iterator[Imported]:
        sweep = time.monotonic() + 1  # the system may not have told from the very beginning
        while not self._stopped:
            until = [sweep, *self._due.values(), self._rest_at or sweep]
            for path in self._notices.take(min(until) - time.monotonic()):
                self._note(path)
            now = time.monotonic()
            if now >= sweep:
                sweep = self._sweep()
            if ready := [path for path, at in self._due.items() if at <= now]:
                done = self._pass(_ordered(ready))
                if done.sources or done.failed:
                    yield done
            elif self._rest_at is not None and now >= self._rest_at:
                self._rest_at = None
                if self._rest is not None:
                    self._rest()

    # ------------------------------------------------------------------ what changed

    def _note(self, path: Path) -> None:
        if path in self._roots:
            self._renew()
        if self._sightings.is_below(path):
            self._plan(self._sightings.look(path))

    def _sweep(self) -> float:
        """Look at everything; gives when to do so again."""
        began = time.monotonic()
        self._renew()
        self._plan(self._sightings.sweep())
        now = time.monotonic()
        return now + max(SWEEP if self.reason is None else 1.0, SHARE * (now - began))

    def _renew(self) -> None:
        """A path that was made anew has to be watched anew."""
        found = _identities(self._roots)
        if found != self._roots:
            self._roots = found
            self._notices.start()

    def _plan(self, sources: set[Path]) -> None:
        for path in sources:
            self._due.setdefault(path, self._free.get(path, 0.0))

    # ------------------------------------------------------------------ reading

    def _pass(self, paths: Sequence[Path]) -> Imported:
        """Read these. Of the reports those that tell something are kept."""
        walk = Walk()
        found = [(path, each) for path in paths for each in _below(walk, path)]
        for path in paths:
            self._due.pop(path, None)
            if not path.exists():
                self._followed.forget(path)
        told = self._meter([source for _, (source, _) in found]) if self._meter else _silent
        importer = Importer(self._profile.importing(), self._options, self._checked(told))
        read = [(path, self._read(importer, path, each)) for path, each in found]
        importer.land()
        reports = [report for path, ended in read if (report := self._settled(path, ended()))]
        if reports:
            self._rest_at = time.monotonic() + REST
        return summed(reports, walk)

    def _read(self, importer: Importer, path: Path, found: Found) -> Callable[[], SourceReport]:
        """Read a source; gives what tells, once all has landed, what became of it."""
        source, format = found
        began = time.monotonic()
        try:
            if format is None:
                report = bring_ours(self._profile, source, self._options)
            elif format.follows and source.member is None:
                return self._followed.read(importer, path, format)
            else:
                report = importer.add(source, format)
        except (ClewError, *UNREADABLE) as error:  # of one file; there are others
            report = SourceReport(source=source.id, error=f"{type(error).__name__}: {error}")
        now = time.monotonic()
        again = AGAIN if format is not None and format.rewrites else 0.0
        self._free[path] = now + max(again, BREATH * (now - began))
        return lambda: report

    def _settled(self, path: Path, report: SourceReport) -> SourceReport | None:
        """A report if it tells anything new; what failed is planned again."""
        if report.error is None:
            self._failures.pop(path, None)
        else:
            failures = self._failures[path] = self._failures.get(path, 0) + 1
            wait = min(MOST, PATIENCE * 4 ** (failures - 1))
            self._due.setdefault(path, time.monotonic() + wait)
            if self._followed.was_overtaken(path):
                return None
        before, now = self._told.get(path), (report.error, report.damaged_count)
        self._told[path] = now
        brought = any(c.messages or c.branches or c.cuts or c.compactions for c in report.chats)
        brought = brought or bool(report.messages)
        return report if brought or (now != (None, 0) and now != before) else None

    def _checked(self, told: Callable[[Source, int], None]) -> Callable[[Source, int], None]:
        def progress(source: Source, done: int) -> None:
            if self._stopped:
                raise _Stopped
            told(source, done)

        return progress


class _Stopped(BaseException):
    """The watch was told to end in the midst of reading."""


def _below(walk: Walk, path: Path) -> list[Found]:
    """The sources at a path; none when it is gone, or goes while one looks."""
    try:
        return list(walk.below(path)) if path.exists() else []
    except UNREADABLE:
        return []


def _silent(_: Source, done: int) -> None:
    pass


def _identities(roots: Iterable[Path]) -> dict[Path, int | None]:
    """What is at these paths: a number that another file or folder there does not have."""
    found: dict[Path, int | None] = {}
    for root in roots:
        try:
            found[root] = root.stat().st_ino
        except OSError:
            found[root] = None
    return found


def _ordered(paths: Iterable[Path]) -> list[Path]:
    """In the order in which a walk finds them: what others come from is first."""
    return sorted(paths, key=lambda p: (*((1, each) for each in p.parts[:-1]), (0, p.name)))
