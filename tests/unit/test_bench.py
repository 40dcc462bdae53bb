"""The benchmark harness: its text never changes, its JSON keeps its shape, nothing absent is ok."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import children, envs, jobs, report, workload  # noqa: E402
from benchmarks.host import hosts, start  # noqa: E402
from benchmarks.measure import (  # noqa: E402
    Interleaved,
    NotRun,
    Outcome,
    Reading,
    Target,
    interleave,
    percentile,
)

from clew.domain.parts import Text, ToolCall  # noqa: E402
from clew.providers.api import Body  # noqa: E402

AT_MOST = Target("cost", 2.0)
AT_LEAST = Target("rate", 0.6, at_least=True, sides=("clew", "bare"))
BIG = Target("big", 1.5, size=1_000_000)


# ------------------------------------------------------------------ the text


def test_w1_is_the_same_on_every_machine():
    chats = list(workload.w1(conversations=3, messages=8))
    text = json.dumps([(chat.name, chat.messages) for chat in chats], ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == "9da90ec9b780be43fbccfb3e87f7a356d9a7008e5f24ab4f1e692d8022bf5888"


def test_w1_does_not_depend_on_how_much_is_asked_for():
    long = list(workload.w1(conversations=2, messages=40))[1]
    short = next(workload.w1(conversations=1, messages=8, first=1))
    assert short.name == long.name
    assert short.messages == long.messages[:8]


def test_w1_messages_weigh_about_600_bytes():
    weights = [workload.payload(m) for chat in workload.w1(20) for m in chat.messages]
    assert len(weights) == 2_000
    assert 550 < sum(weights) / len(weights) < 700


def test_a_turn_is_a_question_a_call_its_result_and_an_answer():
    messages = next(workload.w1(1, 8)).messages
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant"] * 2
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]
    assert messages[6]["tool_call_id"] == messages[5]["tool_calls"][0]["id"]
    json.loads(messages[1]["tool_calls"][0]["function"]["arguments"])


def test_realistic_messages_have_the_shares_they_promise():
    weights = [workload.payload(m) for chat in workload.realistic(20) for m in chat.messages]
    share = {
        size: sum(0.85 * size < w < 1.15 * size for w in weights) / len(weights)
        for size in (600, 2_000, 10_000)
    }
    assert share[600] == pytest.approx(0.70, abs=0.05)
    assert share[2_000] == pytest.approx(0.25, abs=0.05)
    assert share[10_000] == pytest.approx(0.05, abs=0.02)


def test_a_grown_store_has_its_size_and_its_planted_words():
    messages = [m for chat in workload.grown(50_000) for m in chat.messages]
    assert len(messages) == 50_000
    assert sum(workload.RARE_WORD in m["content"] for m in messages) == 2
    assert 25 < sum(workload.TWO_CJK in m["content"] for m in messages) < 40


# ------------------------------------------------------------------ figures


def test_the_value_is_the_ratio_of_the_medians():
    samples = Interleaved({"clew": [1.0, 9.0, 3.0], "floor": [2.0, 2.0, 50.0]})
    reading = samples.ratio("clew", "floor", "µs")
    assert (reading.value, reading.left, reading.right, reading.rounds) == (1.5, 3.0, 2.0, 3)


def test_rounds_turn_the_order_of_the_sides():
    calls: list[str] = []

    def side(name: str) -> float:
        calls.append(name)
        return 1.0

    interleave(2, {"a": lambda: side("a"), "b": lambda: side("b")})
    assert calls == ["a", "b", "b", "a"]


def test_percentile_is_the_nearest_rank():
    assert percentile([float(n) for n in range(100, 0, -1)], 0.99) == 100.0
    assert percentile([1.0], 0.99) == 1.0


@pytest.mark.parametrize(
    ("target", "value", "ok"),
    [(AT_MOST, 2.0, True), (AT_MOST, 2.01, False), (AT_LEAST, 0.6, True), (AT_LEAST, 0.59, False)],
)
def test_the_limit_itself_is_met(target: Target, value: float, ok: bool):
    assert Outcome(target, Reading(value)).ok is ok


# ------------------------------------------------------------------ the JSON


def test_json_is_one_object_of_name_value_target_ok_unit():
    outcomes = [
        Outcome(AT_MOST, Reading(1.23456, 12.3456, 10.0, "µs", 5)),
        Outcome(BIG, note="--quick stops at 200,000 messages"),
        Outcome(Target("comparison", None), Reading(3.0)),
    ]
    told = json.loads(report.as_json(outcomes))
    assert set(told) == {"cost", "big"}
    assert told["cost"]["value"] == 1.235
    assert told["cost"]["target"] == 2.0
    assert told["cost"]["ok"] is True
    assert told["cost"]["unit"] == "x"
    assert told["cost"]["sides"] == {"clew": 12.35, "floor": 10.0, "unit": "µs"}


def test_what_was_not_run_is_never_ok():
    told = Outcome(BIG, note="no time").as_json()
    assert told["value"] is None
    assert told["ok"] is False
    assert told["note"] == "not run"
    assert told["reason"] == "no time"
    for text in (report.as_text({}, [Outcome(BIG)]), report.as_markdown({}, [Outcome(BIG)])):
        assert "not run" in text
        assert "0 targets met, 0 missed, 1 not run" in text


def test_markdown_says_by_how_much_a_figure_is_missed():
    text = report.as_markdown({"machine": "a box"}, [Outcome(AT_MOST, Reading(3.0))])
    assert "- **machine**: a box" in text
    assert "`cost`: 3 instead of 2, 50% over." in text


# ------------------------------------------------------------------ not run


def _answers(job: jobs.Job, quick: bool, monkeypatch: pytest.MonkeyPatch, capfd, tmp_path: Path):
    monkeypatch.setattr(jobs, "jobs", lambda area: (job,))
    jobs.serve("store", job.name, quick, str(tmp_path))
    lines = capfd.readouterr().out.splitlines()
    return {line["name"]: line for line in map(json.loads, lines)}


def test_a_job_that_gives_up_keeps_what_it_has_read(monkeypatch, capfd, tmp_path):
    def run(bench: jobs.Bench):
        yield "cost", Reading(1.0)
        raise NotRun("the peer is missing")

    job = jobs.Job("job", run, (AT_MOST, AT_LEAST))
    answers = _answers(job, False, monkeypatch, capfd, tmp_path)
    assert answers["cost"]["reading"]["value"] == 1.0
    assert answers["rate"] == {"name": "rate", "reading": None, "reason": "the peer is missing"}


def test_a_quick_job_is_not_asked_for_big_stores(monkeypatch, capfd, tmp_path):
    seen: list[frozenset[str]] = []

    def run(bench: jobs.Bench):
        seen.append(bench.wanted)
        yield "cost", Reading(1.0)

    job = jobs.Job("job", run, (AT_MOST, BIG))
    _answers(job, True, monkeypatch, capfd, tmp_path)
    assert seen == [frozenset({"cost"})]


def test_a_job_of_big_stores_only_is_not_started_by_quick(monkeypatch):
    def run(bench: jobs.Bench):
        raise AssertionError("started")

    monkeypatch.setattr(jobs, "jobs", lambda area: (jobs.Job("job", run, (BIG,)),))
    (outcome,) = jobs.run_area("store", quick=True)
    assert not outcome.ok
    assert outcome.as_json()["note"] == "not run"
    assert "200,000" in outcome.note


def test_a_job_is_stopped_when_the_quick_time_is_used_up(monkeypatch):
    monkeypatch.setattr(jobs, "QUICK_SECONDS", 0.0)
    outcomes = jobs.run_area("store", quick=True)
    assert outcomes
    assert not any(outcome.ok for outcome in outcomes)
    assert all(outcome.as_json()["note"] == "not run" for outcome in outcomes)


def test_a_process_is_killed_with_its_children_when_its_time_is_up():
    shell = "sleep 600 & sleep 600"  # the child holds the pipe as long as it lives
    with jobs.limited(["sh", "-c", shell], 0.2) as process:
        assert process.stdout is not None
        assert process.stdout.read() == ""
        assert process.wait() < 0


def test_a_missing_peer_comes_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(envs, "WORK", tmp_path)
    with pytest.raises(NotRun, match="scripts/bench setup"):
        children.peer_python("hermes")


# ------------------------------------------------------------------ the list


@pytest.mark.parametrize("area", ["store", "compaction", "host", "crash"])
def test_every_target_has_one_name_and_a_sentence(area: str):
    targets = [target for job in jobs.jobs(area) for target in job.targets]
    names = [target.name for target in targets]
    assert len(names) == len(set(names))
    assert all(target.says for target in targets)


# ------------------------------------------------------------------ the host


def test_a_prompt_is_waited_for_on_a_terminal():
    drawn = "import sys, time; assert sys.stdin.isatty(); print('\\x1b[1m> ', end='', flush=True)"
    took = start.to_prompt([sys.executable, "-c", drawn + "; time.sleep(600)"], os.environ)
    assert 0 < took < 30_000


def test_a_chat_that_ends_without_a_prompt_is_no_reading():
    with pytest.raises(RuntimeError, match="what went wrong"):
        start.to_prompt([sys.executable, "-c", "print('what went wrong')"], os.environ)


def test_turns_ask_for_a_tool_only_where_they_are_to():
    for tool in (False, True):
        messages = [{"role": "user", "content": hosts.question(3, tool=tool)}]
        parts = hosts.answered(Body({"messages": messages}), 2)
        assert [isinstance(part, ToolCall) for part in parts] == [tool]
        messages += [{"role": "assistant"}, {"role": "tool", "content": "Seen."}]
        (answer,) = hosts.answered(Body({"messages": messages}), 2)
        assert isinstance(answer, Text)
