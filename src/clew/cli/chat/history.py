"""What was typed before: a file of its own for each profile, that only its owner may read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from prompt_toolkit.history import History

from clew.cli.chat.place import write_private
from clew.config.place import home

KEPT = 2000
"""Entries that are read back."""
LARGEST = 2 * 1024 * 1024
"""Bytes from which the file is written anew, without the oldest."""
LONGEST = 20_000
"""Characters of an entry; a longer one is not kept: nobody looks for it by its words."""


def history_path(profile: str) -> Path:
    """The file of a profile. A name that is none for a file is hashed."""
    plain = profile.replace("-", "").replace("_", "").isalnum() and profile.isascii()
    name = profile if plain and len(profile) < 100 else sha256(_bytes(profile)).hexdigest()[:32]
    return home() / "history" / f"{name}.jsonl"


class ChatHistory(History):
    """One JSON string a line, newest last. Text that begins with a blank is not kept, as in a
    shell; a file that cannot be read or written is as good as none."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - LARGEST))
                lines = file.read().splitlines()[-KEPT:]
        except OSError:
            return
        entries = [*filter(None, map(_entry, lines))]
        if size >= LARGEST:
            self._rewrite(entries)
        yield from reversed(entries)

    def append_string(self, string: str) -> None:
        """Add an entry, unless it is to be forgotten."""
        if string[:1] not in ("", " ") and len(string) <= LONGEST:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """At the end of the file."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(os.open(self._path, flags, 0o600), "w", encoding="ascii") as file:
                file.write(json.dumps(string) + "\n")

    def _rewrite(self, entries: list[str]) -> None:
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            write_private(new, "".join(json.dumps(entry) + "\n" for entry in entries))
            os.replace(new, self._path)


def _entry(line: bytes) -> str:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
