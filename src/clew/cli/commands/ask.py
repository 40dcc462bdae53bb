"""clew ask: one question, for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from clew.cli.model_names import ModelName
from clew.cli.params import ConversationId, TextType, json_option
from clew.cli.registry import CANDIDATES, load
from clew.cli.settings import settings_of

MAIN = "clew.cli.ask_main"
"""Does it; loaded once it is asked for, and not while a shell completes."""
SOURCE = "ask"
"""Of the conversations that are made here."""


class BoundKey(TextType):
    """A key of the caller's own. Completed from those that are in use."""

    name = "key"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        settings = settings_of(ctx.find_root())
        return load(CANDIDATES).keys(settings, SOURCE, incomplete)


@click.command("ask")
@click.argument("words", metavar="[TEXT...]", nargs=-1)
@click.option(
    "--conversation", metavar="KEY", type=BoundKey(),
    help="Ask in the conversation of this key of yours; it is made on first use. [a new one]",
)  # fmt: skip
@click.option(
    "--resume", metavar="ID", type=ConversationId(), help="Ask in the conversation of this id."
)
@click.option(
    "--key", metavar="KEY",
    help="Name of this message: asked again by it, the same answer is printed and nothing is asked "
    "twice.",
)  # fmt: skip
@click.option("--model", metavar="NAME", type=ModelName(), help="Which model. [as configured]")
@click.option(
    "--system", metavar="TEXT", help="The system prompt of the conversation. [as configured]"
)
@click.option(
    "--file", "-f", metavar="PATH", multiple=True, type=click.Path(path_type=Path),
    help="Send a text file, image or PDF along. May be given again.",
)  # fmt: skip
@click.option(
    "--stream/--no-stream", default=None,
    help="Whether to print the answer as it comes. [yes on a terminal]",
)  # fmt: skip
@click.option("--tools/--no-tools", default=True, help="Whether the model has tools. [yes]")
@click.option(
    "--allow", metavar="TOOL", multiple=True,
    help="Let this tool run without asking, or SERVER.* all of a server; others that would be "
    "asked about are refused. May be given again.",
)  # fmt: skip
@click.option(
    "--max-cost", metavar="DOLLARS", type=click.FloatRange(min=0, min_open=True),
    help="Stop when the answer has cost so much.",
)  # fmt: skip
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True),
    help="Stop after so long.",
)  # fmt: skip
@click.option(
    "--wait/--no-wait", default=True,
    help="Whether to wait while another turn runs there; else the message is only left for it. "
    "[yes]",
)  # fmt: skip
@json_option
@click.pass_context
def command(ctx: click.Context, words: Sequence[str], **given: Any) -> int:
    """Ask one question and print the answer, for scripts.

    TEXT, standard input, or both: then what is piped in stands in a fence behind TEXT. Only the
    answer goes to standard output. Exits with 1 when it was stopped, a limit was met, or a tool
    was refused; with 5 when no model could answer.
    """
    if given["conversation"] is not None and given["resume"] is not None:
        ctx.fail("--conversation and --resume exclude each other; give one of them")
    main: Any = load(MAIN)
    code: int = main.run(settings_of(ctx), words, main.Options(**given))
    return code
