"""Every file that clew makes is its owner's alone, whatever the umask."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend

import clew
from clew.config import secrets

REAL = "import sys; from clew.cli.main import main; sys.exit(main())"


@pytest.fixture(autouse=True)
def open_to_all() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def _run(home: Path, *args: object, said: str = "", **env: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REAL, *map(str, args)], input=said, text=True, capture_output=True,
        env={**os.environ, "CLEW_HOME": str(home), "HOME": str(home.parent), **env}, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _open_to_others(folder: Path) -> list[tuple[str, str]]:
    found = [Path(at, name) for at, inner, names in os.walk(folder) for name in (*inner, *names)]
    assert found
    modes = [(path, stat.S_IMODE(path.lstat().st_mode)) for path in found]
    return [
        (path.name, oct(mode)) for path, mode in modes
        if mode != (0o700 if path.is_dir() else 0o600)
    ]  # fmt: skip


def test_files_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store, search file, locks, spool, history, configuration, exports, backups, repairs."""
    place = tmp_path / "all"
    place.mkdir(mode=0o700)
    home = place / "home"
    monkeypatch.delenv("CLEW_STORE", raising=False)
    _run(home, "ask", "Hello there")
    _run(home, "chat", said="Hello again\n")
    _run(home, "config", "edit", EDITOR=f"{sys.executable} -c pass")
    _run(home, "search", "hello")
    assert (home / "clew.db.search").exists()
    _run(home, "export", "--all", "-o", place / "all.jsonl")
    _run(home, "export", "--all", "-f", "html", "-o", f"{place / 'pages'}/")
    _run(home, "spool", "export", place / "left.jsonl")
    _run(home, "backup", place / "a.db")
    _run(home, "backup", "--incremental", place / "chain")
    _run(home, "restore", place / "a.db", "--yes")
    _run(home, "repair", "--json")
    with clew.open(home / "clew.db") as store:
        store.profile("default").create().append([clew.user("Live")])
        list(store.profile("default").search("live").hits)
        assert (home / "clew.db-wal").exists()
        assert _open_to_others(place) == []


class Memory(KeyringBackend):
    """A keyring for one test."""

    priority = 1.0  # pyright: ignore[reportAssignmentType]

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._kept.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._kept[username] = password


def test_the_list_of_keys_in_the_keyring(tmp_path: Path) -> None:
    """Names of providers only."""
    before, environ = keyring.get_keyring(), {"CLEW_HOME": str(tmp_path / "home")}
    keyring.set_keyring(Memory())
    try:
        secrets.store("openai", "sk-1234", environ)
        assert secrets.stored(environ) == {"openai"}
    finally:
        keyring.set_keyring(before)
    assert _open_to_others(tmp_path) == []
