"""Importing paths into a profile: what `clew import` and `Profile`'s users call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from clew.errors import ClewError
from clew.importers import clew_jsonl
from clew.importers.report import SourceReport, Totals, totals
from clew.importers.run import Importer, Options, Progress
from clew.importers.source import Source
from clew.importers.unread import REMEDIES
from clew.importers.walk import Found, Walk, check_path
from clew.store.profile import Profile


class Imported(Struct, frozen=True, kw_only=True):
    """What one run did."""

    totals: Totals
    sources: tuple[SourceReport, ...]
    unknown: int
    """Files that are of no known format."""
    passed_over: tuple[str, ...] = ()
    """The first of them."""
    unread: dict[str, str]
    """Formats that are known and not read yet, and what can be said of them."""
    failed: tuple[tuple[str, str], ...]
    """Files that could not be opened, and why."""


def find(paths: Iterable[str | Path]) -> tuple[list[Found], Walk]:
    """All sources at these paths, absolute. InputError when a path is not there."""
    walk = Walk()
    found: list[Found] = []
    for given in paths:
        path = Path(given).expanduser().absolute()
        check_path(path)
        found.extend(walk.below(path))
    found.sort(key=lambda each: _written(each[0].path))
    return found, walk


def _written(path: Path) -> int:
    """When a file was last written, nanoseconds: what came first is imported first, so that newest
    first is that of the tools too. What stands in a folder named like a file beside it (sub-agents
    of a session) comes right behind that file."""
    try:
        for folder in path.parents[:2]:
            owner = folder.with_name(f"{folder.name}.jsonl") if folder.name else folder
            if owner.is_file():
                return owner.stat().st_mtime_ns
        return path.stat().st_mtime_ns
    except OSError:  # it went meanwhile; reading it says so
        return 0


def bring(
    profile: Profile, sources: Sequence[Found], walk: Walk, options: Options | None = None,
    progress: Progress | None = None,
) -> Imported:  # fmt: skip
    """Import sources that `find` found, in their order."""
    options = options or Options()
    importer = Importer(profile.importing(), options, progress)
    reports = [
        bring_ours(profile, source, options) if format is None else importer.add(source, format)
        for source, format in sources
    ]
    importer.land()
    return summed(reports, walk)


def summed(reports: Sequence[SourceReport], walk: Walk) -> Imported:
    """What became of some sources, and of what was passed over on the way to them."""
    return Imported(
        totals=totals(list(reports)), sources=tuple(reports), unknown=walk.unknown,
        passed_over=tuple(walk.passed_over), failed=tuple(walk.failed),
        unread={name: REMEDIES[name] for name in walk.named},
    )  # fmt: skip


def bring_ours(profile: Profile, source: Source, options: Options) -> SourceReport:
    """Import a file that clew has exported."""
    report = SourceReport(source=source.id, format="clew")
    try:
        with source.opened() as stream:
            brought = clew_jsonl.bring(profile, stream, dry_run=options.dry_run)
    except (ClewError, OSError) as error:
        report.error = str(error)
        return report
    report.new, report.grown, report.unchanged = brought.new, brought.grown, brought.unchanged
    report.messages = brought.messages
    for line, reason in brought.damaged:
        report.damage(f"line {line}", reason)
    report.damaged_count = brought.damaged_count
    for id, why in brought.refused:
        report.warn(f"conversation {id} was not imported: {why}")
    for id, note in brought.notes:
        report.warn(f"conversation {id}: {note}")
    if brought.waiting:
        report.skip("message waiting in an inbox", brought.waiting)
    return report


def import_paths(
    profile: Profile, *paths: str | Path, archive: bool = False, again: bool = False,
    dry_run: bool = False, progress: Progress | None = None,
) -> Imported:  # fmt: skip
    """Import other tools' transcripts: files, folders, ZIP archives; the format is told by content.

    Importing again adds nothing, importing what has grown adds what is new. `archive`: the
    conversations come in archived. `again`: what was deleted here comes back. `dry_run`: nothing is
    written. Raises InputError for a path that is not there; what cannot be read inside a source is
    in the report.
    """
    found, walk = find(paths)
    options = Options(archive=archive, again=again, dry_run=dry_run)
    return bring(profile, found, walk, options, progress)
