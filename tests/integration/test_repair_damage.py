"""Repair of files that are really damaged: what is intact is saved, nothing else appears."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from repairing import DAMAGES, Places, blank, changed_pages, columns, copy, fill, places, rows

import clew
from clew.store.repair import Repair

TABLES = (
    "conversation", "message", "blob", "cut", "attempt", "compaction", "turn", "inbox", "alias",
    "binding", "todo", "goal", "boundary", "model_call", "prompt", "toolset",
)  # fmt: skip
MENDED = {
    "conversation": {"head", "view", "generation", "fence", "holder", "held_at", "held_ttl", "turn",
                     "message_count", "waiting", "prompt_hash", "toolset_hash"},
    "message": {"turn", "parts"}, "turn": {"state", "ended_at", "error", "first_seq"},
    "compaction": {"attempt", "covers_to", "body", "cuts", "kind", "receipt", "undone_at"},
    "boundary": {"next_at"}, "model_call": {"prompt_hash", "toolset_hash"},
}  # fmt: skip
"""Columns that a repair may change, so that rules hold."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undamaged store, closed."""
    path = tmp_path_factory.mktemp("whole") / "whole.db"
    fill(path)
    return path


@pytest.fixture(scope="module")
def where(whole: Path) -> Places:
    found = places(whole)
    for table in TABLES:
        assert found.get(table, {}).keys() == rows(whole, table).keys(), table
    return found


def damaged(whole: Path, folder: Path, kind: str, seed: int) -> tuple[Path, set[int]]:
    """A damaged copy, and which of its pages are not what they were."""
    path = copy(whole, folder / "a.db")
    DAMAGES[kind](path, random.Random(seed))
    return path, changed_pages(whole, path)


def changed(table: str, names: list[str], old: tuple[Any, ...], new: tuple[Any, ...]) -> set[str]:
    """Columns that are not what they were, but for those that a repair may change."""
    pairs = zip(names, old, new, strict=True)
    return {name for name, a, b in pairs if a != b} - MENDED.get(table, set())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", DAMAGES)
def test_what_is_intact_is_saved_and_nothing_else(
    whole: Path, where: Places, fast_dir: Path, kind: str, seed: int
) -> None:
    """S42.3 Every row whose pages are intact is in the result as it was, no row is that was not
    there, and every invariant holds."""
    path, bad = damaged(whole, fast_dir, kind, seed)
    before = path.read_bytes()
    with Repair(path) as repair:
        report, result = repair.report, repair.result
    assert report.problems == ()
    assert path.read_bytes() == before
    for table in TABLES:
        old, new, header = rows(whole, table), rows(result, table), columns(result, table)
        for name, pages in where.get(table, {}).items():
            if pages.isdisjoint(bad):
                assert name in new, (table, name)
        for name, row in new.items():
            if name in old and not stands_in(table, row):
                assert not changed(table, header, old[name], row), (table, name)
            else:
                assert stands_in(table, row), (table, name, row)
    with clew.open(result) as store:
        assert store.verify() == []
    assert os.stat(result).st_mode & 0o077 == 0


def stands_in(table: str, row: tuple[Any, ...]) -> bool:
    """Whether a row was made by the repair, in the place of one that is lost."""
    if table == "message":
        return row[-3] == '{"lost":true}'
    if table == "conversation":
        return "Recovered conversation" in row
    if table == "turn":
        return "ended by a repair of the store" in row
    if table in ("cut", "compaction"):
        return table == "cut" or "foreign" in row
    return table == "prompt_use"


def test_an_undamaged_store_comes_out_equal(whole: Path, fast_dir: Path) -> None:
    """And nothing is reported."""
    path = copy(whole, fast_dir / "a.db")
    with Repair(path) as repair:
        assert repair.report.is_whole
        assert repair.report.messages == len(rows(whole, "message"))
    for table in TABLES:
        assert rows(repair.result, table) == rows(whole, table), table


def test_lost_messages_keep_their_place(whole: Path, where: Places, fast_dir: Path) -> None:
    """What is missing is told, and the numbers of the rest do not change."""
    path = copy(whole, fast_dir / "a.db")
    some = rows(whole, "message")
    page = min(where["message"][next(iter(some))])
    blank(path, page)
    lost = {some[name][1:3] for name, pages in where["message"].items() if page in pages}
    with Repair(path) as repair:
        report = repair.report
    assert report.lost_messages == len(lost) > 0
    said = {(c.conversation, seq) for c in report.conversations for a, b in c.ranges
            for seq in range(a, b + 1)}  # fmt: skip
    ids = {row[0]: row[1] for row in rows(whole, "conversation").values()}
    assert said == {(ids[no], seq) for no, seq in lost}
    with clew.open(repair.result) as store:
        name, seq = sorted(said)[0]
        message = store.profile("me").open(name).message(seq)
        assert message.meta == {"lost": True}
        assert "was lost" in message.text


