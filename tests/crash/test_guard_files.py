"""What can be done to the files of a store that a process has open, done for real.

One process has the store open and writes; this one is the vandal. Afterwards the first must have
stopped with the typed error, and nothing that is stored may have two truths.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import clew
from clew.errors import StoreError, StoreReplaced, WalLost
from clew.store import wal_holders
from clew.store.backup import backup
from clew.store.doctor import diagnose
from clew.store.engines import open_backend
from clew.store.restore import restore
from clew.store.wal_holders import check_holders, holders, was_deleted

PROGRAM = """
import sys
import clew
store = clew.open(sys.argv[1])
talk = store.profile("p").conversation("k")
def answer(text):
    print(text, flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    try:
        if word == "add":
            db = talk._db
            db.spool = None
            talk.add({"role": "user", "content": rest, "id": rest})
        elif word == "read":
            store._db.spool = None
            answer(" ".join(m.text for m in talk.messages()))
            continue
        elif word == "trouble":
            trouble = store._db.backend.trouble
            answer(type(trouble).__name__)
            continue
        elif word == "close":
            store.close()
        answer("ok")
    except clew.ClewError as error:
        answer(f"{type(error).__name__} {error}")
"""


class Other:
    """A process that has the store open."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM), str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, *words: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.communicate(timeout=20)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate(timeout=20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "a.db"
    path.parent.mkdir()
    return path


@pytest.fixture
def start(path: Path) -> Iterator[Callable[[], Other]]:
    started: list[Other] = []

    def one() -> Other:
        started.append(Other(path))
        return started[-1]

    yield one
    for each in started:
        each.kill()


def stored(path: Path) -> list[str]:
    """What a fresh process of this program finds."""
    with closing(clew.open(path)) as store:
        found = [m.text for m in store.profile("p").conversation("k").messages()]
        assert store.verify() == []
    return found


Start = Callable[[], Other]


def test_replaced_by_rename(path: Path, start: Start) -> None:
    """S38.3 The rename of another file over the store: refused, and closing takes nothing of it
    away: not the -wal that its new owner has made under the same name."""
    old = start()
    assert old.ask("add one") == "ok"
    other = path.with_name("other.db")
    backup(path, other)
    for side in ("-wal", "-shm"):
        os.rename(f"{path}{side}", f"{path}{side}.old")
    os.replace(other, path)
    new = start()
    assert new.ask("add new") == "ok"
    assert old.ask("add two").startswith("StoreReplaced")
    assert old.ask("trouble") == "StoreReplaced"
    assert old.ask("close") == "ok"
    assert Path(f"{path}-wal").exists(), "the old owner removed the new one's -wal"
    assert new.ask("add newer") == "ok"
    new.kill()
    assert stored(path) == ["one", "new", "newer"]


@pytest.mark.parametrize("kind", ["backup", "cp", "cp -p"])
def test_overwritten_by_an_older_copy_of_itself(path: Path, start: Start, kind: str) -> None:
    """S38.1 Same inode, same store id, same stamp, and newer pages in the -wal: what checkpoints
    had brought into the file went back."""
    writer = start()
    assert writer.ask("add one") == "ok"
    copy = path.with_name("copy.db")
    _copy(path, copy, kind)
    for number in range(30):
        assert writer.ask(f"add more{number}") == "ok"
    _merge(path)
    assert writer.ask("add seen") == "ok"
    assert writer.ask("add in the wal") == "ok"
    assert Path(f"{path}-wal").stat().st_size > 0
    inode = path.stat().st_ino
    _cp(copy, path, kind == "cp -p")
    assert path.stat().st_ino == inode
    assert writer.ask("add lost").startswith("StoreReplaced")
    assert "written over in place" in writer.ask("add lost too")
    assert writer.ask("close") == "ok"


@pytest.mark.parametrize("kind", ["backup", "cp", "cp -p"])
def test_overwritten_while_the_wal_is_empty(path: Path, start: Start, kind: str) -> None:
    """S38.1 All is merged by somebody else, and then an older copy takes its place: only what the
    writer remembers of its own commits tells."""
    first = start()
    assert first.ask("add one") == "ok"
    assert first.ask("close") == "ok"
    copy = path.with_name("copy.db")
    _copy(path, copy, kind)
    writer = start()
    for number in range(30):
        assert writer.ask(f"add more{number}") == "ok"
    _merge(path)
    assert Path(f"{path}-wal").stat().st_size == 0
    _cp(copy, path, kind == "cp -p")
    assert writer.ask("add lost").startswith("StoreReplaced")
    assert writer.ask("close") == "ok"
    assert Path(f"{path}-wal").stat().st_size == 0


def test_overwritten_by_another_store(path: Path, start: Start, tmp_path: Path) -> None:
    """S38.1 Another store's file, with the same schema and more rows, copied over in place."""
    with closing(clew.open(tmp_path / "other.db")) as other:
        for number in range(50):
            other.profile("p").conversation("k").add({"role": "user", "content": f"{number}"})
    writer = start()
    assert writer.ask("add one") == "ok"
    _cp(tmp_path / "other.db", path, False)
    assert writer.ask("add lost").startswith("StoreReplaced")
    assert writer.ask("trouble") == "StoreReplaced"


def test_overwritten_before_the_first_write(path: Path, start: Start) -> None:
    """S38.1 Also by a handle that has only read so far."""
    first = start()
    assert first.ask("add one") == "ok"
    copy = path.with_name("copy.db")
    backup(path, copy)
    assert first.ask("add two") == "ok"
    assert first.ask("close") == "ok"
    reader = start()
    assert reader.ask("read") == "one two"
    _cp(copy, path, False)
    assert reader.ask("add three").startswith("StoreReplaced")


def test_checkpoints_of_others_are_no_replacement(path: Path, start: Start) -> None:
    """S38.1 The file also changes by checkpoints, a VACUUM, a touch: none of them stops anybody."""
    one, two = start(), start()
    for round_ in range(3):
        assert one.ask(f"add one{round_}") == "ok"
        assert two.ask(f"add two{round_}") == "ok"
        with closing(apsw.Connection(str(path))) as outside:
            for what in ("wal_checkpoint(PASSIVE)", "wal_checkpoint(TRUNCATE)"):
                outside.execute(f"PRAGMA {what}").fetchall()
                assert one.ask(f"add {what[-9:]}{round_}") == "ok"
            outside.execute("VACUUM").fetchall()
        assert two.ask(f"add vacuum{round_}") == "ok"
        path.touch()
        os.chmod(path, 0o600)
        assert one.ask(f"add touched{round_}") == "ok"
    assert one.ask("close") == "ok"
    assert two.ask("add last") == "ok"
    assert two.ask("close") == "ok"
    assert len(stored(path)) == 19


def test_wal_unlinked_while_open(path: Path, start: Start) -> None:
    """S37.1 S37.2 Its owner stops; nobody opens the store and makes a second -wal; a clean close
    of the owner brings what was acknowledged into the file, and then all goes on (S37.4)."""
    owner = start()
    assert owner.ask("add one") == "ok"
    os.unlink(f"{path}-wal")
    assert owner.ask("add two").startswith("WalLost")
    assert owner.ask("trouble") == "WalLost"
    with pytest.raises(WalLost, match=r"-wal was deleted while process \d+ had the store open"):
        clew.open(path)
    assert not Path(f"{path}-wal").exists(), "a second -wal was made"
    assert owner.ask("close") == "ok"
    assert stored(path) == ["one"]


def test_a_diagnosis_makes_no_second_wal(path: Path, start: Start) -> None:
    """S37.1 The doctor, a backup and a restore do not keep the owner of a deleted -wal from
    saving its commits."""
    owner, good = start(), path.with_name("good.db")
    assert owner.ask("add one") == "ok"
    backup(path, good)
    Path(f"{path}-wal").unlink()
    assert owner.ask("add two").startswith("WalLost")
    assert any(finding.code == "holders.wal-deleted" for finding in diagnose(path))
    with pytest.raises(WalLost):
        backup(path, path.with_name("b.db"))
    with pytest.raises(WalLost):
        restore(path, good)
    assert not Path(f"{path}-wal").exists()
    assert owner.ask("close") == "ok"
    assert stored(path) == ["one"]


def test_wal_and_shm_unlinked_while_open(path: Path, start: Start) -> None:
    """S37.1 Also when both are gone, and the owner has only read."""
    first = start()
    assert first.ask("add one") == "ok"
    reader = start()
    assert reader.ask("read") == "one"
    os.unlink(f"{path}-wal")
    os.unlink(f"{path}-shm")
    with pytest.raises(WalLost, match="do not kill it"):
        clew.open(path)
    assert reader.ask("add two").startswith("WalLost")
    assert first.ask("add two").startswith("WalLost")


def test_wal_replaced_while_open(path: Path, start: Start) -> None:
    """S37.2 Another -wal under the name: its owner stops, and merges nothing at close."""
    owner = start()
    assert owner.ask("add one") == "ok"
    wal = Path(f"{path}-wal")
    shutil.copy(wal, f"{wal}.new")
    os.replace(f"{wal}.new", wal)
    before, file = wal.read_bytes(), path.read_bytes()
    assert owner.ask("add two").startswith("WalLost")
    assert owner.ask("close") == "ok"
    assert (wal.read_bytes(), path.read_bytes()) == (before, file)
    assert stored(path) == ["one"]


def test_folder_deleted(path: Path, start: Start) -> None:
    """S37.2 The folder of the store is gone: nothing is made anew in its place."""
    owner = start()
    assert owner.ask("add one") == "ok"
    shutil.rmtree(path.parent)
    assert owner.ask("add two").startswith("StoreReplaced")
    assert owner.ask("close") == "ok"
    assert not path.exists()


@pytest.mark.parametrize("how", ["moved", "emptied"])
@pytest.mark.parametrize("lives", [True, False])
def test_a_wal_whose_file_is_gone_is_no_new_store(
    path: Path, start: Start, how: str, lives: bool
) -> None:
    """S37.2 The file is moved away, or emptied, and its -wal has commits: neither opening nor a
    restore nor a diagnosis makes a new store there, for which SQLite would delete the -wal."""
    saved, copy = path.with_name("saved.db"), path.with_name("copy.db")
    owner = start()
    assert owner.ask("add one") == "ok"
    backup(path, copy)
    assert owner.ask("add two") == "ok"
    if not lives:
        owner.kill()
    shutil.copyfile(path, saved)  # another inode: nothing of this process may lock the store's
    os.rename(path, path.with_name("away.db"))
    if how == "emptied":
        path.touch()
    before = Path(f"{path}-wal").read_bytes()
    assert before
    with pytest.raises(StoreReplaced, match="its -wal is there"):
        clew.open(path)
    with pytest.raises(StoreReplaced, match="its -wal is there"):
        open_backend(path, create=False)  # as `clew list` does: no "there is no store yet"
    with pytest.raises(StoreError, match="lies there without its store"):
        restore(path, copy)
    assert any(finding.code == "file.gone" for finding in diagnose(path))
    assert Path(f"{path}-wal").read_bytes() == before
    if lives:
        owner.kill()
    os.replace(saved, path)
    assert stored(path) == ["one", "two"]


def test_closed_cleanly_and_opened_late(path: Path, start: Start) -> None:
    """S37.4 A clean close removes the -wal and trips nobody, neither the next nor a late one."""
    first = start()
    assert first.ask("add one") == "ok"
    assert first.ask("close") == "ok"
    assert not Path(f"{path}-wal").exists()
    second = start()
    assert second.ask("add two") == "ok"
    second.kill()
    third = start()
    assert third.ask("read") == "one two"
    assert third.ask("add three") == "ok"


def test_a_restore_is_noticed_by_who_has_the_store_open(path: Path, start: Start) -> None:
    """S38.2 `clew restore` changes the stamp; whoever was there stops, and keeps nobody out."""
    owner = start()
    assert owner.ask("add one") == "ok"
    copy = path.with_name("copy.db")
    backup(path, copy)
    assert owner.ask("add two") == "ok"
    restore(path, copy)
    assert owner.ask("add three").startswith("StoreReplaced")
    assert owner.ask("trouble") == "StoreReplaced"
    new = start()
    assert new.ask("add four") == "ok"
    assert owner.ask("close") == "ok"
    new.kill()
    assert stored(path) == ["one", "four"]


def test_a_handle_opens_no_second_file_for_a_read(path: Path) -> None:
    """S38.4 A further connection of a store whose file was replaced is refused."""
    with closing(clew.open(path)) as store:
        talk = store.profile("p").conversation("k")
        talk.add({"role": "user", "content": "one"})
        backend = store._db.backend
        copy = path.with_name("copy.db")
        backup(path, copy)
        os.replace(copy, path)

        def nested(tx: object) -> None:
            backend.read(lambda inner: backend.read(lambda innermost: innermost.rows("stamp_read")))

        with pytest.raises(StoreReplaced):
            backend.read(nested)


# -- the look at /proc


def test_a_deleted_suffix_is_a_suffix() -> None:
    """S37.6 Not a set of characters."""
    assert was_deleted("/a/led)-wal (deleted)") == "/a/led)-wal"
    assert was_deleted("/a/x (deleted)-wal") is None
    assert was_deleted("/a/x (deleted)-wal (deleted)") == "/a/x (deleted)-wal"


def test_locks_are_read_as_the_kernel_writes_them() -> None:
    """S37.1 Those who hold a lock, and those who wait for one; not flocks, not other files."""
    locks = (
        "1: POSIX  ADVISORY  READ 812 fd:01:5001 1073741826 1073742335\n"
        "2: FLOCK  ADVISORY  WRITE 813 fd:01:5001 0 EOF\n"
        "2: -> POSIX  ADVISORY  WRITE 814 fd:01:5001 120 120\n"
        "3: POSIX  ADVISORY  READ 815 fd:01:50010 0 EOF\n"
        "4: POSIX  ADVISORY  READ 812 fd:01:5001 128 128\n"
        "5: OFDLCK ADVISORY  READ -1 fd:01:5001 0 EOF\n"
    )
    assert holders(locks, 5001) == [812]


def test_without_proc_nothing_is_asked(path: Path, tmp_path: Path) -> None:
    """S37.5 On other systems the look is left out."""
    path.touch()
    check_holders(str(path), tmp_path / "nowhere")


def test_who_is_just_closing_is_given_a_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S37.4 SQLite holds a -shm that it has just deleted until it has closed it."""
    looks = [(1, "a.db-shm"), (1, "a.db-shm"), None]
    monkeypatch.setattr(wal_holders, "lost_by", lambda *_: looks.pop(0))
    slept: list[float] = []
    check_holders(str(path), sleep=slept.append)
    assert len(slept) == 2


def _copy(source: Path, target: Path, kind: str) -> None:
    """A copy as people make them: by clew, or of the file as it lies when all is in it."""
    if kind == "backup":
        backup(source, target)
    else:
        _merge(source)
        shutil.copy2(source, target)


def _merge(path: Path) -> None:
    """What Litestream does, and other programs that have the file open."""
    with closing(apsw.Connection(str(path))) as outside:
        assert outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)]


def _cp(source: Path, target: Path, times: bool) -> None:
    subprocess.run(["cp", *(["-p"] if times else []), str(source), str(target)], check=True)
