"""What `clew import` says and asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clew.cli.asking import agreed, can_ask
from clew.cli.progress import progress
from clew.cli.screen import Column, Piece, Screen
from clew.cli.settings import Settings, home_short
from clew.cli.text import fit, one_line, short_id
from clew.importers.bring import Imported
from clew.importers.places import Discovered, discover, watched
from clew.importers.report import ChatReport, SourceReport, Totals
from clew.importers.run import Options
from clew.importers.source import Source
from clew.store.findings import counted
from clew.store.store import Store

SHOWN = 20
"""Conversations, damaged places and the like that are named."""
KINDS = 8
"""Kinds of what was left out that are named."""


def discovered(settings: Settings, yes: bool, quiet: bool) -> tuple[str, ...]:
    """The usual places that there are, if the person wants what is in them."""
    can_ask(yes, "an import of all places")
    found = discover()
    if not quiet:
        list_places(settings.notes, watched().places, found)
    if not found or not agreed("Import them?", yes):
        return ()
    return tuple(str(place.path) for place in found)


def list_places(
    notes: Screen, places: Sequence[Discovered], files: Sequence[Discovered] = ()
) -> None:
    """Say which places there are, and how many `files` (or folders) are meant in each."""
    if not places:
        notes.line("None of the tools that clew knows has left conversations in its usual place.")
        return
    for place in places:
        inside = [each for each in files if place.path in (each.path, *each.path.parents)]
        if files and not inside:
            continue
        many = f"  {len(inside):,} found" if len(inside) > 1 else ""
        notes.line((place.label, "bold"), f"  {home_short(place.path)}", (many, "dim"))


def index(settings: Settings, store: Store) -> None:
    """Fill the search index. Interrupted, the next search goes on."""
    with progress(settings.notes, "Indexing for search") as report:
        store.search_index.catch_up(lambda done, left: report(done, done + left))


def describe(settings: Settings, done: Imported, options: Options) -> None:
    """The summary of a run."""
    screen = settings.screen
    chats = [(source, chat) for source in done.sources for chat in source.chats]
    changed = [(s, c) for s, c in chats if c.state in ("new", "grown")]
    told = [(s, c) for s, c in changed if not c.sub_agent]
    if len(told) > SHOWN:
        _by_format(screen, changed)
    elif told:
        _table(screen, told, options.dry_run)
    if done.sources:
        screen.line((screen.sign("✓", "ok"), "green"), f" {_sum(done.totals, options.dry_run)}.")
    else:
        screen.line("There is nothing here that clew can read.")
    _left_out(screen, done)
    if done.totals.deleted:
        screen.line(("  --again brings back what was deleted here.", "dim"))


def _sum(totals: Totals, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    own = totals.conversations - totals.sub_agents
    agents = f" and {counted(totals.sub_agents, 'sub-agent')}" if totals.sub_agents else ""
    pieces = [
        f"{counted(own, 'conversation')}{agents} {would}new",
        f"{totals.grown:,} grown" if totals.grown else "",
        f"{totals.unchanged:,} unchanged" if totals.unchanged else "",
        f"{totals.deleted:,} deleted here before" if totals.deleted else "",
        counted(totals.messages, "message"),
        counted(totals.branches, "branch", "branches") if totals.branches else "",
        counted(totals.cuts, "cut") if totals.cuts else "",
        counted(totals.compactions, "compaction") if totals.compactions else "",
    ]
    return ", ".join(piece for piece in pieces if piece)


def _table(screen: Screen, told: list[tuple[SourceReport, ChatReport]], dry_run: bool) -> None:
    """One by one. In a dry run those that are new have no ids yet."""
    columns = [
        Column("ID", "yellow"), Column("FROM", "dim"), Column("NEW", right=True),
        Column("TITLE", flexible=True),
    ]  # fmt: skip
    rows: list[list[Piece | str]] = []
    for source, chat in told:
        title = fit(one_line(chat.title or ""), max(20, screen.width - 36)) or "(no title)"
        id = "" if dry_run and chat.state == "new" else short_id(chat.conversation or "")
        rows.append([id, source.format or "", f"{chat.messages:,}", title])
    screen.table(columns, rows)


def _by_format(screen: Screen, changed: list[tuple[SourceReport, ChatReport]]) -> None:
    """Too many to name: how many there are of each format."""
    columns = [
        Column("FROM"), Column("NEW", right=True), Column("GROWN", right=True),
        Column("SUB-AGENTS", right=True), Column("MESSAGES", right=True),
    ]  # fmt: skip
    rows: list[list[Piece | str]] = []
    for format in sorted({source.format or "" for source, _ in changed}):
        chats = [chat for source, chat in changed if source.format == format]
        own = [chat for chat in chats if not chat.sub_agent]
        new = sum(chat.state == "new" for chat in own)
        counts = new, len(own) - new, len(chats) - len(own), sum(c.messages for c in chats)
        rows.append([format, *(f"{count:,}" for count in counts)])
    screen.table(columns, rows)


def _left_out(screen: Screen, done: Imported) -> None:
    """What did not come in, by kind and count, and what is wrong with it."""
    if done.totals.skipped:
        kinds = sorted(done.totals.skipped.items(), key=lambda item: (-item[1], item[0]))
        shown = ", ".join(f"{one_line(kind)} {many:,}" for kind, many in kinds[:KINDS])
        more = f", and {len(kinds) - KINDS} more kinds (--json)" if len(kinds) > KINDS else ""
        screen.line(("  Not imported: ", "dim"), f"{shown}{more}.")
    _damaged(screen, done)
    warnings = [warning for source in done.sources for warning in source.warnings]
    for warning in warnings[:SHOWN]:
        screen.line(("  ! ", "yellow"), one_line(warning))
    if len(warnings) > SHOWN:
        screen.line((f"  ! and {len(warnings) - SHOWN} more; --json names them", "yellow"))
    _unread(screen, done)


def _damaged(screen: Screen, done: Imported) -> None:
    damaged = done.totals.damaged
    if not damaged:
        return
    screen.line((f"  {counted(damaged, 'damaged place')}:", "yellow"))
    places = [(source, place) for source in done.sources for place in source.damaged]
    for source, place in places[:SHOWN]:
        where = f"{home_short(source.source)}, {place.where}"
        screen.line(f"    {one_line(where)}: {fit(one_line(place.reason), 80)}")
    if damaged > SHOWN:
        screen.line((f"    and {damaged - SHOWN} more; --json names them", "dim"))


def _unread(screen: Screen, done: Imported) -> None:
    """Sources and files that were not read to their end, or not at all."""
    failed = [(s.source, s.error) for s in done.sources if s.error is not None]
    for path, reason in [*failed, *done.failed][:SHOWN]:
        screen.line(("  x ", "red"), one_line(f"{home_short(path)}: {reason}"))
    for remedy in done.unread.values():
        screen.line(("  ! ", "yellow"), one_line(remedy))
    if done.unknown:
        screen.line((f"  {counted(done.unknown, 'file')} of no known format.", "dim"))
        for path in done.passed_over if done.unknown <= KINDS else ():
            screen.line((f"    {one_line(home_short(path))}", "dim"))


class Meter:
    """Bytes read of all sources together."""

    def __init__(self, sources: list[Source], report: Callable[[int, int], None]) -> None:
        self._of = sum(source.size for source in sources) or 1
        self._report = report
        self._before = 0
        self._at: tuple[Source | None, int] = (None, 0)

    def __call__(self, source: Source, done: int) -> None:
        last, reached = self._at
        if last is not source:
            self._before += last.size if last is not None else 0
            reached = 0
        self._at = (source, max(done, reached))
        self._report(self._before + self._at[1], self._of)
