"""docs/cli.md and the command tree say the same, and the tests use all of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clew.cli.failures import code_of
from clew.cli.main import cli
from clew.errors import ClewError

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "cli.md").read_text("utf-8")
GLOBAL = {"--store", "--profile", "--no-color", "--version", "-h", "--help"}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command by its full name; groups through their commands."""
    context = cli.make_context("clew", ["list"], resilient_parsing=True)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", found) for sub, found in command.commands.items())
        elif command is not None:
            yield name, command


COMMANDS = dict(commands())


def section(name: str) -> str:
    """What the page says about a command."""
    found = re.search(rf"^### clew {name}\n(.*?)(?=^#)", PAGE + "\n#", re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/cli.md says nothing about clew {name}"
    return found[1]


def options(command: click.Command) -> set[str]:
    return {
        name
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden
        for name in (*param.opts, *param.secondary_opts)
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_option(name: str) -> None:
    said = set(re.findall(r"`(--?[a-z][a-z-]*)", section(name)))
    assert options(COMMANDS[name]) - said == set()
    assert said - options(COMMANDS[name]) - {"--at-cut"} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_argument(name: str) -> None:
    for param in COMMANDS[name].params:
        if isinstance(param, click.Argument):
            for word in (param.metavar or param.human_readable_name.upper()).split("|"):
                assert word in section(name)


def test_the_page_has_no_other_commands() -> None:
    assert set(re.findall(r"^### clew (.+)$", PAGE, re.MULTILINE)) == set(COMMANDS)
    root = {name for param in cli.params for name in (*param.opts, *param.secondary_opts)}
    assert root | {"-h", "--help"} == GLOBAL
    assert all(f"`{name}" in PAGE for name in GLOBAL)


def test_examples_use_what_there_is() -> None:
    examples = re.findall(r"^    clew (.+)$", PAGE, re.MULTILINE)
    assert len(examples) > 30
    for example in examples:
        words = shlex.split(example.split(" -- ")[0])
        grouped = words[0] in ("bin", "completion", "config", "spool")
        name = " ".join(words[:2]) if grouped else words[0]
        given = {word for word in words[1:] if word.startswith("-")}
        assert not given - options(COMMANDS[name]) - GLOBAL, example


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_text_for_everything(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert command.help.splitlines()[0].endswith(".")
    for param in command.params:
        assert not isinstance(param, click.Option) or param.help


def test_every_option_is_exercised_by_a_test() -> None:
    """By its name, in the tests of this folder."""
    others = (path for path in HERE.glob("test_*.py") if path != Path(__file__))
    source = "".join(path.read_text("utf-8") for path in others)
    for name, command in COMMANDS.items():
        assert f'"{name.split()[0]}"' in source, name
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                names = (*param.opts, *param.secondary_opts)
                assert any(f'"{option}"' in source for option in names), (name, names)


def test_every_exit_code_is_on_the_page_and_in_the_help() -> None:
    kinds: list[type[Exception]] = [ClewError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    codes = {code_of(kind.__new__(kind)) for kind in kinds} | {0, 1, 70, 130}
    table = set(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)))
    assert codes == table
    said = cli.get_help(click.Context(cli)).partition("Exit codes:")[2]
    assert codes <= set(map(int, re.findall(r"\d+", said)))
