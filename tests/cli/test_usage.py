"""clew usage: tokens, cost and cache hits, by model, day and conversation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.cli.text import cells
from clew.cli.usage_chart import chart, dollars, short
from clew.cli.usage_rows import Sum, filled
from clew.clock import SECOND
from clew.testing.clock import FakeClock

from .helpers import Run
from .test_terminal import terminal

HOUR = 3600 * SECOND
DAY = 24 * HOUR


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ten days with a call of each of two models, titles among them; one model has no price. Gives
    the ids of the two conversations."""
    path = tmp_path / "clew.db"
    monkeypatch.setenv("CLEW_STORE", str(path))
    clock = FakeClock(step=0)
    clock.advance(int(time.time()) * SECOND - 9 * DAY - HOUR - clock.now())
    with clew.open(path, clock=clock) as store:
        profile = store.profile("default")
        one, two = profile.create(title="First 日本"), profile.create(title="Second")
        for number in range(10):
            _call(one, "openai/gpt-5", 1000, 0.25, "title" if number == 9 else "turn")
            _call(two, "ollama/qwen", 100, None, "turn")
            clock.advance(DAY)
        old = store.profile("other").create()
        _call(old, "openai/gpt-5", 7, 1.0, "turn")
        return [one.id, two.id]


def _call(
    conv: clew.Conversation, model: str, tokens: int, cost: float | None, purpose: Any
) -> None:
    number = conv.plan_call(clew.CallPlan(model=model, purpose=purpose))
    usage = clew.Usage(tokens, tokens // 10, tokens // 2, 5)
    conv.finish_call(number, clew.CallResult(usage=usage, cost=cost))


def test_by_model(calls: list[str], run: Run) -> None:
    lines = [line.split() for line in run("usage").stdout.splitlines()]
    title = ["MODEL", "CALLS", "IN", "CACHED", "OUT", "COST", "REASONING", "FAILED"]
    assert lines[:4] == [
        title,
        ["openai/gpt-5", "10", "10,000", "50", "%", "1,000", "$2.50", "50", "0"],
        ["ollama/qwen", "10", "1,000", "50", "%", "100", "-", "50", "0"],
        ["total", "20", "11,000", "50", "%", "1,100", "$2.50", "100", "0"],
    ]
    assert [line[0] for line in lines[5:8]] == ["PURPOSE", "turn", "title"]
    assert "without 10 of 20 calls" in run("usage").stdout


def test_json_is_exact(calls: list[str], loads: Any) -> None:
    found = loads("usage", "--by", "model")
    assert found["total"] == {
        "calls": 20, "failed": 0, "input": 11_000, "cached": 5_500, "cache_share": 0.5,
        "output": 1_100, "reasoning": 100, "cost": 2.5, "priced_calls": 10,
    }  # fmt: skip
    assert [(row["model"], row["cost"]) for row in found["rows"]] == [
        ("openai/gpt-5", 2.5), ("ollama/qwen", None),
    ]  # fmt: skip
    assert [(each["purpose"], each["calls"]) for each in found["purposes"]] == [
        ("turn", 19), ("title", 1),
    ]  # fmt: skip


def test_by_conversation(calls: list[str], run: Run, loads: Any) -> None:
    rows = loads("usage", "--by", "conversation")["rows"]
    assert [(row["conversation"], row["title"], row["input"]) for row in rows] == [
        (calls[0], "First 日本", 10_000), (calls[1], "Second", 1_000),
    ]  # fmt: skip
    result = run("usage", "--by", "conversation", "--limit", 1)
    assert "First 日本" in result.stdout
    assert "Second" not in result.stdout
    assert "1 more" in result.stderr


def test_by_day_is_local(calls: list[str], loads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is of the day that the person had, with a zone of half hours, too."""
    for zone in ("UTC", "Asia/Kathmandu", "America/St_Johns"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        rows = loads("usage", "--by", "day")["rows"]
        begun = int(time.time()) - 9 * 86400 - 3600
        wanted = {time.strftime("%Y-%m-%d", time.localtime(begun + n * 86400)) for n in range(10)}
        assert {row["day"] for row in rows} == wanted
        assert sum(row["calls"] for row in rows) == 20
    monkeypatch.undo()
    time.tzset()


def test_only_what_is_asked_for(calls: list[str], loads: Any, run: Run) -> None:
    assert loads("usage", "--since", "36h")["total"]["calls"] == 4
    assert len(loads("usage", "--by", "day", "-n", 3)["rows"]) == 3
    assert loads("--profile", "other", "usage")["total"]["input"] == 7
    nothing = run("usage", "--since", "1m")
    assert nothing.stdout == ""
    assert "No model was called since" in nothing.stderr
    assert run("usage", "--by", "week", code=2).stdout == ""


def test_without_a_store(run: Run, loads: Any) -> None:
    assert loads("usage") == {}
    assert "There is no store" in run("usage").stderr


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_bars_on_a_terminal_fit_it(calls: list[str], columns: int) -> None:
    code, output = terminal("usage", columns=columns, NO_COLOR="1")
    assert code == 0
    assert "\x1b" not in output
    lines = [line for line in output.splitlines() if "█" in line]
    assert len(lines) == 10
    assert all(cells(line) <= columns for line in lines)
    assert terminal("usage", columns=columns)[1].count("\x1b[32m") == 10


def test_a_pipe_has_no_bars(calls: list[str], run: Run) -> None:
    assert "█" not in run("usage").stdout
    assert "#" not in run("usage").stdout


def _sum(day: str, tokens: int) -> Sum:
    return Sum(day, calls=1, priced=1, input=tokens, cost=tokens / 1e4)


def test_days_without_a_call_are_shown() -> None:
    days = filled([_sum("2026-02-27", 1), _sum("2026-03-02", 2)], 31)
    assert [(each.key, each.tokens) for each in days] == [
        ("2026-02-27", 1), ("2026-02-28", 0), ("2026-03-01", 0), ("2026-03-02", 2),
    ]  # fmt: skip
    assert [each.key for each in filled(days, 2)] == ["2026-03-01", "2026-03-02"]
    assert filled([], 31) == []


@given(
    st.lists(st.integers(0, 10**14), min_size=1, max_size=5), st.integers(20, 200), st.booleans()
)
def test_bars_say_how_much(tokens: list[int], width: int, unicode: bool) -> None:
    days = [_sum(f"2026-01-0{at}", count) for at, count in enumerate(tokens, 1)]
    lines = [*chart(days, width, unicode)]
    texts = ["".join(piece for piece, _ in line) for line in lines]
    assert len({cells(text) for text in texts}) == 1
    assert cells(texts[0]) <= max(width, 40)
    assert unicode or all(text.isascii() for text in texts)
    bars = [line[2][0].strip() for line in lines if line[2][1] == "green"]
    if bars:
        assert [bool(bar) for bar in bars] == [bool(count) for count in tokens]
        pairs = [(x, y) for x in range(len(bars)) for y in range(len(bars))]
        assert all(len(bars[x]) <= len(bars[y]) for x, y in pairs if tokens[x] < tokens[y])
        assert len(bars[tokens.index(max(tokens))]) == max(map(len, bars))


def test_numbers_for_people() -> None:
    assert [*map(short, (0, 999, 1000, 99_949, 123_456, 999_950, 4_500_000, 10**15))] == [
        "0", "999", "1.0k", "99.9k", "123k", "1.0M", "4.5M", "1,000T",
    ]  # fmt: skip
    assert [dollars(0, 0), dollars(0, 1), dollars(0.001, 1), dollars(1234.5, 1)] == [
        "-", "$0.00", "<$0.01", "$1,234.50",
    ]  # fmt: skip
