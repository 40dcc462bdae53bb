"""clew as the benchmarks use it: the public API only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw

import clew
from benchmarks.adapters import Adapter
from benchmarks.workload import Chat, ChatMessage
from clew.domain.chat import draft_of
from clew.domain.messages import Draft

PROFILE = "bench"
_BATCH = 1_000


class ClewAdapter(Adapter):
    """One store, conversations by title."""

    def open(self, path: str) -> None:
        self.store = clew.open(path)
        self.profile = self.store.profile(PROFILE)
        self._by_name: dict[str, clew.Conversation] = {}

    def create(self, name: str) -> None:
        self._by_name[name] = self.profile.create(source="cli", title=name)

    def native(self, message: ChatMessage) -> Draft:
        return draft_of(message)

    def append(self, name: str, messages: Sequence[Draft]) -> None:
        self._by_name[name].append(messages)

    def read(self, name: str) -> int:
        return len(self._by_name[name].context_inputs().messages)

    def version(self) -> str:
        return f"clew {clew.__version__}, SQLite {apsw.sqlite_lib_version()}"

    def close(self) -> None:
        self.store.close()

    def conversation(self, name: str) -> clew.Conversation:
        """The handle of a conversation made here."""
        return self._by_name[name]


def write(path: Path | str, chats: Iterable[Chat]) -> None:
    """Write whole conversations with large appends, which store the same rows as small ones."""
    adapter = ClewAdapter()
    adapter.open(str(path))
    for chat in chats:
        adapter.create(chat.name)
        drafts = [adapter.native(message) for message in chat.messages]
        for start in range(0, len(drafts), _BATCH):
            adapter.append(chat.name, drafts[start : start + _BATCH])
    adapter.close()


def create(path: Path | str, names: Iterable[str]) -> None:
    """Make empty conversations."""
    write(path, (Chat(name, []) for name in names))


def index(path: Path | str) -> None:
    """Bring the search file up to date."""
    with clew.open(path) as store:
        store.search_index.catch_up()
        assert store.search_index.status().state == "ready"


def maintain(path: Path | str) -> None:
    """Housekeeping: trains the dictionary when it is due, and indexes."""
    with clew.open(path) as store:
        store.maintain()
    index(path)


def files(path: Path) -> list[Path]:
    """All files of a store: its folder holds nothing else."""
    return [found for found in path.parent.iterdir() if found.is_file()]
