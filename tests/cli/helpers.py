"""A store with something of everything in it, and a way to run `clew` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from click.testing import Result

import clew

Run = Callable[..., Result]

REAL = "import sys; from clew.cli.main import main; sys.exit(main())"
"""What the installed command runs; works in a checkout too."""

ESCAPES = "\x1b[31mred\x1b[0m\x07 \x9b1m \u202e and a lone \ud83d"


class Ids(NamedTuple):
    """The conversations of the demonstration store."""

    flaky: str
    trip: str
    order: str
    other_way: str
    long: str
    bot: str


class Demo(NamedTuple):
    path: Path
    ids: Ids

    def open(self) -> clew.Store:
        return clew.open(self.path)


class Talk(NamedTuple):
    """A store with one long session in it."""

    path: Path
    id: str

    @contextmanager
    def open(self) -> Iterator[clew.Conversation]:
        with clew.open(self.path) as store:
            yield store.profile("default").open(self.id)


class Remote(NamedTuple):
    """The same on PostgreSQL."""

    url: str
    ids: Ids

    def open(self) -> clew.Store:
        return clew.open(self.url)


def flaky(profile: clew.Profile) -> clew.Conversation:
    """Eight messages, two of them cut away, a branch elsewhere, an open turn, one waiting."""
    workspace = clew.Workspace(cwd="/home/ann/app", git_root="/home/ann/app", git_branch="main")
    conversation = profile.create(
        source="cli", title="Fix the flaky retry test", model="gpt-5", workspace=workspace,
        prompt="You are a careful engineer.",
    )  # fmt: skip
    call = {"id": "c1", "type": "function"}
    read = call | {"function": {"name": "read_file", "arguments": '{"path": "tests/retry.py"}'}}
    conversation.add([
        {"role": "user", "content": "The retry test fails now and then. Why?"},
        {"role": "assistant", "reasoning_content": "It sleeps.\nRead it first.",
         "content": "I look at it.", "tool_calls": [read]},
        {"role": "tool", "tool_call_id": "c1", "name": "read_file",
         "content": "import time\n" + "\n".join(f"line {i}" for i in range(120))},
        {"role": "assistant", "content": "It sleeps for 50 ms. Shall I change it?"},
        {"role": "user", "content": f"Yes. 日本語でも説明してください。 {ESCAPES}"},
        {"role": "assistant", "content": "Done."},
    ])  # fmt: skip
    conversation.cut(conversation.message(5).uid, by="ann")
    conversation.add(clew.user("Wait. Show me the diff first."))
    conversation.begin_turn([clew.user("And go on.")], call=clew.CallPlan(model="gpt-5"))
    conversation.append([clew.user("one more thing")])
    return conversation


def long(profile: clew.Profile) -> clew.Conversation:
    """Sixty messages, the first forty compacted."""
    conversation = profile.create(source="cli", title="Long one")
    for i in range(0, 60, 2):
        conversation.append(
            [clew.user(f"question {i} about the scheduler"), clew.assistant(f"answer {i + 1}")]
        )
    attempt = conversation.open_attempt()
    summary = clew.Inline(clew.Role.USER, (clew.Text("Summary of the first forty."),))
    conversation.commit_attempt(
        attempt.number,
        clew.Proposal(covers_to=40, body=(summary,), tokens_before=12_000, tokens_after=800),
    )
    return conversation


def fill(place: Path | str) -> Ids:
    """Make the demonstration store."""
    with clew.open(place) as store:
        profile = store.profile("default")
        first = flaky(profile)
        trip = profile.create(source="telegram", title="Reise nach Kyōto 京都")
        trip.append([clew.user("Wann blühen die Kirschen in 京都?"), clew.assistant("Ende März.")])
        trip.pin()
        order = profile.conversation("support-42")
        order.add(clew.user("My order did not arrive"))
        order.end("closed")
        other = first.branch(
            first.message(2).uid, new=clew.NewConversation(source="cli", title="The other way")
        )
        bot = store.profile("bot").create(source="api", title="Nightly report")
        bot.add(clew.user("run"))
        return Ids(first.id, trip.id, order.id, other.id, long(profile).id, bot.id)


def process(*args: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `clew` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", REAL, *map(str, args)], env={**os.environ, **env}, text=True,
        capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60, encoding="utf-8",
    )  # fmt: skip
