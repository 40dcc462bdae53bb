"""clew doctor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from clew.cli import jsonout
from clew.cli.failures import OK, PROBLEMS
from clew.cli.lines import BLANK, Line, line, writer
from clew.cli.params import json_option
from clew.cli.screen import Screen
from clew.cli.settings import settings_of
from clew.cli.text import cells, one_line, pad
from clew.store.doctor import Finding, diagnose
from clew.store.findings import counted

_SIGNS = {"ok": ("✓", "ok"), "warn": ("!", "!"), "error": ("✗", "x")}
_STYLES = {"ok": "green", "warn": "bold yellow", "error": "bold red"}


@click.command("doctor")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Say what is wrong with the store and what to do.

    Changes nothing; the store may be in use. Exits with 1 when there is an error; a warning is
    none.
    """
    settings = settings_of(ctx)
    findings = diagnose(settings.place)
    if as_json:
        jsonout.write_list(settings.screen.stream, findings)
    else:
        writer(settings.screen).write(_lines(settings.screen, findings))
    return PROBLEMS if any(finding.level == "error" for finding in findings) else OK


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
