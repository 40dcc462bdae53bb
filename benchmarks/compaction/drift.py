"""ctxdrift: files that a real session has touched and that its compaction no longer names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks.compaction import kit, sessions
from benchmarks.compaction.ledger import written
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Reading, Target

_ROOM = 12_000
_TAIL = 8
"""Messages kept as they are, by both sides."""
_BEFORE = 0.65
"""Share of the session that is compacted; of the rest, what comes next is shown to the kit."""
_AFTER = 120
_FILES = {"pi": sessions.PI, "claude_code": sessions.CLAUDE_CODE}
_MARK = "This session is being continued from a previous conversation.\n<summary>\n{}\n</summary>"


def drift(bench: Bench) -> Readings:
    """Each session compacted once at 65 %, by clew and by keeping the last messages alone."""
    with kit.start("ctxdrift", "drift", bench.folder) as running:
        for label, name in _FILES.items():
            chat = sessions.chat(name)
            border = round(len(chat) * _BEFORE)
            ours = written(chat[: border - _TAIL], _ROOM).text
            told, bare = (
                running.run("audit", records=_session(chat, border, text))
                for text in (ours, "The last messages follow.")
            )
            note = f"{len(chat)} messages, {len(ours):,} characters for {border - _TAIL}"
            missing = float(told["edited"]["missing"])
            yield (
                f"drift_{label}_edited",
                Reading(missing, missing, bare["edited"]["missing"], "files", note=note),
            )
            for kind, name in (("all", "read"), ("read", "opened")):
                yield f"drift_{label}_{name}", _reading(told[kind], bare[kind])


def _reading(told: dict[str, int], bare: dict[str, int]) -> Reading:
    share = _share(told)
    note = f"{told['missing']} of {told['due']}"
    return Reading(share, share, _share(bare), "%", note=note)


def _share(counts: dict[str, int]) -> float:
    return 100 * counts["missing"] / counts["due"] if counts["due"] else 0.0


def _session(chat: Sequence[dict[str, Any]], border: int, summary: str) -> list[dict[str, Any]]:
    """The session as a file of Claude Code: before, the summary, the tail, and what came next."""
    before, tail = chat[:border], chat[border - _TAIL : border + _AFTER]
    told = {"role": "user", "content": _MARK.format(summary)}
    return [*_records(before), *_records([told]), *_records(tail)]


def _records(chat: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A record for each text, call and result: the kit looks at the first block of a record."""
    found: list[dict[str, Any]] = []
    for message in chat:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks: list[dict[str, Any]] = []
        if message["role"] == "tool":
            blocks.append(
                {
                    "type": "tool_result",
                    "tool_use_id": message["tool_call_id"],
                    "content": message["content"],
                }
            )
        elif message["content"]:
            blocks.append({"type": "text", "text": message["content"]})
        for call in message.get("tool_calls", ()):
            function = call["function"]
            used = {"type": "tool_use", "id": call["id"], "name": function["name"]}
            blocks.append({**used, "input": _arguments(function["arguments"])})
        found += [{"type": role, "message": {"role": role, "content": [b]}} for b in blocks]
    return found


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    return value if isinstance(value, dict) else {"text": text}


_SIDES = ("clew", "keep the last")
DRIFT = Job(
    "ctxdrift",
    drift,
    tuple(
        target
        for label, says in (("pi", "a pi session"), ("claude_code", "a Claude Code session"))
        for target in (
            Target(
                f"drift_{label}_edited", 0, "files", sides=_SIDES,
                says=f"ctxdrift, {says}: edited files that the compaction does not name",
            ),
            Target(
                f"drift_{label}_read", 25, "%", sides=_SIDES,
                says=f"ctxdrift, {says}: files read, named in output too, that it does not name",
            ),
            Target(
                f"drift_{label}_opened", None, "%", sides=_SIDES,
                says=f"ctxdrift, {says}: files opened by a tool that it does not name",
            ),
        )
    ),
)  # fmt: skip
