"""clew context: what a model would see, as a bar, as a list, as JSON, as a request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import clew
from clew.cli import tokenbar
from clew.cli.text import cells
from clew.cli.tokenbar import Section

from .helpers import ESCAPES, Demo, Run, Talk
from .test_terminal import terminal

Loads = Callable[..., Any]


def bar_of(shown: str) -> str:
    """The bar of an output."""
    return next(line for line in shown.splitlines() if line.startswith("["))


def test_a_bar_a_legend_and_the_messages(talk: Talk, run: Run) -> None:
    shown = run("context", talk.id, "--window", "1000000").stdout
    bar = bar_of(shown)
    assert len(bar) == tokenbar.WIDEST + 2
    assert set(bar) <= set("[STr.]")
    assert re.search(r"^ T tail +[\d,]+ +\d+ %  the newest, as written, \d+ messages$", shown, re.M)
    assert re.search(r"^ \. free +[\d,]+", shown, re.M)
    assert "It fits. A compaction is due in " in shown
    assert re.search(r"^  #3 +user +\d+  read packages/coding-agent/docs/theme\.md", shown, re.M)
    assert re.search(r"^  #5 +tool +[\d,]+  (←|<-) read  # Pi Coding Agent Themes", shown, re.M)
    assert "#914" in shown


def test_the_figures_add_up(talk: Talk, loads: Loads) -> None:
    told = loads("context", talk.id, "--window", "1000000")
    assert told["fits"] is True
    assert told["error"] is None
    assert told["window"] == 1_000_000 > told["limit"] > told["tokens"] > 100_000
    assert told["model"] == "claude-sonnet-4-5"
    by_section = sum(section["tokens"] for section in told["sections"].values())
    assert told["tokens"] == by_section
    assert told["tokens"] - told["sections"].get("system", {"tokens": 0})["tokens"] == sum(
        message["tokens"] for message in told["messages"]
    )
    assert told["messages"][0]["text"] == "/mode"
    assert told["messages"][-1]["last"] == 914
    many = sum(section["messages"] for section in told["sections"].values())
    assert many == len(told["messages"])


def test_what_does_not_fit_is_said_and_nothing_is_changed(
    talk: Talk, run: Run, loads: Loads
) -> None:
    shown = run("context", talk.id, "--window", "30000").stdout
    assert re.search(r"It would not fit: [\d,]+ tokens are more than there is room for\.", shown)
    assert f"clew compact {talk.id[:8]}" in shown
    assert "!" in bar_of(shown)
    told = loads("context", talk.id, "--window", "30000")
    assert told["fits"] is False
    assert told["tokens"] > told["limit"]
    assert "Compact the conversation" in told["error"]
    assert len(told["messages"]) > 500
    with talk.open() as conversation:
        assert conversation.compactions() == conversation.attempts() == ()
    error = run("context", talk.id, "--window", "30000", "--format", "chat", code=2).stderr
    assert error.startswith("clew: the context takes ")


def test_after_a_compaction_all_sections_are_there(talk: Talk, run: Run, loads: Loads) -> None:
    run("compact", talk.id, "--window", "100000")
    told = loads("context", talk.id, "--window", "100000")
    assert told["fits"] is True
    assert told["generation"] == 1
    assert {"ledger", "tail"} <= told["sections"].keys()
    sections = [message["section"] for message in told["messages"]]
    order = [name for name in tokenbar.KINDS if name in sections]
    assert list(dict.fromkeys(sections)) == order
    shown = run("context", talk.id, "--window", "100000").stdout
    assert "L" in bar_of(shown)
    assert re.search(r"^  - +user +[\d,]+  ", shown, re.M)  # the ledger has no number


@pytest.mark.parametrize("format", ["chat", "responses", "anthropic"])
def test_the_messages_of_a_request(demo: Demo, run: Run, format: str) -> None:
    shown = run("context", demo.ids.flaky, "--format", format).stdout
    request = json.loads(shown)
    if format == "chat":
        assert request[0] == {"role": "system", "content": "You are a careful engineer."}
        assert request[1]["content"] == "The retry test fails now and then. Why?"
        with demo.open() as store:
            conversation = store.profile("default").open(demo.ids.flaky)
            context = clew.Compactor(model="gpt-5").context(conversation)
            assert request == context.chat(conversation.blob)
    elif format == "responses":
        assert request["instructions"] == "You are a careful engineer."
        kinds = [item.get("type", "message") for item in request["input"]]
        assert "function_call" in kinds
        assert "function_call_output" in kinds
    else:
        assert request["system"] == "You are a careful engineer."
        roles = [message["role"] for message in request["messages"]]
        assert all(a != b for a, b in pairwise(roles))
        assert roles[0] == "user"


def test_full_messages_and_harmless_ones(demo: Demo, run: Run) -> None:
    short = run("context", demo.ids.flaky).stdout
    assert "line 119" not in short
    full = run("context", demo.ids.flaky, "--full", "--no-pager").stdout
    assert "line 119" in full
    with demo.open() as store:
        chat = store.profile("default").conversation("hostile", source="cli")
        chat.add(clew.user(f"look {ESCAPES}"))
        id = chat.id
    for args in ([], ["--full"]):
        shown = run("context", id, *args).stdout
        assert "^[[31mred" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_the_model_changes_what_is_counted(talk: Talk, loads: Loads) -> None:
    window = ("--window", "1000000")
    one = loads("context", talk.id, "--model", "gpt-5", *window)
    other = loads("context", talk.id, "--model", "claude-sonnet-4-5", *window)
    assert one["model"] == "gpt-5"
    assert one["tokens"] < other["tokens"]


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_on_terminals_of_any_width(demo: Demo, columns: int) -> None:
    code, shown = terminal("context", demo.ids.flaky, columns=columns)
    assert code == 0
    assert "\x1b[32m█" in shown  # the tail is green
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert all(cells(line) <= columns for line in plain.splitlines())
    assert len(bar_of(plain)) == min(columns, tokenbar.WIDEST + 2)


def test_without_colours_letters_make_the_bar(demo: Demo) -> None:
    _, shown = terminal("context", demo.ids.flaky, NO_COLOR="1")
    assert "\x1b[" not in shown
    assert "█" not in shown
    assert "T" in bar_of(shown)


def test_an_empty_conversation(demo: Demo, run: Run, loads: Loads) -> None:
    with demo.open() as store:
        empty = store.profile("default").create(source="cli").id
    assert "It fits." in run("context", empty).stdout
    assert loads("context", empty)["messages"] == []


def test_wrong_use(demo: Demo, run: Run) -> None:
    assert "no conversation" in run("context", "nothing", code=3).stderr
    run("context", demo.ids.flaky, "--window", "0", code=2)
    assert "window" in run("context", demo.ids.flaky, "--window", "10", code=2).stderr
    run("context", demo.ids.flaky, "--format", "yaml", code=2)


# ---------------------------------------------------------------- the bar itself


def test_every_section_has_a_cell_and_all_cells_are_used() -> None:
    found = tokenbar.sections(
        [Section("system", 1), Section("head", 0), Section("tail", 99_000, 9)], 110_000, 20_000
    )
    assert [each.name for each in found] == ["system", "tail", "free", "reply"]
    drawn = "".join(text for text, _ in tokenbar.bar(found, 42, False, True).pieces)
    assert len(drawn) == 42
    assert drawn.startswith("[ST")
    assert drawn.count("T") == 30  # 30.5 cells, and the system has one of them
    assert drawn.endswith("r]")


def test_what_is_over_is_drawn_once() -> None:
    found = tokenbar.sections([Section("system", 10), Section("tail", 90, 2)], 60, 20)
    assert found[-2:] == [Section("over", 40), Section("reply", 20)]
    drawn = "".join(text for text, _ in tokenbar.bar(found, 62, False, True).pieces)
    assert drawn == "[" + "S" * 5 + "T" * 25 + "!" * 20 + "r" * 10 + "]"


def test_shares_of_nothing_and_of_little() -> None:
    assert tokenbar.shares([0, 0], 10) == [0, 0]
    assert tokenbar.shares([1, 1, 1], 10) == [4, 3, 3]
    assert sum(tokenbar.shares([1, 10**9, 3], 10)) == 10
    assert [tokenbar.percent(*pair) for pair in ((0, 9), (1, 900), (1, 2), (1, 0))] == [
        "0 %", "<1 %", "50 %", "-",
    ]  # fmt: skip
