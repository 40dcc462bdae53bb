"""Commands that the documents show are commands of clew."""

from __future__ import annotations

import re

from pages import documents, text

from clew.cli.registry import COMMANDS

SHOWN = re.compile(r"(?:^    |^\$ |`|&& )clew (?!-)([a-z][\w-]*)", re.MULTILINE)


def test_shown_commands_exist() -> None:
    shown = {name for path in documents() for name in SHOWN.findall(text(path))}
    assert shown
    assert not shown - set(COMMANDS)
