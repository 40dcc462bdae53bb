"""Tool loops: the same calls with the same results, over and over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.domain.messages import Message, Role
from clew.domain.parts import Image, Parts, Text, ToolCall, ToolResult
from clew.host.loops import LONGEST, canonical, find, repeats

Called = tuple[str, str, str]
"""Name, arguments, result."""


def talk(*steps: Sequence[Called] | str) -> list[Message]:
    """Messages of a turn: a step of calls with their results, or what the person says."""
    found: list[Message] = []

    def say(role: Role, *parts: object) -> None:
        uid = f"{len(found):032x}"
        found.append(
            Message.of(seq=len(found) + 1, uid=uid, role=role, parts=parts, created_at=0)  # pyright: ignore[reportArgumentType]
        )

    for at, step in enumerate(steps):
        if isinstance(step, str):
            say(Role.USER, Text(step))
            continue
        calls = [ToolCall(f"{at}-{n}", name, words) for n, (name, words, _) in enumerate(step)]
        say(Role.ASSISTANT, Text(f"step {at}"), *calls)
        for n, (name, _, result) in enumerate(step):
            say(Role.TOOL, ToolResult(f"{at}-{n}", result, name))
    return found


A, B, C = [("read", '{"a":1}', "x")], [("run", "{}", "y")], [("look", "", "z")]


def other(n: int) -> list[Called]:
    return [("read", f'{{"n":{n}}}', "x")]


@pytest.mark.parametrize(
    ("steps", "times"),
    [
        ([], 0),
        (["hello"], 0),
        (["hello", A], 1),
        (["hello", A, A, A], 3),
        (["hello", A, B], 1),
        (["hello", A, B, A, B], 2),
        (["hello", B, A, B, A, B], 2),
        (["hello", A, B, C, A, B, C, A, B, C], 3),
        (["hello", A, A, A, B], 1),
        (["hello", A, A, "no, stop", A], 1),
    ],
)  # fmt: skip
def test_a_round_of_up_to_three_steps_is_counted(
    steps: list[list[Called] | str], times: int
) -> None:
    assert repeats(talk(*steps)) == times


def test_arguments_are_compared_as_json() -> None:
    first, second = [("read", '{"a": 1, "b": [2]}', "x")], [("read", '{"b":[2],"a":1}', "x")]
    assert repeats(talk(first, second)) == 2
    assert canonical(" not json ") == "not json"
    assert canonical("[" * 100_000) == "[" * 100_000
    assert canonical('{"a":1}') != canonical('{"a":2}')


def test_another_result_is_no_loop() -> None:
    steps = [[("read", "{}", str(n))] for n in range(10)]
    assert repeats(talk(*steps)) == 1


def test_the_same_text_as_an_error_is_another_result() -> None:
    messages = talk(A, A)
    last = messages[-1]
    failed = ToolResult("1-0", "x", "read", is_error=True)
    messages[-1] = Message.of(
        seq=last.seq, uid=last.uid, role=last.role, parts=(failed,), created_at=0
    )
    assert repeats(messages) == 1


def test_results_with_other_images_are_other_results() -> None:
    def seen(digest: str) -> list[Message]:
        parts: Parts = (ToolResult("c", (Text("shot"), Image(hash=digest)), "shot"),)
        call: Parts = (ToolCall("c", "shot", "{}"),)
        return [
            Message.of(seq=1, uid="1" * 32, role=role, parts=p, created_at=0)
            for role, p in ((Role.ASSISTANT, call), (Role.TOOL, parts))
        ]

    assert repeats([*seen("a" * 64), *seen("a" * 64)]) == 2
    assert repeats([*seen("a" * 64), *seen("b" * 64)]) == 1


def test_the_order_of_calls_in_one_step_does_not_count() -> None:
    assert repeats(talk([*A, *B], [*B, *A])) == 2


def test_calls_without_results_are_not_looked_at() -> None:
    messages = talk(A, A, A)
    assert repeats(messages[:-1]) == 2


def test_a_loop_says_what_it_is() -> None:
    messages = talk("hello", A, B, A, B, A, B)
    loop = find(messages, 3)
    assert loop is not None
    assert (loop.times, loop.calls) == (3, ("read", "run"))
    assert "read, then run" in loop.shown
    assert "limits.repeats" in loop.shown
    assert find(messages, 4) is None
    assert find(messages, 0) is None


@given(
    before=st.lists(st.integers(0, 5), max_size=12),
    size=st.integers(1, LONGEST),
    times=st.integers(2, 6),
)
def test_a_round_is_found_behind_anything(before: list[int], size: int, times: int) -> None:
    """Of whatever length, and with the limit at which the host asks."""
    round_ = [other(100 + n) for n in range(size)]
    messages = talk(*(other(n) for n in before), *round_ * times)
    assert repeats(messages) == times
    loop = find(messages, times)
    assert loop is not None
    assert len(loop.calls) == size
    assert find(messages, times + 1) is None


@given(st.lists(st.integers(0, 2), max_size=24))
def test_it_is_what_a_plain_count_says(path: list[int]) -> None:
    steps = [other(n) for n in path]
    wanted = 0
    for size in range(1, LONGEST + 1):
        last, times = path[-size:], 0
        while len(last) == size and path[len(path) - (times + 1) * size :][:size] == last:
            times += 1
            if (times + 1) * size > len(path):
                break
        wanted = max(wanted, times)
    assert repeats(talk(*steps)) == wanted


def test_only_the_end_of_a_long_turn_is_looked_at() -> None:
    """A turn may have a thousand steps: what stands before the end is not even decoded."""

    class Untouched(list[Message]):
        looked = 0

        def __reversed__(self) -> Iterator[Message]:
            for at in range(len(self) - 1, -1, -1):
                self.looked += 1
                yield self[at]

    messages = Untouched(talk("hello", *(other(n) for n in range(1_000))))
    assert find(messages, 3) is None
    assert messages.looked < 30
    looping = Untouched(talk("hello", *[A] * 1_000))
    assert find(looping, 3) is not None
    assert looping.looked < 100
