"""Every Python block of README and the how-tos runs, in order, in an empty folder. Pages for those
who use the command alone have none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pages import DOCS, ROOT, text

import clew

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
HOWTOS = sorted((DOCS / "howto").glob("*.md"))
PAGES = [ROOT / "README.md", *(page for page in HOWTOS if BLOCK.search(text(page)))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "example"}
    blocks = list(BLOCK.finditer(text(page)))
    try:
        for block in blocks:
            lines_before = text(page)[: block.start(1)].count("\n")
            exec(compile("\n" * lines_before + block[1], str(page), "exec"), names)
    finally:
        for value in names.values():
            if isinstance(value, clew.Store):
                value.close()
    for path in tmp_path.glob("*.db"):
        with clew.open(path) as store:
            assert store.verify() == []
