"""Histories of a coding agent with statements planted in them, the same for a seed everywhere.

Most of a history is work: files read, searches, edits, test runs. In between people say rules,
facts and wishes, and the agent says what it found and decided. Four facts change in the second
half, not at the very end. No statement has a label, and the words were chosen without looking at
how clew reads them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Rng = random.Random
ChatMessage = dict[str, Any]


@dataclass(frozen=True)
class Fact:
    """Something to be known at the end: texts that must be there, in lower case. `stale` is the
    value that it had before."""

    kind: str
    tokens: tuple[str, ...]
    stale: str = ""


@dataclass(frozen=True)
class History:
    """Chat Completions messages, and what should be known after the last of them."""

    chat: list[ChatMessage]
    facts: tuple[Fact, ...]


_FILES = (
    "src/billing/invoice.py", "src/billing/tax.py", "src/api/webhooks.py", "src/api/limits.py",
    "src/core/scheduler.py", "src/core/retry.py", "tests/test_invoice.py", "tests/test_limits.py",
    "config/queues.yaml", "scripts/backfill.sh", "docs/billing.md", "web/src/Invoice.tsx",
)  # fmt: skip
_VERBS = (
    "load",
    "merge",
    "round",
    "split",
    "charge",
    "refund",
    "settle",
    "drain",
    "verify",
    "render",
)
_NOUNS = ("line", "total", "rate", "batch", "event", "hook", "cursor", "period", "window", "amount")
_NAMES = ("Ines Calder", "Tomasz Reyl", "Mirai Onda", "Femi Adisa", "Lena Brandvold", "Raj Pillai")

_RULES = (
    ("Never edit {path} by hand, it is generated.", ("{path}", "by hand")),
    ("Ask me before you run anything in {folder}.", ("ask", "{folder}")),
    ("Write all comments in {language}.", ("comments", "{language}")),
    ("Amounts are integers of cents everywhere, no floats.", ("cents", "no floats")),
    ("Don't add new dependencies.", ("dependencies",)),
    ("Please keep functions under {number} lines.", ("functions", "{number} lines")),
    ("When you report a test run, always give the exit code.", ("test run", "exit code")),
    ("Do not push to {branch}.", ("not push", "{branch}")),
)  # fmt: skip
_FACTS = (
    ("My account on the sandbox is {mail}.", ("{mail}",)),
    ("The gateway drops requests larger than {number} KB, just so you know.", ("{number} kb",)),
    ("Customers in {folder} still use the {word} export.", ("{word}",)),
    ("The bug is tracked as {ticket}.", ("{ticket}",)),
)
_FOUND = (
    ("The cause is that `{call}` in {path} rounds before it adds the tax.", ("{call}", "rounds")),
    ("I decided to keep the old column, because {word} still reads it.", ("old column", "{word}")),
    ("Patching {path} with a lock did not help, the test still hangs.", ("lock", "{path}")),
    ("I work on branch {branch}, based on commit {sha}.", ("{branch}", "{sha}")),
)
_OPEN = (
    ("Later, also add a test for invoices with a negative total.", ("negative total",)),
    ("How many {word} jobs are stuck right now?", ("{word} jobs",)),
)
_CHANGING = (
    ("Set the retry limit to {}.", "Set the retry limit to {} from now on.", "number"),
    ("The sandbox runs at {}.", "The sandbox has moved, it runs at {} now.", "host"),
    ("{} approves releases.", "Change of plan: {} approves releases.", "name"),
    ("We call the new flow {}.", "Marketing renamed it: we call the new flow {}.", "word"),
    ("The deadline for this is {}.", "The deadline for this is now {}.", "date"),
    ("Use port {} for the dev server.", "Port taken. Use port {} for the dev server.", "number"),
    ("Our target branch is {}.", "Our target branch is {} as of today.", "branch"),
    ("The budget for the backfill is {} minutes.", "Make the budget for the backfill {} minutes.",
     "number"),
)  # fmt: skip
_REQUESTS = (
    "Can you look at {file} and tell me what happens when the {noun} is empty?",
    "Now {verb} each {noun} before the loop in {file}.",
    "I saw a failing run this morning, see whether {file} has to do with it.",
    "Rename the helper that can {verb} a {noun}, its name says nothing.",
    "What does {file} do with a {noun} that is late? I had expected an error there.",
    "Add a test for the {noun} in {file}, then run all of them.",
)
_ANSWERS = (
    "It raises before the loop, so nothing is lost; I left it as it is.",
    "Done, and all tests pass.",
    "That run failed for another reason, the fixture was out of date. I changed it.",
    "I looked through it: an empty one is skipped, a late one is only logged.",
)
_ASKING = 0.25
"""How often a step of the work is asked for."""
_ACKNOWLEDGED = ("Understood.", "All right.", "Noted, thanks.", "Will do.")
_THOUGHTS = ("Let me look at that.", "Next I check how this is wired.", "Running it.", "", "")


def _word(rng: Rng, letters: int = 6) -> str:
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(letters // 2))


_VALUES: dict[str, Callable[[Rng], str]] = {
    "number": lambda rng: str(rng.randrange(210, 9800)),
    "host": lambda rng: f"{_word(rng)}.example.test",
    "name": lambda rng: rng.choice(_NAMES),
    "word": lambda rng: _word(rng, 8),
    "date": lambda rng: f"2026-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}",
    "branch": lambda rng: f"fix/{_word(rng)}-{rng.randrange(10, 99)}",
    "path": lambda rng: f"src/{_word(rng, 4)}/{_word(rng)}.py",
    "folder": lambda rng: f"{_word(rng)}/",
    "language": lambda rng: rng.choice(("British English", "French", "Portuguese")),
    "mail": lambda rng: f"{_word(rng)}@example.test",
    "ticket": lambda rng: f"{_word(rng, 4).upper()}-{rng.randrange(100, 9999)}",
    "call": lambda rng: f"{rng.choice(_VERBS)}_{_word(rng)}()",
    "sha": lambda rng: f"{rng.randrange(16**10):010x}",
}


def history(seed: int, length: int) -> History:
    """About `length` messages: everything is said once, spread evenly at random."""
    rng = random.Random(f"history {seed}")
    said, facts = _statements(rng)
    work = _Work(rng, seed)
    work.chat.append({"role": "system", "content": "You are a coding agent in /srv/billing."})
    gap = max(1, (length - 2 * len(said)) // (2 * len(said)))
    for role, text in said:
        for _ in range(rng.randrange(gap, gap + 2)):
            asked = rng.random() < _ASKING
            if asked:
                work.chat.append({"role": "user", "content": _request(rng)})
            work.step()
            if asked:
                work.chat.append({"role": "assistant", "content": rng.choice(_ANSWERS)})
        work.chat.append({"role": role, "content": text})
        if role == "user":
            work.chat.append({"role": "assistant", "content": rng.choice(_ACKNOWLEDGED)})
    for _ in range(gap):
        work.step()
    edited = [Fact("file", (path.lower(),)) for path in sorted(work.edited)]
    return History(work.chat, (*facts, *edited))


def turns(seed: int, count: int, calls: int = 2) -> list[list[ChatMessage]]:
    """Turns of work alone: somebody asks, some calls with their results, an answer."""
    rng = random.Random(f"turns {seed}")
    found: list[list[ChatMessage]] = []
    work = _Work(rng, seed)
    for number in range(1, count + 1):
        work.chat = [
            {"role": "user", "content": f"Step {number}: go on with {rng.choice(_FILES)}."}
        ]
        for _ in range(calls):
            work.step()
        done = f"Step {number} is done, the {rng.choice(_NOUNS)} is checked."
        found.append([*work.chat, {"role": "assistant", "content": done}])
    return found


def _statements(rng: Rng) -> tuple[list[tuple[str, str]], list[Fact]]:
    """What is said, in order, by whom; and what it means."""
    said: list[tuple[str, str]] = []
    facts: list[Fact] = []
    for kind, role, templates in (
        ("rule", "user", _RULES), ("fact", "user", _FACTS), ("found", "assistant", _FOUND),
        ("open", "user", _OPEN),
    ):  # fmt: skip
        for text, tokens in templates:
            values = {name: make(rng) for name, make in _VALUES.items()}
            said.append((role, text.format(**values)))
            facts.append(Fact(kind, tuple(token.format(**values).lower() for token in tokens)))
    rng.shuffle(said)
    for first, then, kind in rng.sample(_CHANGING, 4):
        old, new = _two(rng, _VALUES[kind])
        half, most = len(said) // 2, len(said) * 7 // 10
        early, late = rng.randrange(half), rng.randrange(half, most)
        said.insert(late, ("user", then.format(new)))
        said.insert(early, ("user", first.format(old)))
        facts.append(Fact("change", (new.lower(),), old.lower()))
    return said, facts


def _request(rng: Rng) -> str:
    """Something to do next, soon done and forgotten."""
    values = {"file": rng.choice(_FILES), "noun": rng.choice(_NOUNS), "verb": rng.choice(_VERBS)}
    asked = " ".join(rng.sample(_REQUESTS, rng.randrange(1, 3)))
    return asked.format(**values)


def _two(rng: Rng, make: Callable[[Rng], str]) -> tuple[str, str]:
    old = new = make(rng)
    while new == old:
        new = make(rng)
    return old, new


class _Work:
    """What the agent does between what is said."""

    def __init__(self, rng: Rng, seed: int) -> None:
        self._rng, self._seed = rng, seed
        self._calls = 0
        self.chat: list[ChatMessage] = []
        self.edited: set[str] = set()

    def step(self) -> None:
        """One call and its result."""
        rng = self._rng
        path = rng.choice(_FILES)
        what = rng.choices(("read", "search", "edit", "test", "status"), (40, 20, 15, 15, 10))[0]
        if what == "read":
            self._call("read", {"path": path}, self._code(rng.randrange(3, 14)))
        elif what == "search":
            command = f"rg -n {rng.choice(_NOUNS)} src | head -30"
            self._call("bash", {"command": command}, self._hits(rng.randrange(6, 30)))
        elif what == "edit":
            self.edited.add(path)
            old, new = (f"return {rng.choice(_NOUNS)}" for _ in range(2))
            self._call("edit", {"path": path, "oldText": old, "newText": new}, f"Edited {path}")
        elif what == "test":
            self._call("bash", {"command": "pytest -q"}, self._tests(rng.randrange(3)))
        else:
            changed = "\n".join(f" M {each}" for each in rng.sample(_FILES, 4))
            self._call("bash", {"command": "git status --short"}, changed)

    def _call(self, name: str, arguments: dict[str, str], result: str) -> None:
        self._calls += 1
        id = f"call_{self._seed}_{self._calls}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": id, "type": "function", "function": function}
        thought = self._rng.choice(_THOUGHTS)
        self.chat.append({"role": "assistant", "content": thought, "tool_calls": [call]})
        self.chat.append({"role": "tool", "tool_call_id": id, "name": name, "content": result})

    def _code(self, functions: int) -> str:
        rng, lines = self._rng, ["from decimal import Decimal", ""]
        for _ in range(functions):
            verb, noun = rng.choice(_VERBS), rng.choice(_NOUNS)
            lines += [
                f"def {verb}_{noun}{rng.randrange(99)}(rows, limit={rng.randrange(1, 900)}):",
                f'    """{verb.title()} each {noun} of the rows."""',
                "    for row in rows[:limit]:",
                f"        if row.{noun} is not None and row.state == {rng.randrange(9)}:",
                f"            yield {rng.choice(_VERBS)}(row.{rng.choice(_NOUNS)})",
                "",
            ]
        return "\n".join(f"{number:5d}\t{line}" for number, line in enumerate(lines, 1))

    def _hits(self, count: int) -> str:
        rng = self._rng
        return "\n".join(
            f"{rng.choice(_FILES)}:{rng.randrange(1, 400)}:    "
            f"{rng.choice(_VERBS)}(row.{rng.choice(_NOUNS)})"
            for _ in range(count)
        )

    def _tests(self, failed: int) -> str:
        rng = self._rng
        dots = "\n".join("." * 60 + f" [{share}%]" for share in range(25, 101, 25))
        passed = f"{rng.randrange(80, 140)} passed in {rng.randrange(30, 90) / 10}s"
        if not failed:
            return f"{dots}\n{passed}\nexit code: 0"
        name = f"tests/test_invoice.py::test_{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}"
        why = f"AssertionError: expected {rng.randrange(999)} got {rng.randrange(999)}"
        return f"{dots}\nFAILED {name} - {why}\n{failed} failed, {passed}\nexit code: 1"
