"""Commands of earlier epochs that run again."""

from __future__ import annotations

from talks import call, epoch, result

from clew.compaction.ledger import fold
from clew.domain.messages import Message

FAILED = "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nnpm error command failed"


def ran(*runs: tuple[str, str], first: int = 1) -> list[Message]:
    """Commands and what they print, one after the other."""
    out: list[Message] = []
    for at, (command, output) in enumerate(runs):
        seq = first + 2 * at
        out += [call(seq, "bash", command=command), result(seq + 1, output)]
    return out


def test_an_error_of_an_earlier_epoch_is_gone_when_its_command_goes_well() -> None:
    before = epoch(ran(("cd app && npm run check 2>&1 | tail -5", FAILED)))
    after = epoch(ran(("npm run check", "all well"), first=3), before, number=2)
    assert "No longer holds: cd app && npm run check error [@1]." in after.text
    one = fold([before, after], number=3, room=20_000, count=len)
    assert "error TS2304" not in one.text
    assert [row.seq for row in one.rows if row.kind == "command"] == [3]


def test_an_error_that_comes_again_stands_once() -> None:
    before = epoch(ran(("make", "a.c:1: error: x")))
    after = epoch(ran(("make", "a.c:2: error: y")), before, number=2)
    assert "No longer holds: make error [@1]." in after.text
    after = epoch(ran(("make", "a.c:2: error: y"), first=3), before, number=2)
    (row,) = (row for row in after.rows if row.kind == "error")
    assert "error: y" in row.text
    assert row.was == (1,)
    assert "error: x" not in fold([before, after], number=3, room=20_000, count=len).text


def test_a_command_that_failed_in_an_earlier_epoch_names_what_it_replaces() -> None:
    before = epoch(ran(("pytest -q 2>&1", "1 failed\nexit code: 1")))
    after = epoch(ran(("pytest -q | tail -3", "678 passed"), first=3), before, number=2)
    assert "`pytest -q` -> 678 passed (replaces [@1]) [@3]" in after.text


def test_a_file_deleted_in_a_later_epoch_is_deleted_in_their_fold() -> None:
    before = epoch([call(1, "edit", path="a.py"), call(2, "edit", path="b.py")])
    after = epoch(ran(("rm a.py", ""), ("cat a.py b.py", ""), first=3), before, number=2)
    text = fold([before, after], number=3, room=20_000, count=len).text
    assert "deleted: a.py (@3)" in text
    assert "edited: b.py (@2)" in text
