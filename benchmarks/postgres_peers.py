"""Adapters of the peers on PostgreSQL. They run in the peers' own environments (see peers.py).

Each is given the URL of a database of its own, and what favours it most: a connection per client,
and for LangGraph a saver per client, since one saver serves one caller at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from benchmarks.adapters import Adapter
from benchmarks.peers import Langgraph
from benchmarks.workload import ChatMessage

_CLIENTS = 8
_PENDING: ContextVar[list[Any]] = ContextVar("pending")
"""What the nodes of a graph have yet to say in this turn."""


def _versions(*packages: str) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


class SQLAlchemy(Adapter):
    """SQLAlchemySession on asyncpg: an object per conversation, one engine for all."""

    asynchronous = True

    def open(self, path: str) -> None:
        engine = import_module("sqlalchemy.ext.asyncio").create_async_engine
        address = urlsplit(path)._replace(scheme="postgresql+asyncpg").geturl()
        self._engine = engine(address, pool_size=_CLIENTS)
        self._make = import_module("agents.extensions.memory").SQLAlchemySession
        self._sessions: dict[str, Any] = {}

    async def create(self, name: str) -> None:
        """Reading makes the tables, if they are not there."""
        made = self._make(name, engine=self._engine, create_tables=True)
        await made.get_items(1)
        self._sessions[name] = made

    async def append(self, name: str, messages: Sequence[ChatMessage]) -> None:
        await self._sessions[name].add_items(list(messages))

    async def read(self, name: str) -> int:
        return len(await self._sessions[name].get_items())

    def version(self) -> str:
        return _versions("openai-agents", "sqlalchemy", "asyncpg")

    async def close(self) -> None:
        await self._engine.dispose()


class LanggraphPostgres(Langgraph):
    """PostgresSaver. A message alone is one `put` of the checkpoint that holds the conversation so
    far: the least that keeps it. A turn of four is what a graph does: five checkpoints, in sync.
    """

    one_by_one = True

    def open(self, path: str) -> None:
        """A saver and a graph per client, connected as LangGraph's own constructor does it."""
        saver = import_module("langgraph.checkpoint.postgres").PostgresSaver
        self._empty = import_module("langgraph.checkpoint.base").empty_checkpoint
        self._messages = import_module("langchain_core.messages")
        self._held = ExitStack()
        connect = saver.from_conn_string
        self._savers = [self._held.enter_context(connect(path)) for _ in range(_CLIENTS)]
        self._savers[0].setup()
        self._apps = [self._graph().compile(checkpointer=saver) for saver in self._savers]
        self._threads: dict[str, _Thread] = {}

    def create(self, name: str) -> None:
        where = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        client = len(self._threads) % _CLIENTS
        self._threads[name] = _Thread(client, where, self._empty())

    def append(self, name: str, messages: Sequence[Any]) -> None:
        thread = self._threads[name]
        if len(messages) == 1:
            self._put(thread, messages[0])
            return
        first, *rest = messages
        _PENDING.set(rest)
        app = self._apps[thread.client]
        app.invoke({"messages": [first]}, self._config(name), durability="sync")

    def _put(self, thread: _Thread, message: Any) -> None:
        saver, last = self._savers[thread.client], thread.checkpoint
        said = [*last["channel_values"].get("messages", ()), message]
        number = saver.get_next_version(last["channel_versions"].get("messages"), None)
        thread.checkpoint = {
            **self._empty(),
            "channel_values": {"messages": said},
            "channel_versions": {"messages": number},
        }
        about = {"source": "loop", "step": len(said), "parents": {}}
        thread.where = saver.put(thread.where, thread.checkpoint, about, {"messages": number})

    def _next(self) -> Any:
        return _PENDING.get().pop(0)

    def read(self, name: str) -> int:
        found = self._savers[0].get_tuple(self._config(name))
        return len(found.checkpoint["channel_values"]["messages"])

    def version(self) -> str:
        return _versions("langgraph", "langgraph-checkpoint-postgres", "psycopg")

    def close(self) -> None:
        self._held.close()


@dataclass
class _Thread:
    """A conversation: its client, and its newest checkpoint."""

    client: int
    where: dict[str, Any]
    checkpoint: dict[str, Any]


ADAPTERS: dict[str, type[Adapter]] = {
    "langgraph-postgres": LanggraphPostgres,
    "openai-agents-sqlalchemy": SQLAlchemy,
}
