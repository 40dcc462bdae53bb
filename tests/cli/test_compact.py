"""clew compact: now, as a plan, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import clew
from clew.cli.text import cells

from .helpers import ESCAPES, Demo, Remote, Run, Talk, process
from .test_terminal import terminal

Loads = Callable[..., Any]
WINDOW = ("--window", "100000")


def test_a_compaction_says_what_it_did_and_what_next(talk: Talk, run: Run) -> None:
    result = run("compact", talk.id, *WINDOW)
    short = talk.id[:8]
    assert re.match(
        rf"(✓|ok) Compacted {short}: [\d,]+ tokens became [\d,]+ \(\d+ % freed\)\.\n", result.stdout
    )
    for name in ("messages", "ledger", "tokens", "prefix", "summary", "checks"):
        assert re.search(rf"^  {name} ", result.stdout, re.M), name
    assert re.search(r"epoch 1: .*\d+ files", result.stdout)
    assert "no model was asked" in result.stdout
    for command in (
        f"clew context {short} --window 100000", f"clew compactions {short} 1",
        f"clew compact {short} --undo",
    ):  # fmt: skip
        assert command in result.stdout
    assert result.stderr == ""
    with talk.open() as conversation:
        (record,) = conversation.compactions()
        (attempt,) = conversation.attempts()
        assert (attempt.state, attempt.trigger) == ("committed", "user")
        assert attempt.model == "claude-sonnet-4-5"
        assert record.tokens_after is not None
        assert record.tokens_after < 50_000
        assert conversation.info().message_count == 914
        assert len(list(conversation.messages(hidden=True))) == 914


def test_the_outcome_as_json(talk: Talk, loads: Loads) -> None:
    told = loads("compact", talk.id, *WINDOW)
    assert told["state"] == "committed"
    assert told["compaction"]["generation"] == 1
    assert "body" not in told["compaction"]
    assert told["receipt"]["tokens"]["after"] == told["compaction"]["tokens_after"]
    assert told["receipt"]["trigger"] == "user"
    assert told["receipt"]["summary"] is None
    assert told["receipt"] == told["compaction"]["receipt"]


def test_a_budget_is_what_is_aimed_at(talk: Talk, run: Run, loads: Loads) -> None:
    sizes: list[int] = []
    for budget in (40_000, 60_000):
        told = loads("compact", talk.id, *WINDOW, "--budget", budget, "--dry-run")["receipt"]
        assert told["tokens"]["target"] == budget
        sizes.append(told["tokens"]["after"])
        assert sizes[-1] <= budget * 1.01
    assert sizes[0] < sizes[1]
    assert "asked for" not in run("compact", talk.id, *WINDOW, "--budget", 40_000).stdout


def test_for_another_model(talk: Talk, run: Run) -> None:
    shown = run("compact", talk.id, *WINDOW, "--model", "gpt-5").stdout
    assert f"clew context {talk.id[:8]} --window 100000 --model gpt-5" in shown
    with talk.open() as conversation:
        assert [attempt.model for attempt in conversation.attempts()] == ["gpt-5"]
        assert conversation.info().model == "claude-sonnet-4-5"


def test_a_budget_that_cannot_be_kept_is_named(talk: Talk, run: Run) -> None:
    shown = run("compact", talk.id, *WINDOW, "--budget", 1, "--dry-run").stdout
    assert re.search(r"budget +[\d,]+ tokens are more than the 1 asked for", shown)
    refused = run("compact", talk.id, *WINDOW, "--budget", 1, code=1).stdout
    assert "No room for rules" in refused
    assert "Nothing was changed." in refused


def test_a_dry_run_shows_the_plan_and_writes_nothing(talk: Talk, run: Run, loads: Loads) -> None:
    shown = run("compact", talk.id, *WINDOW, "--dry-run").stdout
    assert "nothing was written" in shown
    assert re.search(r"^SECTION +TOKENS NOW +THEN$", shown, re.M)
    assert re.search(r"^ledger +0 +[\d,]+$", shown, re.M)
    assert re.search(r"^together +[\d,]+ +[\d,]+$", shown, re.M)
    assert "The ledger would say:" in shown
    assert re.search(r"\([\d,]+ more lines; --full shows them\)", shown)
    assert f"clew compact {talk.id[:8]} --window 100000" in shown
    full = run("compact", talk.id, *WINDOW, "--dry-run", "--full").stdout
    assert len(full) > len(shown)
    assert "more lines" not in full
    told = loads("compact", talk.id, *WINDOW, "--dry-run")
    assert told["receipt"]["checks"]
    assert told["ledger"].splitlines()[0].strip() in full
    assert {item["type"] for item in told["body"]} <= {"ref", "stub", "inline"}
    with talk.open() as conversation:
        assert conversation.compactions() == conversation.attempts() == ()
    done = loads("compact", talk.id, *WINDOW)
    assert done["receipt"]["tokens"]["before"] == told["receipt"]["tokens"]["before"]
    assert done["receipt"]["covers_to"] == told["receipt"]["covers_to"]


def test_undo_brings_back_what_stood_there(talk: Talk, run: Run, loads: Loads) -> None:
    before = loads("context", talk.id, "--window", "1000000")
    run("compact", talk.id, *WINDOW)
    refused = run("compact", talk.id, "--undo", *WINDOW, code=4)
    assert "without this compaction the context takes" in refused.stderr
    undone = run("compact", talk.id, "--undo", "--window", "1000000").stdout
    assert undone.startswith(f"Undid compaction 1 of {talk.id[:8]}: ")
    after = loads("context", talk.id, "--window", "1000000")
    assert after["tokens"] == before["tokens"]
    assert run("compact", talk.id, "--undo", code=4).stderr.startswith("clew: no compaction")


def test_undo_as_json(talk: Talk, run: Run, loads: Loads) -> None:
    run("compact", talk.id, *WINDOW)
    told = loads("compact", talk.id, "--undo", "--window", "1000000")
    assert told["generation"] == 1
    assert told["undone_at"] > told["created_at"]
    assert told["undone_tokens"] > told["tokens_after"]


def test_nothing_to_compact_is_no_failure(demo: Demo, run: Run, loads: Loads) -> None:
    with demo.open() as store:
        chat = store.profile("default").create(source="cli", title="Short")
        chat.add([clew.user("hello"), clew.assistant("hello")])
        empty = store.profile("default").create(source="cli")
    for id in (chat.id, empty.id):
        shown = run("compact", id).stdout
        assert shown.startswith("Nothing to compact: ")
        assert shown.endswith("Nothing was changed.\n")
        assert run("compact", id, "--dry-run").stdout.startswith("Nothing to compact: ")
        assert loads("compact", id)["state"] == "refused"
        assert loads("compact", id, "--dry-run")["nothing"]


def test_once_more_adds_an_epoch_and_leaves_the_first(talk: Talk, loads: Loads) -> None:
    loads("compact", talk.id, *WINDOW)
    with talk.open() as conversation:
        first = conversation.compactions()[0]
        for number in range(80):
            conversation.append([
                clew.user(f"Now look at src/part{number}.ts. " + "It is long and odd. " * 30),
                clew.assistant(f"The value of limit{number} is {number}. " + "I looked. " * 30),
            ])  # fmt: skip
    told = loads("compact", talk.id, *WINDOW)
    assert told["receipt"]["epoch"] == 2
    with talk.open() as conversation:
        second = conversation.compactions()[0]
    written = [[i for i in c.body if isinstance(i, clew.Inline)] for c in (first, second)]
    assert written[1][:-1] == written[0]
    assert told["receipt"]["folded"] == []


def test_what_is_written_in_a_log_cannot_act(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        chat = store.profile("default").create(source="cli", title="Hostile")
        for number in range(60):
            chat.add([
                clew.user(f"Always say {ESCAPES} when you name file{number}.py, please."),
                clew.assistant(f"I decided to use {ESCAPES} for it. " + "More words. " * 40),
            ])  # fmt: skip
    options = ("--window", "9000")
    for args in (["--dry-run", "--full"], [], ["--json", "--dry-run"]):
        shown = run("compact", chat.id, *options, *args).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_on_a_terminal(talk: Talk) -> None:
    code, shown = terminal("compact", talk.id, *WINDOW, columns=60)
    assert code == 0
    assert "planning" in shown  # on standard error, and gone when it is done
    assert "\x1b[32m✓" in shown
    last = [line.rpartition("\r")[2] for line in shown.splitlines()]
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in last]
    assert all(cells(line) <= 60 for line in plain)
    assert any(line.startswith("✓ Compacted") for line in plain)
    _, quiet = terminal("compact", talk.id, "--dry-run", *WINDOW, NO_COLOR="1")
    assert "\x1b[" not in quiet


def test_as_a_process_in_a_pipe(talk: Talk) -> None:
    done = process("compact", talk.id, *WINDOW, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_wrong_use(demo: Demo, run: Run) -> None:
    assert "no conversation" in run("compact", "nothing", code=3).stderr
    too_small = run("compact", demo.ids.long, "--window", "10", code=2)
    assert "window" in too_small.stderr
    too_large = run("compact", demo.ids.long, "--window", "8000", "--budget", "8000", code=2)
    assert "give a smaller --budget or a larger --window" in too_large.stderr
    run("compact", demo.ids.long, "--budget", "0", code=2)
    both = run("compact", demo.ids.long, "--undo", "--dry-run", code=2)
    assert "--undo and --dry-run exclude each other" in both.stderr
    run("compact", demo.ids.long, "--undo", "--budget", "100", code=2)
    assert "give --dry-run, too" in run("compact", demo.ids.long, "--full", code=2).stderr
    none = run("compact", demo.ids.flaky, "--undo", "--json", code=4).stderr
    assert '"error": "Refused"' in none


def test_prefixes_and_completion(talk: Talk, run: Run) -> None:
    assert "together" in run("compact", talk.id[:6], *WINDOW, "--dry-run").stdout
    for command in ("compact", "context", "compactions"):
        asked = process(
            _CLEW_COMPLETE="bash_complete", COMP_WORDS=f"clew {command} ", COMP_CWORD="2"
        )
        assert talk.id[:8] in asked.stdout


def test_on_a_server(remote: Remote, run: Run, loads: Loads) -> None:
    with remote.open() as store:
        chat = store.profile("default").create(source="cli", title="Long")
        for number in range(60):
            chat.append([
                clew.user(f"Set limit{number} to {number}. " + "It is long. " * 40),
                clew.assistant(f"limit{number} is {number} now. " + "Done. " * 40),
            ])  # fmt: skip
    window = ("--window", "8000")
    assert loads("context", chat.id, *window)["fits"] is False
    assert "Compacted" in run("compact", chat.id, *window).stdout
    assert loads("context", chat.id, *window)["generation"] == 1
    assert loads("compactions", chat.id, 1)["receipt"]["trigger"] == "user"
    assert run("compact", chat.id, "--undo").stdout.startswith("Undid compaction 1")
