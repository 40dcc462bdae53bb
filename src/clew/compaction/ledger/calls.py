"""What was done with tools: files, commands with their outcomes, errors and what mended them.

Names of tools and of their arguments differ between agents, so both are read by what they mean in
any of them: `path`, `file_path`, `filename`..., `command`, `cmd`..., a patch as text, and what a
tool's answer says about the file that is open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from clew.compaction.ledger.checklist import SLOT, Checklist
from clew.compaction.ledger.paths import EDIT_WORDS, is_edit, named, touched
from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.runs import Outcome, Run, Runs, outcome_of
from clew.compaction.ledger.sentences import ends
from clew.compaction.ledger.shell import Command, builds, handled, looks_only, read_command
from clew.compaction.ledger.trouble import MOST_OUTPUT, errors_of, first_line, says_failed
from clew.domain.messages import Message
from clew.domain.parts import Text, ToolCall, ToolResult, result_text

MOST_ARGUMENTS = 400_000
"""Bytes of arguments that are parsed; longer ones are looked at as text."""
_MOST_SEEN = 3_000
"""Files that are only named somewhere, at most."""
_MOST_SINCE = 200
"""Edits that are looked at for what mended something."""
_MOST_BUILDS = 16
"""Newest failures that a build may put right."""
_COMMANDS = ("command", "cmd", "script", "keystrokes", "shell_command", "commandLine", "code")
_OPEN = re.compile(r"\(Open file: ([^)\n]{1,300})\)")


class Call(NamedTuple):
    """One call: which command it runs, and the runs of the same thing, if it runs one."""

    seq: int
    at: int | None
    name: str
    target: str
    command: Command | None
    run: Run | None


class Doings:
    """Gathers files, commands and errors of messages, in their order. `earlier`: the rows of the
    epochs before that still hold."""

    def __init__(self, earlier: Sequence[Row] = ()) -> None:
        self.files: dict[str, Row] = {}
        self.gone: list[Row] = []
        """Rows of earlier epochs that no longer hold: errors that are mended or came again, and a
        list of things to do that another one replaced."""
        self._errors: list[Row] = []
        self._runs = Runs(earlier)
        self._list = Checklist()
        self._calls: dict[str, Call] = {}
        self._failing: dict[Run | str, int] = {}  # what failed -> its place in errors
        self._edits: list[str] = []
        self._edits_before: dict[Run | str, int] = {}  # how many there were when it failed
        self._failed_before: dict[str, Row] = {
            row.slot: row for row in earlier
            if row.kind == "error" and row.slot and row.state != "fixed"
        }  # fmt: skip
        self._lists_before = [row for row in earlier if row.slot == SLOT]

    def read(self, message: Message) -> None:
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._call(message, part)
            elif isinstance(part, ToolResult):
                self._result(message, part)
            elif isinstance(part, Text):
                self.seen(part.text[:MOST_OUTPUT], message)

    def commands(self) -> Iterator[Row]:
        """One row for each command, of its last run."""
        return self._runs.rows()

    def errors(self) -> Iterator[Row]:
        """Of each thing that failed its last two failures, with what mended them."""
        newest = Counter[str | None]()
        kept: list[Row] = []
        for row in reversed(self._errors):
            newest[row.slot] += 1
            if newest[row.slot] <= 2:
                kept.append(row)
        return reversed(kept)

    def checklist(self) -> Iterator[Row]:
        """What is left of the newest list of things to do."""
        if row := self._list.row():
            yield row

    # ------------------------------------------------------------------ calls

    def _call(self, message: Message, part: ToolCall) -> None:
        given = arguments(part)
        text = command_of(given)
        command = read_command(text) if text else None
        run = self._runs.of(command) if command else None
        found = list(touched(part.name, given, part.arguments))
        call = Call(message.seq, message.created_at or None, part.name,
                    found[0][0] if found else "", command, run)  # fmt: skip
        self._calls[part.id] = call
        for path, state in (*found, *(handled(text) if text else ())):
            self._file(path, state, call)
        if run is not None:
            run.times += 1
            run.seq = run.seq or call.seq
            run.at = run.at or call.at
        self._list.read(given, call.seq, call.at)
        if self._list.known and self._lists_before:
            self.gone += self._lists_before
            self._lists_before = []

    def _file(self, path: str, state: str, call: Call) -> None:
        path = path.strip().strip("\"'")
        if not path or len(path) > 300 or "\n" in path:
            return
        old = self.files.get(path)
        seqs: tuple[int, ...] = ()
        if old is not None:
            if state == "read" and old.state in ("edited", "deleted"):
                return
            if old.state == state:
                seqs = tuple(s for s in (*old.was, old.seq) if s != call.seq)[-3:]
        self.files[path] = Row("file", path, call.seq, f"path:{path}", None, call.at, seqs, state)
        if state != "read":
            self._edits.append(path)

    def seen(self, text: str, message: Message) -> None:
        """Files that an output or a text names."""
        for path in named(text):
            old = self.files.get(path)
            if (old is None and len(self.files) < _MOST_SEEN) or (old and old.state == "seen"):
                self.files[path] = Row("file", path, message.seq, f"path:{path}", None,
                                       message.created_at or None, (), "seen")  # fmt: skip

    # ------------------------------------------------------------------ results

    def _result(self, message: Message, part: ToolResult) -> None:
        text = result_text(part)
        self.seen(text[:MOST_OUTPUT], message)
        call = self._calls.get(part.call_id)
        if call is None:
            return
        if (match := _OPEN.search(text, max(0, len(text) - 2_000))) and match[1] != "n/a":
            self._file(match[1], "edited" if is_edit(call.name) else "read", call)
        if call.command is None or call.run is None:
            failed = part.is_error or says_failed(text)
            outcome = Outcome(failed, None, *(errors_of(text) if failed else ()))
            self._ended(f"{call.name} {call.target}".strip(), call, outcome, text)
            return
        outcome = outcome_of(call.command, text, part.is_error)
        call.run.ended(outcome, call.seq, call.at)
        self._ended(call.run, call, outcome, text)

    def _ended(self, what: Run | str, call: Call, outcome: Outcome, text: str) -> None:
        """How a call of this went: a failure is a row, which the next success marks as mended."""
        if outcome.failed is None:
            return
        slot = f"error:{what if isinstance(what, str) else what.slot}"
        before = self._failed_before.pop(slot, None)
        if before is not None:
            self.gone.append(before)
        place = self._failing.get(what)
        if not outcome.failed:
            if place is not None:
                self._mend(what, f"mended{self._how(what)} [@{call.seq}]")
            if isinstance(what, Run) and builds(what.what):
                self._built(what, call)
            return
        was = (before.seq,) if before else () if place is None else self._errors[place].was
        row = _failure(what, call, outcome, text, slot, was)
        self._edits_before[what] = len(self._edits)
        if place is not None:
            self._errors[place] = row
        else:
            self._failing[what] = len(self._errors)
            self._errors.append(row)

    def _how(self, what: Run | str) -> str:
        """Which files were edited since this failed."""
        start = self._edits_before[what]
        since = list(dict.fromkeys(self._edits[start : start + _MOST_SINCE]))[:3]
        return f" after editing {', '.join(since)}" if since else ""

    def _mend(self, what: Run | str, how: str) -> None:
        place = self._failing.pop(what)
        old = self._errors[place]
        self._errors[place] = msgspec.structs.replace(old, text=f"{old.text}; {how}", state="fixed")

    def _built(self, run: Run, call: Call) -> None:
        """A build went well: other builds of that folder that failed before edits are history."""
        for other in list(self._failing)[-_MOST_BUILDS:]:
            if (
                isinstance(other, Run)
                and other.where == run.where
                and builds(other.what)
                and self._edits_before[other] < len(self._edits)
            ):
                self._mend(other, f"since then `{ends(run.what, 40)}` goes well [@{call.seq}]")


def _failure(
    what: Run | str, call: Call, outcome: Outcome, text: str, slot: str, was: tuple[int, ...]
) -> Row:
    """The row of what failed; of what only looks, it is hardly worth its room."""
    lines = outcome.first or first_line(text)
    if outcome.last and outcome.last != outcome.first:
        lines = f"{lines} … {outcome.last}"
    shown = ends(what, 80) if isinstance(what, str) else f"`{ends(what.text, 80)}`"
    code = f" exit {outcome.code}" if outcome.code else ""
    looks = not isinstance(what, str) and looks_only(what.what)
    return Row("error", f"{shown}{code}: {ends(lines, 200)}", call.seq, slot, None, call.at, was,
               "looked" if looks else "open")  # fmt: skip


def arguments(part: ToolCall) -> dict[str, Any]:
    """The arguments of a call as a mapping; {} when they are none."""
    if len(part.arguments) > MOST_ARGUMENTS or not part.arguments.lstrip().startswith("{"):
        return {}
    try:
        value = msgspec.json.decode(part.arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def command_of(given: dict[str, Any]) -> str | None:
    """The command that a call with these arguments runs, or None."""
    for key in _COMMANDS:
        value = given.get(key)
        if isinstance(value, list):
            items = [str(word) for word in cast(list[Any], value)]
            if items[:2] in (["bash", "-lc"], ["bash", "-c"], ["sh", "-c"]):
                items = items[2:]
            return " ".join(items) or None
        if isinstance(value, str) and value.strip() and value not in EDIT_WORDS | {"view"}:
            return value.strip()
    return None
