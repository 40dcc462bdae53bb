"""Drives a program in a tmux of its own, whose server ends with the test."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
REWRITE = "CLEW_REWRITE_GOLDEN"
"""Set it to have the golden files written instead of compared."""
PATIENCE = float(os.environ.get("CLEW_PATIENCE", "60"))
"""Seconds to wait for what has to come; the machine may be busy."""
_CONFIG = """\
set -g history-limit 50000
set -g status off
set -g remain-on-exit on
set -g default-terminal screen-256color
set -sg escape-time 0
"""


class Tmux:
    """One window of one tmux server."""

    def __init__(
        self, home: Path, *args: str, columns: int = 80, rows: int = 24, folder: Path | None = None,
        **env: str,
    ) -> None:  # fmt: skip
        self.home = home
        self._socket = str(home / "tmux.sock")
        config = home / "tmux.conf"
        config.write_text(_CONFIG)
        python = [sys.executable, "-m", "terminal.scripted", *args]
        given = {
            "CLEW_HOME": str(home), "CLEW_STORE": str(home / "clew.db"), "HOME": str(home),
            "SCRIPTED_PID": str(home / "pid"), "PYTHONPATH": str(HERE.parent),
            "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
        } | env  # fmt: skip
        values = [f"{name}={value}" for name, value in given.items()]
        clean = ["env", "-u", "NO_COLOR", "-u", "COLUMNS", *values]
        # tmux is not asked how it ended: now and then it misses that a process has.
        self._ended = home / "ended"
        run = f"trap : INT; {shlex.join([*clean, *python])}; echo $? > {self._ended}.new"
        command = shlex.join(["sh", "-c", f"{run}; mv {self._ended}.new {self._ended}"])
        self._run("-f", str(config), "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  "-c", str(folder or home), command)  # fmt: skip

    def _run(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *args], capture_output=True, text=True, check=True,
            timeout=30, encoding="utf-8", env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        return done.stdout

    def key(self, *names: str) -> None:
        """Press keys, by tmux's names."""
        self._run("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._run("send-keys", "-l", text)

    def say(self, text: str) -> None:
        """Type a line and press Enter, once it is on the screen."""
        self.type(text)
        self.wait(lambda screen: text[-20:] in screen.replace("\n  ", ""))
        self.key("Enter")

    def paste(self, text: str) -> None:
        """Paste a text, as the terminal does that knows bracketed paste."""
        path = self.home / "paste"
        path.write_text(text)
        self._run("load-buffer", str(path))
        self._run("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, escapes: bool = False) -> str:
        """What is on the screen, without blanks at the ends of rows."""
        shown = self._run("capture-pane", "-p", *(["-e"] if escapes else []))
        return "\n".join(row.rstrip() for row in shown.split("\n")).rstrip("\n") + "\n"

    def all(self) -> str:
        """What was scrolled away, and the screen; rows that the terminal wrapped are whole."""
        return self._run("capture-pane", "-p", "-J", "-S", "-")

    def wait(self, seen: str | Callable[[str], bool], gone: str | None = None) -> str:
        """The screen once it has a text (or does as a function says), and not another one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            screen = self.screen()
            found = seen in screen if isinstance(seen, str) else seen(screen)
            if found and (gone is None or gone not in screen):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{seen!r} did not come in {PATIENCE} s; the screen:\n{self.screen()}")

    def ready(self) -> str:
        """The screen once the chat takes messages and no turn runs."""
        return self.wait(lambda s: "scripted/told" in s and "Ctrl-C stops" not in s)

    @property
    def status(self) -> int:
        """Its exit code, once it has ended; 128 and the number of the signal that ended it."""
        deadline = time.monotonic() + PATIENCE
        while not self._ended.exists():
            assert time.monotonic() < deadline, self.screen()
            time.sleep(0.05)
        return int(self._ended.read_text())

    @property
    def pid(self) -> int:
        """Of the program, which writes it down."""
        return int((self.home / "pid").read_text())

    def close(self) -> None:
        """End the server, and the program with it."""
        subprocess.run(
            ["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False
        )


def normal(screen: str) -> str:
    """A screen without what differs from run to run: ids, seconds, tokens of a folder's name."""
    screen = re.sub(r"--resume \w{8}", "--resume ID", screen)
    screen = re.sub(r"^\w{8}(  \d+ messages?, active) .+$", r"ID\1 AGO", screen, flags=re.M)
    screen = re.sub(r"[\d.]+k?/384k", "N/384k", screen)
    screen = re.sub(r"\n{3,}", "\n\n", screen)  # a resize may leave a blank row
    return re.sub(r"\d+\.\d s, ", "0.0 s, ", screen)


def as_golden(name: str, chat: Tmux) -> None:
    """Wait until the screen is the one of the file. To rewrite it, until it stands still."""
    path = GOLDEN / f"{name}.txt"
    deadline = time.monotonic() + PATIENCE
    if os.environ.get(REWRITE):
        before, screen = "", normal(chat.screen())
        while before != screen and time.monotonic() < deadline:
            time.sleep(1)
            before, screen = screen, normal(chat.screen())
        path.write_text(screen, encoding="utf-8")
    # How far it has scrolled depends on how often a stream was drawn: a row more or less above.
    wanted = path.read_text("utf-8").strip("\n")
    while (screen := normal(chat.screen()).strip("\n")) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert screen == wanted, f"{REWRITE}=1 writes {path.name} anew; now:\n{screen}"
