"""What the lines of a conversation have to be, after those before them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from clew.domain.compactions import BodyItem, Inline, Ref, Stub
from clew.domain.parts import call_ids, unasked_ids
from clew.errors import InputError
from clew.store.compactions import out_of_order
from clew.store.transfer_lines import (
    CallLine,
    CompactionLine,
    CutLine,
    Facts,
    GoalLine,
    MessageLine,
    Record,
    TurnLine,
)
from clew.store.transfer_rows import number_of, table_of


class Rules:
    """Of one conversation. `at`: the last seq so far; `blobs`: bytes that lines have brought."""

    def __init__(self, facts: Facts) -> None:
        self.at = facts.base
        self.blobs: set[bytes] = set()
        self._numbers: dict[str, int] = {}
        self._cuts: set[int] = set()
        self._attempts: set[int] = set()
        self._groups: set[int] = set()
        self._turn: int | None = None
        self._begun = False
        self._calls: set[str] = set()
        self._waits = self._active = False

    def turn_of(self, line: MessageLine, asked: Callable[[set[str]], bool]) -> int | None:
        """The turn of a message: the newest that was said to begin, its messages in one run (I-03),
        its results behind their calls (I-07). `asked` tells whether calls were made earlier."""
        made = set(call_ids(line.parts))
        if line.turn is not None and line.turn == self._turn:
            unasked = unasked_ids([line.parts]) - self._calls
            if not unasked or asked(unasked):
                self._begun = True
                self._calls |= made
                return self._turn
        if self._begun:
            self._turn = None
        return None

    def stand_in_turn(self) -> int | None:
        """The turn of a message that is lost: what is around it stays one run."""
        self._begun = self._begun or self._turn is not None
        return self._turn

    def attempt_of(self, line: CompactionLine) -> int | None:
        """The attempt of a compaction, if it was committed, and no other has it."""
        number = line.attempt
        if number not in self._attempts:
            return None
        self._attempts.discard(number)
        return number

    def check(self, line: Record, lost: int) -> list[CompactionLine]:
        """InputError for what cannot be. Gives stand-ins for lost compactions before this one."""
        table, number = table_of(line), number_of(line)
        before = self._numbers.get(table, 0)
        if number <= before:
            raise InputError(f"{table} {number} stands a second time")
        fillers: list[CompactionLine] = []
        match line:
            case CutLine():
                if not line.from_seq <= line.to_seq <= self.at:
                    raise InputError(f"cut {number} hides {line.from_seq}..{line.to_seq}")
                self._cuts.add(number)
            case CompactionLine():
                fillers = self._compaction(line, before, lost)
            case TurnLine():
                self._begin(line)
            case CallLine():
                self._call(line)
            case GoalLine():
                if self._active and line.state == "active":
                    raise InputError("a second goal is active")
                self._active = self._active or line.state == "active"
            case _:
                if getattr(line, "state", "") == "committed":
                    self._attempts.add(number)
        self._numbers[table] = number
        return fillers

    def _begin(self, line: TurnLine) -> None:
        if line.first_seq > self.at + 1 or self._waits:
            raise InputError(f"turn {line.number} begins at seq {line.first_seq}")
        self._waits = line.state == "waiting"
        self._turn, self._begun, self._calls = line.number, False, set()

    def _call(self, line: CallLine) -> None:
        if line.up_to_seq > self.at:
            raise InputError(f"model call {line.number} was given seqs up to {line.up_to_seq}")
        if line.api_group is not None:
            group = hash(line.api_group)
            if group in self._groups:
                raise InputError(f"model call {line.number} is of an api_group that has one")
            self._groups.add(group)

    def _compaction(self, line: CompactionLine, before: int, lost: int) -> list[CompactionLine]:
        if line.covers_to > self.at or not self._cuts.issuperset(line.cuts):
            raise InputError(f"compaction {line.generation} covers what is not there")
        for item in out_of_order(line.body):
            raise InputError(f"compaction {line.generation} names {item} out of order")
        if any(not _covered(item, line.covers_to) for item in line.body):
            raise InputError(f"compaction {line.generation} names messages that it does not cover")
        if line.generation - before - 1 > lost:
            raise InputError(f"compaction {line.generation} follows {before}: lines are missing")
        return [
            structs.replace(
                line, generation=generation, body=(), cuts=(), kind="foreign", attempt=None,
                covers_to=1, undone_at=line.created_at, undone_tokens=None, receipt=None,
            )
            for generation in range(before + 1, line.generation)
        ]  # fmt: skip


def needs(line: Record) -> int:
    """The last seq that has to be there before this record."""
    match line:
        case CutLine():
            return line.to_seq
        case CompactionLine():
            return line.covers_to
        case TurnLine():
            return line.first_seq - 1
        case CallLine():
            return line.up_to_seq
        case _:
            return 0


def _covered(item: BodyItem, covers_to: int) -> bool:
    match item:
        case Ref(first=first, last=last):
            return 0 < first <= last <= covers_to
        case Stub(seq=seq):
            return 0 < seq <= covers_to
        case Inline():
            return True
