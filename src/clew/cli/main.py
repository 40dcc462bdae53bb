"""The entry point: runs a command, and turns what goes wrong into a line and an exit code."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from clew.cli.failures import INTERRUPTED, OK, report, trace
from clew.cli.registry import VERSION, Commands, global_options, load

NAME = "clew"
COMPLETING = "_CLEW_COMPLETE"
DEBUG = "CLEW_DEBUG"

HELP = """\
Keep the conversations of AI agents: never lost, doubled or forked.

Options before a command may also stand after it.
"""

EPILOG = """\
Ids can be given by any prefix that names one conversation.

Exit codes: 0 done; 1 problems found, nothing found, or you said no; 2 wrong usage; 3 not found or
ambiguous; 4 refused by the state of the conversation; 5 the store cannot serve; 70 a fault of clew;
130 interrupted.
"""


class Clew(Commands):
    """The root command."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """As a program: exits."""
        sys.exit(self.run(sys.argv[1:] if args is None else args))

    def run(self, args: Sequence[str]) -> int:
        """Run a command line; gives the exit code. Never raises."""
        try:
            if COMPLETING in os.environ:  # a shell asks; answers and exits
                super().main([], NAME, complete_var=COMPLETING)
            code = self._run(list(args))
            sys.stdout.flush()
            return code
        except (click.Abort, EOFError, KeyboardInterrupt):
            print(file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:
            _leave_pipe()
            return OK
        except Exception as error:  # noqa: BLE001 - the edge
            if DEBUG in os.environ:
                sys.stderr.write(trace(error))
            return report(error, "--json" in _options(args))

    def _run(self, args: list[str]) -> int:
        try:
            with self.make_context(NAME, args) as ctx:
                code: object = self.invoke(ctx)
        except click.exceptions.Exit as done:
            code = done.exit_code
        return code if isinstance(code, int) else OK


def _options(args: Sequence[str]) -> Sequence[str]:
    """The arguments before `--`."""
    return args[: args.index("--")] if "--" in args else args


def _leave_pipe() -> None:
    """Who read our output has gone: let the interpreter flush the rest into nothing."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(load(VERSION).text())
        ctx.exit()


def _begin(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


cli = Clew(
    name=NAME,
    help=HELP,
    epilog=EPILOG,
    invoke_without_command=True,
    callback=click.pass_context(_begin),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        *global_options(hidden=False),
        click.Option(
            ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version,
            help="Say which version this is.",
        ),
    ],
)  # fmt: skip


def main() -> int:
    """Run the command line of this process; gives the exit code.

    What a command needs is loaded without collecting garbage in between, and is left alone at the
    end: together an eighth of the time of `clew list`.
    """
    gc.set_threshold(50_000)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us: nobody wants to read it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = cli.run(sys.argv[1:])
    gc.freeze()
    return code
