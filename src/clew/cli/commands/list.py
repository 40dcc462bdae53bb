"""clew list. Reads through the narrowest part of the store: it is called the most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click

from clew.cli import jsonout
from clew.cli.params import cursor_option, filter_options, json_option, limit_option
from clew.cli.registry import EMPTY, load
from clew.cli.screen import Cell, Column, Piece
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_ids
from clew.cli.times import ago, stamp
from clew.clock import SystemClock
from clew.domain.conversations import ConversationSummary, ListFilter, Page
from clew.store.backend import Backend
from clew.store.engines import NoStore, open_backend
from clew.store.listing import list_page

PAGE = 1000


@click.command("list")
@filter_options
@click.option("--title", metavar="TEXT", help="Only with this in the title.")
@click.option("--pinned", is_flag=True, help="Only pinned ones.")
@click.option("--archived", is_flag=True, help="The archived ones instead.")
@click.option("--all-profiles", is_flag=True, help="Those of every profile.")
@click.option(
    "--pinned-first/--no-pinned-first", default=True, help="Whether pinned ones come first. [yes]"
)
@limit_option(30)
@cursor_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, all_profiles: bool, pinned_first: bool, limit: int, cursor: str | None,
    as_json: bool, **filters: Any,
) -> None:  # fmt: skip
    """List conversations, newest activity first.

    On a terminal a table; in a pipe one line for each, its fields (id, title, time, messages,
    source, profile) between tabs.
    """
    settings = settings_of(ctx)
    page = Page[ConversationSummary](())
    try:
        want = _filter(filters)
        with closing(open_backend(settings.place, create=False)) as backend:
            profile = None if all_profiles else settings.profile
            page = _read(backend, profile, want, limit, cursor, pinned_first)
            if not page.items and not as_json and cursor is None:
                _say_why(settings, backend, want, all_profiles)
    except NoStore:
        if not as_json:
            load(EMPTY).no_store(settings)
    if as_json:
        jsonout.write_list(settings.screen.stream, page.items)
    elif settings.screen.is_terminal:
        _table(settings, page.items, all_profiles)
    else:
        _lines(settings, page.items)
    _say_more(settings, page.next, as_json)


def _filter(given: dict[str, Any]) -> ListFilter:
    return ListFilter(
        source=given["source"], project=given["project"], git_branch=given["branch"],
        model=given["model"], title=given["title"], since=given["since"], until=given["until"],
        pinned=True if given["pinned"] else None, archived=given["archived"],
    )  # fmt: skip


def _read(
    backend: Backend, profile: str | None, want: ListFilter, limit: int,
    cursor: str | None, pinned_first: bool,
) -> Page[ConversationSummary]:  # fmt: skip
    """A page of any size, read in bounded ones."""
    found: list[ConversationSummary] = []
    first = pinned_first and profile is not None
    while True:
        size, at = min(PAGE, limit - len(found)), cursor
        page = backend.read(lambda tx, n=size, at=at: list_page(tx, profile, want, n, at, first))
        found.extend(page.items)
        cursor = page.next
        if cursor is None or len(found) >= limit:
            return Page(tuple(found), cursor)


def _say_why(settings: Settings, backend: Backend, want: ListFilter, all_profiles: bool) -> None:
    profiles = backend.read(lambda tx: tx.rows("conversation_profiles"))
    counts = {row[0]: row[1] for row in profiles}
    here = sum(counts.values()) if all_profiles else counts.get(settings.profile, 0)
    if not here:
        load(EMPTY).no_conversations(settings, tuple(counts.items()))
    elif want != ListFilter():
        load(EMPTY).nothing_passes(settings)
    else:
        profile, archived = None if all_profiles else settings.profile, ListFilter(archived=True)
        found = backend.read(lambda tx: list_page(tx, profile, archived, 1, None))
        load(EMPTY).only_others(settings, here, bool(found.items))


def _table(settings: Settings, items: Sequence[ConversationSummary], all_profiles: bool) -> None:
    if not items:
        return
    screen, now = settings.screen, SystemClock().now()
    short = short_ids(info.id for info in items)
    star = screen.sign("★ ", "* ")
    columns = [
        Column("ID", "yellow"), Column("TITLE", flexible=True), Column("ACTIVITY", "dim"),
        Column("MESSAGES", right=True, spare=True), Column("SOURCE", "dim", spare=True),
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for info in items:
        rows.append([
            short[info.id], _title(info, star), ago(info.active_at, now),
            f"{info.message_count:,}", one_line(info.source),
        ])  # fmt: skip
        if all_profiles:
            rows[-1].append(one_line(info.profile))
    if all_profiles:
        columns.append(Column("PROFILE", "dim"))
    screen.table(columns, rows)


def _title(info: ConversationSummary, star: str) -> list[Piece]:
    """The title; a branch, which mostly has that of its origin, is marked."""
    title = one_line(info.title or info.preview or "")
    mark: list[Piece] = [("branch ", "dim")] if info.kind == "branch" else []
    if not title:
        return [*mark, ("(untitled)", "dim")]
    return [*mark, (star + title, "bold") if info.pinned else (title, "")]


def _lines(settings: Settings, items: Sequence[ConversationSummary]) -> None:
    for info in items:
        fields = (
            info.id, info.title or "", stamp(info.active_at), str(info.message_count),
            info.source, info.profile,
        )  # fmt: skip
        settings.screen.stream.write("\t".join(map(one_line, fields)) + "\n")


def _say_more(settings: Settings, cursor: str | None, as_json: bool) -> None:
    if cursor is None:
        return
    if as_json:
        jsonout.write(settings.notes.stream, {"next": cursor})
    else:
        settings.notes.line((f"More: the same command with --cursor {cursor}", "dim"))
