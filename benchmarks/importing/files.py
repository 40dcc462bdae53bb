"""The files that are imported: a real Claude Code session, made long, or cut into many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.envs import ROOT

SAMPLE = ROOT / "tests/data/transcripts/claude-code/real-long-sidechains-summary.jsonl"
RECORDS = 10
"""Of a small file."""

_NAMED = ("uuid", "parentUuid", "requestId")


class _Sample:
    """The sample, split at what has to be new in each copy of it."""

    def __init__(self) -> None:
        self.lines = [row for row in SAMPLE.read_bytes().split(b"\n") if row.strip()]
        self.records: list[dict[str, Any]] = [json.loads(row) for row in self.lines]
        speaking = [record for record in self.records if "uuid" in record]
        self.session = next(str(record["sessionId"]) for record in speaking)
        main = [str(record["uuid"]) for record in speaking if not record["isSidechain"]]
        self.first, self.last = main[0], main[-1]
        self._ids = re.compile("|".join(sorted(_ids(speaking))).encode())

    def pieces(self, rows: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Texts between ids, and the ids; the file is them in turns."""
        data = b"\n".join(rows) + b"\n"
        return self._ids.split(data), self._ids.findall(data)


def _ids(records: list[dict[str, Any]]) -> set[str]:
    found: set[str] = set()
    for record in records:
        found.update(record[name] for name in _NAMED if record.get(name))
        message = record["message"]
        found.add(message.get("id"))
        content = message["content"]
        for block in content if isinstance(content, list) else ():
            found.update((block.get("id"), block.get("tool_use_id")))
    return {re.escape(each) for each in found if each}


def renamed(id: bytes, copy: int) -> bytes:
    """An id of the same kind and length, of this copy alone."""
    head, _, tail = id.rpartition(b"_")
    mark = b"%08x" % copy
    return head + b"_" + mark + tail[8:] if head else mark + tail[8:]


def long_session(path: Path, size: int) -> int:
    """One session of about `size` bytes: the sample again and again, each copy going on where the
    one before ended. The bytes written."""
    sample = _Sample()
    rows = sample.lines
    root = b'"parentUuid":null,"isSidechain":false'
    texts, ids = sample.pieces([row for row in rows if b'"uuid"' in row])
    written, copy = 0, 0
    with path.open("wb") as file:
        while written < size:
            copy += 1
            data = _joined(texts, [renamed(id, copy) for id in ids])
            if copy > 1:
                last = renamed(sample.last.encode(), copy - 1)
                data = data.replace(root, b'"parentUuid":"%s","isSidechain":false' % last, 1)
            written += file.write(data)
    return written


def _joined(texts: list[bytes], ids: list[bytes]) -> bytes:
    both: list[bytes] = [*texts, *ids]
    both[::2], both[1::2] = texts, ids
    return b"".join(both)


def small_sessions(folder: Path, count: int) -> int:
    """Sessions of ten records of the sample's main conversation each. The bytes of all."""
    sample = _Sample()
    speaking = [
        row
        for row, record in zip(sample.lines, sample.records, strict=True)
        if record.get("isSidechain") is False
    ]
    texts, ids = sample.pieces(speaking[:RECORDS])
    written = 0
    for number, place in zip(range(1, count + 1), _places(folder), strict=False):
        data = _joined(texts, [renamed(id, number) for id in ids])
        session = renamed(sample.session.encode(), number)
        data = data.replace(sample.session.encode(), session)
        written += (place / f"{session.decode()}.jsonl").write_bytes(data)
    return written


def _places(folder: Path) -> Iterator[Path]:
    """A folder for each hundred, as for projects."""
    number = 0
    while True:
        place = folder / f"-src-project-{number}"
        place.mkdir(parents=True)
        yield from (place for _ in range(100))
        number += 1
