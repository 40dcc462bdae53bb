"""`clew chat` in a pipe, and its options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clew

from .helpers import Demo, Run

TESTS = Path(__file__).parent.parent
CONFIG = "[chat]\ntitles = false\n[tools]\nbuiltin = false\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, where no model is connected."""
    home = tmp_path / "clew"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    monkeypatch.setenv("CLEW_HOME", str(home))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return home


def scripted(home: Path, typed: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The chat with the model of the terminal's tests, in a pipe."""
    return subprocess.run(
        [sys.executable, "-m", "terminal.scripted", *args], input=typed, text=True, check=False,
        capture_output=True, timeout=120, encoding="utf-8", cwd=home,
        env={**os.environ, "PYTHONPATH": str(TESTS), "CLEW_HOME": str(home)} | env,
    )  # fmt: skip


def roles(home: Path) -> list[list[str]]:
    """Of the messages of each conversation, newest first."""
    with clew.open(home / "clew.db") as store:
        profile = store.profile("default")
        found = [profile.open(info.id) for info in profile.list().items]
        return [[str(m.role) for m in conv.messages()] for conv in found]


def test_each_line_of_a_pipe_is_a_message(home: Path) -> None:
    done = scripted(home, "echo one\n\necho two\\\nlines\nwide\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("one")
    assert "two\nlines" in done.stdout
    assert "日本語のテキスト 🎉" in done.stdout
    assert "\x1b" not in done.stdout
    assert roles(home) == [["user", "assistant"] * 3]


def test_a_pipe_gets_the_markdown_and_nothing_that_acts(home: Path) -> None:
    done = scripted(home, "markdown\nevil\n")
    assert "# Lists and code" in done.stdout
    assert "^[[2J^[]0;owned^G" in done.stdout
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*done.stdout}


def test_a_line_with_a_slash_is_a_command(home: Path) -> None:
    done = scripted(home, "/help\n//not one\necho hi\n/quit\necho unreached\n")
    assert done.returncode == 0
    assert "/quit" in done.stdout + done.stderr
    with clew.open(home / "clew.db") as store:
        profile = store.profile("default")
        texts = [m.text for m in profile.open(profile.list().items[0].id).messages()]
    assert texts[0] == "/not one"
    assert "unreached" not in done.stdout


def test_the_message_on_the_command_line_is_all(home: Path) -> None:
    done = scripted(home, "echo not read\n", "echo", "from", "here")
    assert done.stdout.strip() == "from here"


def test_a_failed_turn_is_the_exit_code_and_the_next_goes_on(home: Path) -> None:
    done = scripted(home, "fail\necho fine\n")
    assert (done.returncode, done.stdout.strip()) == (0, "fine")
    assert "set OTHER_KEY" in done.stderr
    assert scripted(home, "fail\n").returncode == 5


def test_a_question_waits_where_nobody_can_be_asked(home: Path) -> None:
    """The turn is kept, and it is said how to answer."""
    done = scripted(home, "ask one\n")
    assert done.returncode == 4
    assert "waits for a person to allow write_file" in done.stderr
    assert "chat --resume" in done.stderr
    assert roles(home) == [["user", "assistant"]]


def test_nothing_said_leaves_nothing(home: Path) -> None:
    assert scripted(home, "").returncode == 0
    assert roles(home) == []


def test_continue_in_a_pipe(home: Path) -> None:
    scripted(home, "echo one\n")
    done = scripted(home, "echo two\n", "--continue")
    assert "two" in done.stdout
    assert roles(home) == [["user", "assistant"] * 2]


def test_options(home: Path, run: Run) -> None:
    """With the archivist, which answers where no model is connected."""
    answered = run("chat", "--new", "What do you know?").stdout
    assert "archivist" in answered
    again = run("chat", "--continue", "--model", "archivist/archivist", "And now?")
    assert again.exit_code == 0
    with clew.open(home / "clew.db") as store:
        (info,) = store.profile("default").list().items
    assert (info.source, info.message_count) == ("chat", 4)
    assert info.cwd == str(Path.cwd())
    run("chat", "--resume", info.id[:8], "Once more")
    run("chat", "--resume", "do YOU know", "And by its title")
    assert roles(home) == [["user", "assistant"] * 4]
    run("chat", "--new", "What do you know now?")
    assert "several conversations" in run("chat", "--resume", "you know", code=3).output


def test_wrong_options(demo: Demo, home: Path, run: Run) -> None:
    assert "exclude" in run("chat", "--new", "--continue", code=2).output
    assert "no conversation" in run("chat", "--resume", "nothing-like-it", code=3).output


def test_the_prompt_waits_for_nothing_heavy() -> None:
    """What a turn needs is loaded behind the prompt, not before it."""
    code = (
        "import sys, clew.cli.main, clew.cli.commands.chat, clew.cli.chat.running\n"
        "import clew.config.loading\n"
        "heavy = ('openai', 'anthropic', 'mcp', 'httpx', 'rich', 'pygments', 'clew.host',\n"
        "         'clew.store.store', 'clew.compaction', 'clew.providers', 'clew.tools')\n"
        "print(sorted(name for name in heavy if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
