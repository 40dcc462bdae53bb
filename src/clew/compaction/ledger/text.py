"""The text of an epoch: what a model reads. Sections of short lines, each with its reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from clew.compaction.ledger.rows import Gone, Row

Count = Callable[[str], int]
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Rules", ("rule",)),
    ("Open", ("ask",)),
    ("Values, newest first", ("decision", "fact")),
    ("Files", ("file",)),
    ("Errors", ("error",)),
    ("Commands", ("command",)),
    ("Done", ("done",)),
    ("Notes", ("note",)),
)
_RANKS = ("edited", "deleted", "read")
_FULL = (
    "It is a record of the past, not a request: what is done is done, do not do it again. "
    "[@n] is message n of the log: recall(n) reads it back, search(words) finds what is not here."
)
_SHORT = "A record, not a request; done is done. [@n]: recall(n), or search."


def day(at: int | None) -> str:
    """The UTC day of a time in microseconds, or ""."""
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d") if at else ""


def heading(
    number: int, first: int, last: int, days: Sequence[str], room: int, count: Count
) -> str:
    """The line that says what this is, as long as the room allows; "" when it allows nothing."""
    known = [one for one in days if one]
    dated = (
        f", {min(known)}" + (f" to {max(known)}" if max(known) != min(known) else "")
        if known
        else ""
    )
    full = f"[Ledger {number}: messages {first}-{last}{dated}] {_FULL}"
    short = f"[Messages {first}-{last}] {_SHORT}"
    bare = f"[Record of messages {first}-{last}]"
    if 12 * count(full) <= room:
        return full
    if 4 * count(short) <= room:
        return short
    return bare if count(bare) <= room else ""


def gone_line(gone: Iterable[Gone]) -> str:
    """Which rows of earlier epochs no longer hold."""
    named = "; ".join(f"{one.label} [@{one.seq}]" for one in gone)
    return f"No longer holds: {named}." if named else ""


def more_line(left_out: int, rules: int = 0) -> str:
    """How many rows are not here, and how many of them are rules."""
    of_them = f" ({rules} rules)" if rules else ""
    return f"{left_out} more{of_them}: search or recall."


def line(row: Row, first: int) -> str:
    """A row as it stands in its section. `first`: where its epoch begins."""
    text = " ".join(row.text.split())
    earlier = [seq for seq in row.was if seq < first] if row.kind != "file" else []
    if earlier:
        text += " (replaces " + " ".join(f"[@{seq}]" for seq in earlier) + ")"
    if row.kind == "done":
        answer = f" -> {row.value}" if row.value else ""
        ref = (row.slot or "").removeprefix("answer:")
        taken_back = " (withdrawn)" if row.state == "withdrawn" else ""
        return f"{text}{taken_back} [@{row.seq}]{answer}" + (f" [@{ref}]" if ref else "")
    return f"{text} [@{row.seq}]"


def render(
    head: str, gone: str, rows: Sequence[Row], first: int, more: str, narrative: str,
    whole: bool = False,
) -> str:  # fmt: skip
    """The whole text. `narrative` is a section that is ready, `more` the last line, or ""."""
    out = [head] if head else []
    if gone:
        out.append(gone)
    by_kind: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_kind[row.kind].append(row)
    for title, kinds in SECTIONS:
        chosen = [row for kind in kinds for row in by_kind.get(kind, ())]
        if not chosen:
            continue
        out.append(f"## {title}")
        out += file_lines(chosen, whole) if title == "Files" else _lines(chosen, first, title)
    if narrative:
        out.append(narrative)
    if more:
        out.append(more)
    return "\n".join(out)


def _lines(rows: list[Row], first: int, title: str) -> list[str]:
    newest = title.startswith("Values")
    order = sorted(range(len(rows)), key=lambda i: (-rows[i].seq if newest else rows[i].seq, i))
    dated = title == "Done" or (newest and len({day(row.at) for row in rows}) > 1)
    out: list[str] = []
    before: Row | None = None
    for i in order:
        row = rows[i]
        if dated and day(row.at) and (before is None or day(before.at) != day(row.at)):
            out.append(f"{day(row.at)}:")
        shown = line(row, first)
        ref = f" [@{row.seq}]"
        if (
            before is not None
            and before.seq == row.seq
            and row.kind != "done"
            and out[-1].endswith(ref)
        ):
            joint = " " if out[-1].removesuffix(ref)[-1:] in ".!?;:," else "; "
            out[-1] = out[-1].removesuffix(ref) + joint + shown
        else:
            out.append(shown)
        before = row
    return out


def file_lines(rows: Iterable[Row], whole: bool = False) -> list[str]:
    """Files by folder: one line for those of a folder that were edited, deleted or read; of files
    that were only named somewhere, the names. `whole`: edited ones with their whole paths."""
    folders: dict[tuple[int, str], list[str]] = defaultdict(list)
    names: set[str] = set()
    for row in sorted(rows, key=lambda row: (row.state == "seen", row.text)):
        folder, slash, name = row.text.rpartition("/")
        rank = _RANKS.index(row.state) if row.state in _RANKS else len(_RANKS)
        seqs = (*row.was[-2:], row.seq) if rank == 0 else (row.seq,) if rank == 1 else ()
        refs = ",".join(f"@{seq}" for seq in seqs)
        if whole and rank == 0:
            folder, slash, name = "", "", row.text
        if rank == len(_RANKS):
            if name in names:
                continue
            folder = slash = ""
        names.add(row.text.rpartition("/")[2])
        folders[rank, folder + slash].append(f"{name} ({refs})" if refs else name)
    said = (*_RANKS, "named")
    out: list[str] = []
    shown = -1
    for (rank, folder), found in sorted(folders.items()):
        start = f"{said[rank]}: " if rank != shown else ""
        shown = rank
        path = folder + found[0] if len(found) == 1 else f"{folder}: {', '.join(found)}"
        out.append(start + (path if folder else ", ".join(found)))
    return out


def whole_paths(rows: Iterable[Row], room: int, count: Count) -> bool:
    """Whether the edited files may stand with their whole paths: they are to be found again by
    them, if that is not dear."""
    edited = [row for row in rows if row.kind == "file" and row.state == "edited"]
    return 5 * count("\n".join(file_lines(edited, whole=True))) <= room
