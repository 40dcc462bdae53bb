"""Locks that admit destructive work, between real processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import clew
from clew.errors import Busy, StoreFull, StoreUnusable
from clew.store import admission
from clew.store.admission import CONTENTION, Admission, admitted
from clew.store.backup import restore

HOLD = (
    "import sys\n"
    "from clew.store.admission import admitted\n"
    "with admitted(sys.argv[1], 'vacuum'):\n"
    "    print('in', flush=True)\n"
    "    sys.stdin.read()\n"
)


def holding(path: Path) -> subprocess.Popen[str]:
    """A process that is admitted, until its standard input ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "in\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.communicate(timeout=30)


def test_one_is_admitted_and_the_error_names_it(fast_dir: Path) -> None:
    """S42.1 Who is not admitted does not proceed."""
    path = fast_dir / "a.db"
    child = holding(path)
    with pytest.raises(Busy, match=rf"process {child.pid} \(vacuum\)"), admitted(path, "repair"):
        raise AssertionError("two are in")
    end(child)
    with admitted(path, "repair"):
        pass


def test_threads_of_one_process_are_two(fast_dir: Path) -> None:
    """S42.1"""
    path = fast_dir / "a.db"
    with admitted(path, "repair"), pytest.raises(Busy), admitted(path, "restore"):
        raise AssertionError("two are in")


def test_an_admission_is_waited_for_so_long(fast_dir: Path) -> None:
    """S42.5 With a timeout the next one comes in when the first has ended."""
    path, entered = fast_dir / "a.db", threading.Event()

    def wait() -> None:
        with admitted(path, "restore", timeout=60):
            entered.set()

    with admitted(path, "repair"):
        other = threading.Thread(target=wait)
        other.start()
        assert not entered.wait(0.2)
    assert entered.wait(60)
    other.join()


def test_a_lock_file_that_cannot_be_opened_admits_nobody(fast_dir: Path) -> None:
    """S42.2 S42.3 The error has the system's own reason."""
    path = fast_dir / "a.db"
    (fast_dir / "a.db.admit").mkdir()
    with pytest.raises(StoreUnusable, match="EISDIR") as caught, admitted(path, "repair", 60):
        raise AssertionError("it is in")
    assert caught.value.reason == "EISDIR"
    with pytest.raises(StoreUnusable) as caught, admitted(fast_dir / "no" / "a.db", "repair", 60):
        raise AssertionError("it is in")
    assert caught.value.reason == "ENOENT"


@pytest.mark.parametrize("code", ["ESTALE", "ENOTSUP", "ENOLCK", "EIO", "ENOSPC", "EINTR"])
def test_a_place_that_cannot_lock_is_told_at_once(fast_dir: Path, code: str) -> None:
    """S42.4 No polling, and nobody is said to hold it."""
    number, asked = getattr(errno, code), 0

    def refuses(fd: int) -> None:
        nonlocal asked
        asked += 1
        raise OSError(number, os.strerror(number))

    lock = Admission(str(fast_dir / "a.db"), "repair", refuses)
    with pytest.raises(StoreUnusable) as caught:
        lock.take(60)
    lock.close()
    assert asked == 1
    assert caught.value.reason == errno.errorcode[number]
    assert "process" not in str(caught.value)
    assert isinstance(caught.value, StoreFull) == (code == "ENOSPC")


@pytest.mark.parametrize("code", sorted(CONTENTION))
def test_contention_is_waited_for(fast_dir: Path, code: int) -> None:
    """S42.4"""
    left = 2

    def busy(fd: int) -> None:
        nonlocal left
        if left:
            left -= 1
            raise OSError(code, os.strerror(code))
        admission.lock_now(fd)

    lock = Admission(str(fast_dir / "a.db"), "repair", busy)
    lock.take(60)
    lock.close()
    assert left == 0


def test_what_was_left_over_holds_nobody_up(fast_dir: Path) -> None:
    """S42.6 Neither an empty file, nor that of a process that was killed."""
    path = fast_dir / "a.db"
    (fast_dir / "a.db.admit").touch()
    with admitted(path, "repair"):
        pass
    child = holding(path)
    os.kill(child.pid, signal.SIGKILL)
    child.wait(30)
    with admitted(path, "repair"):
        pass
    if child.stdin and child.stdout:
        child.stdin.close()
        child.stdout.close()


FORK = (
    "import os, sys\n"
    "from clew.store.admission import admitted\n"
    "with admitted(sys.argv[1], 'repair'):\n"
    "    if os.fork() == 0:\n"
    "        print('child', flush=True)\n"
    "        sys.stdin.read()\n"
    "        os._exit(0)\n"
    "    os._exit(0)\n"
)


def test_a_forked_child_does_not_keep_a_dead_parents_lock(fast_dir: Path) -> None:
    """S42.6"""
    path = fast_dir / "a.db"
    child = subprocess.Popen(
        [sys.executable, "-c", FORK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "child\n"
    child.wait(30)  # the parent; the child waits still
    with admitted(path, "restore", timeout=30):
        pass
    child.communicate(timeout=30)


def test_a_lock_file_that_was_removed_is_not_what_is_locked(fast_dir: Path) -> None:
    """Two would hold a lock each, on files of one name."""
    path = fast_dir / "a.db"
    removed = False

    def removes(fd: int) -> None:
        nonlocal removed
        admission.lock_now(fd)
        if not removed:
            removed = True
            os.unlink(f"{path}.admit")

    lock = Admission(str(path), "repair", removes)
    lock.take(0)
    with pytest.raises(Busy), admitted(path, "restore"):
        raise AssertionError("two are in")
    lock.close()


def test_a_restore_waits_for_nobody_who_does_not_end(
    fast_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S42.1 Nothing is touched by who is not admitted."""
    monkeypatch.setattr("clew.store.restore.PATIENCE", 0.1)
    path = fast_dir / "a.db"
    with clew.open(path) as store:
        store.profile("me").conversation("k").add(clew.user("hello"))
        store.backup(fast_dir / "b.db")
    child = holding(path)
    before = path.read_bytes()
    with pytest.raises(Busy, match=f"process {child.pid}"):
        restore(path, fast_dir / "b.db")
    assert path.read_bytes() == before
    end(child)
    assert restore(path, fast_dir / "b.db").messages == 1
