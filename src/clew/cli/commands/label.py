"""clew rename, pin, unpin, archive, unarchive: what a person writes on a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from clew.cli.heading import title_of
from clew.cli.opening import open_profile
from clew.cli.params import id_argument, ids_argument
from clew.cli.settings import Settings, settings_of
from clew.cli.text import short_id
from clew.errors import Refused
from clew.store.conversation import Conversation


@click.command("rename")
@id_argument
@click.argument("title", metavar="TITLE")
@click.pass_context
def rename(ctx: click.Context, id: str, title: str) -> None:
    """Give a conversation a title.

    No model or program can change a title that you gave. An empty TITLE takes yours off again.
    """
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        if not conversation.set_title(title.strip() or None):
            raise Refused("its title is locked; unlock it with conversation.lock_title(.., False)")
        _say(settings, "Renamed", conversation)


def _for_each(
    ids: Sequence[str], settings: Settings, done: str, act: Callable[[Conversation], None]
) -> None:
    """All ids are looked up before anything is done."""
    with open_profile(settings) as profile:
        for conversation in [profile.resolve(id) for id in ids]:
            act(conversation)
            _say(settings, done, conversation)


def _say(settings: Settings, done: str, conversation: Conversation) -> None:
    settings.screen.line(
        f"{done} ", (short_id(conversation.id), "yellow"), f"  {title_of(conversation.info())}"
    )


@click.command("pin")
@ids_argument
@click.pass_context
def pin(ctx: click.Context, ids: Sequence[str]) -> None:
    """Keep conversations on top of the list.

    Pinned ones are never pruned.
    """
    _for_each(ids, settings_of(ctx), "Pinned", Conversation.pin)


@click.command("unpin")
@ids_argument
@click.pass_context
def unpin(ctx: click.Context, ids: Sequence[str]) -> None:
    """Take a pin off again."""
    _for_each(ids, settings_of(ctx), "Unpinned", lambda conversation: conversation.pin(False))


@click.command("archive")
@ids_argument
@click.pass_context
def archive(ctx: click.Context, ids: Sequence[str]) -> None:
    """Take conversations out of the list.

    Everything else works as before; `clew list --archived` shows them.
    """
    _for_each(ids, settings_of(ctx), "Archived", Conversation.archive)


@click.command("unarchive")
@ids_argument
@click.pass_context
def unarchive(ctx: click.Context, ids: Sequence[str]) -> None:
    """Put archived conversations back."""
    _for_each(ids, settings_of(ctx), "Back in the list:", lambda c: c.archive(False))
