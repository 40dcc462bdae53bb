"""What was done with tools: files, commands with their outcomes, errors and what mended them.

Names of tools and of their arguments differ between agents, so both are read by what they mean in
any of them: `path`, `file_path`, `filename`..., `command`, `cmd`..., a patch as text, and what a
tool's answer says about the file that is open.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec

from clew.compaction.ledger.rows import Row
from clew.compaction.ledger.sentences import clip
from clew.domain.messages import Message
from clew.domain.parts import Text, ToolCall, ToolResult, result_text

MOST_ARGUMENTS = 400_000
"""Bytes of arguments that are parsed; longer ones are looked at as text."""
MOST_OUTPUT = 30_000
"""Characters of an output that are searched for errors, at its start and as many at its end."""

_PATHS = ("path", "file_path", "filename", "filepath", "file", "notebook_path", "target_file",
          "absolute_path", "relative_workspace_path", "filePath", "target", "old_path", "new_path",
          "source", "destination")  # fmt: skip
_COMMANDS = ("command", "cmd", "script", "keystrokes", "shell_command", "commandLine", "code")
_EDITS = re.compile(r"edit|write|creat|replac|insert|patch|append|delet|remove|renam|move|updat|"
                    r"modif|save|touch", re.I)  # fmt: skip
_EDIT_WORDS = frozenset(("create", "str_replace", "insert", "write", "edit", "replace", "append",
                         "undo_edit", "delete", "rename"))  # fmt: skip
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.{1,300})$", re.M)
_DIFFED = re.compile(r"^\+\+\+ (?:b/)?([^\s]{1,300})", re.M)
_OPEN = re.compile(r"\(Open file: ([^)\n]{1,300})\)")
_FILE = r"(?:[\w@.+~-]{0,80}/){0,12}[\w@.+-]{1,80}\.[A-Za-z]\w{0,7}"
_SHELL_EDIT = re.compile(
    r"(?:>>?\s*|\btee\s+(?:-a\s+)?|"
    r"\bsed\s+-i\S*\s+(?:'[^'\n]{0,300}'|\"[^\"\n]{0,300}\"|\S{1,200})\s+|"
    r"\b(?:git\s+)?(?:mv|rm)\s+(?:-\w+\s+)*(?:[^\s;|&]{1,200}\s+)?|"
    rf"\btouch\s+)[\"']?(?P<path>/?{_FILE})"
)  # fmt: skip
_SHELL_READ = re.compile(
    rf"\b(?:cat|head|tail|less|more|bat|nl|wc|sed\s+-n|view|open)\s+(?:-\S+\s+|\d+\s+|"
    rf"'[^'\n]{{0,60}}'\s+){{0,4}}[\"']?(?P<path>/?{_FILE})"
)
_EXTENSION = re.compile(
    r"\.(?:pyi?|jsx?|tsx?|mjs|cjs|go|rs|java|kt|rb|php|cc?|cpp|h|hpp|cs|swift|md|rst|txt|jsonl?|"
    r"ya?ml|toml|ini|cfg|sh|sql|s?css|html|vue|svelte|lock|ipynb|csv|xml|proto|tf)(?![\w/]|\.\w)"
)
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@+~/")
_MOST_SEEN = 3_000
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
_LOOKS = re.compile(
    r"(?:[\w./-]*/)?(?:grep|rg|ag|cat|head|tail|less|ls|find|fd|sed -n|wc|nl|tree|"
    r"git (?:show|diff|log|blame|grep|status)|diff|echo|which|awk|jq|stat|file|du|pwd)\b"
)
"""Commands that only look: what they print is no error of theirs, and exit 1 is "found nothing"."""
_STATUS = re.compile(r"\b\d+ (?:passed|failed|errors?|warnings?|tests?)\b.{0,80}", re.I)


class Call(NamedTuple):
    """One call and, once known, its answer."""

    seq: int
    at: int | None
    name: str
    arguments: dict[str, Any]
    raw: str


class _Run:
    """All runs of one command."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.times = 0
        self.row: Row | None = None


