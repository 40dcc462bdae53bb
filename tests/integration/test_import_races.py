"""Imports beside each other and beside people who write, with real processes, on both engines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from test_import_rules import File, main_of, texts

import clew
from clew.domain.messages import user
from imports import SAMPLES, conversations, import_into, shown
from servers import empty_database, open_store, until

WORKER = Path(__file__).parent / "import_worker.py"
WORKERS = 3


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return empty_database()
    clew.open(tmp_path / "s.db").close()
    return str(tmp_path / "s.db")


def start(place: str, path: Path) -> subprocess.Popen[str]:
    paths = [str(WORKER.parent), str(WORKER.parent.parent)]
    return subprocess.Popen(
        [sys.executable, str(WORKER), place, str(path)], text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip


def test_the_same_files_at_once_come_in_once(place: str, tmp_path: Path) -> None:
    folder = SAMPLES / "claude-code"
    workers = [start(place, folder) for _ in range(WORKERS)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    totals = [json.loads(worker.communicate("\n", timeout=120)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * WORKERS
    with open_store(place) as store, clew.open(tmp_path / "alone.db") as alone:
        import_into(alone.profile("p"), folder)
        assert shown(store.profile("p")) == shown(alone.profile("p"))
        assert not store.verify()
        stored = sum(c.info().head - c.info().base for c in conversations(store.profile("p")))
    assert sum(total["messages"] for total in totals) == stored
    assert sum(total["failed"] for total in totals) == 0


def test_a_person_who_writes_meanwhile_loses_nothing(place: str, tmp_path: Path) -> None:
    """Whatever the person writes stays where it is, in order; the source goes on in a branch."""
    file = File(tmp_path / "projects", 7).chain(1, 4)
    with open_store(place) as store, open_store(place) as other:
        profile = store.profile("p")
        import_into(profile, file.path)
        mine = main_of(other.profile("p"), file)
        written: list[int] = []
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set() or not written:
                number = 1000 + len(written)
                mine.append([user(f"text {number}")])
                written.append(number)

        person = threading.Thread(target=write)
        person.start()
        until(lambda: written)
        for n in range(5, 25):
            file.say(n, n - 1)
            import_into(profile, file.path)
        stop.set()
        person.join()
        assert texts(main_of(profile, file)) == [1, 2, 3, 4, *written]
        branches = [texts(profile.open(c.id)) for c in main_of(profile, file).children()]
        assert branches == [list(range(1, 25))]
        assert not store.verify()
