"""clew search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from msgspec.structs import replace

from clew.cli import jsonout
from clew.cli.failures import OK, PROBLEMS
from clew.cli.hits import snippet
from clew.cli.lines import BLANK, line, writer
from clew.cli.opening import open_existing
from clew.cli.params import (
    ConversationId,
    cursor_option,
    filter_options,
    json_option,
    limit_option,
)
from clew.cli.registry import EMPTY, PROGRESS, load
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_ids
from clew.cli.times import ago, stamp
from clew.clock import SystemClock
from clew.domain.messages import Role
from clew.domain.search import MAX_LIMIT, Hit, SearchPage, SearchQuery
from clew.errors import StoreError
from clew.store.engines import NoStore
from clew.store.findings import counted
from clew.store.profile import Profile
from clew.store.store import Store

FAR = 5_000
"""Messages behind from which on the search index is brought up to date first."""


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORDS...")
@filter_options
@click.option(
    "--role", type=click.Choice([str(role) for role in Role]), help="Only messages of this role."
)
@click.option("--tool", metavar="NAME", help="Only messages that call, or answer for, this tool.")
@click.option(
    "--in", "conversation", metavar="ID", type=ConversationId(), help="Only in this conversation."
)
@click.option(
    "--order",
    type=click.Choice(["newest", "relevance"]),
    default="newest",
    help="What came into the store last first (an import brings older files before newer ones), "
    "or the best of the last 2,000 hits. [newest]",
)
@click.option("--hidden", is_flag=True, help="Also messages that a cut hides.")
@click.option("--archived", is_flag=True, help="Also in archived conversations.")
@limit_option(20)
@cursor_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, words: Sequence[str], as_json: bool, limit: int, **given: Any
) -> int:
    """Find messages by their words.

    All words must be there, in any case. Several forms: "a phrase" in quotes, begin*, -without,
    this OR that. Names in code are found by their parts, Chinese, Japanese and Korean down to one
    character. Options that begin words, such as -without, stand after `--`. Exits with 1 when
    nothing is found.
    """
    settings = settings_of(ctx)
    try:
        with open_existing(settings) as store:
            profile = store.profile(settings.profile)
            if given["conversation"] is not None:
                given["conversation"] = profile.resolve(given["conversation"]).id
            _catch_up(settings, store)
            query = _query(" ".join(words), given)
            page = _search(profile, query, limit)
            archived = not page.hits and not as_json and _is_archived(profile, query)
    except NoStore:
        if as_json:
            jsonout.write_list(settings.screen.stream, ())
        else:
            load(EMPTY).no_store(settings)
        return OK
    if as_json:
        jsonout.write_list(settings.screen.stream, page.hits)
    else:
        _print_hits(settings, page.hits, archived)
    _say_more(settings, page, as_json)
    return OK if page.hits else PROBLEMS


def _query(text: str, given: dict[str, Any]) -> SearchQuery:
    role = given.pop("role")
    branch = given.pop("branch")
    return SearchQuery(
        text=text, role=None if role is None else Role(role), git_branch=branch, **given
    )


def _catch_up(settings: Settings, store: Store) -> None:
    """Index what is new, when it is more than a query should look through."""
    try:
        behind = store.search_index.status().behind
        if behind <= FAR:
            return
        with load(PROGRESS).progress(settings.notes, "Indexing") as report:
            store.search_index.catch_up(lambda done, left: report(done, done + left))
    except StoreError as error:  # a standby, say: the query reads the log instead
        settings.notes.line((f"The search index cannot be brought up to date: {error}", "yellow"))


def _search(profile: Profile, query: SearchQuery, limit: int) -> SearchPage:
    """A page of any size, in bounded ones; one that found nothing yet is followed by the next."""
    hits: list[Hit] = []
    scanned, cursor = 0, query.cursor
    while True:
        size = min(MAX_LIMIT, limit - len(hits))
        page = profile.search(replace(query, limit=size, cursor=cursor))
        hits.extend(page.hits)
        scanned, cursor = scanned + page.scanned, page.next
        if cursor is None or len(hits) >= limit:
            return SearchPage(hits=tuple(hits), next=cursor, behind=page.behind, scanned=scanned)


def _is_archived(profile: Profile, query: SearchQuery) -> bool:
    """Whether what was not found is in archived conversations."""
    if query.archived or query.cursor is not None:
        return False
    return bool(_search(profile, replace(query, archived=True), 1).hits)


def _print_hits(settings: Settings, hits: Sequence[Hit], archived: bool) -> None:
    screen, now = settings.screen, SystemClock().now()
    if not hits:
        settings.notes.line("Nothing was found.")
        if archived:
            settings.notes.line(
                "Archived conversations have it: the same search with ", ("--archived", "cyan")
            )
        return
    if not screen.is_terminal:
        for hit in hits:
            fields = (
                hit.conversation, str(hit.seq), str(hit.role), stamp(hit.created_at),
                hit.title or "", hit.plain,
            )  # fmt: skip
            screen.stream.write("\t".join(map(one_line, fields)) + "\n")
        return
    short = short_ids(hit.conversation for hit in hits)
    out = writer(screen)
    for hit in hits:
        head = line(
            0, (short[hit.conversation], "yellow"), (f" #{hit.seq}", "yellow"), f"  {hit.role}  ",
            (f"{ago(hit.created_at, now)}  ", "dim"), (one_line(hit.title or ""), "bold"), hang=4,
        )  # fmt: skip
        out.write((head, line(4, *snippet(hit)), BLANK))
    show = f"{settings.command('show')} {short[hits[0].conversation]} --around {hits[0].seq}"
    out.write([line(0, (f"To read on at one: {show}", "dim"))])


def _say_more(settings: Settings, page: SearchPage, as_json: bool) -> None:
    if as_json:
        if page.next is not None or page.behind:
            jsonout.write(settings.notes.stream, {"next": page.next, "behind": page.behind})
        return
    if page.behind:
        many = counted(page.behind, "message")
        settings.notes.line((f"{many} could not be looked at: search again in a moment", "yellow"))
    if page.next is not None:
        settings.notes.line((f"More: the same command with --cursor {page.next}", "dim"))
