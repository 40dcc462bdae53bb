"""docs/reference/chat-commands.md and the table of commands say the same."""

from __future__ import annotations

import re
from pathlib import Path

from clew.cli.chat.commands.registry import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "chat-commands.md").read_text("utf-8")


def test_the_page_has_every_command_with_its_usage() -> None:
    rows = re.findall(r"^\| `/(\w+) ?([^`]*)` \| ([^|]*) \| (now)? ?\|$", PAGE, re.MULTILINE)
    said = {name: (usage.replace(" or ", "|"), bool(now)) for name, usage, _, now in rows}
    assert said == {name: (entry.usage, entry.during) for name, entry in COMMANDS.items()}


def test_the_page_has_every_alias() -> None:
    names = PAGE.partition("Other names:")[2].partition("##")[0]
    said = set(re.findall(r"`/([\w?]+)`", names))
    assert said == {
        name
        for command, entry in COMMANDS.items()
        for name in (*entry.aliases, *((command,) if entry.aliases else ()))
    }
