"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import clew
from clew.cli.main import cli
from clew.importers.bring import import_paths
from servers import server

from .helpers import Demo, Remote, Run, Talk, fill

TEMPLATE = "cli_demo"
DATA = Path(__file__).parent.parent / "data" / "transcripts"
SESSION = DATA / "pi" / "real-large-session.jsonl"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Made once; nobody changes it."""
    path = tmp_path_factory.mktemp("demo") / "clew.db"
    return Demo(path, fill(path))


@pytest.fixture
def demo(made: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    """A copy for one test; CLEW_STORE names it."""
    path = tmp_path / "clew.db"
    shutil.copyfile(made.path, path)
    path.chmod(0o600)
    monkeypatch.setenv("CLEW_STORE", str(path))
    return Demo(path, made.ids)


@pytest.fixture(scope="session")
def made_remote() -> Remote:
    """Made once; nobody connects to it again."""
    url = server().create_database(TEMPLATE)
    return Remote(url, fill(url))


@pytest.fixture
def remote(made_remote: Remote, monkeypatch: pytest.MonkeyPatch) -> Remote:
    """A copy of the database for one test; CLEW_STORE names it."""
    url = server().create_database(template=TEMPLATE)
    monkeypatch.setenv("CLEW_STORE", url)
    return Remote(url, made_remote.ids)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the person who runs the tests."""
    for name in ("CLEW_STORE", "CLEW_HOME", "CLEW_CONFIG", "CLEW_PROFILE", "CLEW_PAGER", "PAGER",
                 "NO_COLOR", "CLEW_DEBUG", "COLUMNS", "LESS"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, also where a shell has it ignored for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def run() -> Run:
    """Run a command line in this process; gives the exit code and what was printed."""

    def run(*args: object, code: int = 0, input: str | None = None) -> Result:
        result = CliRunner().invoke(cli, [str(arg) for arg in args], input=input)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def loads(run: Run) -> Callable[..., Any]:
    """Run a command line with --json; gives the value."""
    return lambda *args, code=0: json.loads(run(*args, "--json", code=code).stdout)


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Talk:
    """A long session of another tool, of 914 messages; nobody changes it."""
    path = tmp_path_factory.mktemp("talk") / "clew.db"
    with clew.open(path) as store:
        report = import_paths(store.profile("default"), SESSION)
    (source,) = report.sources
    return Talk(path, str(source.chats[0].conversation))


@pytest.fixture
def talk(imported: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """A copy for one test; CLEW_STORE names it."""
    path = tmp_path / "clew.db"
    shutil.copyfile(imported.path, path)
    path.chmod(0o600)
    monkeypatch.setenv("CLEW_STORE", str(path))
    return Talk(path, imported.id)
