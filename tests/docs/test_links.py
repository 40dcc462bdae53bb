"""Links lead to files and headings that are there. (That files are there, test_tidy checks.)"""

from __future__ import annotations

import re

from pages import DOCS, documents, prose, text


def anchors(body: str) -> set[str]:
    """The anchors of a document's headings."""
    heads = re.findall(r"^#+ (.+)$", body, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_anchors_are_there() -> None:
    wrong: list[str] = []
    for path in documents():
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", prose(path)):
            if ":" in target:
                continue
            there = (path.parent / target) if target else path
            if not there.exists() or anchor not in anchors(text(there)):
                wrong.append(f"{path.name}: {target}#{anchor}")
    assert not wrong


def test_every_decision_is_listed() -> None:
    index = DOCS / "decisions" / "README.md"
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", text(index)))
    assert listed == {path.name for path in index.parent.glob("*.md")} - {index.name}
