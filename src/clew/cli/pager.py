"""Shows long output in a pager, as git does: `less` unless CLEW_PAGER or PAGER says otherwise.

Output goes to the pager as it is made. A pager that is left before the end ends the output.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from clew.cli.screen import Screen

DIRECT = ("", "cat")


def _command() -> list[str]:
    """The pager's command; empty when there is none."""
    for name in ("CLEW_PAGER", "PAGER"):
        if name in os.environ:
            chosen = os.environ[name].strip()
            return [] if chosen in DIRECT else shlex.split(chosen)
    found = shutil.which("less") or shutil.which("more")
    return [found] if found else []


@contextmanager
def paged(screen: Screen, wanted: bool) -> Generator[TextIO, None, None]:
    """A stream to write to: the pager's on a terminal, the screen's own elsewhere."""
    command = _command() if wanted and screen.is_terminal else []
    process = _start(command) if command else None
    if process is None or process.stdin is None:
        yield screen.stream
        return
    stream = io.TextIOWrapper(process.stdin, "utf-8", "backslashreplace")
    restore = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pager's, until it ends
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        pass  # left early
    finally:
        try:
            stream.close()
        except BrokenPipeError:
            pass
        process.wait()
        signal.signal(signal.SIGINT, restore)


def _start(command: list[str]) -> subprocess.Popen[bytes] | None:
    """A running pager; None when it cannot be started."""
    # F: leave at once when all fits on a screen; R: colours; X: keep the text on the screen.
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return None
