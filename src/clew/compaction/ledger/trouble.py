"""What an output tells of failure: exit codes, lines of errors, counts of tests."""

from __future__ import annotations

import re

from clew.compaction.ledger.sentences import ends

MOST_OUTPUT = 30_000
"""Characters of an output that are searched for errors, at its start and as many at its end."""

_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_code|returncode|return code|exitCode)"
    r"[\"']?\s{0,3}[:=]?\s{0,3}(-?\d{1,5})\b",
    re.I,
)
_TROUBLE = (
    "Error", "Exception", "Traceback", "FAIL", "fatal:", "panic:", "error:", "error[", "error TS",
    "failed with", " failed", " errors", "ENOENT", "EACCES", "ENOSPC", "ECONN", "EADDRINUSE",
    "SIGKILL", "OOM", "egmentation fault", "command not found", "No such file", "ermission denied",
    "not found:", "ould not ", "annot find",
)  # fmt: skip
"""What a line that tells of an error has in it. Looked for one by one, which is many times faster
than one expression of all."""
_STATUS = re.compile(r"\b\d+ (?:passed|failed|errors?|warnings?|tests?)\b.{0,80}", re.I)
_NONE = re.compile(r"\b(?:0|no|No|zero) (?:errors?|failed|failures?)\b")
"""What tells that nothing failed."""
_FAILS = re.compile(
    r"\s{0,20}(?:error|failed|could not|cannot|exception|traceback|invalid)\b", re.I
)


def says_failed(text: str) -> bool:
    """Whether an answer begins by saying that it failed."""
    return _FAILS.match(text) is not None


def status_of(text: str) -> str:
    """How many tests passed and failed, as the end of an output tells, or ""."""
    found = _STATUS.search(text, max(0, len(text) - 4_000))
    return found[0].strip() if found else ""


def first_line(text: str) -> str:
    return next((line.strip() for line in text[:2_000].splitlines() if line.strip()), "failed")


def exit_code(text: str) -> int | None:
    """The exit code that an output tells, at its end or its start."""
    for part in (text[-600:], text[:300]) if len(text) > 600 else (text,):
        found = _EXIT.findall(part)
        if found:
            return int(found[-1])
    return None


def errors_of(text: str) -> tuple[str, str]:
    """The first and the last line that tell of an error; empty when there are none."""
    if len(text) > 2 * MOST_OUTPUT:
        text = text[:MOST_OUTPUT] + "\n" + text[-MOST_OUTPUT:]
    text = _NONE.sub("", text)
    starts = [at for word in _TROUBLE if (at := _find(text, word)) >= 0]
    if not starts:
        return "", ""
    ends = [at for word in _TROUBLE if (at := text.rfind(word)) >= 0]
    return _line_at(text, min(starts)), _line_at(text, max([*ends, min(starts)]))


def _find(text: str, word: str) -> int:
    """Where a word first stands, not as the beginning of a longer name ("ErrorBox")."""
    at = text.find(word)
    for _ in range(8):
        after = text[at + len(word) : at + len(word) + 1]
        if at < 0 or not (word[-1].isalpha() and word[0].isupper() and after.isalpha()):
            return at
        at = text.find(word, at + 1)
    return -1


def _line_at(text: str, at: int) -> str:
    start = max(text.rfind("\n", 0, at) + 1, at - 200)
    end = text.find("\n", at, at + 300)
    return ends(text[start : end if end >= 0 else at + 300].strip(), 160)