def test_the_wal_is_part_of_what_is_saved(fast_dir: Path) -> None:
    """Frames behind a damaged one count, too; SQLite would stop there. Without the -wal the store
    is what it was at the last checkpoint."""
    path = fast_dir / "a.db"
    left_open(path, 60)
    alone = copy(path, fast_dir / "b.db")
    size = os.stat(f"{path}-wal").st_size
    with open(f"{path}-wal", "r+b") as file:
        file.seek(32 + (size - 32) // 4120 // 2 * 4120 + 2000)
        file.write(b"damage" * 20)
    with Repair(path) as repair:
        report = repair.report
    assert report.problems == ()
    assert report.lost_wal_frames == 1
    assert report.messages + report.lost_messages >= 55
    with Repair(alone) as repair:
        assert repair.report.problems == ()
        assert repair.report.lost_messages == 0


def left_open(path: Path, count: int) -> None:
    """A store as a power cut leaves it: with a -wal."""
    script = (
        "import clew, os, sys\n"
        "store = clew.open(sys.argv[1])\n"
        "conv = store.profile('me').conversation('k')\n"
        "for n in range(int(sys.argv[2])):\n"
        "    conv.add(clew.user(f'message {n} ' + 'x' * 700))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path), str(count)], check=True, timeout=60)


def test_a_repair_is_applied_as_a_restore_is(whole: Path, where: Places, fast_dir: Path) -> None:
    """Who has the store open stops, and the damaged file is kept."""
    path = copy(whole, fast_dir / "a.db")
    blank(path, max(max(pages) for pages in where["blob"].values()))
    store = clew.open(path)
    try:
        with Repair(path) as repair:
            done = repair.apply()
        assert not done.by_name
        assert done.kept is not None
        with pytest.raises(clew.StoreReplaced):
            store.profile("me").create(source="cli")
    finally:
        store.close()
    with clew.open(path) as again:
        assert again.verify() == []
        assert again.profile("me").conversation("key-1", source="tg").info().head > 100
    assert not list(fast_dir.glob("*.repair*"))


def test_what_was_written_after_the_copy_is_not_lost_by_a_repair(
    whole: Path, where: Places, fast_dir: Path
) -> None:
    """A writer that has not met the damage: its messages are not in the result."""
    path = copy(whole, fast_dir / "a.db")
    blank(path, max(max(pages) for pages in where["blob"].values()))
    with clew.open(path) as store, Repair(path) as repair:
        conv = store.profile("me").create(source="cli")
        conv.append([clew.user("acknowledged")])
        with pytest.raises(clew.Busy, match="written to since it was read"):
            repair.apply()
        assert repair.result.exists()
        assert conv.append([clew.user("and on")]).spooled is None
        assert [m.text for m in conv.messages()] == ["acknowledged", "and on"]
    assert not list(fast_dir.glob("*.replaced-*"))


def test_a_file_that_is_no_database_is_replaced_by_name(whole: Path, fast_dir: Path) -> None:
    """Only while nobody has it open."""
    path, _ = damaged(whole, fast_dir, "header", 1)
    before = path.read_bytes()
    with Repair(path) as repair:
        with path.open("rb"), pytest.raises(clew.Busy, match=f"process {os.getpid()}"):
            repair.apply()
        done = repair.apply()
    assert done.by_name
    assert done.kept is not None
    assert done.kept.read_bytes() == before
    with clew.open(path) as store:
        assert store.verify() == []


def test_a_store_that_is_written_to_is_not_repaired(fast_dir: Path) -> None:
    """Nothing of two moments is put together."""
    path = fast_dir / "a.db"
    with clew.open(path) as store:
        conv = store.profile("me").conversation("k")
        conv.add(clew.user("before"))

        @contextmanager
        def writes(label: str) -> Generator[Callable[[int, int], None]]:
            def once(done: int, of: int) -> None:
                if label == "Copying":
                    os.utime(path, ns=(1, time.time_ns() + done))

            yield once

        with pytest.raises(clew.StoreError, match="written to"):
            Repair(path, writes)
    assert sorted(name.name for name in fast_dir.glob("*repair*")) == []


def test_what_is_no_store(fast_dir: Path) -> None:
    with pytest.raises(clew.StoreError, match="there is no store"):
        Repair(fast_dir / "none.db")
    (fast_dir / "empty.db").touch()
    with pytest.raises(clew.InputError, match="empty"):
        Repair(fast_dir / "empty.db")
    assert sorted(p.name for p in fast_dir.iterdir() if ".turn" not in p.name) == [
        "empty.db", "empty.db.admit", "empty.db.gate",
    ]  # fmt: skip
