"""Runs of commands: which of them run the same thing, and how each thing ended last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.sentences import ends
from clew.compaction.ledger.shell import Command, is_plain, looks_only, read_command
from clew.compaction.ledger.trouble import errors_of, exit_code, status_of

_MOST_SLOT = 100
_MOST_PLACES = 16
"""Folders of one command that are compared, newest first."""
_WELL = (None, "ok", "exit 0", "looked")


class Outcome(NamedTuple):
    """How a run ended. `failed` is None when its output does not tell. `first` and `last`: lines
    of it that tell of an error; `counts` of tests."""

    failed: bool | None
    code: int | None = None
    first: str = ""
    last: str = ""
    counts: str = ""

    @property
    def state(self) -> str | None:
        if self.code is not None:
            return f"exit {self.code}"
        return None if self.failed is None else "failed" if self.failed else "ok"


def outcome_of(command: Command, text: str, is_error: bool) -> Outcome:
    """How a command ended, as far as its output tells. What only shows something has no errors but
    its own; what is shown through a search has the exit code of that."""
    code = exit_code(text)
    looks = looks_only(command.what)
    first, last = ("", "") if looks and not code else errors_of(text)
    counts = ends(status_of(text), 80)
    if looks:
        return Outcome((code or 0) > 1, code, first, last)
    if command.picks or command.counts:
        if command.counts or not (first or counts or command.seeks_trouble):
            return Outcome(None)
        return Outcome(bool(first), None, first, last, counts)
    failed = is_error or (code or 0) != 0 or (code is None and bool(first))
    return Outcome(failed if text else None, code, first, last, counts)


class Run:
    """All runs of one thing."""

    def __init__(self, command: Command) -> None:
        self.what, self.where = command.what, command.where
        self.slot = ends(command.text, _MOST_SLOT)
        self.times = 0
        self.seq = 0
        self.at: int | None = None
        self.outcome = Outcome(None)

    @property
    def text(self) -> str:
        return Command(self.where, self.what).text

    def ended(self, outcome: Outcome, seq: int, at: int | None) -> None:
        """The newest run that told how it ended."""
        if outcome.failed is not None:
            self.outcome, self.seq, self.at = outcome, seq, at

    def row(self, was: tuple[int, ...] = ()) -> Row:
        times = f" ×{self.times}" if self.times > 1 else ""
        state = self.outcome.state
        tail = "; ".join(x for x in (state if state != "ok" else "", self.outcome.counts) if x)
        plain = looks_only(self.what) or (is_plain(self.what) and state in _WELL)
        text = f"`{ends(self.text, 140)}`{times}" + (f" -> {tail}" if tail else "")
        return Row("command", text, self.seq, f"command:{self.slot}", None, self.at, was,
                   "looked" if plain else state)  # fmt: skip


class Runs:
    """Runs by what they run. One that does not say in which folder is of the last that said it;
    one that does is none of another folder."""

    def __init__(self, earlier: Iterable[Row] = ()) -> None:
        """`earlier`: rows of the epochs before."""
        self._all: list[Run] = []
        self._by_what: dict[str, list[Run]] = defaultdict(list)
        self._failed_before: dict[str, int] = {}
        for row in earlier:
            if row.kind in ("command", "error") and row.slot:
                self.of(read_command(row.slot.partition(":")[2]))
            if row.kind == "command" and row.slot and row.state not in _WELL:
                self._failed_before[row.slot] = row.seq

    def of(self, command: Command) -> Run:
        """The runs of the same thing."""
        same = self._by_what[command.what]
        for run in reversed(same[-_MOST_PLACES:]):
            if not command.where or not run.where or run.where == command.where:
                run.where = run.where or command.where
                return run
        run = Run(command)
        same.append(run)
        self._all.append(run)
        return run

    def rows(self) -> Iterator[Row]:
        """One row for each thing that ran, of its last run."""
        for run in self._all:
            if run.times:
                before = self._failed_before.get(f"command:{run.slot}")
                yield run.row((before,) if before is not None else ())
