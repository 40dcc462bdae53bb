"""clew show and clew resume."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

import clew
from clew.cli import following
from clew.domain.changes import Change
from clew.domain.messages import Message
from clew.store.conversation import Conversation

from .helpers import ESCAPES, REAL, Demo, Run


def test_messages_with_long_outputs_folded(demo: Demo, run: Run) -> None:
    shown = run("show", demo.ids.flaky).stdout
    assert shown.startswith("Fix the flaky retry test\n")
    assert demo.ids.flaky in shown
    assert '→ read_file {"path": "tests/retry.py"}' in shown
    assert "← read_file  import time  +120 lines" in shown
    assert "thinking  It sleeps.  +1 line" in shown
    assert "line 7" not in shown
    assert "Yes." not in shown  # cut away
    assert "turn 1 is open; 1 message waiting" in shown


def test_full_folds_nothing(demo: Demo, run: Run) -> None:
    shown = run("show", demo.ids.flaky, "--full", "--no-pager").stdout
    assert "line 119" in shown
    assert '"path": "tests/retry.py"' in shown
    assert "Read it first." in shown


def test_the_log_has_what_is_hidden_and_why(demo: Demo, run: Run) -> None:
    shown = run("show", demo.ids.flaky, "--log", "--pager").stdout
    assert re.search(r"cut 1 by ann, (just now|\d+m ago): hides 2 messages, to #6", shown)
    assert shown.count("hidden by cut 1") == 2
    assert "turn 1" in shown
    compacted = run("show", demo.ids.long, "--log").stdout
    divider = "compaction 1: stands for #1 to #40, 800 tokens instead of 12,000; in effect"
    assert compacted.index("answer 39") < compacted.index(divider) < compacted.index("question 40")


def test_nothing_shown_acts_on_a_terminal(demo: Demo, run: Run) -> None:
    shown = run("show", demo.ids.flaky, "--log").stdout
    assert "^[[31mred^[[0m^G <9B>1m <U+202E> and a lone <U+D83D>" in shown
    assert "\x1b" not in shown


def test_json_is_exact(demo: Demo, loads: Callable[..., Any]) -> None:
    found = loads("show", demo.ids.flaky, "--log")
    assert found["messages"][4]["parts"][0]["text"].endswith(ESCAPES)
    assert [cut["from_seq"] for cut in found["cuts"]] == [5]
    assert found["conversation"]["id"] == demo.ids.flaky
    assert [m["seq"] for m in loads("show", demo.ids.flaky)["messages"]] == [1, 2, 3, 4, 7, 8]


def test_the_context_is_what_a_model_would_see(demo: Demo, run: Run, loads: Any) -> None:
    with demo.open() as store:
        expected = store.profile("default").open(demo.ids.flaky).context("gpt-5")
    assert loads("show", demo.ids.flaky, "--context") == expected
    assert loads("show", demo.ids.flaky, "--context", "--model", "gpt-5") == expected
    shown = run("show", demo.ids.flaky, "--context").stdout
    assert "You are a careful engineer." in shown
    assert "what gpt-5 would see: 7 messages" in shown
    assert "Summary of the first forty." in run("show", demo.ids.long, "--context").stdout
    assert len(loads("show", demo.ids.long, "--context", "--last", 3)) == 3
    assert len(loads("show", demo.ids.long, "--context", "--limit", 2)) == 2


def test_the_first_and_the_last(demo: Demo, run: Run, loads: Any) -> None:
    assert [m["seq"] for m in loads("show", demo.ids.long, "--last", 2)["messages"]] == [59, 60]
    assert [m["seq"] for m in loads("show", demo.ids.long, "-n", 2)["messages"]] == [1, 2]
    shown = run("show", demo.ids.long, "--last", 2).stdout
    assert "the newest 2 of 60" in shown
    assert "compaction" not in shown


@pytest.mark.parametrize(
    "options",
    [["--log", "--context"], ["--last", "1", "--limit", "1"], ["--model", "x"], ["--log", "-f"]],
)
def test_options_that_exclude_each_other(demo: Demo, run: Run, options: list[str]) -> None:
    assert "; give" in run("show", demo.ids.long, *options, code=2).stderr


def test_attachments_and_odd_pieces(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        conversation = store.profile("default").create(title="Odd")
        conversation.append([
            clew.Draft(role=clew.Role.USER, author="Ann\x1b", parts=(
                clew.Image(data=b"x" * 2048), clew.Image(url="https://example.org/a.png"),
                clew.File(name="a\x1b.pdf", data=b"y"), clew.Unknown({"odd": "\x1b"}),
            )),
            clew.Draft(role=clew.Role.ASSISTANT, parts=(
                clew.Reasoning(data="opaque"), clew.ToolCall("c", "look", "not json"),
            )),
            clew.Draft(role=clew.Role.TOOL, parts=(
                clew.ToolResult("c", (clew.Text("see"), clew.Image(data=b"z")), "look", True),
            )),
        ])  # fmt: skip
        id = conversation.id
    for options in ([], ["--full"]):
        shown = run("show", id, *options).stdout
        assert "[image image/png 2.0 KiB]" in shown
        assert "[file a^[.pdf" in shown
        assert "user Ann^[" in shown
        assert "thinking (not readable)" in shown
        assert "✗ look" in shown
        assert "\x1b" not in shown


def test_an_empty_conversation(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        id = store.profile("default").create().id
    shown = run("show", id).stdout
    assert "(untitled)" in shown
    assert "It has no messages yet." in shown


def test_following_shows_what_comes(demo: Demo) -> None:
    def follow(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", REAL, "show", demo.ids.order, "--follow", *options]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )

    plain, exact = follow("--last", "1"), follow("--json")
    assert plain.stdout is not None
    assert exact.stdout is not None
    assert json.loads(exact.stdout.readline())["message"]["seq"] == 1
    while "My order" not in plain.stdout.readline():
        pass
    with demo.open() as store:
        conversation = store.profile("default").open(demo.ids.order)
        conversation.reopen()
        conversation.add(clew.user("Hello again"))
    seen = [json.loads(exact.stdout.readline()) for _ in range(2)]
    assert {k: v["kind"] for one in seen for k, v in one.items() if k == "change"} == {
        "change": "reopened"
    }
    assert [one["message"]["seq"] for one in seen if "message" in one] == [2]
    while "Hello again" not in plain.stdout.readline():
        pass
    for child in (plain, exact):
        child.send_signal(signal.SIGINT)
        _, error = child.communicate(timeout=20)
        assert (child.returncode, error.strip()) == (130, "")


def test_following_ends_with_the_conversation(demo: Demo) -> None:
    command = [sys.executable, "-c", REAL, "show", demo.ids.order, "-f"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert child.stdout is not None
    while "My order" not in child.stdout.readline():
        pass
    with demo.open() as store:
        store.profile("default").delete(demo.ids.order)
    rest, _ = child.communicate(timeout=20)
    assert "the conversation was deleted" in rest
    assert child.returncode == 0


def test_following_what_is_deleted_before_it_is_read(demo: Demo) -> None:
    """The follower was told of a message, and comes late."""
    real = Conversation.log

    def late(self: Conversation, **given: Any) -> Any:
        profile.delete(self.id)
        return real(self, **given)

    with demo.open() as store, pytest.MonkeyPatch.context() as patch:
        profile = store.profile("default")
        events = following.events(profile, profile.open(demo.ids.order), 1)
        assert isinstance(next(events), Message)
        profile.open(demo.ids.order).reopen()
        profile.open(demo.ids.order).add(clew.user("Nobody reads this"))
        patch.setattr(Conversation, "log", late)
        assert [event.kind for event in events if isinstance(event, Change)] == [
            "reopened", "deleted"
        ]  # fmt: skip


def test_many_new_messages_are_read_at_once(demo: Demo) -> None:
    """And each is shown once, though more came since the follower was told."""
    with demo.open() as store, pytest.MonkeyPatch.context() as patch:
        profile = store.profile("default")
        conversation = profile.create()
        conversation.add([clew.user("first"), clew.user("hidden")])
        conversation.cut(conversation.message(2).uid)
        events = following.events(profile, conversation, 5)
        assert isinstance(next(events), Message)
        conversation.append([clew.user(f"{i}") for i in range(20)])
        real, looks = Conversation.log, list[int]()

        def log(self: Conversation, **given: Any) -> Any:
            looks.append(given["limit"])
            if len(looks) == 1:
                conversation.append([clew.user("20"), clew.user("21")])
            return real(self, **given)

        patch.setattr(Conversation, "log", log)
        texts = [event.text for event in islice(events, 22) if isinstance(event, Message)]
        assert texts == [f"{i}" for i in range(22)]
        assert looks == [20, 2]
        conversation.append([clew.user("22")])
        last = next(events)
        assert isinstance(last, Message)
        assert (last.text, looks) == ("22", [20, 2, 1])


def test_resume_says_how_to_go_on(demo: Demo, run: Run, loads: Any) -> None:
    shown = run("resume", demo.ids.flaky[:8]).stdout
    assert f"profile.open('{demo.ids.flaky}')" in shown
    assert "clew.Compactor(model='gpt-5').context(conversation)" in shown
    assert re.search(r"Turn 1 is running since (just now|\d+m ago)\.", shown)
    assert "user: one more thing" in shown
    assert "The other way  from #2" in shown
    assert f"clew branch {demo.ids.flaky[:8]} --at-cut 1" in shown
    facts = loads("resume", demo.ids.flaky)
    assert facts["open_turn"]["number"] == 1
    assert [w["number"] for w in facts["waiting"]] == [1]
    assert facts["branches"] == [demo.ids.other_way]


def test_what_resume_prints_runs(demo: Demo, loads: Any) -> None:
    for id in (demo.ids.flaky, demo.ids.order):
        code = "\n".join(loads("resume", id)["python"])
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_resume_of_one_that_ended_or_waits_for_a_person(demo: Demo, run: Run) -> None:
    assert "conversation.reopen()  # it ended: closed" in run("resume", demo.ids.order).stdout
    with demo.open() as store:
        turn = store.profile("default").open(demo.ids.trip).begin_turn([clew.user("go")])
        assert isinstance(turn, clew.TurnHandle)
        turn.wait()
    assert "Turn 1 waits for a person." in run("resume", demo.ids.trip).stdout
