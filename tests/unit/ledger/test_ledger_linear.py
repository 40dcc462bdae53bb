"""Nothing a message can hold makes it slow: ten times as much takes about ten times as long, and
no line, however long, ties up an expression."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from talks import agent, message, user

from clew.compaction.ledger import write_epoch
from clew.domain.messages import Message, Role
from clew.domain.parts import ToolCall, ToolResult

BOMBS = {
    "one word": "a", "spaces": " ", "dots": "a.", "slashes": "a/", "dashes": "-a", "digits": "1,",
    "quotes": '"`', "and": " and the ", "lines": "\n", "fences": "```\n", "names": "Aa Bb ",
    "of the": "the x of the y is ", "sentences": "The port is 80. ", "hash": "#a", "at": "[@1] ",
    "months": "may ", "numbers": "two hundred ", "cjk": "三時です。", "control": "\x01\x7f",
    "switch": "switch from ", "is": "a is ", "colons": "a: ", "not but": "not a ", "no": "no ",
    "Error": "Error ", "py": "a.py ", "dot py": ".py", "exit": "exit ", "ErrorX": "ErrorX",
    "pronouns": "x, it ", "make": "make the a ", "call": "call the a ", "duty": "Ada approves ",
    "saw": "i saw ", "sure": "make sure ", "should": "a should ", "of": "the a of ",
}  # fmt: skip
SIZE = 300_000
HOURS = 60.0
"""Seconds of processor time. What is measured takes under one; an expression that goes back over
such a text takes hours, so this tells one from the other on any machine."""


def written(messages: list[Message]) -> None:
    made = write_epoch([], messages, number=1, room=4_000, count=len)
    assert len(made.text) <= 4_000


def calls_of(messages: list[Message]) -> int:
    """How many functions an epoch of these messages calls: the same on every machine."""
    called = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        written(messages)
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize("name", BOMBS)
def test_long_lines(name: str) -> None:
    text = BOMBS[name] * (SIZE // len(BOMBS[name]))
    talk = [
        user(1, text),
        agent(2, text),
        message(3, Role.ASSISTANT, ToolCall("1", "bash", '{"command": "make"}')),
        message(4, Role.TOOL, ToolResult("1", text)),
        message(5, Role.ASSISTANT, ToolCall("2", "bash", f'{{"command": "{"sed -i " * 9_000}"}}')),
        message(6, Role.ASSISTANT, ToolCall("3", "x", '{"a":' * 10_000)),
    ]  # fmt: skip
    start = time.process_time()
    written(talk)
    assert time.process_time() - start < HOURS


@pytest.mark.parametrize(
    "text",
    ["The port of server {} is 80.", "The w{0} x{0} limit is now {0}.", "The port is {} now.",
     "The test {} of it is still missing.",
     "please do thing {}", "Never touch file{}.py.", "Thing {} is done, it works."],
)  # fmt: skip
def test_many_short_messages(text: str) -> None:
    def of(many: int) -> int:
        return calls_of([user(n + 1, text.format(n)) for n in range(many)])

    of(50)
    assert of(3_000) < 12 * of(300)
