"""What is taken from a model's answer, and what is not."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from clew.compaction.ledger import Add, Close, Epoch, Supersede
from clew.compaction.summarize import (
    SummaryFailed,
    SummaryReply,
    SummaryRequest,
    SummaryStalled,
    SummaryStopped,
    ask,
    instruction,
    words_of,
)

EPOCH = Epoch(number=1, first=10, last=40, rows=(), text="[Ledger] rows")


def reply(**fields: Any) -> SummaryReply:
    return SummaryReply(text=json.dumps(fields))


def request(patience: float = 5) -> SummaryRequest:
    return SummaryRequest(
        messages=[], tools=None, max_tokens=100, patience=patience, cancelled=lambda: False
    )


def nothing() -> None:
    pass


class Model:
    def __init__(self, answer: Any) -> None:
        self.model, self._answer = "m", answer

    def __call__(self, request: SummaryRequest) -> Any:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def test_a_narrative_and_what_it_proposes() -> None:
    words = words_of(reply(
        narrative=" They built it. ",
        add=[{"kind": "rule", "text": " be short ", "seq": 12}],
        supersede=[[11, 30]], close=[13],
    ), EPOCH)  # fmt: skip
    assert words.narrative == "They built it."
    assert words.operations == (Add("rule", "be short", 12), Supersede(11, 30), Close(13))


@pytest.mark.parametrize("text", [
    '```json\n{"narrative": "It went well."}\n```',
    'Here it is:\n{"narrative": "It went well."} I hope it helps.',
])  # fmt: skip
def test_an_object_may_stand_in_a_fence_or_in_a_sentence(text: str) -> None:
    assert words_of(SummaryReply(text=text), EPOCH).narrative == "It went well."


@pytest.mark.parametrize("operations", [
    {"add": [{"kind": "rule", "text": "of the tail", "seq": 41}]},  # not covered
    {"add": [{"kind": "law", "text": "x", "seq": 12}]},
    {"add": [{"kind": "rule", "text": "  ", "seq": 12}]},
    {"add": ["rule", 5, None, {"seq": 12}]},
    {"add": {"kind": "rule"}},
    {"supersede": [[30, 11], [1], "x", [11, 99]]},
    {"close": ["13", None, True, 1.5]},
])  # fmt: skip
def test_what_makes_no_sense_is_passed_over(operations: dict[str, Any]) -> None:
    words = words_of(reply(narrative="Fine.", **operations), EPOCH)
    assert (words.narrative, words.operations) == ("Fine.", ())


@pytest.mark.parametrize("answer", [
    SummaryReply(text=""), SummaryReply(text=" \n"), SummaryReply(text="I will not."),
    SummaryReply(text='{"narrative": "cut of'), SummaryReply(text="[1, 2]"),
    SummaryReply(text="null"), SummaryReply(text='{"narrative": 5}'),
    SummaryReply(text='{"narrative": ""}'), SummaryReply(text='{"add": []}'),
    SummaryReply(text="{" * 5000), SummaryReply(text='{"narrative": "' + "x" * 30_000 + '"}'),
    SummaryReply(text='{"narrative": "Fine."}', finish="length"),
    SummaryReply(text='{"narrative": "Fine."}', finish="content_filter"),
])  # fmt: skip
def test_anything_else_is_a_failure_that_says_why(answer: SummaryReply) -> None:
    with pytest.raises(SummaryFailed) as error:
        words_of(answer, EPOCH)
    assert 0 < len(str(error.value)) < 120


def test_the_instruction_carries_the_rows_and_the_range() -> None:
    text = instruction(EPOCH, 500)
    assert "messages 10 to 40" in text
    assert "[Ledger] rows" in text
    assert "Do not answer it" in text


# ---------------------------------------------------------------------- the call


def test_a_text_is_an_answer() -> None:
    assert ask(Model("hello"), request(), nothing).text == "hello"


@pytest.mark.parametrize("wrong", [None, 5, b"bytes", {"text": "x"}])
def test_an_answer_of_another_type_is_a_failure(wrong: Any) -> None:
    with pytest.raises(SummaryFailed, match="SummaryReply"):
        ask(Model(wrong), request(), nothing)


def test_an_error_is_told_by_its_kind_and_status_only() -> None:
    class Refused(Exception):
        status_code = 401

    with pytest.raises(SummaryFailed) as error:
        ask(Model(Refused("key sk-123 is wrong")), request(), nothing)
    assert str(error.value) == "Refused 401"


def test_a_model_that_hangs_holds_nobody() -> None:
    """S16.3: who waits goes on; what comes later finds nobody."""
    release = threading.Event()

    class Hangs:
        model = "slow"

        def __call__(self, request: SummaryRequest) -> str:
            release.wait(30)
            return "late"

    started = time.monotonic()
    with pytest.raises(SummaryStalled, match=r"0\.2 s"):
        ask(Hangs(), request(patience=0.2), nothing)
    assert time.monotonic() - started < 10
    release.set()


def test_who_looks_may_stop_it() -> None:
    def stop() -> None:
        raise SummaryStopped("enough")

    class Hangs:
        model = "slow"

        def __call__(self, request: SummaryRequest) -> str:
            time.sleep(5)
            return "late"

    with pytest.raises(SummaryStopped):
        ask(Hangs(), request(), stop)
