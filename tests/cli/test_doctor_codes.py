"""Codes of findings: each stands in docs/operating/monitoring.md; `clew doctor` for machines."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.store.doctor import Finding

from .helpers import Demo, Run

HERE = Path(__file__).parents[2]
PAGE = (HERE / "docs" / "operating" / "monitoring.md").read_text("utf-8")
DYNAMIC = ("ok", "warn")
"""The level of a finding whose call does not say it."""


def constant(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def given() -> Iterator[tuple[str, str]]:
    """(code, level) of every finding that the source can make."""
    for path in sorted((HERE / "src" / "clew").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "Finding":
                code = next((constant(k.value) for k in node.keywords if k.arg == "code"), None)
                level, subject = constant(node.args[0]), constant(node.args[1])
                assert code or (level and subject), f"{path}:{node.lineno} has no certain code"
                assert code or level == "ok", f"{path}:{node.lineno} has no code of its own"
                for each in (level,) if level else DYNAMIC:
                    yield code or f"{subject}.{level}", each


def told() -> set[tuple[str, str]]:
    """(code, level) of the page: rows of its table, and the list of those that are well."""
    rows = re.findall(r"^\| `([\w.-]+)` \| (ok|warn|error) \|", PAGE, re.MULTILINE)
    fine = PAGE.partition("All is well:")[2].partition("\n\n")[0]
    return {*rows, *((code, "ok") for code in re.findall(r"`([\w.-]+)`", fine))}


def test_every_code_is_told_with_its_level() -> None:
    assert set(given()) == told()


def test_every_row_says_what_to_do() -> None:
    rows = re.findall(r"^\| `[\w.-]+` \| \w+ \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 40
    assert all(len(cell.strip()) > 5 for row in rows for cell in row)


def test_a_code_has_its_subject_in_front() -> None:
    assert Finding("warn", "disk", "x").code == "disk.warn"
    assert Finding("warn", "disk", "x", code="disk.low").code == "disk.low"
    assert all(re.fullmatch(r"[a-z]+\.[a-z-]+", code) for code, _ in given())


def test_json_has_the_code(run: Run, demo: Demo) -> None:
    found = json.loads(run("doctor", "--json").stdout)
    assert {*found[0]} == {"level", "code", "subject", "what", "remedy"}
    assert "backup.none" in {finding["code"] for finding in found}


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with nothing to warn of. The turn that is open in the demo is one after a minute."""
    path = tmp_path / "quiet.db"
    with clew.open(path) as store:
        store.profile("default").create().append([clew.user("hello")])
    monkeypatch.setenv("CLEW_STORE", str(path))
    return path


def test_strict_makes_a_warning_count(run: Run, quiet: Path) -> None:
    run("doctor", "--strict", code=0)
    quiet.chmod(0o644)
    run("doctor", code=0)
    run("doctor", "--strict", code=1)


@pytest.mark.usefixtures("quiet")
def test_scheduled_backups_on_the_command_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "names no `folder`" in run("backup", "--scheduled", code=2).stderr
    monkeypatch.setenv("CLEW_BACKUP_FOLDER", str(tmp_path / "backups"))
    assert "backup.missing" in run("doctor", "--json").stdout
    assert "restored and verified" in run("backup", "--scheduled").stdout
    assert json.loads(run("backup", "--scheduled", "--json").stdout) == {"made": False}
    monkeypatch.setenv("CLEW_BACKUP_EVERY", "1h")
    assert "backup.good" in run("doctor", "--strict", "--json", code=0).stdout
    run("backup", "--scheduled", tmp_path / "x", code=2)
    run("backup", code=2)


def test_scheduled_backups_of_a_server_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_STORE", "postgresql://me@db.example/agents")
    assert "[backup] does not back it up" in run("backup", "--scheduled", code=2).stderr


def test_a_configuration_with_a_fault_is_a_finding(
    run: Run, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_BACKUP_FOLDER", "backups")
    monkeypatch.setenv("CLEW_BACKUP_EVERY", "keep")
    assert "backup.config" in run("doctor", "--json").stdout
