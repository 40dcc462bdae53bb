"""clew import --watch with real processes: what other programs do to their files is in the store
soon. Nothing here is timed: each test waits for what has to come."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from test_import_rules import File, main_of, texts

import clew
from clew.domain.messages import user
from clew.errors import NotFound
from clew.store.profile import Profile
from imports import SAMPLES, conversations, import_into, shown
from servers import until

COMMAND = "import sys; from clew.cli.main import main; sys.exit(main())"


class Watcher:
    """A running watch. `told` is what it has printed so far."""

    def __init__(self, store: Path, *arguments: str | Path) -> None:
        given = [str(argument) for argument in arguments]
        self.output = store.with_name(f"{store.name}.{len(list(store.parent.iterdir()))}.out")
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "--store", str(store), "--profile", "p", "import",
                 "--watch", "--json", "--no-index", *given],
                stdout=output, stderr=subprocess.PIPE, text=True,
                env={**os.environ, "HOME": str(store.parent)},
            )  # fmt: skip

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.read_text().splitlines(keepends=True)
                if line.endswith("\n")]  # fmt: skip

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; gives its exit code."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        assert "Traceback" not in errors
        return self.process.returncode


@contextmanager
def watching(profile: Profile, store: Path, *paths: str | Path) -> Iterator[Watcher]:
    watcher = Watcher(store, *paths)
    try:
        yield watcher
        assert watcher.process.poll() is None, watcher.process.communicate()
        assert watcher.end() == 0
    finally:
        watcher.process.kill()
        watcher.process.communicate()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def profile(store: Path) -> Iterator[Profile]:
    with clew.open(store) as opened:
        yield opened.profile("p")
        assert not opened.verify()


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "projects", 7)


def count(profile: Profile) -> int:
    return sum(each.info().head - each.info().base for each in conversations(profile))


def has(profile: Profile, file: File, numbers: list[int]) -> None:
    """Wait until the conversation of a file says just this."""

    def says() -> bool:
        with suppress(NotFound):
            return texts(main_of(profile, file)) == numbers
        return False

    until(says)


def test_lines_come_as_they_are_written(file: File, profile: Profile, store: Path) -> None:
    file.chain(1, 4)
    with watching(profile, store, file.path.parent) as watcher:
        has(profile, file, [1, 2, 3, 4])
        for n in range(5, 11):
            file.say(n, n - 1)
            has(profile, file, list(range(1, n + 1)))
        other = File(file.path.parent, 8).chain(20, 21)
        has(profile, other, [20, 21])
    *came, end = watcher.told()
    assert sum(chat["messages"] for report in came for chat in report["chats"]) == 12
    assert [chat["state"] for chat in came[0]["chats"]] == ["new"]
    assert [chat["state"] for chat in came[1]["chats"]] == ["grown"]
    assert (end["totals"]["messages"], end["totals"]["conversations"]) == (12, 2)


def test_half_a_line_is_no_damage(file: File, profile: Profile, store: Path) -> None:
    file.chain(1, 3)
    whole = file.path.read_bytes()
    begin, rest = whole[:-100], whole[-100:]
    file.path.write_bytes(begin)
    with watching(profile, store, file.path) as watcher:
        has(profile, file, [1, 2])
        with file.path.open("ab") as stream:
            stream.write(rest[:30])
        other = File(file.path.parent, 8)  # is not watched: the path is that of a file
        other.chain(20, 21)
        with file.path.open("ab") as stream:
            stream.write(rest[30:-1])  # without the line end
        has(profile, file, [1, 2, 3])
        with file.path.open("ab") as stream:
            stream.write(b"\nno JSON\n")
        file.say(4, 3)
        has(profile, file, [1, 2, 3, 4])
    damaged = [place for report in watcher.told()[:-1] for place in report["damaged"]]
    assert [place["where"] for place in damaged] == ["line 4"]
    assert len(list(conversations(profile))) == 1


def test_the_file_is_replaced_by_another(file: File, profile: Profile, store: Path) -> None:
    """By rename, as editors write; with more, then with something else."""
    file.chain(1, 4)
    aside = file.path.with_suffix(".new")
    with watching(profile, store, file.path.parent):
        has(profile, file, [1, 2, 3, 4])
        shutil.copy(file.path, aside)
        aside.replace(file.path)
        file.say(5, 4)
        has(profile, file, [1, 2, 3, 4, 5])
        File(aside.parent.parent, 7).chain(20, 22).path.replace(file.path)
        has(profile, file, [1, 2, 3, 4, 5, 20, 21, 22])


def test_the_file_is_cut_off_and_written_anew(file: File, profile: Profile, store: Path) -> None:
    """In place, as by rotation with copytruncate: to less, and to more than there was."""
    file.chain(1, 6)
    with watching(profile, store, file.path.parent):
        has(profile, file, [1, 2, 3, 4, 5, 6])
        small = File(file.path.parent.parent, 7).chain(20, 21)
        file.path.write_bytes(small.path.read_bytes())
        has(profile, file, [1, 2, 3, 4, 5, 6, 20, 21])
        large = File(file.path.parent.parent / "large", 7).chain(30, 45)
        file.path.write_bytes(large.path.read_bytes())
        has(profile, file, [1, 2, 3, 4, 5, 6, 20, 21, *range(30, 46)])


def test_files_and_folders_go_and_come(file: File, profile: Profile, store: Path) -> None:
    file.chain(1, 2)
    root = file.path.parent
    with watching(profile, store, root):
        has(profile, file, [1, 2])
        file.path.unlink()
        deep = File(root / "a" / "b" / "c", 8).chain(20, 21)
        has(profile, deep, [20, 21])
        file.path.touch()
        file.chain(1, 3)
        has(profile, file, [1, 2, 3])
        shutil.move(root / "a", root.parent / "moved")
        outside = File(root.parent / "moved" / "d", 9).chain(30, 31)
        shutil.move(root.parent / "moved", root / "z")
        has(profile, outside, [30, 31])
        shutil.rmtree(root)
        again = File(root / "new", 10).chain(40, 41)
        has(profile, again, [40, 41])
        again.say(42, 41)
        has(profile, again, [40, 41, 42])


def test_a_database_in_wal_mode(profile: Profile, store: Path, tmp_path: Path) -> None:
    """What another program has committed is still in the -wal."""
    path = tmp_path / "agents" / "sessions.db"
    path.parent.mkdir()
    shutil.copy(SAMPLES / "openai-agents" / "sqlite_session.db", path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    with watching(profile, store, path) as watcher:
        until(lambda: watcher.told())
        before = count(profile)
        for n in range(3):
            message = json.dumps({"role": "user", "content": f"And tomorrow? {n}"})
            writer.execute(
                "INSERT INTO agent_messages(session_id, message_data) VALUES ('conv-1', ?)",
                (message,),
            )
            until(lambda n=n: count(profile) == before + n + 1)
    writer.close()


def test_a_folder_that_is_one_source(profile: Profile, store: Path, tmp_path: Path) -> None:
    """And that is not there yet when the watch begins."""
    root = tmp_path / "opencode"
    root.mkdir()
    storage = root / "storage"
    with watching(profile, store, root), clew.open(tmp_path / "alone.db") as alone:
        shutil.copytree(SAMPLES / "opencode" / "storage_v2", storage)
        import_into(alone.profile("p"), storage)
        until(lambda: count(profile) >= count(alone.profile("p")))
        before = count(profile)
        message = {
            "id": "m_user_large_3", "sessionID": "s_stage0_large", "role": "user",
            "time": {"created": 1730000110000},
        }  # fmt: skip
        part = {
            "id": "p_user_large_3", "sessionID": "s_stage0_large", "messageID": "m_user_large_3",
            "type": "text", "text": "Step three",
        }  # fmt: skip
        place = storage / "part" / "m_user_large_3" / "001.json"
        place.parent.mkdir()
        place.write_text(json.dumps(part))
        folder = storage / "message" / "s_stage0_large"
        (folder / "msg_0005.json").write_text(json.dumps(message))
        until(lambda: count(profile) > before)
    said = [m.text for each in conversations(profile) for m in each.messages()]
    assert said.count("Step three") == 1


def test_two_watches_bring_nothing_twice(file: File, profile: Profile, store: Path) -> None:
    file.chain(1, 10)
    files = [file, *(File(file.path.parent, n) for n in range(20, 25))]
    for number, each in enumerate(files[1:], 1):
        each.chain(1000 * number, 1000 * number + 3)
    with (
        watching(profile, store, file.path.parent) as one,
        watching(profile, store, file.path.parent) as two,
    ):
        until(lambda: one.told() or two.told())
        for n in range(11, 31):
            file.say(n, n - 1)
            for number, each in enumerate(files[1:], 1):
                each.say(1000 * number + n, 1000 * number + (n - 1 if n > 11 else 3))
        has(profile, file, list(range(1, 31)))
        for number, each in enumerate(files[1:], 1):
            has(profile, each, [1000 * number + n for n in (0, 1, 2, 3, *range(11, 31))])
    told = one.told()[:-1] + two.told()[:-1]
    assert sum(chat["messages"] for report in told for chat in report["chats"]) == count(profile)
    assert not any(report["error"] for report in told)


def test_it_goes_on_beside_a_person(file: File, profile: Profile, store: Path) -> None:
    """Who writes into the conversation gets the rest as a branch; who deletes it, nothing more."""
    file.chain(1, 4)
    with watching(profile, store, file.path.parent):
        has(profile, file, [1, 2, 3, 4])
        conversation = main_of(profile, file)
        conversation.append([user("text 100")])
        file.chain(5, 6, parent=4)
        until(conversation.children)
        (branch,) = conversation.children()
        until(lambda: texts(profile.open(branch.id)) == [1, 2, 3, 4, 5, 6])
        assert texts(conversation) == [1, 2, 3, 4, 100]
        file.say(7, 6)
        until(lambda: texts(profile.open(branch.id)) == [1, 2, 3, 4, 5, 6, 7])

        other = File(file.path.parent, 8).chain(20, 21)
        has(profile, other, [20, 21])
        profile.delete(main_of(profile, other).id)
        other.say(22, 21)
        last = File(file.path.parent, 9).chain(30, 31)
        has(profile, last, [30, 31])
    assert {c.info().source for c in conversations(profile)} == {"claude-code"}
    assert 22 not in [n for c in conversations(profile) for n in texts(c)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it_with_the_sum(
    file: File, profile: Profile, store: Path, number: int, code: int
) -> None:
    file.chain(1, 4)
    watcher = Watcher(store, file.path.parent)
    try:
        has(profile, file, [1, 2, 3, 4])
        assert watcher.end(number) == code
        assert watcher.told()[-1]["totals"]["messages"] == 4
    finally:
        watcher.process.kill()
        watcher.process.communicate()


def test_what_was_watched_is_what_an_import_brings(
    profile: Profile, store: Path, tmp_path: Path
) -> None:
    """A real session, written in pieces that end anywhere."""
    source = SAMPLES / "claude-code" / "real-long-sidechains-summary.jsonl"
    data = source.read_bytes()
    path = tmp_path / "projects" / source.name
    path.parent.mkdir()
    path.touch()
    pieces = [data[at : at + 9_973] for at in range(0, len(data), 9_973)]
    with (
        watching(profile, store, path.parent) as watcher,
        clew.open(tmp_path / "alone.db") as alone,
    ):
        import_into(alone.profile("p"), source)
        for number, piece in enumerate(pieces):
            with path.open("ab") as stream:
                stream.write(piece)
            if number % 10 == 0:
                known = count(profile)
                until(lambda known=known, number=number: count(profile) > known or number == 0)
        until(lambda: count(profile) == count(alone.profile("p")))
        until(lambda: shown(profile) == shown(alone.profile("p")))
    assert not any(report["damaged"] for report in watcher.told()[:-1])
