"""clew completion, and what a shell is offered."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .helpers import Demo, Run, process


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/clew"),
        ("zsh", ".zfunc/_clew"),
        ("fish", ".config/fish/completions/clew.fish"),
    ],
)
def test_scripts(
    run: Run, shell: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    script = run("completion", "show", shell).stdout
    assert "_CLEW_COMPLETE" in script
    said = run("completion", "install", shell).stdout
    assert f"Wrote ~/{place}" in said
    assert (tmp_path / "home" / place).read_text() == script
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert run("completion", "show").stdout == script
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=script, text=True, check=True, capture_output=True)


def test_a_shell_that_is_not_known(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "bash, zsh, fish" in run("completion", "install", code=2).stderr


def complete(line: str, word: int) -> list[str]:
    done = process(_CLEW_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(word))
    assert done.stderr == ""
    return [entry.split(",")[1] for entry in done.stdout.split()]


def test_commands_options_and_ids(demo: Demo) -> None:
    assert complete("clew s", 1) == ["show", "search", "stats", "spool"]
    assert "--since" in complete("clew list --s", 2)
    assert complete(f"clew show {demo.ids.trip[:10]}", 2) == [demo.ids.trip]
    assert demo.ids.trip[:8] in complete("clew show ", 2)
    assert complete("clew show nobody", 2) == []
    assert complete("clew completion show z", 3) == ["zsh"]
    assert complete("clew search x --role a", 4) == ["assistant"]


def test_candidates_of_a_store_that_is_not_there(tmp_path: Path) -> None:
    assert complete(f"clew --store {tmp_path}/none.db show a", 4) == []


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_in_bash(demo: Demo, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "clew"
    command.write_text(
        f"#!{sys.executable}\nimport sys\nfrom clew.cli.main import main\nsys.exit(main())\n"
    )
    command.chmod(0o755)
    script = run("completion", "show", "bash").stdout
    script += "COMP_WORDS=(clew unp) COMP_CWORD=1\n_clew_completion clew\necho ${COMPREPLY[@]}\n"
    code = f"PATH={folder}:$PATH\n{script}"
    done = subprocess.run(
        ["bash", "--norc", "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.split()[-1] == "unpin"
