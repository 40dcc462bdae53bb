"""clew compact: something short in the place of the old part of a conversation, for the model."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec
from msgspec import Struct

from clew.cli import jsonout, receipts
from clew.cli.failures import OK, PROBLEMS
from clew.cli.lines import BLANK, WIDEST, Line, line, writer
from clew.cli.opening import open_profile
from clew.cli.params import id_argument, json_option
from clew.cli.parts import INDENT, text_lines
from clew.cli.receipts import receipt_facts, record_facts
from clew.cli.screen import Column, Screen
from clew.cli.settings import Settings, quoted, settings_of
from clew.cli.text import fit, one_line, short_id
from clew.compaction.draft import Draft
from clew.compaction.engine import Compactor
from clew.compaction.outcome import Outcome
from clew.compaction.plan import Nothing
from clew.compaction.receipt import Receipt
from clew.compaction.view import View, look
from clew.context.budget import Budget
from clew.context.sections import NAMES
from clew.errors import InputError
from clew.store.conversation import Conversation

LEDGER = 12
"""Lines of a ledger that are shown."""
STEPS = {
    "guard": "looking at what was tried", "open": "opening an attempt", "read": "reading",
    "plan": "planning", "ledger": "writing the ledger", "check": "checking",
    "commit": "committing",
}  # fmt: skip
"""What a person reads of the engine's steps."""


class Options(Struct, frozen=True):
    """What the command line asks for."""

    budget: int | None
    window: int | None
    model: str | None
    dry_run: bool
    full: bool
    undo: bool
    as_json: bool


class Job(Struct, frozen=True):
    """One conversation, what is asked about it, and where to say what became of it."""

    settings: Settings
    conversation: Conversation
    view: View
    options: Options

    @property
    def screen(self) -> Screen:
        return self.settings.screen

    @property
    def short(self) -> str:
        return short_id(self.conversation.id)

    def compactor(self, watch: Callable[[str], None] | None = None) -> Compactor:
        return Compactor(self.view.budget, model=self.view.model, watch=watch)


@click.command("compact")
@id_argument
@click.option(
    "--budget",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tokens to which the context should come down. [38 % of the window]",
)
@click.option(
    "--window",
    metavar="N",
    type=click.IntRange(min=1),
    help="Tokens of the model's window. [of its family]",
)
@click.option("--model", metavar="NAME", help="Which model reads it. [the conversation's]")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--full", is_flag=True, help="With --dry-run: all of the ledger.")
@click.option("--undo", is_flag=True, help="Undo the newest compaction.")
@json_option
@click.pass_context
def command(ctx: click.Context, id: str, **given: Any) -> int:
    """Compact a conversation, for the model only.

    The model sees a ledger in the place of the old part (rules, requests, decisions, exact values,
    files, commands, errors, each with the number of its message), and the newest messages as they
    are. The ledger is made here, by fixed rules: no model is called, and the same messages give the
    same ledger. Nothing is deleted: `clew show` has every message, and --undo takes it back.
    """
    options = Options(**given)
    _check(ctx, options)
    settings = settings_of(ctx)
    with open_profile(settings) as profile:
        conversation = profile.resolve(id)
        budget = None if options.window is None else Budget(window=options.window)
        view = look(conversation, budget, options.model)
        _check_target(view.budget, options.budget)
        job = Job(settings, conversation, view, options)
        if options.undo:
            return _undo(job)
        return _plan(job) if options.dry_run else _compact(job)


def _check(ctx: click.Context, options: Options) -> None:
    if options.undo and (options.dry_run or options.budget is not None):
        other = "--dry-run" if options.dry_run else "--budget"
        ctx.fail(f"--undo and {other} exclude each other; give one of them")
    if options.full and not options.dry_run:
        ctx.fail("--full says how much of a plan is shown; give --dry-run, too")


def _check_target(budget: Budget, target: int | None) -> None:
    """Refuse more than there is room for."""
    if target is not None and target >= budget.room:
        raise InputError(
            f"a budget of {target:,} tokens is not below the {budget.room:,} for which the window "
            f"of {budget.window:,} has room; give a smaller --budget or a larger --window"
        )


@contextmanager
def _steps(notes: Screen) -> Generator[Callable[[str], None], None, None]:
    """Says on a terminal which step it is at, on one line that is gone afterwards."""
    if not notes.is_terminal:
        yield lambda step: None
        return
    width = min(notes.width, WIDEST) - 1

    def show(text: str) -> None:
        shown = notes.paint(fit(text, width), "dim")
        notes.stream.write(f"\r{' ' * width}\r{shown}")
        notes.stream.flush()

    try:
        yield lambda step: show(STEPS.get(step, one_line(step)))
    finally:
        show("")


def _sentence(text: str) -> str:
    """A reason as a sentence."""
    text = one_line(text).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


# ---------------------------------------------------------------- what was done


def _compact(job: Job) -> int:
    """Compact, and print the receipt; gives the exit code.

    No guard holds back what a person asks for: refused is that there is nothing to do.
    """
    with _steps(job.settings.notes) as watch:
        outcome = job.compactor(watch).compact(job.conversation, target=job.options.budget)
    if job.options.as_json:
        facts: dict[str, Any] = msgspec.to_builtins(outcome)
        if outcome.compaction is not None:
            facts["compaction"] = record_facts(outcome.compaction)
        if outcome.receipt is not None:
            facts["receipt"] = receipt_facts(outcome.receipt)
        jsonout.write(job.screen.stream, facts)
    else:
        writer(job.screen).write(_outcome(job, outcome))
    return OK if outcome.state in ("committed", "refused") else PROBLEMS


