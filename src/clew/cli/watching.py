"""clew import --watch: what is there, then what comes in, as it comes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType

from clew.cli import importing, jsonout
from clew.cli.asking import agreed, can_ask
from clew.cli.failures import INTERRUPTED, OK
from clew.cli.progress import progress
from clew.cli.settings import Settings, home_short
from clew.cli.text import one_line, short_id
from clew.clock import SystemClock
from clew.importers.bring import Imported
from clew.importers.places import watched
from clew.importers.report import ChatReport, SourceReport, Totals
from clew.importers.run import Options
from clew.importers.source import Source
from clew.importers.watch import Watch
from clew.store.findings import counted
from clew.store.store import Store

Wanted = Callable[[Path], bool]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def discovered(settings: Settings, yes: bool, quiet: bool) -> tuple[tuple[str, ...], Wanted]:
    """The usual places that there are, if the person wants what is in them and comes into them."""
    can_ask(yes, "an import of all places")
    found = watched()
    if not quiet:
        importing.list_places(settings.notes, found.places)
    if not found.places or not agreed("Import and watch them?", yes):
        return (), found.wanted
    return tuple(str(place.path) for place in found.places), found.wanted


def follow(
    settings: Settings, store: Store, paths: Sequence[str], options: Options,
    *, wanted: Wanted | None, as_json: bool, index: bool,
) -> int:  # fmt: skip
    """Import and watch until a signal. Gives the exit code: Ctrl-C counts as interrupted, as
    everywhere; SIGTERM is how a service is told that it is done."""
    came = _Came(settings, as_json)
    meter = _FirstMeter(settings)
    watch = Watch(
        store.profile(settings.profile), paths, options, wanted=wanted, meter=meter,
        rest=store.search_index.catch_up if index else None,
    )  # fmt: skip
    with _ended_by_signals(watch) as received:
        for number, done in enumerate(watch.run()):
            meter.close()
            if number:
                came.more(done)
                continue
            came.first(done, options)
            if watch.reason is not None:
                settings.notes.line(("! ", "yellow"), one_line(_SLOW.format(watch.reason)))
            if not as_json:
                settings.notes.line((f"Watching {', '.join(map(home_short, paths))}", "dim"))
    meter.close()
    came.end()
    return INTERRUPTED if signal.SIGINT in received else OK


_SLOW = (
    "the system does not tell of changes ({}); everything is looked at once a second. On Linux, "
    "raise fs.inotify.max_user_watches"
)


@contextmanager
def _ended_by_signals(watch: Watch) -> Generator[list[int], None, None]:
    """The first signal ends the watch when what is being written is written; a second one at
    once. Gives the signals that came."""
    received: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        watch.stop()

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _FirstMeter:
    """A progress bar for the first pass."""

    def __init__(self, settings: Settings) -> None:
        self._bar = progress(settings.notes, "Importing")
        self._is_open = False
        self._is_over = False

    def __call__(self, sources: list[Source]) -> Callable[[Source, int], None]:
        if self._is_over or self._is_open:
            return lambda source, done: None
        self._is_open = True
        return importing.Meter(sources, self._bar.__enter__())

    def close(self) -> None:
        if self._is_open and not self._is_over:
            self._bar.__exit__(None, None, None)
        self._is_over = True


class _Came:
    """Says what came in: one line for each conversation, or one JSON object for each file."""

    def __init__(self, settings: Settings, as_json: bool) -> None:
        self._screen, self._settings, self._as_json = settings.screen, settings, as_json
        self._totals = Totals()

    def first(self, done: Imported, options: Options) -> None:
        """What was there."""
        if self._as_json:
            self.more(done)
        else:
            importing.describe(self._settings, done, options)
            self._screen.stream.flush()

    def more(self, done: Imported) -> None:
        """What came."""
        self._add(done.totals)
        for report in done.sources:
            if self._as_json:
                jsonout.write(self._screen.stream, report)
            else:
                self._tell(report)
        for path, reason in done.failed:
            if self._as_json:
                jsonout.write(self._screen.stream, SourceReport(source=path, error=reason))
            else:
                self._wrong(path, reason)
        self._screen.stream.flush()

    def end(self) -> None:
        """The sum, of what came while it was watched (as JSON: of everything)."""
        totals = self._totals
        if self._as_json:
            jsonout.write(self._screen.stream, {"totals": totals})
            return
        self._screen.line(
            (self._screen.sign("✓", "ok"), "green"),
            f" While watching: {counted(totals.conversations, 'conversation')} new, "
            f"{totals.grown} grown, {counted(totals.messages, 'message')}.",
        )

    def _add(self, more: Totals) -> None:
        for name in ("conversations", "grown", "messages", "branches", "cuts", "compactions",
                     "damaged", "deleted", "sources", "failed", "unchanged"):  # fmt: skip
            setattr(self._totals, name, getattr(self._totals, name) + getattr(more, name))

    def _tell(self, report: SourceReport) -> None:
        for chat in report.chats:
            if chat.messages or chat.branches or chat.cuts or chat.compactions:
                self._grew(report, chat)
        for place in report.damaged:
            self._wrong(report.source, f"{place.where}: {place.reason}")
        for warning in report.warnings:
            self._wrong(report.source, warning)
        if report.error is not None:
            self._wrong(report.source, report.error)

    def _grew(self, report: SourceReport, chat: ChatReport) -> None:
        title = one_line(chat.title or "") or "(no title)"
        at = datetime.fromtimestamp(SystemClock().now() / 1e6)
        self._screen.line(
            (f"{at:%H:%M:%S}", "dim"), f"  {report.format or ''}  ",
            (short_id(chat.conversation or ""), "yellow"), f"  +{chat.messages}  {title}",
        )  # fmt: skip

    def _wrong(self, path: str, reason: str) -> None:
        self._screen.line(("  ! ", "yellow"), one_line(f"{home_short(path)}: {reason}"))
