"""clew compactions: the receipts of a conversation's compactions, and the attempts that failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from clew.cli import jsonout, receipts
from clew.cli.dividers import state_of
from clew.cli.lines import BLANK, Line, line, writer
from clew.cli.opening import open_profile
from clew.cli.params import id_argument, json_option
from clew.cli.screen import Column, Screen
from clew.cli.settings import Settings, settings_of
from clew.cli.text import one_line, short_id
from clew.cli.times import ago, moment
from clew.clock import SECOND, SystemClock
from clew.compaction.engine import Compactor
from clew.compaction.policy import Guard
from clew.domain.compactions import Attempt, Compaction, in_effect
from clew.errors import NotFound
from clew.store.conversation import Conversation
from clew.store.findings import counted

SHOWN = 10
"""Attempts that are named."""


@click.command("compactions")
@id_argument
@click.argument("number", metavar="[N]", required=False, type=click.IntRange(min=1))
@json_option
@click.pass_context
def command(ctx: click.Context, id: str, number: int | None, as_json: bool) -> None:
    """Show the receipts of a conversation's compactions.

    Newest first, with what has become of each; with N, the whole receipt of one. Below them the
    attempts that changed nothing, and why.
    """
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        records, attempts = conversation.compactions(), conversation.attempts()
        effective = in_effect(records, conversation.cuts())
        if number is not None:
            _one(settings, _named(records, number), attempts, effective, as_json)
            return
        held = Compactor().guard(conversation)
    if as_json:
        _print_json(settings, records, attempts, effective, held)
    else:
        _print(settings, conversation, records, attempts, effective, held)


def _named(records: Sequence[Compaction], number: int) -> Compaction:
    found = next((record for record in records if record.generation == number), None)
    if found is None:
        raise NotFound("compaction", str(number))
    return found


def state(record: Compaction, effective: Compaction | None) -> str:
    """What has become of a compaction: undone, in effect, superseded by a newer one, or without
    effect, because what a cut hides is in it."""
    said = state_of(record, effective)
    if said == "not in effect" and effective and effective.generation > record.generation:
        said = "superseded"
    return said if record.kind == "ours" else f"foreign, {said}"


def _attempt(record: Compaction, attempts: Sequence[Attempt]) -> Attempt | None:
    return next((each for each in attempts if each.number == record.attempt), None)


def _trigger(record: Compaction, attempts: Sequence[Attempt]) -> str:
    attempt = _attempt(record, attempts)
    if attempt is not None:
        return attempt.trigger
    return "import" if record.kind == "foreign" else "branch"


# ---------------------------------------------------------------- all of them


def _print(
    settings: Settings, conversation: Conversation, records: Sequence[Compaction],
    attempts: Sequence[Attempt], effective: Compaction | None, held: Guard,
) -> None:  # fmt: skip
    screen, now = settings.screen, SystemClock().now()
    short = short_id(conversation.id)
    if records:
        _table(screen, records, attempts, effective, now)
    else:
        screen.line("It has no compaction: a model sees every message.")
    others = [each for each in attempts if each.state != "committed"]
    if others:
        screen.line()
        screen.line(f"{counted(len(others), 'attempt')} without one:")
        writer(screen).write(_attempt_line(each, now) for each in others[: -SHOWN - 1 : -1])
        if len(others) > SHOWN:
            screen.line((f"  and {len(others) - SHOWN:,} before; --json names them", "dim"))
    if not held.go or not held.paid:
        screen.line()
        writer(screen).write([_guard_line(held, now)])
    if records:
        newest = settings.command(f"compactions {short} {records[0].generation}")
        settings.notes.line(("The whole receipt: ", "dim"), (newest, "cyan"))
    else:
        compact = settings.command(f"compact {short} --dry-run")
        settings.notes.line(("What one would do: ", "dim"), (compact, "cyan"))


def _guard_line(held: Guard, now: int) -> Line:
    what = "The next summary by a model" if held.go else "The next compaction"
    until = ""
    if held.until is not None and held.until > now:
        until = f" until {moment(held.until)} ({max(1, (held.until - now) // SECOND):,} s)"
    return line(
        0, (f"{what} is held back{until}: ", "yellow"), one_line(held.reason),
        (" `clew compact` is not." if not held.go else "", "dim"),
    )  # fmt: skip


def _table(
    screen: Screen, records: Sequence[Compaction], attempts: Sequence[Attempt],
    effective: Compaction | None, now: int,
) -> None:  # fmt: skip
    columns = [
        Column("N", "yellow", right=True), Column("STATE", flexible=True),
        Column("COVERS", right=True, spare=True), Column("TOKENS", right=True),
        Column("FREED", right=True), Column("WHEN", "dim", spare=True),
        Column("TRIGGER", spare=True),
        Column("ROWS", right=True, spare=True), Column("SUMMARY", spare=True),
    ]  # fmt: skip
    arrow = screen.sign("→", "->")
    screen.table(columns, [_row(each, attempts, effective, arrow, now) for each in records])


def _row(
    record: Compaction, attempts: Sequence[Attempt], effective: Compaction | None, arrow: str,
    now: int,
) -> list[str]:  # fmt: skip
    receipt = receipts.receipt_of(record)
    before, after = (
        "?" if count is None else f"{count:,}"
        for count in (record.tokens_before, record.tokens_after)
    )
    return [
        str(record.generation), state(record, effective), f"#1-{record.covers_to}",
        f"{before} {arrow} {after}",
        receipts.freed(record.tokens_before, record.tokens_after) or "-",
        ago(record.created_at, now), _trigger(record, attempts),
        "-" if receipt is None else f"{sum(receipt.rows.values()):,}",
        "-" if receipt is None else receipts.summed_by(receipt),
    ]  # fmt: skip


def _attempt_line(attempt: Attempt, now: int) -> Line:
    why = attempt.verdict or ("it runs" if attempt.state == "open" else "no reason was given")
    error = f" ({one_line(attempt.summary_error)})" if attempt.summary_error else ""
    model = f", for {one_line(attempt.model)}" if attempt.model else ""
    return line(
        2, (f"{attempt.number} ", "yellow"), attempt.state,
        (f", {attempt.trigger}{model}, {ago(attempt.started_at, now)}: ", "dim"),
        one_line(why) + error, hang=4,
    )  # fmt: skip


def _print_json(
    settings: Settings, records: Sequence[Compaction], attempts: Sequence[Attempt],
    effective: Compaction | None, held: Guard,
) -> None:  # fmt: skip
    jsonout.write(settings.screen.stream, {
        "compactions": [_facts(each, attempts, effective) for each in records],
        "attempts": attempts, "guard": held,
    })  # fmt: skip


def _facts(
    record: Compaction, attempts: Sequence[Attempt], effective: Compaction | None
) -> dict[str, Any]:
    return receipts.record_facts(record) | {
        "state": state(record, effective).removeprefix("foreign, "),
        "trigger": _trigger(record, attempts),
    }


# ---------------------------------------------------------------- one of them


def _one(
    settings: Settings, record: Compaction, attempts: Sequence[Attempt],
    effective: Compaction | None, as_json: bool,
) -> None:  # fmt: skip
    if as_json:
        attempt = _attempt(record, attempts)
        facts = _facts(record, attempts, effective) | {"attempt_record": attempt}
        jsonout.write(settings.screen.stream, facts)
    else:
        lines = _receipt(record, attempts, effective)
        writer(settings.screen).write(lines)


def _receipt(
    record: Compaction, attempts: Sequence[Attempt], effective: Compaction | None
) -> Iterator[Line]:
    undone = f" {moment(record.undone_at)}" if record.undone_at is not None else ""
    yield line(
        0, (f"Compaction {record.generation}", "bold"),
        f", {moment(record.created_at)}, by {_trigger(record, attempts)}: ",
        (f"{state(record, effective)}{undone}", "yellow"),
    )  # fmt: skip
    yield BLANK
    receipt = receipts.receipt_of(record)
    if receipt is None:
        yield from receipts.other_lines(record)
    else:
        yield from receipts.receipt_lines(receipt, full=True)
    attempt = _attempt(record, attempts)
    if attempt is not None and attempt.summary_error:
        yield receipts.fact("error", (one_line(attempt.summary_error), "red"))
