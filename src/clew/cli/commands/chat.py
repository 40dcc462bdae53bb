"""clew chat."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from clew import startup
from clew.cli.failures import OK
from clew.cli.model_names import ModelName
from clew.cli.params import ConversationId
from clew.cli.registry import load
from clew.cli.settings import Settings, settings_of

HOSTING = "clew.cli.chat.hosting.start"
"""Opens the store and makes the host (`clew.cli.chat.starting.Start`)."""
BEGINNING, CONFIG, PULSE, RUNNING, STARTING, PLAIN = (
    "clew.cli.starting", "clew.config.loading", "clew.cli.pulse", "clew.cli.chat.running",
    "clew.cli.chat.starting", "clew.cli.chat.plain",
)  # fmt: skip


@click.command("chat")
@click.option(
    "--resume", "-r", metavar="ID", type=ConversationId(), help="Go on in this conversation."
)
@click.option(
    "--continue", "-c", "last", is_flag=True,
    help="Go on where this terminal was in this folder, or with the newest of the folder.",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Begin a new conversation; that is what it does anyway.")
@click.option(
    "--model", "-m", metavar="NAME", type=ModelName(), help="Which model answers from now on."
)
@click.argument("text", metavar="[TEXT...]", nargs=-1)
@click.pass_context
def command(
    ctx: click.Context, resume: str | None, last: bool, new: bool, model: str | None,
    text: tuple[str, ...],
) -> int:  # fmt: skip
    """Talk with a model, in a conversation that is kept.

    TEXT is the first message. Without a terminal each line of the input is a message.
    """
    if (resume is not None) + last + new > 1:
        ctx.fail("--resume, --continue and --new exclude each other")
    settings = settings_of(ctx)
    drawn = settings.screen.is_terminal and _can_draw()
    beginning: Any = load(BEGINNING)
    given = {"resume": resume, "last": last, "model": model, "text": " ".join(text)}
    with beginning.starting(settings, quiet=drawn):
        return run(settings, given, HOSTING)


def run(settings: Settings, given: dict[str, Any], hosting: str) -> int:
    """A whole chat, on a terminal or in a pipe; gives the exit code."""
    loading: Any = load(CONFIG)
    config = loading.load().config
    pulse: Any = load(PULSE)
    if settings.screen.is_terminal and _can_draw():
        running: Any = load(RUNNING)
        asyncio.run(pulse.living(running.Running(settings, config, given, hosting).run()))
        return OK
    return asyncio.run(pulse.living(_plain(settings, config, given, hosting)))


def _can_draw() -> bool:
    """Whether the terminal can move its cursor, and somebody types on it."""
    return os.isatty(0) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


async def _plain(settings: Settings, config: Any, given: dict[str, Any], hosting: str) -> int:
    module, _, name = hosting.rpartition(".")
    starting: Any = load(STARTING)
    plain: Any = load(PLAIN)
    start: Any = await getattr(load(module), name)(settings, config)
    startup.ready()
    return await plain.run(settings, start, starting.Options(**given))
