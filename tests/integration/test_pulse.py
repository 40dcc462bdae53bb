"""Signs of life of a real `clew chat`, as a service manager sees them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

REAL = "import sys; from clew.cli.main import main; sys.exit(main())"


def test_a_chat_tells_that_it_lives(tmp_path: Path) -> None:
    """Ready once, then signs as long as it runs, then that it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        env = os.environ | {
            "CLEW_HOME": str(tmp_path), "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "WATCHDOG_USEC": "300000",
        }  # fmt: skip
        env.pop("CLEW_STORE", None)
        chat = subprocess.Popen(
            [sys.executable, "-c", REAL, "chat"], env=env, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            told: list[str] = []
            while told[-2:] != ["WATCHDOG=1"] * 2 or not any("READY=1" in each for each in told):
                told.append(manager.recv(4096).decode())
            assert sum("READY=1" in each for each in told) == 1
            chat.stdin.close()  # type: ignore[union-attr]
            while (last := manager.recv(4096).decode()) == "WATCHDOG=1":
                pass
            assert last == "STOPPING=1"
            assert chat.wait(30) == 0
        finally:
            chat.kill()
            chat.wait()
            chat.stderr.close()  # type: ignore[union-attr]
