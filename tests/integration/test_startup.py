"""Starts of real processes: one that hangs exits with 75 by its bound, whatever hangs it."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from clew import service, startup

ENTRIES = {"clew.cli.commands.chat": "command", "clew.cli.ask_main": "run"}
"""Where that which may be left running begins; a question waits for its input before."""
BEGIN = """
import logging, os, socket, sys, threading, time
from clew import startup
dump = sys.argv[1]
start = startup.Start(dump, deadline=0.2, grace=0.3)
"""
HANGS = {
    "the main thread in C": "start.report('opening the store', 0.2); time.sleep(60)",
    "a thread that waits for itself": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "the lock of the log is held": """
logging.basicConfig(); logging.lock = logging.root.handlers[0].lock
threading.Thread(target=lambda: (logging.lock.acquire(), time.sleep(60)), daemon=True).start()
logging.error("this waits for ever") or time.sleep(60)""",
    "busy in Python": "while True: pass",
}


def run(code: str, dump: Path, **more: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", BEGIN + code, str(dump)]
    return subprocess.run(command, capture_output=True, timeout=30, check=False, **more)  # type: ignore[call-overload]


@pytest.mark.parametrize("how", HANGS)
def test_a_start_that_hangs_exits_with_75(tmp_path: Path, how: str) -> None:
    """S50.3."""
    dump = tmp_path / "hung.txt"
    ended = run(HANGS[how], dump)
    assert ended.returncode == startup.RESTART == 75
    assert b"the start hung while" in ended.stderr
    assert b"most recent call first" in ended.stderr
    record = json.loads(dump.read_text().splitlines()[0])
    assert record["event"] == "start hung"
    assert dump.stat().st_mode & 0o777 == 0o600


def test_the_record_names_the_last_phase(tmp_path: Path) -> None:
    """S50.8."""
    dump = tmp_path / "hung.txt"
    run("start.report('one', 0.2); start.report('two', 0.2); time.sleep(60)", dump)
    record = json.loads(dump.read_text().splitlines()[0])
    assert (record["lease_count"], record["last_lease_phase"]) == (3, "two")


def test_a_report_that_nobody_takes_does_not_keep_it(tmp_path: Path) -> None:
    """S50.2, S50.3: neither a pipe that is full nor a file that cannot be opened."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # opening it for writing waits for a reader
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    command = [sys.executable, "-c", BEGIN + "time.sleep(60)", str(fifo)]
    ended = subprocess.run(command, stderr=writer, timeout=30, check=False)
    os.close(reader), os.close(writer)  # pyright: ignore[reportUnusedExpression]
    assert ended.returncode == startup.RESTART


HOLDS = """
import ctypes
ctypes.PyDLL(None).sleep(60)  # keeps the interpreter's lock
"""


def test_python_that_stands_still_is_ended_by_the_system(tmp_path: Path) -> None:
    ended = run(HOLDS, tmp_path / "hung.txt")
    assert ended.returncode == -14  # SIGALRM


def test_a_phase_may_ask_for_more_and_is_clamped(tmp_path: Path) -> None:
    """S50.4, S50.6, S50.7: longer than the usual bound, without using the processor."""
    code = "start.report('migrating', 60); time.sleep(0.8); print('done'); start.finish()"
    ended = run(code, tmp_path / "hung.txt")
    assert (ended.returncode, ended.stdout) == (0, b"done\n")
    start = startup.Start(leave=lambda code: None)
    start.report("migrating", 10_000)
    assert startup.LONGEST == 900
    assert start.phase.end - start.phase.began == pytest.approx(startup.LONGEST)
    start.finish()


def test_a_busy_thread_does_not_hide_a_start_that_hangs(tmp_path: Path) -> None:
    """S50.5: only a phase that is reported moves the bound."""
    code = """
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
time.sleep(60)"""
    assert run(code, tmp_path / "hung.txt").returncode == startup.RESTART


def test_nothing_happens_after_it_is_over(tmp_path: Path) -> None:
    ended = run("start.finish(); time.sleep(1.5); print(threading.active_count())", tmp_path / "d")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"1\n", b"")


def test_a_program_that_is_not_armed_is_left_alone() -> None:
    """S50.9."""
    startup.report("opening", 1e9)
    startup.ready()
    startup.ending()


def test_every_entry_begins_with_a_start() -> None:
    """S50.1: and ends it, whatever comes of it."""
    for name, function in ENTRIES.items():
        tree = ast.parse(Path(import_module(name).__file__ or "").read_text("utf-8"))
        functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
        command = next(node for node in functions if node.name == function)
        entered = [ast.unparse(item) for node in ast.walk(command)
                   if isinstance(node, ast.With) for item in node.items]  # fmt: skip
        assert any("starting(settings" in each for each in entered), name
    assert startup.DEADLINE == 300


def test_a_command_that_cannot_start_in_time_exits_with_75(tmp_path: Path) -> None:
    """S50.1: a store that does not open."""
    (tmp_path / "config.toml").write_text('system = "x"\n')
    code = (
        "import sys, time, clew.store.opening as o, clew.store.aio.opening as a\n"
        "from importlib import import_module\n"
        "e = import_module('clew.store.engines')\n"
        "e.open_backend = o.open_backend = lambda *a, **k: time.sleep(60)\n"
        "from clew.cli.main import main\nsys.exit(main())"
    )
    env = os.environ | {"CLEW_HOME": str(tmp_path), "CLEW_START_DEADLINE": "0.5"}
    ended = subprocess.run(
        [sys.executable, "-c", code, "ask", "x"], env=env, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=40, check=False,
    )  # fmt: skip
    assert ended.returncode == startup.RESTART, ended.stderr[-500:]
    assert b"the start hung while opening the store" in ended.stderr
    assert "opening the store" in (tmp_path / "start-hung.txt").read_text()


# -- the service manager


@pytest.fixture(params=["file", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """A socket on which the manager listens."""
    name = str(tmp_path / "notify") if request.param == "file" else f"\0clew-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name)
        listening.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        yield listening


def test_the_manager_is_told(manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "_current", None)
    startup.arm()
    startup.report("opening\nthe store", 20)
    told = manager.recv(4096).decode().splitlines()
    assert told == ["STATUS=opening the store", "EXTEND_TIMEOUT_USEC=30000000"]
    startup.ready()
    assert manager.recv(4096).decode().splitlines() == ["READY=1", "STATUS=ready"]
    startup.ending()
    assert manager.recv(4096) == b"STOPPING=1"


def test_a_manager_that_is_gone_or_full_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not service.tell(READY=1)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    assert not service.tell(READY=1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "busy"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "busy"))
        while service.tell(STATUS="x"):
            pass


def test_the_watchdog_is_for_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert service.watchdog() == 2.0
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert service.watchdog() is None
    monkeypatch.setenv("WATCHDOG_PID", "")
    monkeypatch.setenv("WATCHDOG_USEC", "x")
    assert service.watchdog() is None
