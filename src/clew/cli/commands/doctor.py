"""clew doctor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from clew.cli import jsonout
from clew.cli.failures import OK, PROBLEMS
from clew.cli.lines import BLANK, Line, line, writer
from clew.cli.params import json_option
from clew.cli.screen import Screen
from clew.cli.settings import Settings, settings_of
from clew.cli.text import cells, one_line, pad
from clew.clock import SystemClock
from clew.config import ConfigError, load
from clew.store import doctor_backup
from clew.store.doctor import Finding, diagnose
from clew.store.findings import counted
from clew.store.scheduled import schedule_of

_SIGNS = {"ok": ("✓", "ok"), "warn": ("!", "!"), "error": ("✗", "x")}
_STYLES = {"ok": "green", "warn": "bold yellow", "error": "bold red"}


@click.command("doctor")
@click.option("--strict", is_flag=True, help="A warning makes the exit code 1, too.")
@json_option
@click.pass_context
def command(ctx: click.Context, strict: bool, as_json: bool) -> int:
    """Say what is wrong with the store and what to do.

    Changes nothing; the store may be in use. Exits with 1 when there is an error; a warning is
    none, unless --strict.
    """
    settings = settings_of(ctx)
    findings = [*diagnose(settings.place), *_backups(settings)]
    if as_json:
        jsonout.write_list(settings.screen.stream, map(_fields, findings))
    else:
        writer(settings.screen).write(_lines(settings.screen, findings))
    wrong = ("error", "warn") if strict else ("error",)
    return PROBLEMS if any(finding.level in wrong for finding in findings) else OK


def _backups(settings: Settings) -> Iterator[Finding]:
    """What the configuration wants of backups, and what came of it."""
    try:
        schedule = schedule_of(load().config.backup)
    except ConfigError as error:
        yield Finding(
            "warn", "backup", f"the configuration has a fault: {error}",
            "`clew config check` says all that is wrong", code="backup.config",
        )  # fmt: skip
        return
    yield from doctor_backup.look(settings.place, schedule, SystemClock().now())


def _fields(finding: Finding) -> dict[str, Any]:
    return {
        "level": finding.level, "code": finding.code, "subject": finding.subject,
        "what": finding.what, "remedy": finding.remedy,
    }  # fmt: skip


def _lines(screen: Screen, findings: Sequence[Finding]) -> Iterator[Line]:
    width = max(len(finding.subject) for finding in findings)
    arrow = screen.sign("→", "->")
    for finding in findings:
        sign = screen.sign(*_SIGNS[finding.level])
        head = (pad(finding.subject, width), "bold")
        indent = cells(sign) + width + 3
        yield line(
            0, (sign, _STYLES[finding.level]), " ", head, f"  {one_line(finding.what)}", hang=indent
        )
        if finding.remedy is not None:
            yield line(indent, (f"{arrow} {one_line(finding.remedy)}", "cyan"), hang=len(arrow) + 1)
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warn" for finding in findings)
    yield BLANK
    if errors or warnings:
        yield line(0, f"{counted(errors, 'error')}, {counted(warnings, 'warning')}.")
    else:
        yield line(0, "Nothing is wrong.")
