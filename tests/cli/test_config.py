"""clew config: what is configured and from where, what is wrong, the editor, the keyring.

Parts of S26.1: values by file and environment, and messages that name the line.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import pytest
from keyring.backends import fail

from clew.cli.config_edit import editor, ensure
from clew.config.known import KNOWN
from clew.config.template import TEMPLATE
from clew.errors import InputError

from .helpers import Demo, Run
from .test_terminal import terminal

KEY = "sk-proj-abcdefghijklmnop1234567890"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of clew, without a key of anybody."""
    for known in KNOWN.values():
        for name in known.keys:
            monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith("CLEW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CLEW_HOME", str(tmp_path / "clew"))
    return tmp_path / "clew"


@pytest.fixture
def config(home: Path) -> Path:
    """A file with something of everything."""
    home.mkdir()
    path = home / "config.toml"
    path.write_text("""\
model = "openai/gpt-5"
store = "talks.db"
[providers.lab]
base_url = "http://lab.example/v1"
key_env = "LAB_KEY"
headers = { Authorization = "Bearer ${LAB_KEY}" }
[limits]
steps = 7
""")
    return path


def by_key(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in found["values"]}


def test_show_says_where_each_value_comes_from(
    config: Path, loads: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_LIMITS_RETRIES", "2")
    values = by_key(loads("config", "show"))
    here = {"from": "file", "file": str(config)}
    assert values["model"] == {"key": "model", "value": "openai/gpt-5", **here, "line": 1}
    assert values["limits.steps"] == {"key": "limits.steps", "value": 7, **here, "line": 8}
    assert values["limits.retries"] == {
        "key": "limits.retries", "value": 2, "from": "environment",
        "variable": "CLEW_LIMITS_RETRIES",
    }  # fmt: skip
    assert values["limits.repeats"] == {"key": "limits.repeats", "value": 3, "from": "default"}
    assert values["providers.lab.headers.Authorization"]["value"] == "Bearer ${LAB_KEY}"
    assert values["store"]["line"] == 2
    assert values["store"]["value"].endswith("talks.db")
    text = run("config", "show").stdout
    assert [line for line in text.splitlines() if line.startswith("limits.steps")]
    assert "config.toml:8" in text
    assert "CLEW_LIMITS_RETRIES" in text


def test_an_option_is_over_all(config: Path, loads: Any) -> None:
    store = by_key(loads("--store", "/x/y.db", "config", "show"))["store"]
    assert store == {"key": "store", "value": "/x/y.db", "from": "option", "option": "--store"}


def test_show_says_where_keys_are_and_never_what_they_are(
    config: Path, loads: Any, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {row["provider"]: row for row in loads("config", "show")["keys"]}
    assert found["openai"] == {
        "provider": "openai", "key": "missing", "variable": "OPENAI_API_KEY",
    }  # fmt: skip
    assert found.keys() == {"lab", "openai"}
    for name in ("OPENAI_API_KEY", "LAB_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(name, KEY)
    (config.parent / "mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "x", "args": ["--key", "' + KEY + '"], '
        '"env": {"A_TOKEN": "hunter2", "B_TOKEN": "${B}"}, "alwaysAllow": []}}}'
    )
    result, found = run("config", "show"), loads("config", "show")
    assert "set in OPENAI_API_KEY" in result.stdout
    assert "set in GROQ_API_KEY" in result.stdout
    values = by_key(found)
    assert values["mcpServers.a.args"]["value"] == ["--key", "(hidden)"]
    assert values["mcpServers.a.env.A_TOKEN"]["value"] == "(hidden)"
    assert values["mcpServers.a.env.B_TOKEN"]["value"] == "${B}"
    assert len(found["notes"]) == 2
    for command in ("show", "check"):
        for more in ((), ("--json",)):
            output = run("config", command, *more).output
            assert KEY not in output
            assert "hunter2" not in output


def test_check_lists_all_problems(config: Path, run: Run, loads: Any) -> None:
    assert run("config", "check").stdout.startswith(f"{config}: no problems\n")
    config.write_text(f'modle = "a"\n[limits]\nsteps = "x"\n[chat]\nkey = "{KEY}"\n')
    result = run("config", "check", code=1)
    assert result.stdout.splitlines() == [
        f"{config}:1: modle: there is no such key; did you mean model?",
        f"{config}:3: limits.steps: is text; give a whole number",
        f"{config}:5: chat.key: a key does not belong into a file: put it into an environment "
        "variable, or into the keyring with `clew config key PROVIDER`",
        "3 problems",
    ]
    found = loads("config", "check", code=1)
    assert (found["ok"], found["path"], found["notes"]) == (False, str(config), [])
    assert found["problems"][1] == {
        "file": str(config), "line": 3, "column": None, "variable": None, "key": "limits.steps",
        "text": "is text; give a whole number",
    }  # fmt: skip


def test_check_tells_of_a_missing_key_and_a_misspelt_variable(
    config: Path, loads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_LIMITS_STEP", "1")
    found = loads("config", "check")
    assert found["ok"]
    assert [(note["key"], note["variable"], note["line"]) for note in found["notes"]] == [
        ("", "CLEW_LIMITS_STEP", None), ("providers.lab.headers.Authorization", None, 6),
        ("providers.lab", None, 3), ("providers.openai", None, 1),
    ]  # fmt: skip


def test_check_says_line_and_column_of_what_is_no_toml(config: Path, run: Run) -> None:
    config.write_text("[limits]\nsteps = = 5\n")
    assert run("config", "check", code=1).stdout.startswith(f"{config}:2:9: Invalid value")


def test_a_fault_is_told_by_what_needs_the_file(config: Path, run: Run) -> None:
    config.write_text("[limits]\nsteps = 'x'\nstore = 5\n")
    assert "limits.steps" in run("config", "show", code=2).stderr
    config.write_text("store = 5\n")
    assert f"{config}:1: store: is no text" in run("list", code=2).stderr


def test_the_store_of_the_file_is_used(
    demo: Demo, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLEW_STORE", raising=False)
    home.mkdir()
    (home / "config.toml").write_text(f"store = '{demo.path}'\nprofile = 'bot'\n")
    assert "Nightly report" in run("list").stdout
    assert "Nightly report" not in run("--profile", "default", "list").stdout


def test_without_a_file(home: Path, run: Run, loads: Any) -> None:
    assert run("config", "path").stdout == f"{home / 'config.toml'}\n"
    found = loads("config", "show")
    assert (found["exists"], found["mcp"]) == (False, None)
    assert {row["from"] for row in found["values"]} == {"default"}
    assert "is not there; no problems" in run("config", "check").stdout
    assert "not there: `clew config edit`" in run("config", "show").stdout


def script(folder: Path, body: str) -> str:
    """An editor: Python that has the path in `path`, and in `turn` how often it ran."""
    path = folder / "editor.py"
    path.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        f"count = pathlib.Path({str(folder / 'count')!r})\n"
        "turn = len(count.read_text()) if count.exists() else 0\n"
        f"count.write_text('x' * (turn + 1))\n{body}\n"
    )
    return f'"{sys.executable}" "{path}"'


def test_edit_makes_the_file_for_its_owner_alone(
    home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", script(tmp_path, "print(path.read_text()[:5])"))
    before = os.umask(0)
    try:
        result = run("config", "edit")
    finally:
        os.umask(before)
    path = home / "config.toml"
    assert path.read_text() == TEMPLATE
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert "no problems" in result.stdout
    assert "Made" in result.stderr
    assert not ensure(path)


def test_edit_checks_what_was_written(
    config: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", script(tmp_path, "path.write_text('x = 1')"))
    assert f"{config}:1: x: there is no such key" in run("config", "edit", code=1).stdout
    assert config.read_text() == "x = 1"
    for command, said in (
        ("false", "ended with 1"),
        ("/no/such", "cannot be run"),
        ("'", "quotes"),
    ):
        monkeypatch.setenv("VISUAL", command)
        assert said in run("config", "edit", code=2).stderr


def test_edit_offers_to_edit_again(config: Path, tmp_path: Path) -> None:
    body = "path.write_text('x = 1' if turn == 0 else 'model = \"ollama/a\"')"
    program = script(tmp_path, body)
    code, output = terminal(
        "config", "edit", answer="y\n", wait_for="Edit again?", VISUAL=program,
        CLEW_HOME=str(config.parent),
    )  # fmt: skip
    assert "there is no such key" in output
    assert "no problems" in output
    assert code == 0


def test_which_editor() -> None:
    assert editor({"EDITOR": "code --wait", "VISUAL": " "}) == ["code", "--wait"]
    assert editor({"EDITOR": "a", "VISUAL": "b c"}) == ["b", "c"]
    with pytest.raises(InputError):
        editor({"EDITOR": "'"})


class Memory(keyring.backend.KeyringBackend):
    """A keyring for one test."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def memory() -> Iterator[Memory]:
    before, backend = keyring.get_keyring(), Memory()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_a_key_is_kept_in_the_keyring(
    memory: Memory, home: Path, run: Run, loads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("config", "key", "groq", input=f"{KEY}\n")
    assert KEY not in result.output
    assert memory.kept == {("clew", "groq"): KEY}
    (row,) = loads("config", "show")["keys"]
    assert row == {"provider": "groq", "key": "keyring", "variable": None}
    monkeypatch.setenv("GROQ_API_KEY", "x")
    again = run("config", "key", "groq", input=f"{KEY}\n")
    assert "GROQ_API_KEY is set, and comes first" in again.stderr
    assert "Removed" in run("config", "key", "groq", "--remove").stderr
    assert "has no key" in run("config", "key", "groq", "--remove").stderr
    assert memory.kept == {}
    assert all(KEY not in path.read_text() for path in home.rglob("*") if path.is_file())


def test_a_key_is_not_echoed(memory: Memory, home: Path) -> None:
    code, output = terminal(
        "config", "key", "groq", answer=f"{KEY}\n", wait_for="Key of groq", CLEW_HOME=str(home)
    )
    assert code == 0
    assert KEY not in output
    assert "has the key of groq" in output


def test_keys_that_cannot_be_kept(memory: Memory, config: Path, run: Run) -> None:
    assert "did you mean groq?" in run("config", "key", "grok", input=KEY, code=2).stderr
    assert "no key" in run("config", "key", "groq", input="", code=2).stderr
    run("config", "key", "lab", input=KEY)
    assert memory.kept == {("clew", "lab"): KEY}
    keyring.set_keyring(fail.Keyring())
    error = run("config", "key", "groq", input=KEY, code=2).stderr
    assert "none that can be used" in error
    assert "GROQ_API_KEY" in error
    assert KEY not in error
