"""clew compactions: the receipts, and the attempts that changed nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import clew
from clew.cli import receipts
from clew.cli.text import cells
from clew.compaction.check import Check
from clew.compaction.receipt import Receipt, Summary

from .helpers import ESCAPES, Demo, Run, Talk
from .test_terminal import terminal

Loads = Callable[..., Any]
WINDOW = ("--window", "100000")


def test_before_any_compaction(talk: Talk, run: Run, loads: Loads) -> None:
    shown = run("compactions", talk.id)
    assert "It has no compaction: a model sees every message." in shown.stdout
    assert f"clew compact {talk.id[:8]} --dry-run" in shown.stderr
    told = loads("compactions", talk.id)
    assert told["compactions"] == told["attempts"] == []
    assert told["guard"]["go"] is True


def test_what_has_become_of_each(talk: Talk, run: Run, loads: Loads) -> None:
    run("compact", talk.id, *WINDOW)
    run("compact", talk.id, "--window", "60000")
    shown = run("compactions", talk.id)
    rows = shown.stdout.splitlines()
    assert rows[0].split() == [
        "N", "STATE", "COVERS", "TOKENS", "FREED", "WHEN", "TRIGGER", "ROWS", "SUMMARY",
    ]  # fmt: skip
    assert re.match(
        r"2  in effect  +#1-\d+ +[\d,]+ (→|->) [\d,]+ +\d+ %  .*user +[\d,]+  ledger", rows[1]
    )
    assert re.match(r"1  superseded ", rows[2])
    assert f"clew compactions {talk.id[:8]} 2" in shown.stderr
    run("compact", talk.id, "--undo", "--window", "400000")
    told = loads("compactions", talk.id)
    assert [each["state"] for each in told["compactions"]] == ["undone", "in effect"]
    assert [each["trigger"] for each in told["compactions"]] == ["user", "user"]
    assert all("body" not in each for each in told["compactions"])


def test_the_whole_receipt_of_one(talk: Talk, run: Run, loads: Loads) -> None:
    run("compact", talk.id, *WINDOW)
    shown = run("compactions", talk.id, 1).stdout
    assert re.match(r"Compaction 1, 20\d\d-\d\d-\d\d \d\d:\d\d, by user: in effect\n", shown)
    for name in ("messages", "ledger", "tokens", "prefix", "summary", "checks"):
        assert re.search(rf"^  {name} ", shown, re.M), name
    assert "by the ledger alone; no model was asked" in shown
    assert "tool pairs" in shown
    told = loads("compactions", talk.id, 1)
    assert told["generation"] == 1
    assert told["receipt"]["clew"] == 1
    assert told["attempt_record"]["state"] == "committed"
    assert told["receipt"]["tokens"]["after"] == told["tokens_after"] < told["tokens_before"]


def test_a_cut_takes_one_out_of_effect(talk: Talk, run: Run) -> None:
    run("compact", talk.id, *WINDOW)
    run("cut", talk.id, 5, "--yes")
    assert "not in effect" in run("compactions", talk.id).stdout


def test_that_of_another_tool(demo: Demo, run: Run, loads: Loads) -> None:
    with demo.open() as store:
        conversation = store.profile("default").create(source="api", title="Brought")
        conversation.append([clew.user("one"), clew.assistant("two"), clew.user("three")])
        inline = clew.Inline(clew.Role.USER, (clew.Text("Summary."),))
        conversation.record_foreign_compaction(
            clew.Proposal(
                covers_to=2, body=(inline,), tokens_before=900, tokens_after=100,
                receipt={"trigger": "auto", "note": ESCAPES.replace("\ud83d", "")},
            )
        )  # fmt: skip
        id = conversation.id
    table = run("compactions", id).stdout
    assert re.search(r"^1  foreign, in effect +#1-2 +900 (→|->) 100 +89 %", table, re.M)
    whole = run("compactions", id, 1).stdout
    assert "trigger  auto" in whole
    assert "^[[31mred" in whole
    assert "\x1b" not in whole
    assert loads("compactions", id, 1)["trigger"] == "import"
    assert loads("compactions", id)["compactions"][0]["kind"] == "foreign"


def test_one_without_a_receipt(demo: Demo, run: Run) -> None:
    assert "in effect" in run("compactions", demo.ids.long).stdout
    assert "#1 to #40" in run("compactions", demo.ids.long, 1).stdout


def test_attempts_that_changed_nothing_and_what_they_hold_back(
    demo: Demo, run: Run, loads: Loads
) -> None:
    with demo.open() as store:
        conversation = store.profile("default").open(demo.ids.flaky)
        for _ in range(2):
            attempt = conversation.open_attempt(trigger="soft", model="gpt-5", tokens_before=9_000)
            conversation.fail_attempt(attempt.number, "ineffective", summary_error=ESCAPES[:12])
        cancelled = conversation.open_attempt(trigger="user")
        conversation.cancel_attempt(cancelled.number)
    shown = run("compactions", demo.ids.flaky).stdout
    assert "3 attempts without one:" in shown
    assert re.search(r"^  3 cancelled, user, just now: no reason was given$", shown, re.M)
    assert re.search(
        r"^  1 failed, soft, for gpt-5, just now: ineffective \(\^\[\[31mred", shown, re.M
    )
    assert re.search(r"held back .*: The last 2 attempts freed too little\.", shown)
    assert "\x1b" not in shown
    told = loads("compactions", demo.ids.flaky)
    assert [each["number"] for each in told["attempts"]] == [1, 2, 3]
    assert told["guard"]["go"] is False
    assert told["guard"]["until"] > told["attempts"][1]["ended_at"]


def test_on_a_narrow_terminal(talk: Talk, run: Run) -> None:
    run("compact", talk.id, *WINDOW)
    for columns in (40, 60, 100):
        code, shown = terminal("compactions", talk.id, columns=columns)
        assert code == 0
        plain = re.sub(r"\x1b\[[\d;]*m", "", shown)
        table = [line for line in plain.splitlines() if "clew compactions" not in line]
        assert all(cells(line) <= columns for line in table), plain
        assert "in effect" in plain
        assert ("SUMMARY" in plain) == (columns == 100)
    assert "\x1b[" not in terminal("compactions", talk.id, 1, NO_COLOR="1")[1]


def test_wrong_use(demo: Demo, run: Run) -> None:
    assert "no conversation" in run("compactions", "nothing", code=3).stderr
    assert "no compaction '7'" in run("compactions", demo.ids.long, 7, code=3).stderr
    run("compactions", demo.ids.long, "0", code=2)


# ---------------------------------------------------------------- what a receipt says


def told(**fields: Any) -> str:
    """The lines of a receipt."""
    receipt = Receipt(
        trigger="soft", covered=(2, 9), covers_to=12, messages=8, kept=2, stubbed=1,
        tokens={"before": 1_000, "after": 400, "target": 380, "tail": 300, "ledger": 100},
        prefix={"tokens": 200, "of": 400}, **fields,
    )  # fmt: skip
    lines = receipts.receipt_lines(receipt)
    return "\n".join("".join(text for text, _ in pieces) for _, pieces, _ in lines)


def test_a_receipt_in_words() -> None:
    shown = told(
        epoch=3, folded=(1, 2), rows={"rule": 1, "file": 12, "done": 2}, left_out=4, replaced=1
    )
    assert "up to #12: 8 in the ledger (#2 to #9), 2 as written, 1 shortened" in shown
    assert "epoch 3: 12 files, 2 done, 1 rule; 1 row replaced by newer values; 4 rows" in shown
    assert "epoch 1, 2 written as one" in shown
    assert "1,000 before, 400 after (target 380): ledger 100, tail 300" in shown
    assert "the first 200 of 400 tokens (50 %)" in shown
    assert "nothing new; shorter tool outputs were enough" in told()


def test_a_receipt_says_what_is_missing_and_what_a_model_did() -> None:
    checks = (Check("rules", True), Check("open asks", False, f"@7 {ESCAPES[:5]}"))
    shown = told(
        checks=checks, summary=Summary("m-1", "failed", "Timeout\x07 504"),
        notices=("m-1 wrote no summary",),
    )  # fmt: skip
    assert "1 of 2 hold" in shown
    assert re.search(r"open asks: @7 \^\[\[31m", shown)
    assert "m-1: failed  Timeout^G 504" in shown
    assert "notice   m-1 wrote no summary" in shown
    assert "checks" not in told()


def test_who_wrote_the_summary() -> None:
    fields: dict[str, Any] = {
        "trigger": "soft", "covered": (1, 2), "covers_to": 2, "messages": 2, "kept": 0,
        "stubbed": 0, "tokens": {}, "prefix": {},
    }  # fmt: skip
    by = {
        state: receipts.summed_by(Receipt(**fields, summary=Summary("m-1", state)))
        for state in ("used", "failed", "rejected")
    }
    assert by == {"used": "m-1", "failed": "ledger (failed)", "rejected": "ledger (rejected)"}
    assert receipts.summed_by(Receipt(**fields)) == "ledger"
