"""Files: which ones a call or a text names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

_PATHS = ("path", "file_path", "filename", "filepath", "file", "notebook_path", "target_file",
          "absolute_path", "relative_workspace_path", "filePath", "target", "old_path", "new_path",
          "source", "destination")  # fmt: skip
_EDITS = re.compile(r"edit|write|creat|replac|insert|patch|append|delet|remove|renam|move|updat|"
                    r"modif|save|touch", re.I)  # fmt: skip
EDIT_WORDS = frozenset(("create", "str_replace", "insert", "write", "edit", "replace", "append",
                         "undo_edit", "delete", "rename"))  # fmt: skip
_DELETES = re.compile(r"delet|remove|unlink", re.I)
_PATCHED = re.compile(r"^\*\*\* (Update File|Add File|Delete File|Move to): (.{1,300})$", re.M)
_DIFFED = re.compile(r"^\+\+\+ (?:b/)?([^\s]{1,300})", re.M)
_EXTENSION = re.compile(
    r"\.(?:pyi?|jsx?|tsx?|mjs|cjs|go|rs|java|kt|rb|php|cc?|cpp|h|hpp|cs|swift|md|rst|txt|jsonl?|"
    r"ya?ml|toml|ini|cfg|sh|sql|s?css|html|vue|svelte|lock|ipynb|csv|xml|proto|tf)(?![\w/]|\.\w)"
)
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@+~/")
_BARE_FILES = ("Makefile", "Dockerfile", "LICENSE", "README")


def touched(name: str, arguments: Mapping[str, Any], raw: str) -> Iterator[tuple[str, str]]:
    """(path, "edited" or "read" or "deleted") for the files that the arguments of a call name."""
    state = _done_by(name, arguments.get("command"))
    for key in _PATHS:
        value = arguments.get(key)
        if isinstance(value, str) and is_file(value):
            yield value, state
    for key in ("paths", "files", "file_paths"):
        value = arguments.get(key)
        for path in cast(list[Any], value)[:200] if isinstance(value, list) else ():
            if isinstance(path, str) and is_file(path):
                yield path, state
    if "*** " in raw:
        yield from _patched(raw)
    elif "patch" in name.lower() and "+++ " in raw:
        yield from ((path, "edited") for path in _DIFFED.findall(_lines(raw)))


def _done_by(name: str, word: object) -> str:
    """What a tool does to a file, by its name and by the `command` that it is given."""
    if isinstance(word, str) and word in (*EDIT_WORDS, "view"):
        return "read" if word == "view" else "deleted" if word == "delete" else "edited"
    if _DELETES.search(name):
        return "deleted"
    return "edited" if is_edit(name) else "read"


def is_edit(name: str) -> bool:
    """Whether a tool edits, as its name says."""
    return _EDITS.search(name) is not None


def _patched(raw: str) -> Iterator[tuple[str, str]]:
    before = ""
    for what, path in _PATCHED.findall(_lines(raw)):
        if what == "Move to":
            yield before, "deleted"
        before = path.strip()
        yield before, "deleted" if what == "Delete File" else "edited"


def _lines(raw: str) -> str:
    return raw.replace("\\n", "\n") if "\n" not in raw else raw


def is_file(path: str) -> bool:
    """Whether a path names a file rather than a folder or a pattern."""
    name = path.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    if not name or len(path) > 300 or "*" in path or "\n" in path:
        return False
    return "." in name.strip(".") or name in _BARE_FILES


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
