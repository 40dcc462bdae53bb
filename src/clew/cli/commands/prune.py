"""clew prune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from clew.cli import jsonout
from clew.cli.empty import no_store
from clew.cli.opening import open_existing
from clew.cli.params import Age, json_option
from clew.cli.progress import progress
from clew.cli.screen import Column, Piece
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_ids
from clew.cli.times import ago
from clew.clock import SystemClock
from clew.config.loading import load
from clew.config.values import RetentionConfig
from clew.domain.policy import policy_of
from clew.domain.retention import Item, Policy, Pruned, Rule
from clew.errors import NotFound
from clew.store.engines import NoStore
from clew.store.findings import counted, size_text
from clew.store.profile import Profile

SHOWN = 50
_WHAT = {"closed": "close", "binned": "bin", "deleted": "delete"}


@click.command("prune")
@click.option(
    "--older-than",
    metavar="AGE",
    type=Age(),
    help="Instead of the policy: what ended and is without activity for this long, such as 12w.",
)
@click.option("--yes", "-y", is_flag=True, help="Do it. Without this, only say what would go.")
@json_option
@click.pass_context
def command(ctx: click.Context, older_than: int | None, yes: bool, as_json: bool) -> None:
    """Close and delete what the retention policy names.

    Only says what would go unless --yes is given. Without a policy of yours only what machines made
    goes. What is pinned, archived, running or waiting stays. What goes is in the bin first.
    """
    settings = settings_of(ctx)
    policy = _policy(load().config.retention, older_than)
    try:
        with open_existing(settings) as store:
            profile = store.profile(settings.profile)
            with progress(settings.notes, "Deleting") as report:
                pruned = store.prune(policy, dry_run=not yes, profile=profile.name, progress=report)
            if as_json:
                _write(settings, pruned)
            else:
                _say(settings, profile, policy, pruned)
    except NoStore:
        if as_json:
            _write(settings, Pruned(dry_run=not yes))
        else:
            no_store(settings)


def _policy(config: RetentionConfig, older_than: int | None) -> Policy:
    """That of the configuration, or one for once: of what ended, and was not imported."""
    policy = policy_of(config)
    if older_than is None:
        return policy
    rules = (Rule(who="imports", age=None), Rule(age=older_than, ended=True))
    return Policy(rules=rules, bin=policy.bin)


def _write(settings: Settings, pruned: Pruned) -> None:
    counts = ("closed", "binned", "deleted", "bytes")
    said = {name: getattr(pruned, name) for name in counts}
    said |= {"returned": pruned.returned, "dry_run": pruned.dry_run, "items": pruned.items}
    jsonout.write(settings.screen.stream, said)


def _say(settings: Settings, profile: Profile, policy: Policy, pruned: Pruned) -> None:
    screen = settings.screen
    if not pruned.items:
        screen.line("There is nothing to prune.")
        screen.line((f"The policy: {policy}", "dim"))
        return
    if not pruned.dry_run:
        returned = f" The files are smaller by {size_text(pruned.returned)}."
        screen.line(f"{_counted(pruned)}.{returned if pruned.returned else ''}")
        return
    _table(settings, pruned.items, _titles(profile, pruned.items[:SHOWN]))
    screen.line()
    screen.line(f"{_counted(pruned)}. Nothing was done: give --yes to do it.")
    screen.line((f"The policy: {policy}", "dim"))


def _counted(pruned: Pruned) -> str:
    """3 conversations to close, 1 to bin."""
    parts: list[str] = []
    for did, verb in _WHAT.items():
        count = sum(item.did == did for item in pruned.items)
        if count:
            what = f"to {verb}" if pruned.dry_run else did
            size = f" ({size_text(pruned.bytes)})" if did == "deleted" else ""
            parts.append(f"{counted(count, 'conversation')} {what}{size}")
    return ", ".join(parts)


def _titles(profile: Profile, items: Sequence[Item]) -> Mapping[str, str]:
    titles = {one.id: one.title for one in profile.binned()}
    for item in items:
        if item.id not in titles:
            try:
                titles[item.id] = profile.open(item.id).info().title
            except NotFound:
                titles[item.id] = None  # gone meanwhile, or far down in the bin
    return {id: one_line(title or "untitled") for id, title in titles.items()}


def _table(settings: Settings, items: Sequence[Item], titles: Mapping[str, str]) -> None:
    now, short = SystemClock().now(), short_ids(item.id for item in items)
    rows: list[list[Piece | str]] = [
        [_WHAT[item.did], short[item.id], titles[item.id], ago(item.since, now),
         f"{item.messages:,}", one_line(item.why)]
        for item in items[:SHOWN]
    ]  # fmt: skip
    columns = [
        Column("DO"), Column("ID", "yellow"), Column("TITLE", flexible=True),
        Column("SINCE", "dim"), Column("MESSAGES", right=True), Column("WHY", "dim"),
    ]  # fmt: skip
    settings.screen.table(columns, rows)
    if len(items) > SHOWN:
        settings.screen.line((f"and {len(items) - SHOWN:,} more", "dim"))
