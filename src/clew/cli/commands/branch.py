"""clew branch."""

from __future__ import annotations

import click

from clew.cli import jsonout
from clew.cli.heading import title_of
from clew.cli.messages import message_of
from clew.cli.opening import open_profile
from clew.cli.params import id_argument, json_option
from clew.cli.settings import settings_of
from clew.cli.text import short_id
from clew.domain.conversations import NewConversation


@click.command("branch")
@id_argument
@click.option("--at", metavar="SEQ|UID", help="Go on after this message. [the newest]")
@click.option(
    "--at-cut", metavar="N", type=click.IntRange(min=1), help="Go on with what this cut hides."
)
@click.option("--title", metavar="TEXT", help="The title of the branch.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, id: str, at: str | None, at_cut: int | None, title: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Go on from an earlier message in a new conversation.

    The branch shows everything up to there and keeps its numbers; the other one stays as it is.
    """
    if at is not None and at_cut is not None:
        ctx.fail("--at and --at-cut exclude each other; give one of them")
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        origin = profile.resolve(id)
        uid = None if at is None else message_of(origin, at).uid
        new = NewConversation(source=origin.info().source, title=title)
        branch = origin.branch(uid, at_cut=at_cut, new=new)
        info = branch.info()
    if as_json:
        jsonout.write(settings.screen.stream, info)
        return
    settings.screen.line(
        "Branched ", (short_id(origin.id), "yellow"), f" at #{info.base}: ",
        (short_id(info.id), "yellow"), f"  {title_of(info)}",
    )  # fmt: skip
