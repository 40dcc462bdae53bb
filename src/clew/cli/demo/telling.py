"""What `clew demo` says, in lines of at most 60 columns; titles and snippets are cut to the room
that there is."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from clew.cli import importing
from clew.cli.demo.crash import Ack, Killed
from clew.cli.demo.steps import ENGLISH, JAPANESE, Checked, Listed, Searched, Step
from clew.cli.screen import Column, Piece, Screen
from clew.cli.settings import Settings, quoted
from clew.cli.text import cells, fit, one_line, short_ids
from clew.domain.conversations import ConversationSummary
from clew.domain.search import Hit
from clew.importers.bring import Imported
from clew.importers.run import Options
from clew.store.findings import counted

HITS = 3
"""Hits of a search that are shown."""
ENDS = 2
"""Acknowledgements that are shown of the first and of the last ones."""
HOW = "SIGKILL" if hasattr(signal, "SIGKILL") else "TerminateProcess"


class Teller:
    """Says what was done, as it is done."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._screen = settings, settings.screen
        self._number = 0

    def begun(self, folder: Path) -> None:
        self._screen.line("Everything happens in a scratch folder:")
        self._screen.line("  ", (str(folder), "cyan"))

    def did(self, step: Step) -> None:
        """Say what a step did."""
        match step:
            case Imported():
                self._head("Import what other tools wrote", "clew import transcripts")
                self._say("A session of Claude Code, a run of mini-swe-agent,")
                self._say("and a chat in Japanese (NOTICE.md says whose).")
                importing.describe(self._settings, step, Options())
            case Listed():
                self._head("List it", "clew list")
                self._say("What sub-agents did belongs to who called them.")
                _table(self._screen, step.conversations)
            case Searched():
                self._searched(step)
            case Killed():
                self._killed(step)
            case Checked():
                self._head("Open the store again", "clew verify")
                self._checked(step)

    def _head(self, what: str, command: str = "") -> None:
        self._number += 1
        self._screen.line()
        self._screen.line((f"{self._number}. {what}  ", "bold"), (command, "cyan"))

    def _say(self, *pieces: Piece | str) -> None:
        self._screen.line("   ", *pieces)

    def _mark(self, well: bool, text: str) -> None:
        fancy, plain, style = ("✓", "ok", "green") if well else ("✗", "x", "red")
        self._say((self._screen.sign(fancy, plain), style), f" {text}")

    def _searched(self, step: Searched) -> None:
        language = "Japanese" if step.query == JAPANESE else "English"
        self._head(f"Search in {language}", f"clew search {step.query}")
        if step.query == JAPANESE:
            self._say("Two characters inside a run without blanks.")
        short = short_ids(hit.conversation for hit in step.hits)
        for hit in step.hits[:HITS]:
            where = f"{short[hit.conversation]} #{hit.seq}  "
            room = self._screen.width - 3 - cells(where)
            self._say((where, "yellow"), *_snippet(hit, room))
        more = len(step.hits) - HITS
        self._say((f"and {more} more" if more > 0 else counted(len(step.hits), "hit"), "dim"))

    def _killed(self, step: Killed) -> None:
        self._head("Kill a writer while it writes")
        self._say("Another process appends messages one by one and says")
        self._say("which of them the store has acknowledged.")
        first, last = step.acks[:ENDS], step.acks[ENDS:][-ENDS:]
        for ack in first:
            self._say(_said(step.pid, ack))
        if len(step.acks) > len(first) + len(last):
            self._say(f"process {step.pid}: ...")
        for ack in last:
            self._say(_said(step.pid, ack))
        if step.ended_itself:
            self._mark(False, "it ended before it was killed; its error is above")
        else:
            self._say((f"{HOW} after {step.seconds:.1f} s.", "bold"))

    def _checked(self, step: Checked) -> None:
        there = step.acknowledged - len(step.missing)
        self._mark(
            step.acknowledged > 0 and not step.missing,
            f"{step.acknowledged} acknowledged, {there} there as they were written",
        )
        for ack in step.missing[:HITS]:
            self._say(f"  gone: #{ack.seq} {ack.uid}")
        if step.stored > there:
            many = counted(step.stored - there, "message")
            self._say(f"  and {many} that it was about to acknowledge")
        self._mark(not step.problems, "every invariant holds")
        for problem in step.problems[:HITS]:
            self._say(f"  {problem.invariant}: {one_line(problem.detail)}")

    def ended(self, well: bool, seconds: float) -> None:
        """The outcome, as one line."""
        self._screen.line()
        if well:
            self._screen.line(
                ("Nothing that was acknowledged is gone.", "bold green"),
                f" All in {seconds:.1f} s.",
            )
        else:
            self._screen.line(("Something above did not go well.", "bold red"))

    def proposed(self, commands: Sequence[str], folder: Path) -> None:
        """What to try next; the folder stays for it."""
        self._screen.line()
        self._screen.line(("Try next:", "bold"))
        for command in commands:
            self._screen.line("  ", (command, "cyan"))
        self._screen.line(("With your own conversations:", "bold"))
        self._screen.line("  ", ("clew import --discover", "cyan"))
        remove = "rmdir /s" if os.name == "nt" else "rm -r"
        self._screen.line(("Remove the scratch folder:", "bold"))
        self._screen.line("  ", (f"{remove} {quoted(str(folder))}", "cyan"))


def proposals(settings: Settings, done: Sequence[Step]) -> list[str]:
    """Commands for the store that was made."""
    listed = [each for step in done if isinstance(step, Listed) for each in step.conversations]
    short = short_ids(each.id for each in listed)
    longest = max(listed, key=lambda each: each.message_count)
    one = short[longest.id]
    rest = (
        "list", f"show {one}", f"search {quoted(f'{ENGLISH} OR {JAPANESE}')}",
        f"export {one} --format html -o talk.html", "stats",
    )  # fmt: skip
    return [settings.command(each) for each in rest]


def _said(pid: int, ack: Ack) -> str:
    return f"process {pid}: message {ack.seq} is stored"


def _table(screen: Screen, found: Sequence[ConversationSummary]) -> None:
    short = short_ids(each.id for each in found)
    columns = [
        Column("ID", "yellow"), Column("MESSAGES", right=True), Column("SOURCE", "dim"),
        Column("TITLE", flexible=True),
    ]  # fmt: skip
    rows: list[list[Piece | str]] = [
        [
            short[each.id], f"{each.message_count:,}", each.source,
            fit(one_line(each.title or each.preview or ""), screen.width - 40),
        ]
        for each in found
    ]  # fmt: skip
    screen.table(columns, rows)


def _snippet(hit: Hit, room: int) -> list[Piece | str]:
    """The text, as much as there is room for, with what was found in it and in colour."""
    texts = [(_flat(text), found) for text, found in hit.snippet]
    first = next((at for at, (_, found) in enumerate(texts) if found), 0)
    before = "".join(text for text, _ in texts[:first])
    if texts and cells(before) + cells(texts[first][0]) > room:
        before = "…" + before[-(room // 4) :]
    pieces: list[Piece | str] = []
    for text, found in [(before, False), *texts[first:]]:
        if room > 0:
            shown = fit(text, room)
            pieces.append((shown, "bold red" if found else ""))
            room -= cells(shown)
    return pieces


def _flat(text: str) -> str:
    """One line of a piece; blanks at its borders stay."""
    before, after = text[:1].isspace(), text[1:][-1:].isspace()
    return " " * before + one_line(text) + " " * after
