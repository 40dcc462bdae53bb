"""clew erase."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import click

from clew.cli import jsonout
from clew.cli.asking import agreed
from clew.cli.failures import OK, PROBLEMS
from clew.cli.heading import title_of
from clew.cli.messages import message_of
from clew.cli.opening import open_profile
from clew.cli.params import json_option, yes_option
from clew.cli.progress import progress
from clew.cli.screen import Screen
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_id
from clew.domain.erasure import Erased, ErasurePlan, Target
from clew.errors import NotFound
from clew.store.findings import counted
from clew.store.profile import Profile

_WHY = {
    "asked": "", "author": "by its author", "key": "by the key bound to it",
    "branch": "goes on from one of these", "sub-agent": "a sub-agent of one of these",
}  # fmt: skip
SHOWN = 12
"""Seqs of one conversation that are written out."""


@click.command("erase")
@click.argument("id", required=False)
@click.argument("messages", metavar="[SEQ|UID]...", nargs=-1)
@click.option("--whole", is_flag=True, help="All of the conversation.")
@click.option(
    "--person", metavar="KEY",
    help="Everything of a person: the author of messages, or a peer's id in a channel's key.",
)  # fmt: skip
@click.option("--keep-sub-agents", is_flag=True, help="Leave the conversations of sub-agents.")
@yes_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, id: str | None, messages: Sequence[str], whole: bool, person: str | None,
    keep_sub_agents: bool, yes: bool, as_json: bool,
) -> int:  # fmt: skip
    """Erase messages, or everything of a person, and prove it.

    Shows exactly what would go and asks; without a terminal it only shows, unless --yes is given.
    What was said is gone from rows, files and the search index then, for good. Exit code 1: some
    of it was found afterwards; where is said.
    """
    _check(id, messages, whole, person)
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        plan = _plan(profile, id, messages, person, not keep_sub_agents)
        if not yes:
            _show(settings, profile, plan, as_json)
        if plan.is_empty or not (yes or (sys.stdin.isatty() and not as_json)):
            return OK
        if not agreed(f"Erase {_what(plan)} for good?", yes):
            return PROBLEMS
        with progress(settings.notes, "Erasing") as report:
            erased = profile.erase(plan, report)
    if as_json:
        jsonout.write(settings.screen.stream, erased)
    else:
        _tell(settings.screen, erased)
    return OK if erased.is_proven else PROBLEMS


def _check(id: str | None, messages: Sequence[str], whole: bool, person: str | None) -> None:
    if person is not None:
        if id or whole:
            raise click.UsageError("--person stands alone: it finds the conversations by itself")
    elif id is None:
        raise click.UsageError("name a conversation and messages of it, or give --person KEY")
    elif whole == bool(messages):
        raise click.UsageError("name messages (seq or uid), or give --whole for all of it")


def _plan(
    profile: Profile, id: str | None, messages: Sequence[str], person: str | None, sub_agents: bool
) -> ErasurePlan:
    if id is None:
        return profile.plan_erasure(person=person, sub_agents=sub_agents)
    conversation = profile.resolve(id)
    if not messages:
        return profile.plan_erasure(conversations=[conversation.id], sub_agents=sub_agents)
    seqs = [message_of(conversation, message).seq for message in messages]
    return profile.plan_erasure(messages={conversation.id: seqs})


def _what(plan: ErasurePlan) -> str:
    parts = [counted(plan.messages, "message")]
    wholes = sum(target.whole for target in plan.targets)
    if wholes:
        parts.append(f"all else of {counted(wholes, 'conversation')}")
    if plan.keys:
        parts.append(counted(len(plan.keys), "key"))
    return ", ".join(parts)


def _show(settings: Settings, profile: Profile, plan: ErasurePlan, as_json: bool) -> None:
    if as_json:
        jsonout.write(settings.screen.stream, plan)
        return
    if plan.is_empty:
        settings.screen.line("There is nothing to erase.")
    for target in plan.targets:
        settings.screen.line(
            "  ", (short_id(target.conversation), "yellow"), *_facts(profile, target)
        )
    for table, source, _ in plan.keys:
        settings.screen.line("  ", (f"a key of {source} ({table})", "dim"))
    for text in plan.left:
        settings.screen.line(("  stays: ", "yellow"), text)
    if not plan.is_empty and not sys.stdin.isatty():
        settings.screen.line(f"This would erase {_what(plan)}. Nothing was erased: give --yes.")


def _facts(profile: Profile, target: Target) -> Iterator[tuple[str, str]]:
    try:
        yield f"  {one_line(title_of(profile.open(target.conversation).info()))}", ""
    except NotFound:
        yield "  (deleted)", "dim"  # in the bin
    if target.whole:
        yield f"  all of it, {counted(len(target.seqs), 'message')}", "dim"
    else:
        seqs = ", ".join(f"#{seq}" for seq in target.seqs[:SHOWN])
        more = f" and {len(target.seqs) - SHOWN:,} more" if len(target.seqs) > SHOWN else ""
        yield f"  {seqs}{more}", "dim"
    if _WHY[target.why]:
        yield f"  ({_WHY[target.why]})", "dim"


def _tell(screen: Screen, erased: Erased) -> None:
    also = [
        counted(many, what)
        for many, what in (
            (erased.compactions, "compaction"), (erased.blobs, "file"), (erased.keys, "key"),
        )
        if many
    ]  # fmt: skip
    rest = f", with {', '.join(also)}" if also else ""
    screen.line(
        f"Erased {counted(erased.messages, 'message')} in "
        f"{counted(erased.conversations, 'conversation')}{rest}."
    )
    if erased.dictionary:
        screen.line("The compression dictionary held some of it and was made anew.")
    proof = erased.proof
    looked = (
        f"{counted(proof.values, 'value')} and {counted(proof.bytes, 'byte')} of files were looked "
        f"through for {counted(proof.fragments, 'fragment')}"
    )
    if proof.is_clean and not proof.fragments:
        screen.line(("There was nothing to look for afterwards.", "yellow"))
    elif proof.is_clean:
        screen.line((f"{looked}; none was found.", "green"))
    else:
        screen.line((f"{looked}. Found again:", "red"))
        for trace in proof.traces:
            screen.line(f"  {trace.kind}: {trace.place}")
        screen.line("A row that is named quotes it: erase that message, too (clew show).")
    if proof.missed:
        screen.line(
            f"{counted(proof.missed, 'text')} too short to be looked for: they are gone from their "
            "rows, and the file was written anew."
        )
    for text in erased.left:
        screen.line(("  ", ""), (text, "dim"))
