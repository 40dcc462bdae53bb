"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clew.cli.registry import CANDIDATES, load
from clew.cli.settings import settings_of
from clew.cli.times import parse_age, parse_moment
from clew.clock import SystemClock

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    TextType = click.ParamType[str]
    MicrosType = click.ParamType[int]
else:  # older versions of click know no parameters here
    TextType = MicrosType = click.ParamType


class ConversationId(TextType):
    """Names a conversation: id, alias, or a prefix. Completed from the store."""

    name = "id"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        settings = settings_of(ctx.find_root())
        return load(CANDIDATES).matching(settings, incomplete)


class Seq(MicrosType):
    """The number of a message, as `show` prints it: 12 or #12."""

    name = "seq"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        digits = str(value).removeprefix("#")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 19 and int(digits)):
            self.fail(f"{value!r} is no number of a message; give 12 or #12", param, ctx)
        return int(digits)


class Moment(MicrosType):
    """A point in time, as microseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = parse_moment(str(value), SystemClock().now())
        if found is None:
            self.fail(
                f"{value!r} is no time; give 2026-01-31, 2026-01-31T09:30, 3d (ago) or yesterday",
                param, ctx,
            )  # fmt: skip
        return found


class Age(MicrosType):
    """A span of time, as microseconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = parse_age(str(value))
        if found is None:
            self.fail(f"{value!r} is no age; give 90d, 12w or 24h", param, ctx)
        return found


class Project(TextType):
    """A folder, as conversations know it: `.` is the repository that this folder belongs to."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.startswith((".", "~", "/")):
            return text
        folder = Path(text).expanduser().resolve()
        inside = (place for place in (folder, *folder.parents) if (place / ".git").exists())
        return str(next(inside, folder)) if text.startswith(".") else str(Path(text).expanduser())


def id_argument(command: F) -> F:
    return click.argument("id", metavar="ID", type=ConversationId())(command)


def ids_argument(command: F) -> F:
    return click.argument("ids", metavar="ID...", type=ConversationId(), nargs=-1, required=True)(
        command
    )


def json_option(command: F) -> F:
    return click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, and errors as JSON too."
    )(command)


def yes_option(command: F) -> F:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)


def limit_option(default: int) -> Callable[[F], F]:
    return click.option(
        "--limit", "-n", metavar="N", type=click.IntRange(min=1), default=default,
        help=f"How many at most. [{default}]",
    )  # fmt: skip


def cursor_option(command: F) -> F:
    return click.option(
        "--cursor", metavar="CURSOR", help="Go on after the page that gave this cursor."
    )(command)


def filter_options(command: F) -> F:
    """What a list and a search filter by."""
    for option in reversed((
        click.option("--source", metavar="NAME", help="Only of this source (cli, telegram, ...)."),
        click.option(
            "--project", metavar="PATH", type=Project(),
            help="Only of this repository or folder; `.` is the one you are in.",
        ),
        click.option("--branch", metavar="NAME", help="Only of this git branch."),
        click.option("--model", metavar="NAME", help="Only of this model."),
        click.option(
            "--since", metavar="TIME", type=Moment(),
            help="Only from this time on: a date, or an age such as 3d.",
        ),
        click.option("--until", metavar="TIME", type=Moment(), help="Only before this time."),
    )):  # fmt: skip
        command = option(command)
    return command
