"""Units for systemd in the documents: settings and commands that exist, codes that agree."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

from click.testing import CliRunner

from clew import startup
from clew.cli.main import cli

DOCS = Path(__file__).resolve().parents[2] / "docs"
KNOWN = {
    "Unit": {"Description", "After", "Wants"},
    "Service": {
        "Type", "NotifyAccess", "ExecStart", "Restart", "RestartForceExitStatus", "UMask", "User",
        "TimeoutStartSec", "WatchdogSec", "Environment", "Nice", "IOSchedulingClass",
    },
    "Timer": {"OnCalendar", "Persistent", "RandomizedDelaySec", "OnBootSec", "OnUnitActiveSec"},
    "Install": {"WantedBy"},
}  # fmt: skip
"""Of systemd.unit(5), systemd.service(5), systemd.exec(5) and systemd.timer(5)."""


def _units() -> list[ConfigParser]:
    found: list[ConfigParser] = []
    for page in sorted(DOCS.rglob("*.md")):
        for block in re.findall(r"^```ini\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            unit = ConfigParser(interpolation=None)
            unit.optionxform = str  # type: ignore[assignment, method-assign]
            unit.read_string(block)
            found.append(unit)
    return found


def test_every_setting_is_one_of_systemd() -> None:
    units = _units()
    assert len(units) >= 3
    for unit in units:
        for section in unit.sections():
            assert set(unit[section]) <= KNOWN[section], section


def test_what_is_started_is_a_command() -> None:
    started = [unit["Service"]["ExecStart"] for unit in _units() if unit.has_section("Service")]
    ours = [line for line in started if Path(shlex.split(line)[0]).name == "clew"]
    assert ours
    for line in ours:
        _, *words = shlex.split(line)
        shown = CliRunner().invoke(cli, [words[0], "--help"])
        assert shown.exit_code == 0
        assert all(word in shown.output for word in words[1:] if word.startswith("-")), line


def test_a_start_that_hung_is_begun_again() -> None:
    """The code that clew exits with, and a limit that leaves its own deadline the first word."""
    (service,) = [unit["Service"] for unit in _units()
                  if unit.has_option("Service", "RestartForceExitStatus")]  # fmt: skip
    assert str(startup.RESTART) in service["RestartForceExitStatus"].split()
    assert "SIGALRM" in service["RestartForceExitStatus"].split()
    assert service["Type"] == "notify"
    limit = startup.DEADLINE + startup.GRACE
    assert limit < int(service["TimeoutStartSec"]) < limit + 60
