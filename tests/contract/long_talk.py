"""Conversations that outgrow a window, and short names for what is asked of them."""

from __future__ import annotations

from typing import Any

from talk import calls, result

import clew
from clew import Text
from clew.context.budget import Budget

BUDGET = Budget(window=12_000)
REQUEST = "Now write the release notes for all of it."


def compactor(**settings: Any) -> clew.Compactor:
    return clew.Compactor(BUDGET, **settings)


STEP = 138
"""Tokens of one step of work."""


def work(conv: clew.Conversation, *numbers: int) -> None:
    """Of each number a question, a call, its output and an answer; most of it prose."""
    head = conv.info().head
    conv.append([draft for n in numbers for draft in _step(n, f"call-{head}-{n}")])


def _step(n: int, call: str) -> list[clew.Draft]:
    return [
        clew.user(f"Please look at module {n}, say what it does and whether the others use it."),
        calls(call),
        result(call, f"def part_{n}(value):\n    return value + {n}\n" * 3),
        clew.assistant(
            f"Module {n} adds {n} to what it is given. It is called from the module before it, "
            "which passes what it has read, and from the tests. Nothing else in the folder "
            "knows of it, so it could move beside its only caller without harm to anybody."
        ),
    ]  # fmt: skip


def fill(conv: clew.Conversation, share: float = 0.82) -> None:
    """Work that takes this share of the window, then a request that wants an answer."""
    work(conv, *range(int(share * BUDGET.window / STEP)))
    conv.append([clew.user(REQUEST)])


def seen(context: Any) -> list[str]:
    """The texts of a context, in order; results by what they say."""
    found: list[str] = []
    for item in context.items:
        for part in item.entry.parts:
            if isinstance(part, Text):
                found.append(part.text)
    return found