class Doings:
    """Gathers files, commands and errors of messages, in their order."""

    def __init__(self) -> None:
        self.files: dict[str, Row] = {}
        self._errors: list[Row] = []
        self._runs: dict[str, _Run] = {}
        self._calls: dict[str, Call] = {}
        self._failing: dict[str, int] = {}  # what failed -> its place in errors
        self._edited_since: dict[str, list[str]] = {}

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
        return (run.row for run in self._runs.values() if run.row is not None)

    def errors(self) -> Iterator[Row]:
        """Of each thing that failed its last two failures, with what mended them."""
        newest = Counter[str | None]()
        kept: list[Row] = []
        for row in reversed(self._errors):
            newest[row.slot] += 1
            if newest[row.slot] <= 2:
                kept.append(row)
        return reversed(kept)

    # ------------------------------------------------------------------ calls

    def _call(self, message: Message, part: ToolCall) -> None:
        call = Call(message.seq, message.created_at or None, part.name, arguments(part),
                    part.arguments)  # fmt: skip
        self._calls[part.id] = call
        for path, edited in touched(call):
            self._file(path, "edited" if edited else "read", call)
        if command := command_of(call):
            for match in _SHELL_EDIT.finditer(command[:20_000]):
                self._file(match["path"], "edited", call)
            for match in _SHELL_READ.finditer(command[:20_000]):
                self._file(match["path"], "read", call)
            self._ran(command, call, "", None)

    def _file(self, path: str, state: str, call: Call) -> None:
        path = path.strip().strip("\"'")
        if not path or len(path) > 300 or "\n" in path:
            return
        old = self.files.get(path)
        seqs: tuple[int, ...] = ()
        if old is not None:
            if old.state == "edited" and state != "edited":
                return
            if old.state == state:
                seqs = tuple(s for s in (*old.was, old.seq) if s != call.seq)[-3:]
        self.files[path] = Row("file", path, call.seq, f"path:{path}", None, call.at, seqs, state)
        if state == "edited":
            for names in self._edited_since.values():
                if path not in names and len(names) < 3:
                    names.append(path)

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
            self._file(match[1], "edited" if _EDITS.search(call.name) else "read", call)
        command = command_of(call)
        code = exit_code(text)
        looks = command is not None and looks_only(command)
        first, last = ("", "") if looks and not code else errors_of(text)
        failed = _failed(part, command, text, code, first)
        if command is not None:
            self._ran(command, call, text, code, failed)
        self._fails(command, call, first if failed else "", last, failed, code, text)

    def _ran(
        self, command: str, call: Call, text: str, code: int | None, failed: bool = False
    ) -> None:
        key = " ".join(command.split())[:300]
        run = self._runs.setdefault(key, _Run(clip(key, 140)))
        if not text and code is None:
            run.times += 1
        state = (
            f"exit {code}" if code is not None else "failed" if failed else "ok" if text else None
        )
        outcome = ""
        if text:
            status = _STATUS.search(text, max(0, len(text) - 4_000))
            outcome = status[0].strip() if status else ""
        times = f" ×{run.times}" if run.times > 1 else ""
        tail = "; ".join(x for x in (state if state != "ok" else "", clip(outcome, 80)) if x)
        line = f"`{run.text}`{times}" + (f" -> {tail}" if tail else "")
        if looks_only(command):
            state = "looked"
        run.row = Row("command", line, call.seq, f"command:{key}", None, call.at, (), state)

    def _fails(
        self, command: str | None, call: Call, first: str, last: str, failed: bool,
        code: int | None, text: str,
    ) -> None:  # fmt: skip
        key = " ".join(command.split())[:300] if command else f"{call.name} {_target(call)}"
        place = self._failing.get(key)
        if not failed:
            if place is not None:
                old = self._errors[place]
                since = self._edited_since.pop(key, [])
                how = f" after editing {', '.join(since)}" if since else ""
                self._errors[place] = msgspec.structs.replace(
                    old, text=f"{old.text}; mended{how} [@{call.seq}]", state="fixed"
                )
                del self._failing[key]
            return
        lines = first or _first_line(text)
        if last and last != first:
            lines = f"{lines} … {last}"
        what = f"`{clip(key, 80)}`" if command else clip(key, 80).strip()
        shown = f"{what}{f' exit {code}' if code else ''}: {clip(lines, 200)}"
        row = Row("error", shown, call.seq, f"error:{key}", None, call.at, (), "open")
        self._edited_since[key] = []
        if place is not None:
            self._errors[place] = row
        else:
            self._failing[key] = len(self._errors)
            self._errors.append(row)