def _outcome(job: Job, outcome: Outcome) -> Iterator[Line]:
    if outcome.receipt is None or outcome.compaction is None:
        nothing = outcome.state == "refused"
        said = (
            ("Nothing to compact", "") if nothing else (f"Not compacted ({outcome.state})", "red")
        )
        yield line(0, said, f": {_sentence(outcome.reason)} Nothing was changed.")
        return
    before, after = outcome.receipt.tokens["before"], outcome.receipt.tokens["after"]
    yield line(
        0, (f"{job.screen.sign('✓', 'ok')} ", "green"), "Compacted ", (job.short, "yellow"),
        f": {before:,} tokens became {after:,} ({receipts.freed(before, after)} freed).",
    )  # fmt: skip
    yield from receipts.receipt_lines(outcome.receipt)
    yield from _above(after, job.options.budget)
    yield BLANK
    yield line(0, ("Nothing is deleted: show, search and the numbers are as they were.", "dim"))
    for what, words in (
        ("What the model sees:", f"context {job.short}{_given(job.options)}"),
        ("The whole receipt:", f"compactions {job.short} {outcome.compaction.generation}"),
        ("To take it back:", f"compact {job.short} --undo"),
    ):
        yield line(0, (f"{what:21}", "dim"), (job.settings.command(words), "cyan"))


def _above(tokens: int, budget: int | None) -> Iterator[Line]:
    """A budget that could not be kept."""
    if budget is not None and tokens > budget:
        said = f"{tokens:,} tokens are more than the {budget:,} asked for; less would lose too much"
        yield receipts.fact("budget", (said, "yellow"))


def _given(options: Options) -> str:
    """The options that say for which model and window."""
    window = "" if options.window is None else f" --window {options.window}"
    return window + ("" if options.model is None else f" --model {quoted(options.model)}")


def _undo(job: Job) -> int:
    """Undo the newest compaction."""
    record = job.compactor().undo(job.conversation)
    if job.options.as_json:
        jsonout.write(job.screen.stream, record_facts(record))
        return OK
    tokens = "" if record.undone_tokens is None else f" ({record.undone_tokens:,} tokens now)"
    job.screen.line(
        f"Undid compaction {record.generation} of ", (job.short, "yellow"),
        f": the model sees what stood there before{tokens}.",
    )  # fmt: skip
    return OK


# ---------------------------------------------------------------- what would be done


def _plan(job: Job) -> int:
    """Print what would be done; writes nothing."""
    with _steps(job.settings.notes) as watch:
        planned = job.compactor(watch).plan(job.conversation, target=job.options.budget)
    if isinstance(planned, Nothing):
        if job.options.as_json:
            jsonout.write(job.screen.stream, {"nothing": planned.reason})
        else:
            job.screen.line(f"Nothing to compact: {_sentence(planned.reason)}")
        return OK
    draft, receipt = planned
    ledger = draft.epoch.text if draft.epoch is not None else ""
    if job.options.as_json:
        facts: dict[str, Any] = {"ledger": ledger, "body": draft.body}
        jsonout.write(job.screen.stream, {"receipt": receipt_facts(receipt)} | facts)
    else:
        _print_plan(job, draft, receipt, ledger)
    return OK


def _print_plan(job: Job, draft: Draft, receipt: Receipt, ledger: str) -> None:
    screen, out = job.screen, writer(job.screen)
    before, after = job.view.layout, draft.layout
    screen.line("This would become of ", (job.short, "yellow"), "; nothing was written.")
    screen.line()
    columns = [Column("SECTION"), Column("TOKENS NOW", right=True), Column("THEN", right=True)]
    rows = [(name, before.section(name), after.section(name)) for name in NAMES]
    rows = [*filter(_is_there, rows), ("together", before.tokens, after.tokens)]
    screen.table(columns, [[name, f"{now:,}", f"{then:,}"] for name, now, then in rows])
    screen.line()
    out.write(receipts.receipt_lines(receipt, full=True))
    out.write(_above(after.tokens, job.options.budget))
    if ledger:
        out.write(_ledger(ledger, job.options.full))
    screen.line()
    words = f"compact {job.short}{_given(job.options)}"
    if job.options.budget is not None:
        words += f" --budget {job.options.budget}"
    screen.line(("To do it: ", "dim"), (job.settings.command(words), "cyan"))


def _is_there(row: tuple[str, int, int]) -> bool:
    """Whether a section has tokens now or then."""
    return any(row[1:])


def _ledger(text: str, full: bool) -> Iterator[Line]:
    """What the new part of the ledger says; its first lines, or all."""
    rows = list(text_lines(text, indent=2 * INDENT))
    shown = rows if full or len(rows) <= LEDGER + 1 else rows[:LEDGER]
    yield BLANK
    yield line(0, ("The ledger would say:", "bold"))
    yield from shown
    if len(shown) < len(rows):
        yield line(
            2 * INDENT, (f"({len(rows) - len(shown):,} more lines; --full shows them)", "dim")
        )
