"""ctxdrift: the files that a session has touched and that its summary does not name."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctxdrift
import wire

_COUNT = re.compile(r"\d+")
_TOOLS = {"edited": ctxdrift.WRITE_TOOLS, "read": ctxdrift.READ_TOOLS}


def audit(records: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Of all files, of those edited and of those read before the compaction: how many are not
    touched again after it (`due`), and how many of these the summary leaves out (`missing`)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        events = ctxdrift.parse_jsonl(str(path))
    (border,) = ctxdrift.find_compactions(events)
    found = {"all": _counts(events, [border])}
    for name, tools in _TOOLS.items():
        kept = [
            event
            for event in events
            if event.line_no >= border.line_no
            or (event.kind == "tool_call" and event.tool in tools)
        ]
        found[name] = _counts(kept, [border])
    return found


def _counts(events: Sequence[Any], borders: list[Any]) -> dict[str, int]:
    """What rules CD02 and CD04 say; their lists of examples are cut short, their counts are not."""
    says = {finding.rule: finding.message for finding in ctxdrift.analyze(events, borders)}

    def count(rule: str) -> int:
        said = _COUNT.match(says.get(rule, ""))
        return int(said[0]) if said else 0

    return {"due": count("CD02"), "missing": count("CD04")}


if __name__ == "__main__":
    wire.serve({"audit": audit})