def _failed(part: ToolResult, command: str | None, text: str, code: int | None, first: str) -> bool:
    """Whether a call failed, as far as its answer tells."""
    if command is None:
        return part.is_error or _FAILS.match(text) is not None
    if looks_only(command) and (code or 0) <= 1:
        return False
    return part.is_error or (code or 0) != 0 or (code is None and bool(first))


def looks_only(command: str) -> bool:
    """Whether a command only shows something, as its first program does."""
    head = command.lstrip()
    for _ in range(3):
        if head.startswith("cd ") and "&&" in head[:300]:
            head = head.partition("&&")[2].lstrip()
    return _LOOKS.match(head) is not None


_FAILS = re.compile(
    r"\s{0,20}(?:error|failed|could not|cannot|exception|traceback|invalid)\b", re.I
)


def named(text: str) -> Iterator[str]:
    """Names and paths of files that a text has: found by their extension, then read backwards."""
    before = 0
    for match in _EXTENSION.finditer(text):
        start = match.start()
        least = max(before, start - 160)
        while start > least and text[start - 1] in _NAME:
            start -= 1
        path = text[start : match.end()]
        before = match.end()
        if not path.startswith(("//", ".", "-", "+")) or path.startswith(("./", "../")):
            path = path.lstrip("./") if path.startswith(".") else path
            if path[:1] not in ("", "-") and not path.startswith(match[0]):
                yield path


def _target(call: Call) -> str:
    return next((path for path, _ in touched(call)), "")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text[:2_000].splitlines() if line.strip()), "failed")


def arguments(part: ToolCall) -> dict[str, Any]:
    """The arguments of a call as a mapping; {} when they are none."""
    if len(part.arguments) > MOST_ARGUMENTS or not part.arguments.lstrip().startswith("{"):
        return {}
    try:
        value = msgspec.json.decode(part.arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def touched(call: Call) -> Iterator[tuple[str, bool]]:
    """(path, edited) for the files that a call names."""
    edits = _EDITS.search(call.name) is not None
    word = call.arguments.get("command")
    if isinstance(word, str) and word in _EDIT_WORDS:
        edits = True
    elif isinstance(word, str) and word == "view":
        edits = False
    for key in _PATHS:
        value = call.arguments.get(key)
        if isinstance(value, str) and is_file(value):
            yield value, edits
    for key in ("paths", "files", "file_paths"):
        value = call.arguments.get(key)
        for path in cast(list[Any], value)[:200] if isinstance(value, list) else ():
            if isinstance(path, str) and is_file(path):
                yield path, edits
    if "*** " in call.raw:
        text = call.raw.replace("\\n", "\n") if "\n" not in call.raw else call.raw
        yield from ((path.strip(), True) for path in _PATCHED.findall(text))
    elif "patch" in call.name.lower() and "+++ " in call.raw:
        text = call.raw.replace("\\n", "\n") if "\n" not in call.raw else call.raw
        yield from ((path, True) for path in _DIFFED.findall(text))


_BARE_FILES = ("Makefile", "Dockerfile", "LICENSE", "README")


def is_file(path: str) -> bool:
    """Whether a path names a file rather than a folder or a pattern."""
    name = path.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    if not name or len(path) > 300 or "*" in path or "\n" in path:
        return False
    return "." in name.strip(".") or name in _BARE_FILES


def command_of(call: Call) -> str | None:
    """The command that a call runs, or None."""
    for key in _COMMANDS:
        value = call.arguments.get(key)
        if isinstance(value, list):
            items = [str(word) for word in cast(list[Any], value)]
            if items[:2] in (["bash", "-lc"], ["bash", "-c"], ["sh", "-c"]):
                items = items[2:]
            return " ".join(items) or None
        if isinstance(value, str) and value.strip() and value not in _EDIT_WORDS | {"view"}:
            return value.strip()
    return None


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
    return clip(text[start : end if end >= 0 else at + 300].strip(), 160)
