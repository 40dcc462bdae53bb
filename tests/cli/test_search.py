"""clew search."""

from __future__ import annotations

import json
from typing import Any

import pytest

import clew
from clew.cli.commands import search as module

from .helpers import Demo, Run, process


def test_a_hit_is_a_line_in_a_pipe(demo: Demo, run: Run) -> None:
    line = run("search", "kirschen").stdout
    id, seq, role, at, title, snippet = line.rstrip("\n").split("\t")
    assert (id, seq, role) == (demo.ids.trip, "1", "user")
    assert title == "Reise nach Kyōto 京都"
    assert snippet == "Wann blühen die Kirschen in 京都?"
    assert at.endswith("Z")


def test_words_phrases_and_what_must_not_be_there(demo: Demo, run: Run) -> None:
    assert run("search", "question", "10").stdout.count("\n") == 1
    assert run("search", '"about the scheduler"', "-n", 50).stdout.count("\n") == 30
    assert run("search", "-n", 50, "--", "scheduler", "-12").stdout.count("\n") == 29
    assert run("search", "京").stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["scheduler", "--role", "assistant"], 0),
        (["answer", "--role", "assistant", "--limit", "100"], 30),
        (["line", "--tool", "read_file"], 1),
        (["answer", "--tool", "read_file"], 0),
        (["kirschen", "--source", "telegram"], 1),
        (["kirschen", "--source", "cli"], 0),
        (["diff", "--model", "gpt-5"], 1),
        (["diff", "--project", "/home/ann/app"], 1),
        (["diff", "--branch", "main"], 1),
        (["diff", "--branch", "dev"], 0),
        (["diff", "--since", "1h"], 1),
        (["diff", "--until", "1h"], 0),
        (["shall"], 1),
        (["done"], 0),
        (["done", "--hidden"], 1),
        (["scheduler", "--order", "relevance", "-n", "3"], 3),
    ],
)
def test_filters(demo: Demo, run: Run, options: list[str], count: int) -> None:
    found = json.loads(run("search", *options, "--json", code=0 if count else 1).stdout)
    assert len(found) == count


def test_in_one_conversation_by_prefix(demo: Demo, loads: Any) -> None:
    assert loads("search", "retry", "--in", demo.ids.trip[:6], code=1) == []
    found = loads("search", "retry", "--in", demo.ids.other_way[:6])
    assert {hit["conversation"] for hit in found} == {demo.ids.other_way}


def test_archived_ones_only_when_asked_for(demo: Demo, loads: Any, run: Run) -> None:
    run("archive", demo.ids.trip)
    assert loads("search", "kirschen", code=1) == []
    assert len(loads("search", "kirschen", "--archived")) == 1


def test_pages_follow_each_other(demo: Demo, run: Run) -> None:
    seqs: list[int] = []
    cursor: list[str] = []
    while True:
        result = run("search", "scheduler", "--limit", 7, "--json", *cursor)
        seqs += [hit["seq"] for hit in json.loads(result.stdout)]
        if not result.stderr:
            break
        cursor = ["--cursor", json.loads(result.stderr)["next"]]
    assert seqs == list(range(59, 0, -2))
    assert "--cursor" in run("search", "scheduler", "-n", 1).stderr


def test_nothing_found_is_said_and_is_a_failure(demo: Demo, run: Run) -> None:
    result = run("search", "unheard-of", code=1)
    assert (result.stdout, result.stderr) == ("", "Nothing was found.\n")


def test_a_file_far_behind_is_brought_up_to_date_first(
    demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FAR", 10)
    run("search", "kirschen")
    with demo.open() as store:
        assert store.search_index.status().behind == 0


def test_rows_behind_are_told(demo: Demo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(profile: clew.Profile, query: clew.SearchQuery) -> clew.SearchPage:
        return clew.SearchPage(hits=(), next=None, behind=12, scanned=0)

    monkeypatch.setattr(clew.Profile, "search", late)
    result = run("search", "x", code=1)
    assert "12 messages could not be looked at" in result.stderr
    assert json.loads(run("search", "x", "--json", code=1).stderr)["behind"] == 12


def test_as_a_process(demo: Demo) -> None:
    done = process("search", "京都", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)[0]["conversation"] == demo.ids.trip
